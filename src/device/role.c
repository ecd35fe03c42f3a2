#include "device/role.h"

#include "base/frame.h"
#include "device/wire.h"

#include <stdio.h>
#include <unistd.h>

bool device_name_parse(const char *text, struct device_name *out, struct err *err) {
    str s = str_view(text), kind = s, gpu = S("h200");
    size_t colon = str_find(s, S(":"));
    if (colon < s.n) {
        kind = str_cut(s, 0, colon);
        gpu = str_from(s, colon + 1);
    }
    if (!str_is(kind, "sim"))
        return err_set(err, ERR_INPUT,
                       "--device %s: this version runs kernels on the simulator: "
                       "use --device sim or sim:GPU",
                       text);
    out->gpu = gpu_find(gpu);
    if (!out->gpu) {
        char known[256] = "";
        for (size_t i = 0, at = 0; i < gpu_count() && at < sizeof known; i++)
            at += (size_t)snprintf(known + at, sizeof known - at, " %s", gpu_at(i)->name);
        return err_set(err, ERR_INPUT, "--device %s: unknown GPU '%.*s'; known are:%s", text,
                       STR_ARG(gpu), known);
    }
    snprintf(out->text, sizeof out->text, "sim:%s", out->gpu->name);
    return true;
}

json *sandbox_to_json(const struct sandbox_report *s) {
    json *j = json_object();
    json_set_bool(j, "no_new_privs", s->active & SANDBOX_NO_NEW_PRIVS);
    json_set_bool(j, "seccomp", s->active & SANDBOX_SECCOMP);
    json_set_bool(j, "landlock", s->active & SANDBOX_LANDLOCK);
    json_set_bool(j, "namespaces", s->active & SANDBOX_NAMESPACES);
    json_set_str(j, "missing", str_view(s->missing));
    return j;
}

bool role_enter(int fd, const char *role, struct err *err) {
    static const char *const nothing[] = {NULL};
    struct sandbox_policy policy = {.read_only = nothing, .read_write = nothing};
    struct sandbox_report report;
    if (!sandbox_enter(&policy, &report, err))
        return err_wrap(err, "%s: sandbox", role);
    json *hello = json_object();
    json_set_str(hello, "role", str_view(role));
    json_set_i64(hello, "protocol", WIRE_VERSION);
    json_set_str(hello, "build", S(CUTEPILOT_VERSION));
    json_set_i64(hello, "pid", getpid());
    json_set(hello, "sandbox", sandbox_to_json(&report));
    bool ok = frame_write(fd, WIRE_HELLO, hello, (str){0}, NULL, 0, err);
    json_free(hello);
    return ok || err_wrap(err, "%s: hello", role);
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
