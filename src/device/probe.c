#include "device/probe.h"

#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_LIMIT_MS 20000

struct answer {
    bool ok;
    struct gpu_found found;
    char why[256];
};

/* The few entries of the driver API that are asked; CUresult is an int, 0 is success. */
typedef int cu_init_fn(unsigned flags);
typedef int cu_int_fn(int *out);
typedef int cu_device_fn(int *device, int ordinal);
typedef int cu_name_fn(char *name, int len, int device);
typedef int cu_memory_fn(size_t *bytes, int device);
typedef int cu_attribute_fn(int *value, int attribute, int device);
enum { CU_CC_MAJOR = 75, CU_CC_MINOR = 76 };

static void *entry(void *lib, const char *name, struct answer *a) {
    void *p = dlsym(lib, name);
    if (!p)
        snprintf(a->why, sizeof a->why, "libcuda.so.1 has no %s", name);
    return p;
}

static void ask_driver(struct answer *a) {
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    if (!lib) {
        snprintf(a->why, sizeof a->why, "no NVIDIA driver: libcuda.so.1 cannot be loaded");
        return;
    }
    cu_init_fn *init = (cu_init_fn *)entry(lib, "cuInit", a);
    cu_int_fn *version = (cu_int_fn *)entry(lib, "cuDriverGetVersion", a);
    cu_int_fn *count = (cu_int_fn *)entry(lib, "cuDeviceGetCount", a);
    cu_device_fn *get = (cu_device_fn *)entry(lib, "cuDeviceGet", a);
    cu_name_fn *name = (cu_name_fn *)entry(lib, "cuDeviceGetName", a);
    cu_memory_fn *memory = (cu_memory_fn *)entry(lib, "cuDeviceTotalMem_v2", a);
    cu_attribute_fn *attribute = (cu_attribute_fn *)entry(lib, "cuDeviceGetAttribute", a);
    if (!init || !version || !count || !get || !name || !memory || !attribute)
        return;
    struct gpu_found *f = &a->found;
    size_t bytes = 0;
    int device, rc = init(0);
    if (rc || version(&f->driver) || count(&f->count)) {
        snprintf(a->why, sizeof a->why, "the driver does not initialise (CUDA error %d)", rc);
        return;
    }
    if (!f->count) {
        snprintf(a->why, sizeof a->why, "a driver, but no GPU that it shows to this process");
        return;
    }
    a->ok = !get(&device, 0) && !name(f->name, sizeof f->name, device) && !memory(&bytes, device) &&
            !attribute(&f->cc_major, CU_CC_MAJOR, device) &&
            !attribute(&f->cc_minor, CU_CC_MINOR, device);
    f->memory_bytes = bytes;
    if (!a->ok)
        snprintf(a->why, sizeof a->why, "the driver does not answer for GPU 0");
}

static bool wait_answer(int fd, struct answer *a) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, PROBE_LIMIT_MS) == 1 && read(fd, a, sizeof *a) == (ssize_t)sizeof *a;
}

bool gpu_probe(struct gpu_found *out, struct err *err) {
    struct answer a;
    int fds[2];
    if (pipe(fds) < 0)
        return err_errno(err, ERR_ENV, "pipe");
    pid_t pid = fork();
    if (pid == 0) {
        memset(&a, 0, sizeof a);
        ask_driver(&a);
        _exit(write(fds[1], &a, sizeof a) != (ssize_t)sizeof a);
    }
    close(fds[1]);
    bool answered = pid > 0 && wait_answer(fds[0], &a);
    close(fds[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    if (!answered)
        return err_set(err, ERR_ENV, "the driver did not answer within %d s",
                       PROBE_LIMIT_MS / 1000);
    if (!a.ok)
        return err_set(err, ERR_ENV, "%s", a.why);
    *out = a.found;
    return true;
}
