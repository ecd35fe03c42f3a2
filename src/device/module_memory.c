/* See module_memory.h. */
#include "device/module_memory.h"

#include "kernel/cubin.h"
#include "kernel/inspect.h"

#include <string.h>

/* Others are not read: inspect_cubin lets them pass because nothing refers to them. */
static bool is_read(const struct cubin_variable *v) {
    return v->name.n > 0 && v->size > 0 &&
           (!v->writable || library_table(v->name, v->init, v->size));
}

static bool is_initial(const struct cubin_variable *v, const uint8_t *now) {
    if (v->init)
        return memcmp(now, v->init, v->size) == 0;
    for (size_t i = 0; i < v->size; i++)
        if (now[i])
            return false;
    return true;
}

/* NULL: *code is the driver's, for what was asked. */
static const uint8_t *content(const struct cuda *c, cu_module m, const struct cubin_variable *v,
                              struct arena *a, int *code) {
    cu_address at = 0;
    size_t bytes = 0;
    uint8_t *now = arena_alloc(a, v->size, 16);
    *code = c->module_variable(&at, &bytes, m, arena_cstr(a, v->name));
    if (*code == CU_OK && bytes < v->size)
        *code = CU_INVALID_VALUE;
    if (*code == CU_OK)
        *code = c->copy_to_host(now, at, v->size, c->stream);
    if (*code == CU_OK)
        *code = c->stream_sync(c->stream);
    return *code == CU_OK ? now : NULL;
}

bool module_memory_same(const struct cuda *c, cu_module m, str cubin, struct arena *a,
                        enum verdict *verdict, int *code, struct err *why) {
    struct cubin_variable *vars;
    size_t n;
    *verdict = VERDICT_ACCEPTED;
    if (!cubin_variables(cubin, a, &vars, &n, why))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!is_read(&vars[i]))
            continue;
        str name = str_cut(vars[i].name, 0, 200);
        const uint8_t *now = content(c, m, &vars[i], a, code);
        if (!now)
            return cuda_fail(c, why, *code, "look at '%.*s' after the runs", STR_ARG(name));
        if (!is_initial(&vars[i], now)) {
            *verdict = VERDICT_FORBIDDEN;
            return err_set(why, ERR_INPUT,
                           "'%.*s' has other content after the runs than before: constants and "
                           "tables may only be read",
                           STR_ARG(name));
        }
    }
    return true;
}
