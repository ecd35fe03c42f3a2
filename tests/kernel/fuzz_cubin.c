/* What is read off a cubin, on any bytes: nothing outside them, and what is handed out lies in
 * them. */
#include "kernel/cubin.h"
#include "kernel/inspect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    struct arena *a = arena_new(64u << 20);
    struct kernel_facts *facts;
    size_t count;
    struct err err = {0};
    cubin_facts((str){(const char *)data, n}, a, &facts, &count, &err);
    struct cubin_variable *vars;
    size_t nvars;
    if (cubin_variables((str){(const char *)data, n}, a, &vars, &nvars, &err))
        for (size_t i = 0; i < nvars; i++) {
            const uint8_t *p = vars[i].init;
            BUG_IF(p && (p < data || p > data + n || vars[i].size > (size_t)(data + n - p)));
        }
    inspect_cubin((str){(const char *)data, n}, S(".global .b32 kept;"), a, &err);
    arena_free(a);
    return 0;
}
