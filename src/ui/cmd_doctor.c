/* doctor: what was found, what each missing part costs, and the one line that fixes it. A check is
 * one function and one row. Exit code 3 when kernels cannot be compiled and run at all, or a model
 * provider that was named does not answer. */
#include "agent/llm/key.h"
#include "base/child.h"
#include "base/file.h"
#include "base/loop.h"
#include "base/sandbox.h"
#include "base/say.h"
#include "device/probe.h"
#include "kernel/build.h"
#include "ui/doctor_call.h"
#include "ui/provider_ui.h"
#include "ui/ui.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_MS = 10000 }; /* for a program to say its version */

enum health { HEALTH_OK, HEALTH_PARTLY, HEALTH_MISSING };

struct finding {
    enum health health;
    char found[3072];
    const char *costs; /* what the user goes without; NULL: nothing */
    const char *fix;   /* one line; NULL: nothing to do */
};

typedef void check_fn(struct finding *f);

/* The first line: a finding has a fix line of its own. */
static void found_error(struct finding *f, const struct err *err) {
    f->health = HEALTH_MISSING;
    snprintf(f->found, sizeof f->found, "%.*s", (int)strcspn(err->text, "\n"), err->text);
}

static void check_gpu(struct finding *f) {
    struct cuda_facts g;
    struct err err = {0};
    if (gpu_probe(0, &g, &err)) {
        snprintf(f->found, sizeof f->found,
                 "%s, compute capability %d.%d, %.0f GiB, driver for "
                 "CUDA %d.%d%s",
                 g.name, g.cc_major, g.cc_minor, (double)g.memory_bytes / (1 << 30),
                 g.driver / 1000, g.driver % 1000 / 10, g.count > 1 ? ", and others" : "");
        return;
    }
    found_error(f, &err);
    f->costs = "kernels run on the simulator and their times are estimates";
    f->fix = "run on a machine with an NVIDIA GPU and its driver";
}

static void check_nvrtc(struct finding *f) {
    struct nvrtc_root root;
    struct err err = {0};
    if (nvrtc_find(&root, &err) && nvrtc_probe(&root, &err)) {
        snprintf(f->found, sizeof f->found, "%d.%d at %s (from %s; at least %d.%d is needed)",
                 root.major, root.minor, root.library, root.origin, NVRTC_MIN_MAJOR,
                 NVRTC_MIN_MINOR);
        return;
    }
    found_error(f, &err);
    f->costs = "nothing can be compiled: optimize and verify do not work";
    f->fix = "tools/setup build, or CUTEPILOT_CUDA=/path/to/a/CUDA-13/toolkit";
}

static void check_cutlass(struct finding *f) {
    struct nvrtc_root root;
    struct err err = {0};
    if (nvrtc_find(&root, &err) && *root.cutlass) {
        snprintf(f->found, sizeof f->found, "%s", root.cutlass);
        return;
    }
    f->health = HEALTH_MISSING;
    snprintf(f->found, sizeof f->found, "no CUTLASS/CuTe headers");
    f->costs = "kernels cannot include cute/ or cutlass/";
    f->fix = "tools/setup build, or CUTEPILOT_CUTLASS=/path/to/cutlass/include";
}

