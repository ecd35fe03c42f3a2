/* More workspaces than a plan may have: those alike become places of one.
 *
 * Workspaces of the same type and extents are laid one after the other, each at a multiple of 64
 * elements, so that wide accesses stay aligned. A kernel gets the common one for each of its
 * pointers, and the distance between places as a last argument; its first lines move the pointers.
 * What a tensor map or a memset names, and what a kernel does not take as a plain pointer, stays
 * alone. This is done to the finished text: the writers of kernels need not know of it. */
#include "agent/expert/sheet/sheet_private.h"
#include "kernel/candidate.h"
#include <string.h>

#define KEPT_MOST   128
#define ALIGN_ITEMS 64
#define WORKSPACE   "//! workspace "
#define LAUNCH      "//! launch "

struct kept {
    str name, extents, type;
    bool alone;
    size_t first; /* of its kind in the list; its own number: it is the first */
    size_t place; /* among them */
};

struct gather {
    struct sheet *sh;
    struct kept kept[KEPT_MOST];
    size_t n;
    str common[KEPT_MOST], apart[KEPT_MOST]; /* of firsts: the workspace, the distance's name */
};

/* ---- words ---- */

/* The next piece of a list, up to a comma that is not in brackets. */
static bool next_item(str *rest, str *item) {
    int depth = 0;
    size_t i = 0;
    if (!rest->n)
        return false;
    for (; i < rest->n && (depth || rest->p[i] != ','); i++)
        depth += strchr("([<", rest->p[i]) ? 1 : strchr(")]>", rest->p[i]) ? -1 : 0;
    *item = str_trim(str_cut(*rest, 0, i));
    *rest = str_from(*rest, i + 1);
    return true;
}

static str last_word(str s) {
    size_t from = s.n;
    while (from && text_is_word_char(s.p[from - 1]))
        from--;
    return str_from(s, from);
}

/* ---- launches and kernels ---- */

struct launch {
    str head, kernel, args; /* head: the line up to the arguments */
};

static bool read_launch(str line, struct launch *l) {
    size_t name = sizeof LAUNCH - 1, args = str_find(line, S(">>>(")) + 4;
    if (!str_starts(line, S(LAUNCH)) || args >= line.n)
        return false;
    l->kernel = str_cut(line, name, str_find(str_from(line, name), S("<<<")));
    l->head = str_cut(line, 0, args);
    l->args = str_cut(line, args, line.n - 1 - args);
    return true;
}

/* The parameters of a kernel, as a part of the text. */
static bool find_params(str text, str kernel, str *out) {
    for (size_t at = 0, next; at < text.n; at = next) {
        size_t head = at + str_find(str_from(text, at), S("__global__"));
        size_t body = head + str_find(str_from(text, head), S(") {"));
        str part = str_cut(text, head, body - head);
        size_t name = text_find_word(part, kernel);
        next = head + 1;
        if (name < part.n && str_starts(str_from(part, name + kernel.n), S("("))) {
            *out = str_from(part, name + kernel.n + 1);
            return true;
        }
    }
    return false;
}

static struct kept *find_kept(struct gather *g, str name) {
    for (size_t i = 0; i < g->n; i++)
        if (str_eq(g->kept[i].name, name))
            return &g->kept[i];
    return NULL;
}

/* ---- which ---- */

static void read_kept(struct gather *g) {
    str rest = arena_str(g->sh->mem, buf_str(&g->sh->memory)), line;
    while (str_line(&rest, &line)) {
        str text = str_from(line, sizeof WORKSPACE - 1);
        size_t open = str_find(text, S("[")), close = str_find(text, S("] : "));
        if (str_starts(line, S(WORKSPACE)) && close < text.n && g->n < KEPT_MOST)
            g->kept[g->n++] = (struct kept){.name = str_cut(text, 0, open),
                                            .extents = str_cut(text, open + 1, close - open - 1),
                                            .type = str_from(text, close + 4)};
    }
}

