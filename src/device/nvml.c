/* The few entries of the management library that are read. */
#include "device/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_SENSOR_GPU = 0 };

static const struct {
    uint64_t bit;
    const char *name;
} reasons[] = {
    {0x02, "application clocks"}, {0x04, "power cap"},        {0x08, "hardware slowdown"},
    {0x10, "sync boost"},         {0x20, "software thermal"}, {0x40, "hardware thermal"},
    {0x80, "power brake"},        {0x100, "display clocks"},
};

static uint64_t known_reasons(void) {
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        all |= reasons[i].bit;
    return all;
}

static void *entry(void *lib, const char *name, const char *older) {
    void *p = dlsym(lib, name);
    return p || !older ? p : dlsym(lib, older);
}

void nvml_open(struct nvml *n, const char *uuid) {
    memset(n, 0, sizeof *n);
    void *lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(n->why, sizeof n->why, "libnvidia-ml.so.1 cannot be loaded");
        return;
    }
    int (*init)(void) = (int (*)(void))entry(lib, "nvmlInit_v2", NULL);
    int (*find)(const char *, void **) =
        (int (*)(const char *, void **))entry(lib, "nvmlDeviceGetHandleByUUID", NULL);
    *(void **)&n->clock = entry(lib, "nvmlDeviceGetClockInfo", NULL);
    *(void **)&n->power = entry(lib, "nvmlDeviceGetPowerUsage", NULL);
    *(void **)&n->temperature = entry(lib, "nvmlDeviceGetTemperature", NULL);
    *(void **)&n->reasons = entry(lib, "nvmlDeviceGetCurrentClocksEventReasons",
                                  "nvmlDeviceGetCurrentClocksThrottleReasons");
    *(void **)&n->memory = entry(lib, "nvmlDeviceGetMemoryInfo", NULL);
    if (!init || !find || !n->clock || !n->power || !n->temperature || !n->reasons) {
        snprintf(n->why, sizeof n->why, "libnvidia-ml.so.1 lacks entries");
        return;
    }
    int code = init();
    if (code == 0)
        code = find(uuid, &n->device);
    if (code != 0) {
        n->device = NULL;
        snprintf(n->why, sizeof n->why, "NVML error %d", code);
    }
}

void nvml_read(const struct nvml *n, struct nvml_reading *out) {
    unsigned long long mask = 0;
    memset(out, 0, sizeof *out);
    if (!n->device)
        return;
    out->known = n->clock(n->device, NVML_CLOCK_SM, &out->sm_mhz) == 0;
    n->clock(n->device, NVML_CLOCK_MEMORY, &out->memory_mhz);
    n->power(n->device, &out->power_mw);
    n->temperature(n->device, NVML_SENSOR_GPU, &out->celsius);
    if (n->reasons(n->device, &mask) == 0)
        out->slowed = mask & known_reasons();
}

size_t nvml_free_bytes(const struct nvml *n) {
    unsigned long long total_free_used[3] = {0};
    if (!n->device || !n->memory || n->memory(n->device, total_free_used) != 0)
        return 0;
    return total_free_used[1];
}

str *nvml_slowed(uint64_t mask, struct arena *a, size_t *n) {
    str *list = arena_array(a, str, sizeof reasons / sizeof *reasons);
    *n = 0;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (mask & reasons[i].bit)
            list[(*n)++] = str_view(reasons[i].name);
    return list;
}
