/* Memory that outlives a launch, by the cubin itself.
 *
 * inspect_memory.c reads the PTX as we understand it; what runs is what ptxas understood. So the
 * variables that the cubin places in writable memory are judged without that understanding. Two
 * kinds are harmless:
 *
 * 1. The tables of the compiler's own mathematics, by name, size and content.
 * 2. Variables without a user: no relocation of code refers to them, and their name stands once in
 *    the PTX, where they are declared. Code can only reach a variable by its name, so this needs
 *    words to be told apart and nothing more. Variables declared inside a function get another name
 *    in the cubin, which stands nowhere, and are refused. */
#include "kernel/cubin.h"
#include "kernel/inspect.h"

struct words {
    const struct cubin_variable *vars;
    size_t n, slots;
    size_t *table;  /* by hash: index + 1 of a variable; 0: none */
    size_t *counts; /* how often each one's name stands in the text */
};

static size_t hash_of(str s) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 29);
}

/* The slot of a word: its own, or the free one where it would go. */
static size_t *slot_of(const struct words *w, str word) {
    size_t at = hash_of(word) & (w->slots - 1);
    while (w->table[at] && !str_eq(w->vars[w->table[at] - 1].name, word))
        at = (at + 1) & (w->slots - 1);
    return &w->table[at];
}

static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
}

/* Comments and strings count like the rest: a word more can only refuse. */
static void count_words(const struct words *w, str text) {
    for (size_t at = 0; at < text.n;) {
        size_t end = at + 1;
        if (is_word(text.p[at]) || text.p[at] == '%') {
            while (end < text.n && is_word(text.p[end]))
                end++;
            size_t *slot = slot_of(w, str_cut(text, at, end - at));
            if (*slot)
                w->counts[*slot - 1]++;
        }
        at = end;
    }
}

static enum verdict refuse(const struct cubin_variable *v, struct err *why) {
    err_set(
        why, ERR_INPUT,
        "a candidate may not have writable memory at file scope: '%.*s', %zu bytes of the "
        "compiled code\nhint: tables of constants are declared __constant__, memory that several "
        "launches share is a workspace of the plan",
        STR_ARG(str_cut(v->name, 0, 200)), v->size);
    return VERDICT_FORBIDDEN;
}

static enum verdict judge(const struct cubin_variable *vars, size_t n, str ptx, struct arena *a,
                          struct err *why) {
    struct words w = {.vars = vars, .n = n, .slots = 8};
    while (w.slots < 2 * n)
        w.slots *= 2;
    w.table = arena_array(a, size_t, w.slots);
    w.counts = arena_array(a, size_t, n);
    for (size_t i = 0; i < n; i++) {
        size_t *slot = slot_of(&w, vars[i].name);
        if (*slot) /* two of one name cannot be told apart */
            return refuse(&vars[i], why);
        *slot = i + 1;
    }
    count_words(&w, ptx);
    for (size_t i = 0; i < n; i++) {
        const struct cubin_variable *v = &vars[i];
        bool unused = w.counts[i] == 1 && !v->used_by_code;
        if (v->writable && !unused && !library_table(v->name, v->init, v->size))
            return refuse(v, why);
    }
    return VERDICT_ACCEPTED;
}

enum verdict inspect_cubin(str cubin, str ptx, struct arena *a, struct err *why) {
    struct cubin_variable *vars;
    size_t n;
    if (!cubin_variables(cubin, a, &vars, &n, why))
        return VERDICT_UNSUPPORTED;
    return n ? judge(vars, n, ptx, a, why) : VERDICT_ACCEPTED;
}
