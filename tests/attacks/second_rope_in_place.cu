// task: second_rope.task
// tries: a thread for each element of a head reads its partner and writes itself, in place, with nothing between: right in lockstep while a head fits a warp
// proof: race: heads of more than 32 elements span warps; within a warp the order of a lane's store and another's load is not promised either
// shows: T=2 H=1 D=48
// should: race wrong
// device: both
//! launch k<<<T*H, 2*D>>>(q, c, s, H, D)
//! require D <= 512
extern "C" __global__ void k(float *q, const float *c, const float *s, int h, int d) {
    float *p = q + (int64_t)blockIdx.x * 2 * d;
    int e = threadIdx.x, t = blockIdx.x / h, f = e % d;
    float a = p[e], b = p[(e + d) % (2 * d)];
    float cs = c[(int64_t)t * d + f], sn = s[(int64_t)t * d + f];
    p[e] = e < d ? a * cs - b * sn : a * cs + b * sn;
}