/* The words a program prints on stdout in time, first line. */
static bool first_line(const char *const *argv, char *out, size_t n) {
    struct err err = {0};
    int fds[2], null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct child child;
    size_t got = 0;
    if (null < 0)
        return false;
    if (!pipe_pair(fds, &err)) {
        close(null);
        return false;
    }
    struct child_fd map[] = {{null, 0}, {fds[1], 1}, {null, 2}};
    struct child_spec spec = {.argv = argv, .fds = map, .nfds = 3};
    bool ok = child_start(&spec, &child, &err);
    close(fds[1]);
    close(null);
    uint64_t end = clock_ms() + LINE_MS;
    for (uint64_t now = clock_ms(); ok && got + 1 < n && now < end; now = clock_ms()) {
        struct pollfd p = {.fd = fds[0], .events = POLLIN};
        ssize_t k = poll(&p, 1, (int)(end - now)) == 1 ? read(fds[0], out + got, n - 1 - got) : 0;
        if (k <= 0)
            break;
        got += (size_t)k;
    }
    close(fds[0]);
    if (ok) {
        child_kill(child.pid);
        child_wait(&child);
    }
    out[got] = 0;
    out[strcspn(out, "\r\n")] = 0;
    return ok && *out;
}

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    str rest = str_view(path), dir;
    char full[1024];
    while (str_word(&rest, ':', &dir)) {
        snprintf(full, sizeof full, "%.*s/%s", STR_ARG(dir), program);
        if (dir.n && access(full, X_OK) == 0)
            return true;
    }
    return false;
}

static bool counters_for_root_only(void) {
    struct arena *a = arena_new(1 << 20);
    struct err err = {0};
    str text;
    int fd = open("/proc/driver/nvidia/params", O_RDONLY | O_CLOEXEC);
    bool only = fd >= 0 && file_read_fd(fd, 1 << 16, a, &text, &err) &&
                str_find(text, S("RmProfilingAdminOnly: 1")) < text.n;
    if (fd >= 0)
        close(fd);
    arena_free(a);
    return only;
}

static void check_ncu(struct finding *f) {
    bool have = in_path("ncu"), refused = counters_for_root_only() && geteuid() != 0;
    if (have && !refused) {
        snprintf(f->found, sizeof f->found, "ncu, and no restriction on counters%s",
                 file_exists("/proc/driver/nvidia/params") ? "" : " (without a GPU to use it on)");
        return;
    }
    f->health = HEALTH_MISSING;
    snprintf(f->found, sizeof f->found, "%s",
             have ? "ncu, but counters are for root only" : "no ncu in PATH");
    f->costs = "no hardware counters; the simulator's exact counts serve instead";
    f->fix = have ? "set NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or be root"
                  : "install NVIDIA Nsight Compute";
}

static void check_sandbox(struct finding *f) {
    struct sandbox_report r;
    sandbox_probe(&r);
    snprintf(f->found, sizeof f->found, "%s%s%s%s%s%s",
             r.active & SANDBOX_SECCOMP ? "seccomp " : "",
             r.active & SANDBOX_LANDLOCK ? "Landlock " : "",
             r.active & SANDBOX_NAMESPACES ? "namespaces " : "",
             r.active & SANDBOX_NO_NEW_PRIVS ? "no-new-privileges" : "", *r.missing ? "; " : "",
             r.missing);
    if (*r.missing) {
        f->health = HEALTH_PARTLY;
        f->costs = "compilers, devices and judges are confined less";
        f->fix = "use Linux 6.7 or newer with Landlock and user namespaces enabled";
    }
}

static void check_torch(struct finding *f) {
    static const char *const argv[] = {
        "python3", "-c",
        "import torch,sys;print(torch.__version__, 'on Python', sys.version.split()[0])", NULL};
    char line[256] = "";
    if (first_line(argv, line, sizeof line)) {
        snprintf(f->found, sizeof f->found, "PyTorch %.200s", line);
        return;
    }
    f->health = HEALTH_MISSING;
    snprintf(f->found, sizeof f->found, "python3 without torch");
    f->costs = "no import of modules, no task check, no speedup against PyTorch; "
               "verification does not need it";
    f->fix = "pip install torch, in the environment whose python3 comes first in PATH";
}

static void check_slurm(struct finding *f) {
    static const char *const argv[] = {"srun", "--version", NULL};
    char line[256] = "";
    if (in_path("srun") && first_line(argv, line, sizeof line)) {
        snprintf(f->found, sizeof f->found, "%.200s", line);
        return;
    }
    f->health = HEALTH_MISSING;
    snprintf(f->found, sizeof f->found, "no srun in PATH");
    f->costs = "workers run here, or behind another --worker-command";
}

