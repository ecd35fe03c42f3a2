#include "archive/table.h"

#include "base/file.h"
#include "strategy/lattice.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TABLE_FORMAT    1
#define TABLE_MAX_BYTES (256u << 20)
#define LINE_MAX_BYTES  (1u << 20)

/* ---- the first line ---- */

static json *values_json(const struct catalogue *c) {
    json *all = json_object();
    for (size_t i = 0; i < c->n; i++) {
        json *values = json_array();
        for (size_t v = 0; v < c->decisions[i].nvalues; v++)
            json_push_i64(values, c->decisions[i].values[v]);
        struct buf name;
        buf_init(&name, 256);
        buf_puts(&name, c->decisions[i].name);
        json_set(all, name.p, values);
        buf_release(&name);
    }
    return all;
}

static void head_line(const struct table_head *h, struct arena *a, struct buf *out) {
    const struct briefing *b = h->briefing;
    json *j = json_object();
    struct buf gpu;
    buf_init(&gpu, GPU_FILE_BYTES);
    gpu_text(b->gpu, &gpu);
    json_set_i64(j, "space", TABLE_FORMAT);
    json_set_str(j, "cutepilot", S(CUTEPILOT_VERSION));
    json_set_str(j, "task", b->inst->task->name);
    json_set_str(j, "shape", inst_label(b->inst, a));
    json_set_str(j, "device", str_view(h->device));
    json_set_str(j, "toolchain", h->toolchain);
    json_set_bool(j, "estimated", h->estimated);
    json_set_i64(j, "rows", (int64_t)h->rows);
    json_set_i64(j, "seed", (int64_t)h->seed);
    json_set(j, "values", values_json(h->kept));
    json_set_str(j, "gpu", buf_str(&gpu));
    json_set_str(j, "text", b->inst->task->text);
    json_write(j, out);
    buf_release(&gpu);
    json_free(j);
}

/* ---- writing ---- */

struct table_writer {
    int fd;
    struct arena *a;
    str *known; /* strategies that have a row, sorted */
    size_t n;
};

static int by_text(const void *x, const void *y) {
    return str_cmp(*(const str *)x, *(const str *)y);
}

static bool note_rows(struct table_writer *w, const char *path, str rest, struct err *err) {
    size_t lines = 0;
    for (size_t i = 0; i < rest.n; i++)
        lines += rest.p[i] == '\n';
    w->known = arena_array(w->a, str, lines + 1);
    str line, strategy;
    while (str_line(&rest, &line)) {
        json *j = json_parse(line, err);
        if (!j || !json_get_str(j, "strategy", &strategy)) {
            json_free(j);
            return err_set(err, ERR_INPUT, "%s: row %zu is damaged", path, w->n + 1);
        }
        w->known[w->n++] = arena_str(w->a, strategy);
        json_free(j);
    }
    if (w->n)
        qsort(w->known, w->n, sizeof *w->known, by_text);
    return true;
}

/* What the file holds already must be of the same space. */
static bool go_on(struct table_writer *w, const char *path, str head, struct err *err) {
    str text, line;
    if (!file_read_fd(w->fd, TABLE_MAX_BYTES, w->a, &text, err))
        return err_wrap(err, "%s", path);
    text = str_whole_lines(text);
    if (ftruncate(w->fd, (off_t)text.n) != 0 || lseek(w->fd, 0, SEEK_END) < 0)
        return err_errno(err, ERR_ENV, "%s", path);
    if (text.n == 0)
        return file_write_all(w->fd, head.p, head.n, err) && file_write_all(w->fd, "\n", 1, err);
    str_line(&text, &line);
    if (!str_eq(line, head))
        return err_set(err, ERR_INPUT,
                       "%s is the table of another space, or of another version; choose another "
                       "--out",
                       path);
    return note_rows(w, path, text, err);
}

