// task: tasks/gather.task
// tries: row numbers of the table are kept in 16 bits
// proof: values, V = 100000 D = 4 N = 64: rows from 65,536 on are read as others
// shows: V=100000 D=4 N=640
// before: accepted
// should: wrong inaccurate
// before-cuda: wrong, at the task's own shape
// device: both
//! launch gather<<<N, 128>>>(table, t, y, D)
extern "C" __global__ void gather(const float *table, const int *t, float *y, int d) {
    unsigned short row = t[blockIdx.x];
    for (int j = threadIdx.x; j < d; j += 128)
        y[(int64_t)blockIdx.x * d + j] = table[(int64_t)row * d + j];
}