static void check_keys(struct finding *f) {
    const char *name;
    size_t at = 0;
    for (size_t i = 0; (name = key_variable(i)); i++)
        if (getenv(name) && *getenv(name))
            at +=
                (size_t)snprintf(f->found + at, sizeof f->found - at, "%s%s", at ? ", " : "", name);
    snprintf(f->found + at, sizeof f->found - at, "%s",
             at ? " set; used only where a provider is named"
                : "no key of a model server is set; the built-in expert needs none");
}

static const struct check_row {
    const char *name;
    check_fn *run;
    bool needed; /* without it nothing works */
} checks[] = {
    {"GPU and driver", check_gpu, false},   {"NVRTC", check_nvrtc, true},
    {"CUTLASS/CuTe", check_cutlass, false}, {"ncu", check_ncu, false},
    {"sandbox", check_sandbox, false},      {"Python/PyTorch", check_torch, false},
    {"Slurm", check_slurm, false},          {"model keys", check_keys, false},
};

static const char *const health_names[] = {"ok", "partly", "missing"};

static json *finding_json(const char *name, const struct finding *f) {
    json *j = json_object();
    json_set_str(j, "name", str_view(name));
    json_set_str(j, "status", str_view(health_names[f->health]));
    json_set_str(j, "found", str_view(f->found));
    if (f->costs)
        json_set_str(j, "costs", str_view(f->costs));
    if (f->fix)
        json_set_str(j, "fix", str_view(f->fix));
    return j;
}

static void print_finding(const char *name, const struct finding *f) {
    say("%-16s %-8s %s\n", name, health_names[f->health], f->found);
    if (f->costs)
        say("%-16s %-8s costs: %s\n", "", "", f->costs);
    if (f->fix)
        say("%-16s %-8s fix:   %s\n", "", "", f->fix);
    fflush(stdout);
}

static void tell(const struct ui *ui, const char *name, const struct finding *f, json *all) {
    json_push(all, finding_json(name, f));
    if (!ui->as_json)
        print_finding(name, f);
}

/* Only where a provider is named: it may cost money. */
static bool check_call(struct ui *ui, const struct provider_options *o, json *all) {
    struct finding f = {0};
    struct err err = {0};
    bool ok = doctor_call(o, f.found, sizeof f.found, &err);
    if (!ok) {
        const char *hint = strstr(err.text, "\nhint: ");
        found_error(&f, &err);
        f.costs = "no kernel is written by this model";
        f.fix = hint ? hint + strlen("\nhint: ") : "see docs/MODELS.md";
    }
    tell(ui, "model call", &f, all);
    return ok;
}

int cmd_doctor(struct ui *ui) {
    struct provider_options o;
    struct err err = {0};
    bool usable = true, whole = true;
    if (!ui_provider_options(ui, &o, &err))
        return ui_fail(ui, &err);
    json *all = json_array();
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        struct finding f = {0};
        checks[i].run(&f);
        usable &= !checks[i].needed || f.health != HEALTH_MISSING;
        whole &= f.health == HEALTH_OK;
        tell(ui, checks[i].name, &f, all);
    }
    if (o.kind)
        usable &= check_call(ui, &o, all);
    bool written = true;
    if (ui->as_json) {
        json *j = json_object();
        json_set_str(j, "version", S(CUTEPILOT_VERSION));
        json_set_bool(j, "usable", usable);
        json_set(j, "checks", all);
        written = ui_print_json(j);
    } else {
        say("\n%s\n", !usable ? "cutepilot cannot do its work yet: see the lines `fix` above."
                      : whole ? "cutepilot is ready, and nothing is missing."
                              : "cutepilot is ready; what is missing above is optional.");
        json_free(all);
    }
    return written && usable ? 0 : 3;
}
