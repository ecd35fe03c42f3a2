/* The lines, as ptxas 13 writes them:
 *
 *     ptxas info    : Function properties for NAME
 *     ptxas         .     48 bytes stack frame, 52 bytes spill stores, 60 bytes spill loads
 */
#include "kernel/ptxas_log.h"

/* Is it "ptxas info    : " and then one of these? */
static bool is_statistic(str line) {
    static const char *const kinds[] = {"Compiling entry function", "Function properties for",
                                        "Used ", "Compile time ="};
    if (!str_starts(line, S("ptxas info")))
        return false;
    str rest = str_trim(str_from(line, str_find(line, S(":")) + 1));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_starts(rest, str_view(kinds[i])))
            return true;
    return str_ends(rest, S(" bytes gmem")) || str_find(rest, S(" bytes gmem, ")) < rest.n;
}

/* The number before `what`. */
static bool number_before(str line, str what, int64_t *out) {
    size_t end = str_find(line, what), at = end;
    while (at > 0 && line.p[at - 1] >= '0' && line.p[at - 1] <= '9')
        at--;
    return end < line.n && str_to_i64(str_cut(line, at, end - at), out);
}

static void put_spills(str line, str name, struct kernel_facts *kernels, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(kernels[i].name, name)) {
            number_before(line, S(" bytes spill stores"), &kernels[i].spill_store_bytes);
            number_before(line, S(" bytes spill loads"), &kernels[i].spill_load_bytes);
        }
}

str ptxas_log_take(str log, struct arena *a, struct kernel_facts *kernels, size_t n) {
    static const str of = {"Function properties for ", sizeof "Function properties for " - 1};
    str line, name = {0};
    struct buf rest;
    buf_init(&rest, log.n + 1);
    for (str left = log; str_line(&left, &line);) {
        size_t at = str_find(line, of);
        bool frame = name.n && str_find(line, S(" bytes stack frame")) < line.n;
        if (frame)
            put_spills(line, name, kernels, n);
        name = is_statistic(line) && at < line.n ? str_trim(str_from(line, at + of.n)) : (str){0};
        if (!frame && !is_statistic(line)) {
            buf_puts(&rest, line);
            buf_putc(&rest, '\n');
        }
    }
    str out = arena_str(a, str_trim(buf_str(&rest)).n ? buf_str(&rest) : S(""));
    buf_release(&rest);
    return out;
}