/* Those that a line names and that cannot be moved. */
static void leave_alone(struct gather *g, str line) {
    for (size_t i = 0; i < g->n; i++)
        g->kept[i].alone |= text_find_word(line, g->kept[i].name) < line.n;
}

static bool launched_once(const struct gather *g, str kernel) {
    str rest = buf_str(&g->sh->steps), line;
    struct launch l;
    size_t times = 0;
    while (str_line(&rest, &line))
        times += read_launch(line, &l) && str_eq(l.kernel, kernel);
    return times == 1;
}

static void check_launch(struct gather *g, const struct launch *l) {
    str params = {0}, args = l->args, arg, param;
    bool known =
        launched_once(g, l->kernel) && find_params(buf_str(&g->sh->kernels), l->kernel, &params);
    while (next_item(&args, &arg)) {
        bool plain = known && next_item(&params, &param) && !str_starts(param, S("void")) &&
                     !str_starts(param, S("const void")) &&
                     str_find(param, S("*__restrict__ ")) < param.n;
        struct kept *k = find_kept(g, arg);
        if (k)
            k->alone |= !plain;
        else
            leave_alone(g, arg); /* within an expression */
    }
}

static void choose(struct gather *g) {
    str rest = buf_str(&g->sh->memory), line;
    struct launch l;
    while (str_line(&rest, &line))
        if (!str_starts(line, S(WORKSPACE)))
            leave_alone(g, line);
    for (rest = buf_str(&g->sh->steps); str_line(&rest, &line);) {
        if (read_launch(line, &l))
            check_launch(g, &l);
        else
            leave_alone(g, line);
    }
    for (size_t i = 0; i < g->n; i++) {
        size_t first = 0;
        while (first < i && (g->kept[first].alone || g->kept[i].alone ||
                             !str_eq(g->kept[first].extents, g->kept[i].extents) ||
                             !str_eq(g->kept[first].type, g->kept[i].type)))
            first++;
        g->kept[i].first = first;
        for (size_t k = 0; k < i; k++)
            g->kept[i].place += g->kept[k].first == first;
    }
}

static size_t places(const struct gather *g, size_t first) {
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        n += g->kept[i].first == first;
    return n;
}

static bool is_shared(const struct gather *g, const struct kept *k) {
    return k && places(g, k->first) > 1;
}

/* ---- the new text ---- */

static str distance(struct gather *g, const struct kept *k) {
    str rest = k->extents, one, product = S("");
    while (next_item(&rest, &one))
        product = sheet_printf(g->sh, "%.*s%s(%.*s)", STR_ARG(product), product.n ? "*" : "",
                               STR_ARG(one));
    return sheet_printf(g->sh, "ceil_div(%.*s, %d)*%d", STR_ARG(product), ALIGN_ITEMS, ALIGN_ITEMS);
}

static void take_text(struct buf *to, struct buf *from) {
    buf_clear(to);
    buf_puts(to, buf_str(from));
    to->failed |= from->failed;
    buf_release(from);
}

static void gather_memory(struct gather *g) {
    struct buf out;
    str rest = buf_str(&g->sh->memory), line;
    size_t i = 0;
    buf_init(&out, g->sh->memory.max);
    while (str_line(&rest, &line)) {
        const struct kept *k = str_starts(line, S(WORKSPACE)) ? &g->kept[i++] : NULL;
        if (!is_shared(g, k)) {
            buf_printf(&out, "%.*s\n", STR_ARG(line));
        } else if (k == &g->kept[k->first]) {
            g->common[k->first] = sheet_name(g->sh, S("kept"));
            g->apart[k->first] = sheet_name(g->sh, S("apart"));
            buf_printf(&out, "//! workspace %.*s[%zu, %.*s] : %.*s\n", STR_ARG(g->common[k->first]),
                       places(g, k->first), STR_ARG(distance(g, k)), STR_ARG(k->type));
        }
    }
    take_text(&g->sh->memory, &out);
}

