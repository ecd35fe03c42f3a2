/* The roles around a device, each the main function of a process of its own. They sandbox
 * themselves, say hello, serve until end of file, and end the process with its exit code. */
#ifndef DEVICE_ROLE_H
#define DEVICE_ROLE_H

#include "base/json.h"
#include "base/sandbox.h"
#include "target/gpu.h"

/* What --device names: "sim", "sim:h200". */
struct device_name {
    char text[64]; /* canonical */
    const struct gpu *gpu;
};
bool device_name_parse(const char *text, struct device_name *out, struct err *err);

/* Frames on stdin and stdout, which are moved away first. */
int worker_main(const struct device_name *d, unsigned threads);
/* Socket on ROLE_FD. */
int device_main(const struct device_name *d, unsigned threads);

/* Shared by the roles: sandboxed to nothing but the descriptors at hand, hello said on fd. */
bool role_enter(int fd, const char *role, struct err *err);
json *sandbox_to_json(const struct sandbox_report *s);
/* Checks a peer's first frame: its role, protocol and build. */
bool role_check_hello(const json *head, const char *role, struct err *err);

#endif
