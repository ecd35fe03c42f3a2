/* The driver's side of the device room, without a GPU: layouts, verdicts, facts, ceilings and
 * shared memory, over fake_cuda.c where something has to answer. */
#include "base/file.h"
#include "device/ceilings.h"
#include "device/harness.h"
#include "device/probe.h"
#include "device/vmm.h"
#include "tests/tap.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Of NVIDIA's cuda.h for CUDA 13.0, printed by a program that includes it. */
static void test_layouts(void) {
    static const struct {
        const char *what;
        size_t ours, theirs;
    } rows[] = {
        {"CUmemAllocationProp", sizeof(struct cu_memory_prop), 32},
        {"  requestedHandleTypes", offsetof(struct cu_memory_prop, handle_types), 4},
        {"  location", offsetof(struct cu_memory_prop, location), 8},
        {"  win32HandleMetaData", offsetof(struct cu_memory_prop, win32), 16},
        {"  allocFlags", offsetof(struct cu_memory_prop, compression), 24},
        {"CUmemAccessDesc", sizeof(struct cu_access_desc), 12},
        {"  flags", offsetof(struct cu_access_desc, flags), 8},
        {"CUlaunchConfig", sizeof(struct cu_launch_config), 56},
        {"  sharedMemBytes", offsetof(struct cu_launch_config, shared), 24},
        {"  hStream", offsetof(struct cu_launch_config, stream), 32},
        {"  attrs", offsetof(struct cu_launch_config, attributes), 40},
        {"  numAttrs", offsetof(struct cu_launch_config, nattributes), 48},
        {"CUlaunchAttribute", sizeof(struct cu_launch_attribute), 72},
        {"  value", offsetof(struct cu_launch_attribute, value), 8},
        {"CUtensorMap", sizeof(struct cu_tensor_map), 128},
        {"  alignment", _Alignof(struct cu_tensor_map), 128},
        {"CUuuid", sizeof(struct cu_uuid), 16},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        CHECKF(rows[i].ours == rows[i].theirs, "%s: %zu, not %zu", rows[i].what, rows[i].ours,
               rows[i].theirs);
}

static void test_verdicts(void) {
    static const struct {
        int code;
        enum verdict verdict;
        bool sticky;
    } rows[] = {
        {0, VERDICT_ACCEPTED, false},
        {1, VERDICT_LAUNCH_ERROR, false},   /* invalid value */
        {2, VERDICT_OUT_OF_MEMORY, false},  /* local memory of a launch, a module */
        {200, VERDICT_UNSUPPORTED, false},  /* invalid image */
        {209, VERDICT_UNSUPPORTED, false},  /* no binary for this GPU */
        {214, VERDICT_ACCEPTED, true},      /* ECC: the machine's */
        {500, VERDICT_LAUNCH_ERROR, false}, /* not found */
        {700, VERDICT_OUT_OF_BOUNDS, true}, /* illegal address */
        {701, VERDICT_LAUNCH_ERROR, false}, /* out of resources */
        {702, VERDICT_TIMEOUT, true},
        {710, VERDICT_CRASH, true}, /* assert */
        {715, VERDICT_CRASH, true}, /* illegal instruction */
        {716, VERDICT_CRASH, true}, /* misaligned address */
        {717, VERDICT_CRASH, true}, /* address space */
        {719, VERDICT_CRASH, true}, /* launch failed */
        {720, VERDICT_LAUNCH_ERROR, false},
        {801, VERDICT_UNSUPPORTED, false},
        {912, VERDICT_LAUNCH_ERROR, false}, /* cluster size */
        {999, VERDICT_CRASH, true},
        {304, VERDICT_ACCEPTED, false}, /* the operating system's */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECKF(cuda_verdict(rows[i].code) == rows[i].verdict, "code %d: %s", rows[i].code,
               verdict_name(cuda_verdict(rows[i].code)));
        CHECKF(cuda_sticky(rows[i].code) == rows[i].sticky, "code %d", rows[i].code);
    }
}

static bool opens(const char *fail, int ordinal, struct cuda *c, struct err *err) {
    *err = (struct err){0};
    if (fail)
        setenv("FAKE_CUDA_FAIL", fail, 1);
    bool ok = cuda_open(c, ordinal, err);
    unsetenv("FAKE_CUDA_FAIL");
    return ok;
}

static void test_open(void) {
    static const struct {
        const char *fail;
        int ordinal;
        const char *says; /* NULL: opens */
    } rows[] = {
        {NULL, 0, NULL},
        {NULL, 1, NULL},
        {NULL, 2, "no GPU 2: the driver shows 2"},
        {NULL, -1, "no GPU -1"},
        {"init=100", 0, "no GPU that it shows"},
        {"init=304", 0, "/dev/nvidia* and /proc"},
        {"init=803", 0, "reboot after an update"},
        {"init=999", 0, "does not initialise"},
        {"count=1", 0, "no GPU that it shows"},
        {"context=2", 0, "no context"},
        {"mode=3", 0, "'exclusive process'"},
        {"mode=2", 0, "'prohibited'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cuda c;
        struct err err;
        bool ok = opens(rows[i].fail, rows[i].ordinal, &c, &err);
        CHECKF(ok == !rows[i].says, "row %zu: %s", i, err.text);
        CHECKF(!rows[i].says || strstr(err.text, rows[i].says), "row %zu: %s", i, err.text);
    }
}

static void test_fail_text(void) {
    struct cuda c;
    struct err err;
    CHECK(opens(NULL, 0, &c, &err));
    CHECK(!cuda_fail(&c, &err, 700, "kernel %s", "gemm"));
    CHECK(strcmp(err.text, "kernel gemm: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory "
                           "access was encountered") == 0);
    CHECK(cuda_try(&c, 0, &err, "nothing"));
    cu_module m;
    CHECK(cuda_module_load(&c, S("\177ELF but short"), &m) == CU_INVALID_IMAGE);
    CHECK(cuda_module_load(&c, (str){0}, &m) == CU_INVALID_IMAGE);
}

static void test_facts(void) {
    struct cuda c;
    struct cuda_facts back;
    struct err err;
    CHECK(opens(NULL, 1, &c, &err));
    CHECK(strcmp(c.facts.name, "Fake GPU 1") == 0);
    CHECK(strcmp(c.facts.uuid, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1") == 0);
    CHECK(c.facts.sms == 4 && c.facts.cc_major == 9 && c.facts.vmm && !c.facts.multicast);
    json *j = fields_to_json(&cuda_facts_fields, &c.facts);
    CHECK(fields_from_json(&cuda_facts_fields, j, NULL, &back, &err));
    CHECK(memcmp(&back, &c.facts, sizeof back) == 0);
    json_set_i64(j, "sms", -1);
    CHECK(!fields_from_json(&cuda_facts_fields, j, NULL, &back, &err));
    json_set_i64(j, "sms", INT64_C(1) << 40);
    CHECK(!fields_from_json(&cuda_facts_fields, j, NULL, &back, &err));
    json_free(j);
    j = json_object();
    CHECK(!fields_from_json(&cuda_facts_fields, j, NULL, &back, &err));
    json_free(j);
}

static void test_gpu_from_facts(void) {
    struct cuda_facts f = {.name = "NVIDIA H200", .cc_major = 9, .sms = 132, .l2_bytes = 60 << 20};
    struct gpu g;
    struct err err = {0};
    CHECK(gpu_from_facts(&f, &g, &err));
    CHECK(strcmp(g.name, "h200") == 0 && strcmp(g.arch, "sm_90a") == 0);
    CHECK(g.l2_bytes == 60 << 20 && g.dram_bytes_s == 4.8e12);
    struct cuda_facts unknown = {.name = "NVIDIA H20",
                                 .cc_major = 9,
                                 .cc_minor = 0,
                                 .sms = 78,
                                 .clock_khz = 1980000,
                                 .memory_clock_khz = 3201000,
                                 .memory_bus_bits = 6016,
                                 .max_threads_sm = 2048,
                                 .fp32_to_fp64 = 2};
    CHECK(gpu_from_facts(&unknown, &g, &err));
    CHECK(strcmp(g.arch, "sm_90a") == 0 && strcmp(g.title, "NVIDIA H20") == 0 && g.sms == 78);
    CHECK(g.dram_bytes_s > 4.7e12 && g.dram_bytes_s < 4.9e12 && !g.calibrated);
    CHECK(g.max_warps_sm == 64 && g.fp64_lanes_clk == 64);
    static const struct {
        int major, minor;
        const char *arch; /* NULL: refused */
    } rows[] = {{8, 0, "sm_80"},    {8, 6, "sm_86"},    {8, 7, "sm_87"}, {8, 9, "sm_89"},
                {10, 0, "sm_100a"}, {12, 0, "sm_120a"}, {7, 5, NULL},    {13, 0, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unknown.cc_major = rows[i].major;
        unknown.cc_minor = rows[i].minor;
        bool ok = gpu_from_facts(&unknown, &g, &err);
        CHECKF(ok == (rows[i].arch != NULL), "row %zu", i);
        CHECKF(!ok || strcmp(g.arch, rows[i].arch) == 0, "row %zu: %s", i, g.arch);
    }
}

static void test_ceilings_kept(void) {
    char dir[] = "/tmp/test-ceilings-XXXXXX";
    struct cuda_facts f = {.name = "X", .uuid = "GPU-1", .driver = 13000}, other = f;
    struct ceilings m = {1e12, 2e12, 3e12, 4e12, 5e12, 6e12, 2e-6}, back = {0};
    struct err err = {0};
    CHECK(mkdtemp(dir) != NULL);
    CHECK(!ceilings_load(dir, &f, &back, &err) && !err.kind);
    CHECK(ceilings_store(dir, &f, &m, &err));
    CHECK(ceilings_load(dir, &f, &back, &err));
    CHECK(memcmp(&m, &back, sizeof m) == 0);
    other.driver = 13010;
    CHECK(!ceilings_load(dir, &other, &back, &err) && !err.kind);
    struct arena *a = arena_new(1 << 20);
    str path = arena_printf(a, "%s/ceilings/GPU-1-13000.json", dir);
    CHECK(file_replace(path.p, S("{\"copy_bytes_s\": 0}"), &err));
    CHECK(!ceilings_load(dir, &f, &back, &err) && err.kind);
    CHECK(file_replace(path.p, S("not json"), &err));
    CHECK(!ceilings_load(dir, &f, &back, &err) && err.kind);
    CHECK(dir_remove_tree(dir, &err));
    arena_free(a);
}

static void test_ceilings_apply(void) {
    struct ceilings m = {4e12, 4.5e12, 4.6e12, 50e12, 400e12, 800e12, 2e-6};
    struct gpu g = *gpu_find(S("h200"));
    ceilings_apply(&m, &g);
    CHECK(g.copy_bytes_s == 4e12 && g.read_bytes_s == 4.5e12 && g.write_bytes_s == 4.6e12);
    CHECK(g.tf32_flops == 400e12 && g.bf16_flops == 800e12 && g.launch_s == 2e-6);
    CHECK(g.dram_bytes_s == 4.8e12);
    CHECK(fabs(g.fp32_tensor_flops / (800e12 / 3) - 1) < 1e-12);
    g.has.tcgen05 = true;
    g.bf16_flops = 2000e12;
    ceilings_apply(&m, &g);
    CHECK(g.bf16_flops == 2000e12);
    g.dram_bytes_s = 0;
    ceilings_apply(&m, &g);
    CHECK(g.dram_bytes_s > 4.6e12);
}

static void test_vmm(void) {
    struct cuda c;
    struct err err;
    struct vmm_buffer a, b, none;
    bool full = true;
    int fd;
    CHECK(opens(NULL, 0, &c, &err));
    CHECK(vmm_create(&c, 5, &a, &full, &err) && !full);
    CHECK(a.mapped == 2 << 20 && a.reserved > a.mapped);
    CHECK(a.address > a.reserved_at && a.address + a.mapped < a.reserved_at + a.reserved);
    CHECK(vmm_export(&c, &a, &fd, &err));
    CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    CHECK(vmm_import(&c, fd, a.mapped, false, &b, &err));
    close(fd);
    CHECK(a.address != b.address);
    memcpy((void *)(uintptr_t)a.address, "shared", 7);
    CHECK(strcmp((const char *)(uintptr_t)b.address, "shared") == 0);
    vmm_release(&c, &a);
    CHECK(a.address == 0 && a.memory == 0);
    CHECK(strcmp((const char *)(uintptr_t)b.address, "shared") == 0);
    vmm_release(&c, &b);
    CHECK(!vmm_import(&c, 0, 12345, false, &none, &err) && strstr(err.text, "no multiple"));
    setenv("FAKE_CUDA_FAIL", "create=1", 1);
    CHECK(!vmm_create(&c, 5, &none, &full, &err) && full && none.address == 0);
    unsetenv("FAKE_CUDA_FAIL");
    CHECK(!vmm_create(&c, SIZE_MAX - 3, &none, &full, &err));
    c.facts.vmm_fd = false;
    CHECK(!vmm_create(&c, 5, &none, &full, &err) && strstr(err.text, "cannot share memory"));
}

static void test_nvml(void) {
    struct nvml n = {0};
    struct nvml_reading r;
    nvml_read(&n, &r);
    CHECK(!r.known);
    struct arena *a = arena_new(1 << 16);
    size_t reasons;
    str *s = nvml_slowed(0x4 | 0x40 | 0x1, a, &reasons);
    CHECK(reasons == 2 && str_is(s[0], "power cap") && str_is(s[1], "hardware thermal"));
    arena_free(a);
}

static void test_probe(void) {
    struct cuda_facts f;
    struct err err = {0};
    CHECK(gpu_probe(1, &f, &err));
    CHECK(f.memory_free > 0 && f.memory_free <= f.memory_bytes);
    CHECK(f.count == 2 && f.ordinal == 1);
    CHECK(!gpu_probe(7, &f, &err) && err.kind == ERR_INPUT && strstr(err.text, "no GPU 7"));
}

/* From where one lies nobody can tell where the next does. */
static void memory_lies_at_random(void) {
    enum { SOME = 12 };
    struct cuda c;
    struct err err;
    struct vmm_buffer b[SOME];
    size_t places = 0;
    CHECK(opens(NULL, 0, &c, &err));
    for (size_t i = 0; i < SOME; i++) {
        CHECK(vmm_create(&c, 5, &b[i], NULL, &err));
        cu_address at = b[i].address - b[i].reserved_at;
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again |= at == b[k].address - b[k].reserved_at;
        places += !again;
        CHECK(at >= UINT64_C(1) << 30 && at + b[i].mapped + (UINT64_C(1) << 30) <= b[i].reserved);
        CHECK(at % b[i].mapped == 0);
    }
    CHECKF(places > SOME / 2, "%zu places of %d", places, SOME);
    for (size_t i = 0; i < SOME; i++)
        vmm_release(&c, &b[i]);
}

static const struct tap_case cases[] = {
    {"layouts are NVIDIA's", test_layouts},
    {"codes and verdicts", test_verdicts},
    {"opening, and why not", test_open},
    {"the text of a failure", test_fail_text},
    {"facts travel", test_facts},
    {"a GPU from its facts", test_gpu_from_facts},
    {"ceilings are kept", test_ceilings_kept},
    {"ceilings take the table's place", test_ceilings_apply},
    {"shared memory", test_vmm},
    {"reasons to be slow", test_nvml},
    {"the probe", test_probe},
    {"memory lies at random", memory_lies_at_random},
};

int main(void) {
    /* A library that is loaded under this name is found again by dlopen("libcuda.so.1"). */
    if (!dlopen(FAKE_CUDA, RTLD_NOW)) {
        printf("Bail out! %s\n", dlerror());
        return 1;
    }
    return tap_main(cases, sizeof cases / sizeof *cases);
}