bool table_open(const char *path, const struct table_head *h, struct table_writer **out,
                struct err *err) {
    struct table_writer *w = mem_alloc(sizeof *w);
    struct buf head;
    w->a = arena_new((size_t)1 << 30);
    w->fd = file_open_locked(path, false, err);
    buf_init(&head, LINE_MAX_BYTES * 4);
    head_line(h, w->a, &head);
    bool ok = w->fd >= 0 && go_on(w, path, buf_str(&head), err);
    buf_release(&head);
    if (ok)
        *out = w;
    else
        table_close(w);
    return ok;
}

bool table_has(const struct table_writer *w, str strategy) {
    return w->n && bsearch(&strategy, w->known, w->n, sizeof *w->known, by_text) != NULL;
}

size_t table_count(const struct table_writer *w) {
    return w->n;
}

bool table_add(struct table_writer *w, const struct table_line *l, struct err *err) {
    json *j = json_object();
    struct buf b;
    buf_init(&b, LINE_MAX_BYTES);
    json_set_str(j, "strategy", l->strategy);
    json_set_bool(j, "written", l->written);
    if (l->written) {
        if (!str_eq(l->strategy, l->aligned))
            json_set_str(j, "aligned", l->aligned);
        json_set_str(j, "verdict", str_view(verdict_name(l->verdict)));
        if (isfinite(l->time_s))
            json_set_f64(j, "time_s", l->time_s);
        json_set_str(j, "source", str_view(l->source_hash));
    }
    json_write(j, &b);
    buf_putc(&b, '\n');
    bool ok = file_write_all(w->fd, b.p, b.n, err);
    buf_release(&b);
    json_free(j);
    return ok;
}

void table_close(struct table_writer *w) {
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    arena_free(w->a);
    mem_free(w);
}

/* ---- reading ---- */

static bool parse_shape(str label, struct arena *a, struct binding **out, size_t *n) {
    str word;
    *n = 0;
    *out = arena_array(a, struct binding, TASK_MAX_DIMS);
    while (str_word(&label, ' ', &word)) {
        size_t eq = str_find(word, S("="));
        struct binding *b = &(*out)[*n];
        if (*n == TASK_MAX_DIMS || !str_to_i64(str_from(word, eq + 1), &b->value))
            return false;
        b->name = str_cut(word, 0, eq);
        ++*n;
    }
    return true;
}

/* The catalogue as it was measured. Decisions that it did not have then would make other code. */
static bool keep_values(struct table *t, const json *values, struct arena *a, struct err *err) {
    struct catalogue *c = &t->catalogue;
    int64_t kept[64];
    for (size_t i = 0; i < c->n; i++) {
        const json *list = json_get(values, arena_cstr(a, c->decisions[i].name));
        size_t n = json_len(list);
        bool ok = n > 0 && n <= sizeof kept / sizeof *kept;
        for (size_t k = 0; ok && k < n; k++)
            ok = json_to_i64(json_at(list, k), &kept[k]);
        if (!ok)
            return err_set(err, ERR_INPUT, "it knows no values of '%.*s': measure it again",
                           STR_ARG(c->decisions[i].name));
        catalogue_keep(c, i, kept, n, a);
    }
    return true;
}

static bool read_task(struct table *t, const char *path, const json *head, struct arena *a,
                      struct err *err) {
    str text, shape, gpu;
    struct binding *set;
    size_t n;
    if (!json_get_str(head, "text", &text) || !json_get_str(head, "shape", &shape) ||
        !json_get_str(head, "gpu", &gpu) || !parse_shape(arena_str(a, shape), a, &set, &n))
        return err_set(err, ERR_INPUT, "the first line is damaged");
    return task_parse(str_view(path), arena_str(a, text), a, &t->task, err) &&
           task_bind(t->task, set, n, a, &t->inst, err) &&
           gpu_parse(str_view(path), arena_str(a, gpu), a, &t->gpu, err);
}

