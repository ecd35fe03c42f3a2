/* Records what a GPU answers: loads tests/sim/ptx/NAME.ptx, runs the kernel NAME on the inputs of
 * input.h and writes its output to FILE. Not part of the build; tests/sim/hardware/run calls it for
 * small.bin:
 *
 *     nvcc tests/sim/golden/record.c -lcuda -o record
 *     ./record tests/sim/ptx/ints.ptx ints 40 tests/sim/golden/ints.bin
 *
 * The files here were recorded on an NVIDIA H200, driver API, PTX compiled by the driver. */
#include "input.h"

#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(call)                                                                                 \
    do {                                                                                           \
        CUresult r = (call);                                                                       \
        if (r != CUDA_SUCCESS) {                                                                   \
            fprintf(stderr, "%s: error %d\n", #call, (int)r);                                      \
            exit(3);                                                                               \
        }                                                                                          \
    } while (0)

static char *read_text(const char *path) {
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    if (!f)
        exit(2);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    int words = (int)strtol(argv[3], NULL, 10), n = GOLDEN_N;
    CUdevice dev;
    CUcontext ctx;
    CUmodule mod;
    CUfunction fn;
    CUdeviceptr in, out;
    static uint32_t host[3 * GOLDEN_N], got[GOLDEN_N * 64];
    for (uint32_t k = 0; k < 3; k++)
        for (uint32_t i = 0; i < GOLDEN_N; i++)
            host[k * GOLDEN_N + i] = golden_word(i, k);
    MUST(cuInit(0));
    MUST(cuDeviceGet(&dev, 0));
    MUST(cuDevicePrimaryCtxRetain(&ctx, dev));
    MUST(cuCtxSetCurrent(ctx));
    MUST(cuModuleLoadData(&mod, read_text(argv[1])));
    MUST(cuModuleGetFunction(&fn, mod, argv[2]));
    MUST(cuMemAlloc(&in, sizeof host));
    MUST(cuMemAlloc(&out, sizeof got));
    MUST(cuMemcpyHtoD(in, host, sizeof host));
    void *args[] = {&in, &out, &n};
    MUST(cuLaunchKernel(fn, GOLDEN_N / 128, 1, 1, 128, 1, 1, 512, NULL, args, NULL));
    MUST(cuMemcpyDtoH(got, out, sizeof got));
    FILE *f = fopen(argv[4], "wb");
    if (!f || fwrite(got, 4, (size_t)words * GOLDEN_N, f) != (size_t)words * GOLDEN_N)
        return 3;
    return fclose(f) != 0;
}
