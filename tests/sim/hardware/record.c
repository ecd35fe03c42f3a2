/* Asks a GPU what the corpus's kernels compute and writes the answers down (corpus/corpus.h).
 *
 *     record FILE [NAME...]     from the root of the repository; built and called by `run` beside
 * it
 *
 * The driver compiles the PTX that the simulator reads. A kernel that faults leaves a context that
 * nothing repairs: the rows run in a child process, and when that dies or hangs, its row is named
 * and skipped and another child goes on with the next one. The parent never touches the GPU. Rows
 * that are to end with an illegal instruction are recorded when they do. */
#include "../corpus/table.h"

#include <cuda.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 8 /* for one row, its file's compilation included */
#define SPENT      4 /* how a child ends that recorded its row and lost its context */

/* What the parent knows of a child. */
struct progress {
    volatile uint32_t row; /* the one it is at */
    volatile bool ready;   /* it has a context */
    volatile uint32_t kept, skipped;
    char text[512];
};

struct gpu {
    CUcontext context;
    CUmodule module;
    const char *file; /* the module's */
    struct progress *progress;
    FILE *out;
};

static bool say(struct gpu *g, CUresult r, const char *what) {
    const char *name = "?";
    if (r == CUDA_SUCCESS)
        return true;
    cuGetErrorName(r, &name);
    snprintf(g->progress->text, sizeof g->progress->text, "%s: %s", what, name);
    return false;
}
#define TRY(call, what) say(g, (call), (what))

static char *read_text(const char *path) {
    static char text[4 << 20];
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    return text;
}

static bool load_module(struct gpu *g, const char *file) {
    char path[256];
    static char log[200];
    if (g->file && !strcmp(g->file, file))
        return g->module || TRY(CUDA_ERROR_INVALID_PTX, "its file did not compile");
    if (g->module)
        cuModuleUnload(g->module);
    g->module = NULL;
    g->file = file;
    snprintf(path, sizeof path, "tests/sim/%s.ptx", file);
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    log[0] = 0;
    CUresult r = cuModuleLoadDataEx(&g->module, read_text(path), 2, options, values);
    if (r == CUDA_SUCCESS)
        return true;
    snprintf(g->progress->text, sizeof g->progress->text, "%s: error %d: %s", path, (int)r, log);
    g->module = NULL;
    return false;
}

static bool encode_map(struct gpu *g, const struct corpus_map *m, CUdeviceptr global,
                       CUtensorMap *map) {
    cuuint64_t extent[5], pitch[5] = {0};
    cuuint32_t box[5], step[5];
    for (uint32_t i = 0; i < m->rank; i++) {
        extent[i] = m->extent[i];
        box[i] = m->box[i];
        step[i] = m->step[i];
        if (i)
            pitch[i - 1] = m->pitch[i];
    }
    return TRY(cuTensorMapEncodeTiled(
                   map, (CUtensorMapDataType)m->type, m->rank, (void *)global, extent, pitch, box,
                   step, CU_TENSOR_MAP_INTERLEAVE_NONE, (CUtensorMapSwizzle)m->swizzle,
                   CU_TENSOR_MAP_L2_PROMOTION_NONE, (CUtensorMapFloatOOBfill)m->nan),
               "cuTensorMapEncodeTiled");
}

struct launch {
    CUfunction fn;
    CUdeviceptr at[CORPUS_BUFFERS];
    CUtensorMap maps[CORPUS_MAPS];
    void *args[CORPUS_MAPS + CORPUS_BUFFERS + CORPUS_INTS];
};
static uint32_t host[CORPUS_MAX_WORDS];

static bool prepare(struct gpu *g, const struct corpus_row *r, struct launch *l) {
    unsigned n = 0;
    if (!load_module(g, r->file) ||
        !TRY(cuModuleGetFunction(&l->fn, g->module, r->kernel), "no such kernel") ||
        !TRY(cuFuncSetAttribute(l->fn, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                (int)r->shared),
             "shared memory"))
        return false;
    for (uint32_t b = 0; b < CORPUS_BUFFERS && r->buffers[b].words; b++) {
        size_t bytes = (size_t)4 * r->buffers[b].words;
        corpus_fill(r, b, host);
        if (!TRY(cuMemAlloc(&l->at[b], bytes), "cuMemAlloc") ||
            !TRY(cuMemcpyHtoD(l->at[b], host, bytes), "cuMemcpyHtoD"))
            return false;
    }
    for (uint32_t m = 0; m < CORPUS_MAPS && r->maps[m].rank; m++) {
        if (!encode_map(g, &r->maps[m], l->at[r->maps[m].buffer], &l->maps[m]))
            return false;
        l->args[n++] = &l->maps[m];
    }
    for (uint32_t b = 0; b < CORPUS_BUFFERS && r->buffers[b].words; b++)
        l->args[n++] = &l->at[b];
    for (uint32_t i = 0; i < r->nints; i++)
        l->args[n++] = (void *)&r->ints[i];
    return true;
}