static bool read_head(struct table *t, const char *path, const char *assets, const json *head,
                      struct arena *a, struct err *err) {
    int64_t format = 0, rows = 0;
    struct catalogue *whole;
    str device = {0};
    if (!json_get_i64(head, "space", &format) || format != TABLE_FORMAT)
        return err_set(err, ERR_INPUT, "not a table of `cutepilot space`, or of another version");
    json_get_i64(head, "rows", &rows);
    json_get_str(head, "device", &device);
    json_get_bool(head, "estimated", &t->estimated);
    t->planned = (size_t)rows;
    t->device = arena_str(a, device);
    if (!read_task(t, path, head, a, err) || !catalogue_load(assets, a, &whole, err))
        return false;
    catalogue_copy(whole, a, &t->catalogue);
    return keep_values(t, json_get(head, "values"), a, err) &&
           briefing_make(t->inst, &t->catalogue, t->gpu, &t->briefing, err);
}

static uint64_t source_number(str hash) {
    uint64_t n = 0;
    for (size_t i = 0; i < 16 && i < hash.n; i++)
        n = n << 4 | (uint64_t)(hash.p[i] <= '9' ? hash.p[i] - '0' : (hash.p[i] & 15) + 9);
    return n;
}

static bool read_row(const struct table *t, const json *j, struct table_row *r, struct err *err) {
    str strategy = {0}, aligned = {0}, verdict = {0}, source = {0};
    json_get_str(j, "strategy", &strategy);
    json_get_bool(j, "written", &r->written);
    r->time_s = INFINITY;
    if (!strategy_parse(&t->catalogue, strategy, &r->strategy, err))
        return false;
    r->aligned = r->strategy;
    if (!r->written)
        return true;
    /* What the code turned out to have may be a value that the space does not. */
    if (json_get_str(j, "aligned", &aligned)) {
        struct err unknown;
        if (!strategy_parse(&t->catalogue, aligned, &r->aligned, &unknown))
            r->aligned = r->strategy;
    }
    if (!json_get_str(j, "verdict", &verdict) || !verdict_find(verdict, &r->verdict) ||
        !json_get_str(j, "source", &source))
        return err_set(err, ERR_INPUT, "no verdict or source");
    r->source = source_number(source);
    if (r->verdict == VERDICT_ACCEPTED)
        json_get_f64(j, "time_s", &r->time_s);
    return true;
}

/* The strategy is a row's first member. */
static int by_strategy(const void *x, const void *y) {
    return strategy_order(x, y);
}

static bool read_rows(struct table *t, str rest, struct arena *a, struct err *err) {
    size_t lines = 0;
    for (size_t i = 0; i < rest.n; i++)
        lines += rest.p[i] == '\n';
    t->rows = arena_array(a, struct table_row, lines + 1);
    str line;
    t->best_s = INFINITY;
    while (str_line(&rest, &line)) {
        json *j = json_parse(line, err);
        bool ok = j && read_row(t, j, &t->rows[t->n], err);
        json_free(j);
        if (!ok)
            return err_wrap(err, "row %zu", t->n + 1);
        t->best_s = fmin(t->best_s, t->rows[t->n++].time_s);
    }
    if (t->n)
        qsort(t->rows, t->n, sizeof *t->rows, by_strategy);
    return true;
}

bool table_load(const char *path, const char *assets, struct arena *a, struct table *out,
                struct err *err) {
    str text, line;
    *out = (struct table){0};
    if (!file_read(path, TABLE_MAX_BYTES, a, &text, err))
        return false;
    text = str_whole_lines(text);
    if (!str_line(&text, &line))
        return err_set(err, ERR_INPUT, "%s is empty", path);
    json *head = json_parse(line, err);
    bool ok = head && read_head(out, path, assets, head, a, err) && read_rows(out, text, a, err);
    json_free(head);
    return ok || err_wrap(err, "%s", path);
}

size_t table_find(const struct table *t, const struct strategy *s) {
    const struct table_row *r =
        t->n ? bsearch(s, t->rows, t->n, sizeof *t->rows, by_strategy) : NULL;
    return r ? (size_t)(r - t->rows) : t->n;
}

bool table_is_first(const struct table *t, size_t row) {
    bool first = t->rows[row].written;
    for (size_t k = 0; first && k < row; k++)
        first = !t->rows[k].written || t->rows[k].source != t->rows[row].source;
    return first;
}
