#include "import/order.h"

#include "base/file.h"

#include <string.h>

enum { ORDER_BYTES = 64 << 20, STEPS_MOST = 1 << 20 };

bool order_exists(const char *folder) {
    struct arena *a = arena_new(1 << 20);
    bool is = file_exists(arena_printf(a, "%s/" CHAIN_FILE, folder).p);
    arena_free(a);
    return is;
}

static size_t index_of(const struct order *o, str task) {
    size_t i = 0;
    while (i < o->ntasks && !str_eq(o->tasks[i].name, task))
        i++;
    return i;
}

const struct order_task *order_find(const struct order *o, str task) {
    size_t i = index_of(o, task);
    return i < o->ntasks ? &o->tasks[i] : NULL;
}

/* A number, or a dimension of the module. */
static bool length_of(const json *dims, str over, double *out) {
    int64_t n;
    str name;
    if (str_to_i64(over, &n)) {
        *out = (double)n;
        return n > 0;
    }
    for (size_t i = 0; i < json_len(dims); i++)
        if (json_get_str(json_at(dims, i), "name", &name) && str_eq(name, over))
            return json_get_f64(json_at(dims, i), "value", out) && *out > 0;
    return false;
}

static bool add_step(const json *j, const json *dims, struct arena *a, struct order *o,
                     struct err *err) {
    str task, over;
    double runs = 1;
    const json *repeat = json_get(j, "repeat");
    if (!json_get_str(j, "task", &task))
        return err_set(err, ERR_INPUT, "a step without a task");
    if (repeat && (!json_get_str(repeat, "over", &over) || !length_of(dims, over, &runs)))
        return err_set(err, ERR_INPUT, "how often %.*s repeats is not known", STR_ARG(task));
    struct order_task *t = &o->tasks[index_of(o, task)];
    if (!t->uses) {
        t->name = arena_str(a, task);
        o->ntasks++;
    }
    t->uses++;
    t->runs += runs;
    o->uses++;
    o->runs += runs;
    return true;
}

bool order_read(const char *folder, struct arena *a, struct order *out, struct err *err) {
    const char *path = arena_printf(a, "%s/" CHAIN_FILE, folder).p;
    str text;
    memset(out, 0, sizeof *out);
    if (!file_read(path, ORDER_BYTES, a, &text, err))
        return false;
    json *j = json_parse(text, err);
    const json *steps = json_get(j, "steps");
    bool ok = j != NULL;
    if (ok && (!json_get_str(j, "module", &out->module) || !json_len(steps) ||
               json_len(steps) > STEPS_MOST))
        ok = err_set(err, ERR_INPUT, "no order of tasks; cutepilot import writes one");
    out->module = arena_str(a, out->module);
    out->tasks = arena_array(a, struct order_task, json_len(steps) + 1);
    for (size_t i = 0; i < json_len(steps) && ok; i++)
        ok = add_step(json_at(steps, i), json_get(j, "dims"), a, out, err);
    json_free(j);
    return ok || err_wrap(err, "%s", path);
}