static bool write_answer(struct gpu *g, const struct corpus_row *r, uint32_t n) {
    static struct corpus_answer a;
    corpus_answer(r, host, n, &a);
    fwrite(&a, 1, CORPUS_HEAD, g->out);
    fwrite(a.digest, 4, a.ndigests, g->out);
    fwrite(a.sample, 4, a.nsample, g->out);
    return fflush(g->out) == 0;
}

/* Ends the process after an error of the kernel: the context is lost. */
static void launch(struct gpu *g, const struct corpus_row *r, struct launch *l) {
    CUresult e = r->cooperative
                     ? cuLaunchCooperativeKernel(l->fn, r->grid[0], r->grid[1], r->grid[2],
                                                 r->block, 1, 1, r->shared, NULL, l->args)
                     : cuLaunchKernel(l->fn, r->grid[0], r->grid[1], r->grid[2], r->block, 1, 1,
                                      r->shared, NULL, l->args, NULL);
    if (!TRY(e, "launch"))
        _exit(1);
    e = cuCtxSynchronize();
    if (r->illegal && e == CUDA_ERROR_ILLEGAL_INSTRUCTION && write_answer(g, r, 0)) {
        g->progress->kept++;
        _exit(SPENT);
    }
    if (!TRY(e, "the kernel"))
        _exit(1);
}

static bool keep(struct gpu *g, const struct corpus_row *r, const struct launch *l) {
    uint32_t n = 0;
    for (uint32_t b = 0; b < CORPUS_BUFFERS; b++)
        if (r->buffers[b].out) {
            if (!TRY(cuMemcpyDtoH(host + n, l->at[b], (size_t)4 * r->buffers[b].words),
                     "cuMemcpyDtoH"))
                return false;
            n += r->buffers[b].words;
        }
    return write_answer(g, r, n);
}

static void record_row(struct gpu *g, const struct corpus_row *r) {
    static struct launch l;
    memset(&l, 0, sizeof l);
    bool ok = prepare(g, r, &l);
    if (ok) {
        launch(g, r, &l);
        ok = keep(g, r, &l);
    }
    for (uint32_t b = 0; b < CORPUS_BUFFERS; b++)
        if (l.at[b])
            cuMemFree(l.at[b]);
    g->progress->kept += ok;
    g->progress->skipped += !ok;
    if (!ok)
        printf("skipped %s: %s\n", corpus_name(r), g->progress->text);
}

static bool wanted(const char *name, int n, char **names) {
    for (int i = 0; i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return n == 0;
}

static int child(struct progress *p, uint32_t first, FILE *out, int nnames, char **names) {
    struct gpu own = {.progress = p, .out = out}, *g = &own;
    CUdevice device;
    if (!TRY(cuInit(0), "cuInit") || !TRY(cuDeviceGet(&device, 0), "cuDeviceGet") ||
        !TRY(cuDevicePrimaryCtxRetain(&g->context, device), "context") ||
        !TRY(cuCtxSetCurrent(g->context), "context"))
        return 2;
    p->ready = true;
    char name[128] = "";
    if (first == 0 && TRY(cuDeviceGetName(name, sizeof name, device), "name"))
        printf("%s\n", name);
    for (uint32_t i = first; i < CORPUS_ROWS; i++) {
        p->row = i;
        if (wanted(corpus_name(&corpus[i]), nnames, names))
            record_row(g, &corpus[i]);
    }
    return 0;
}

/* The child's exit status; -1: it was killed, by a signal or because it stood still. */
static int attend(pid_t pid, struct progress *p) {
    uint32_t row = p->row;
    int status;
    for (time_t since = time(NULL); waitpid(pid, &status, WNOHANG) == 0; usleep(20000)) {
        if (p->row != row) {
            row = p->row;
            since = time(NULL);
        } else if (time(NULL) - since > PATIENCE_S) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            snprintf(p->text, sizeof p->text, "it did not come back within %d s", PATIENCE_S);
            return -1;
        }
    }
    if (WIFEXITED(status))
        return WEXITSTATUS(status);
    snprintf(p->text, sizeof p->text, "signal %d", WTERMSIG(status));
    return -1;
}

int main(int argc, char **argv) {
    FILE *out = argc > 1 ? fopen(argv[1], "wb") : NULL;
    struct progress *p =
        mmap(NULL, sizeof *p, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!out || p == MAP_FAILED) {
        fprintf(stderr, "usage: record FILE [NAME...]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a child that dies has said what it had to say */
    for (uint32_t first = 0; first < CORPUS_ROWS; first = p->row + 1) {
        p->ready = false;
        p->row = first;
        pid_t pid = fork();
        if (pid == 0)
            _exit(child(p, first, out, argc - 2, argv + 2));
        int status = attend(pid, p);
        if (status == 0)
            break;
        if (status == SPENT)
            continue;
        if (!p->ready) {
            fprintf(stderr, "record: %s\n", p->text);
            return 3;
        }
        printf("skipped %s: %s\n", corpus_name(&corpus[p->row]), p->text);
        p->skipped++;
    }
    printf("%u rows recorded, %u skipped\n", p->kept, p->skipped);
    return fclose(out) != 0;
}
