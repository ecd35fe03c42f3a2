/* The roles around a device, each the main function of a process of its own. They sandbox
 * themselves, say hello, serve until end of file, and end the process with its exit code. */
#ifndef DEVICE_ROLE_H
#define DEVICE_ROLE_H

#include "base/json.h"
#include "base/sandbox.h"
#include "target/gpu.h"

enum device_kind { DEVICE_SIM, DEVICE_CUDA };

/* What --device names: "sim", "sim:h200", "sim:FILE.gpu", "cuda", "cuda:1". */
struct device_name {
    char text[512]; /* canonical; a GPU from a file is named by its path */
    enum device_kind kind;
    int ordinal;           /* CUDA: which GPU */
    const struct gpu *gpu; /* CUDA: NULL until somebody has asked the driver (device/probe.h) */
};
/* Where one worker runs: its device, and the command before `worker …` that leads there,
 * NULL-terminated; NULL: this program, here. */
struct worker_place {
    const char *const *command;
    struct device_name device;
};
/* A GPU's facts that came from a file live in the arena. */
bool device_name_parse(const char *text, struct arena *a, struct device_name *out, struct err *err);

/* Frames on stdin and stdout, which are moved away first. start_ms: in which device and judge say
 * hello, or are started again. */
int worker_main(const struct device_name *d, unsigned threads, unsigned start_ms);
#define WORKER_START_MS 60000 /* a context on a busy machine takes seconds */
/* Socket on ROLE_FD. */
int device_main(const struct device_name *d, unsigned threads); /* the one of its kind below */
int sim_device_main(const struct gpu *g, unsigned threads);
int cuda_device_main(int ordinal);

/* Sandboxed to nothing but the descriptors at hand; with a GPU, to what the driver needs: it reads
 * files, opens /dev/nvidia* and local sockets, and starts nothing. */
bool role_sandbox(bool gpu, struct sandbox_report *out, struct err *err);
extern const char *const role_gpu_paths[]; /* what the driver writes to; NULL-terminated */
/* The first frame. `device` says what a GPU is; taken, may be NULL. */
bool role_hello(int fd, const char *role, const struct sandbox_report *sandbox, json *device,
                struct err *err);
/* Both, for roles without a GPU. */
bool role_enter(int fd, const char *role, struct err *err);
json *sandbox_to_json(const struct sandbox_report *s);
/* Checks a peer's first frame: its role, protocol and build. */
bool role_check_hello(const json *head, const char *role, struct err *err);

#endif
