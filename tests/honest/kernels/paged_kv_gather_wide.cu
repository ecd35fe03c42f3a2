// task: tasks/layers/paged_kv_gather.task
// set: N=64 S=16 H=8 D=64 B=4 P=16
// what: 16 bytes a thread, the page looked up
//! require H*D % 8 == 0
//! let W = H*D // 8
//! launch gather<<<ceil_div(B*L*W, 256), 256>>>(cache, pages, y, L, S, P, W, B*L*W)
extern "C" __global__ void gather(const void *cache, const int *pages, void *y, int length,
                                  int slots, int npages, int width, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    int w = i % width, l = i / width % length, b = i / width / length;
    int page = pages[b * npages + l / slots];
    ((uint4 *)y)[i] = ((const uint4 *)cache)[((long long)page * slots + l % slots) * width + w];
}
