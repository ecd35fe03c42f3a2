#include "report/diff.h"

struct lines {
    str *at;
    size_t n;
};

static struct lines lines_of(str text, struct arena *a) {
    struct lines l = {0};
    str rest = text, line;
    size_t n = 0;
    while (str_line(&rest, &line))
        n++;
    l.at = arena_array(a, str, n + 1);
    while (str_line(&text, &line))
        l.at[l.n++] = line;
    return l;
}

static void add(struct diff *d, enum diff_kind kind, str text) {
    d->lines[d->n++] = (struct diff_line){kind, text};
    d->old_lines += kind == DIFF_OLD;
    d->new_lines += kind == DIFF_NEW;
}

/* length[i][k]: of the longest common subsequence of what follows x[i] and y[k]. */
static uint16_t *common_lengths(const struct lines *x, const struct lines *y) {
    size_t width = y->n + 1;
    uint16_t *length = mem_alloc((x->n + 1) * width * sizeof *length);
    for (size_t i = x->n; i-- > 0;)
        for (size_t k = y->n; k-- > 0;) {
            uint16_t down = length[(i + 1) * width + k], right = length[i * width + k + 1];
            length[i * width + k] = str_eq(x->at[i], y->at[k])
                                        ? (uint16_t)(length[(i + 1) * width + k + 1] + 1)
                                    : down > right ? down
                                                   : right;
        }
    return length;
}

static void walk(const struct lines *x, const struct lines *y, struct diff *d) {
    bool whole = x->n <= DIFF_MOST && y->n <= DIFF_MOST;
    uint16_t *length = whole ? common_lengths(x, y) : NULL;
    size_t width = y->n + 1, i = 0, k = 0;
    while (i < x->n || k < y->n) {
        bool more_old = i < x->n, more_new = k < y->n;
        if (whole && more_old && more_new && str_eq(x->at[i], y->at[k])) {
            add(d, DIFF_SAME, x->at[i++]);
            k++;
        } else if (more_old && (!more_new || !whole ||
                                length[(i + 1) * width + k] >= length[i * width + k + 1])) {
            add(d, DIFF_OLD, x->at[i++]);
        } else {
            add(d, DIFF_NEW, y->at[k++]);
        }
    }
    mem_free(length);
}

void diff_of(str before, str after, struct arena *a, struct diff *out) {
    struct lines x = lines_of(before, a), y = lines_of(after, a);
    size_t same = 0, tail = 0;
    *out = (struct diff){.lines = arena_array(a, struct diff_line, x.n + y.n + 1)};
    for (; same < x.n && same < y.n && str_eq(x.at[same], y.at[same]); same++)
        add(out, DIFF_SAME, x.at[same]);
    while (tail < x.n - same && tail < y.n - same &&
           str_eq(x.at[x.n - 1 - tail], y.at[y.n - 1 - tail]))
        tail++;
    struct lines mx = {x.at + same, x.n - same - tail}, my = {y.at + same, y.n - same - tail};
    walk(&mx, &my, out);
    for (size_t i = x.n - tail; i < x.n; i++)
        add(out, DIFF_SAME, x.at[i]);
}