/* The kernel takes distances, and begins with moving its pointers. */
static void gather_kernel(struct gather *g, const struct launch *l, const bool *used) {
    str text = buf_str(&g->sh->kernels), params = {0}, args = l->args, arg, param;
    struct buf out;
    find_params(text, l->kernel, &params);
    size_t end = (size_t)(params.p - text.p) + params.n;
    buf_init(&out, g->sh->kernels.max);
    buf_puts(&out, str_cut(text, 0, end));
    for (size_t i = 0; i < g->n; i++)
        if (used[i])
            buf_printf(&out, ", long long %.*s", STR_ARG(g->apart[i]));
    buf_puts(&out, S(") {\n"));
    while (next_item(&args, &arg) && next_item(&params, &param)) {
        const struct kept *k = find_kept(g, arg);
        if (is_shared(g, k) && k->place)
            buf_printf(&out, "    %.*s += %zu * %.*s;\n", STR_ARG(last_word(param)), k->place,
                       STR_ARG(g->apart[k->first]));
    }
    buf_puts(&out, str_from(text, end + 3));
    take_text(&g->sh->kernels, &out);
}

static void gather_launch(struct gather *g, const struct launch *l, struct buf *out) {
    bool used[KEPT_MOST] = {false}, any = false;
    str args = l->args, arg;
    buf_puts(out, l->head);
    for (bool first = true; next_item(&args, &arg); first = false) {
        const struct kept *k = find_kept(g, arg);
        bool shared = is_shared(g, k);
        buf_printf(out, "%s%.*s", first ? "" : ", ", STR_ARG(shared ? g->common[k->first] : arg));
        if (shared)
            any = used[k->first] = true;
    }
    for (size_t i = 0; i < g->n; i++)
        if (used[i])
            buf_printf(out, ", %.*s", STR_ARG(distance(g, &g->kept[i])));
    buf_puts(out, S(")\n"));
    if (any)
        gather_kernel(g, l, used);
}

static void gather_steps(struct gather *g) {
    struct buf out;
    struct launch l;
    str rest = arena_str(g->sh->mem, buf_str(&g->sh->steps)), line;
    buf_init(&out, g->sh->steps.max);
    while (str_line(&rest, &line)) {
        if (read_launch(line, &l))
            gather_launch(g, &l, &out);
        else
            buf_printf(&out, "%.*s\n", STR_ARG(line));
    }
    take_text(&g->sh->steps, &out);
}

static size_t count_lines(const struct buf *b, str lead) {
    str rest = buf_str(b), line;
    size_t n = 0;
    while (str_line(&rest, &line))
        n += str_starts(line, lead);
    return n;
}

bool sheet_gather(struct sheet *sh) {
    struct gather *g = arena_new_of(sh->mem, struct gather);
    if (count_lines(&sh->memory, S(WORKSPACE)) > PLAN_MAX_WORKSPACES) {
        g->sh = sh;
        read_kept(g);
        choose(g);
        gather_memory(g);
        gather_steps(g);
    }
    size_t kept = count_lines(&sh->memory, S(WORKSPACE)),
           launches = count_lines(&sh->steps, S(LAUNCH));
    if (kept > PLAN_MAX_WORKSPACES)
        return err_set(sh->err, ERR_INPUT,
                       "%zu kinds of results are kept between its kernels, and a plan has room for "
                       "%d\nhint: write fewer lets, or cut the task in two",
                       kept, PLAN_MAX_WORKSPACES);
    return launches <= CANDIDATE_MAX_LAUNCHES ||
           err_set(sh->err, ERR_INPUT,
                   "it takes %zu kernels, and a plan has room for %d\nhint: write fewer lets, or "
                   "cut the task in two",
                   launches, CANDIDATE_MAX_LAUNCHES);
}
