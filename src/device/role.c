#include "device/role.h"

#include "base/frame.h"
#include "device/wire.h"

#include <stdio.h>
#include <unistd.h>

static bool parse_sim(const char *text, str gpu, struct arena *a, struct device_name *out,
                      struct err *err) {
    const char *path;
    if (!gpu_named(gpu, a, &out->gpu, &path, err))
        return false;
    int n = snprintf(out->text, sizeof out->text, "sim:%s", path ? path : out->gpu->name);
    return (size_t)n < sizeof out->text || err_set(err, ERR_INPUT, "--device %s: too long", text);
}

static bool parse_cuda(const char *text, str ordinal, struct device_name *out, struct err *err) {
    uint64_t n;
    if (!str_to_u64(ordinal, &n) || n > 255)
        return err_set(err, ERR_INPUT, "--device %s: after 'cuda:' comes the number of a GPU",
                       text);
    out->ordinal = (int)n;
    snprintf(out->text, sizeof out->text, "cuda:%d", out->ordinal);
    return true;
}

bool device_name_parse(const char *text, struct arena *a, struct device_name *out,
                       struct err *err) {
    str s = str_view(text), kind = s, which = {0};
    size_t colon = str_find(s, S(":"));
    bool named = colon < s.n;
    *out = (struct device_name){0};
    if (named) {
        kind = str_cut(s, 0, colon);
        which = str_from(s, colon + 1);
    }
    out->kind = str_is(kind, "cuda") ? DEVICE_CUDA : DEVICE_SIM;
    if (out->kind == DEVICE_CUDA)
        return parse_cuda(text, named ? which : S("0"), out, err);
    if (str_is(kind, "sim"))
        return parse_sim(text, named ? which : S("h200"), a, out, err);
    return err_set(err, ERR_INPUT,
                   "--device %s: expected cuda or cuda:N, a GPU here, or sim or sim:GPU, the "
                   "simulator",
                   text);
}

json *sandbox_to_json(const struct sandbox_report *s) {
    json *j = json_object();
    json_set_bool(j, "no_new_privs", s->active & SANDBOX_NO_NEW_PRIVS);
    json_set_bool(j, "seccomp", s->active & SANDBOX_SECCOMP);
    json_set_bool(j, "landlock", s->active & SANDBOX_LANDLOCK);
    json_set_bool(j, "namespaces", s->active & SANDBOX_NAMESPACES);
    json_set_bool(j, "processes", s->active & SANDBOX_PROCESSES);
    json_set_str(j, "missing", str_view(s->missing));
    return j;
}

const char *const role_gpu_paths[] = {"/proc/self",      "/dev/nvidiactl",
                                      "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                                      "/dev/nvidia0",    "/dev/nvidia1",
                                      "/dev/nvidia2",    "/dev/nvidia3",
                                      "/dev/nvidia4",    "/dev/nvidia5",
                                      "/dev/nvidia6",    "/dev/nvidia7",
                                      "/dev/null",       NULL};

bool role_sandbox(bool gpu, struct sandbox_report *out, struct err *err) {
    static const char *const nothing[] = {NULL}, *const all[] = {"/", NULL};
    struct sandbox_policy policy = {.read_only = gpu ? all : nothing,
                                    .read_write = gpu ? role_gpu_paths : nothing,
                                    .unix_sockets = gpu,
                                    .devices = gpu};
    return sandbox_enter(&policy, out, err);
}

bool role_hello(int fd, const char *role, const struct sandbox_report *sandbox, json *device,
                struct err *err) {
    json *hello = json_object();
    json_set_str(hello, "role", str_view(role));
    json_set_i64(hello, "protocol", WIRE_VERSION);
    json_set_str(hello, "build", S(CUTEPILOT_VERSION));
    json_set_i64(hello, "pid", getpid());
    json_set(hello, "sandbox", sandbox_to_json(sandbox));
    if (device)
        json_set(hello, "device", device);
    bool ok = frame_write(fd, WIRE_HELLO, hello, (str){0}, NULL, 0, err);
    json_free(hello);
    return ok || err_wrap(err, "%s: hello", role);
}

bool role_enter(int fd, const char *role, struct err *err) {
    struct sandbox_report report;
    if (!role_sandbox(false, &report, err))
        return err_wrap(err, "%s: sandbox", role);
    return role_hello(fd, role, &report, NULL, err);
}

int device_main(const struct device_name *d, unsigned threads) {
    return d->kind == DEVICE_CUDA ? cuda_device_main(d->ordinal) : sim_device_main(d->gpu, threads);
}

bool role_check_hello(const json *head, const char *role, struct err *err) {
    str is = {0}, build = {0};
    int64_t protocol = 0;
    json_get_str(head, "role", &is);
    json_get_str(head, "build", &build);
    json_get_i64(head, "protocol", &protocol);
    if (!str_is(is, role))
        return err_set(err, ERR_ENV, "expected a %s, got '%.*s'", role, STR_ARG(is));
    if (protocol != WIRE_VERSION || !str_is(build, CUTEPILOT_VERSION))
        return err_set(err, ERR_ENV,
                       "the %s is cutepilot %.*s (protocol %lld), this is %s (protocol %d): "
                       "install the same version on both sides",
                       role, STR_ARG(build), (long long)protocol, CUTEPILOT_VERSION, WIRE_VERSION);
    return true;
}
