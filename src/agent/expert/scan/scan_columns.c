/* Scans along an axis that is not the innermost: a thread walks down a few neighbouring columns, so
 * that every access of a warp is contiguous. Where there are few columns, the axis is cut into
 * parts, and a first kernel makes their totals. */
#include "agent/expert/scan/scan.h"

#define STRETCH 1024 /* terms of one chain */

static uint32_t kept_vars(const struct scan *s) {
    return ((UINT32_C(1) << s->fold->nindex) - 1) & ~(UINT32_C(1) << s->shape.axis);
}

static const struct expr *axis(const struct scan *s) {
    return s->in->task->tensors[s->fold->tensor].extent[s->shape.axis];
}

/* ---- pieces ---- */

static str place_text(struct scan *s, str used) {
    struct sheet *sh = s->sh;
    const char *type = scope_index_type(&s->k);
    str head = S("");
    if (s->split > 1) {
        str begin = slots_get(&s->names, "begin"), end = slots_get(&s->names, "end");
        str plan = sheet_plan(sh, axis(s)), extent = scope_int(&s->k, axis(s));
        str length = sheet_printf(sh, "ceil_div(%.*s, %lld)", STR_ARG(plan), (long long)s->split);
        str n = scope_int_plan(&s->k, "length", length);
        head = sheet_printf(sh,
                            "const %s %.*s = (%s)blockIdx.y * %.*s;\n"
                            "const %s %.*s = min(%.*s + %.*s, %.*s);\n",
                            type, STR_ARG(begin), type, STR_ARG(n), type, STR_ARG(end),
                            STR_ARG(begin), STR_ARG(n), STR_ARG(extent));
    }
    for (size_t v = 0; v < s->fold->nindex; v++)
        s->k.var[v] = scope_variable(&s->k, v);
    str column = slots_get(&s->names, "column");
    str coordinates = place_coordinates(&s->k, s->fold, kept_vars(s), column, used);
    return sheet_printf(sh, "%.*s%.*s", STR_ARG(head), STR_ARG(coordinates));
}

static str loads_text(struct scan *s) {
    str m = slots_get(&s->names, "m"), p = slots_get(&s->names, "p");
    str chunk = slots_get(&s->names, "chunk"), to = slots_get(&s->names, "to");
    str valid = sheet_printf(s->sh, "%.*s < %.*s", STR_ARG(p), STR_ARG(to));
    struct slots t = s->names;
    slots_put(&t, "loads", scan_loads(s, false, valid));
    slots_put(&t, "position", sheet_printf(s->sh, "%.*s + %.*s", STR_ARG(chunk), STR_ARG(m)));
    slots_put(&t, "index", str_view(scope_index_type(&s->k)));
    return s->nstreams ? sheet_lines(s->sh, "scan/load.cu", &t) : S("");
}

/* sum[e] = combine(sum[e], term); */
static str update_text(struct scan *s) {
    str sum = slots_get(&s->names, "sum"), e = slots_get(&s->names, "e");
    str combine = slots_get(&s->names, "combine");
    str term = scan_term(s, slots_get(&s->names, "p"), S(""));
    return sheet_printf(s->sh, "%.*s[%.*s] = %.*s(%.*s[%.*s], %.*s);", STR_ARG(sum), STR_ARG(e),
                        STR_ARG(combine), STR_ARG(sum), STR_ARG(e), STR_ARG(term));
}

static str value_text(struct scan *s) {
    str sum = slots_get(&s->names, "sum"), e = slots_get(&s->names, "e");
    str combine = slots_get(&s->names, "combine"), carry = slots_get(&s->names, "carry");
    str value = slots_get(&s->names, "value"), p = slots_get(&s->names, "p");
    str text =
        sheet_printf(s->sh, "const %s %.*s = %.*s(%.*s[%.*s], %.*s[%.*s])", s->type, STR_ARG(value),
                     STR_ARG(combine), STR_ARG(carry), STR_ARG(e), STR_ARG(sum), STR_ARG(e));
    if (s->fold->body->reduce->op == REDUCTION_MEAN)
        text = sheet_printf(s->sh, "%.*s / float(%.*s%s)", STR_ARG(text), STR_ARG(p),
                            s->shape.exclusive ? "" : " + 1");
    return sheet_printf(s->sh, "%.*s;", STR_ARG(text));
}

/* ---- kernels ---- */

static void put_element(struct scan *s, struct slots *t, const struct scan_results *r) {
    str update = update_text(s), value = s->totals ? S("") : value_text(s);
    bool after = s->shape.exclusive && !s->totals;
    str element =
        sheet_printf(s->sh, "%.*s\n%.*s\n%.*s\n%.*s", STR_ARG(after ? S("") : update),
                     STR_ARG(value), STR_ARG(r->element), STR_ARG(after ? update : S("")));
    slots_put(t, "element", str_trim(element));
    slots_put(t, "packs", r->packs);
    slots_put(t, "stores", r->stores);
}

static str mentioned(struct scan *s, const struct slots *t) {
    return sheet_printf(s->sh, "%.*s\n%.*s\n%.*s", STR_ARG(slots_get(t, "load")),
                        STR_ARG(slots_get(t, "element")), STR_ARG(slots_get(t, "stores")));
}

/* Totals of parts lie as the columns do, part after part. */
static void put_parts(struct scan *s, struct slots *t, str parts) {
    struct slots p = *t;
    slots_put(&p, "parts", parts);
    slots_put(t, "start",
              s->split > 1 && !s->totals ? sheet_lines(s->sh, "scan/columns_start.cu", &p) : S(""));
    slots_put(t, "finish", s->totals ? sheet_lines(s->sh, "scan/columns_finish.cu", &p) : S(""));
}

static str headline(struct scan *s) {
    const char *does = s->totals ? "folds" : "scans", *part = s->split > 1 ? "a part of " : "";
    return s->width == 1 ? sheet_printf(s->sh, "A thread %s %sa column.", does, part)
                         : sheet_printf(s->sh, "A thread %s %s%lld neighbouring columns.", does,
                                        part, (long long)s->width);
}

static void launch(struct scan *s, struct slots *t, str columns, str parts) {
    struct sheet *sh = s->sh;
    str params = scope_params(&s->k), args = scope_args(&s->k);
    str grid = sheet_printf(sh, "ceil_div(%.*s, %lld)", STR_ARG(columns),
                            (long long)(s->block * s->width));
    if (s->split > 1) {
        params = sheet_printf(sh, "%.*s, %s%s *%.*s", STR_ARG(params), s->totals ? "" : "const ",
                              s->type, STR_ARG(parts));
        args = sheet_printf(sh, "%.*s, %.*s", STR_ARG(args), STR_ARG(parts));
        grid = sheet_printf(sh, "[%.*s, %lld]", STR_ARG(grid), (long long)s->split);
    }
    slots_put(t, "params", params);
    sheet_step(sh, "launch %.*s<<<%.*s, %lld>>>(%.*s)", STR_ARG(s->k.name), STR_ARG(grid),
               (long long)s->block, STR_ARG(args));
}

static bool write_kernel(struct scan *s, str parts) {
    struct sheet *sh = s->sh;
    struct scan_results r = {S(""), S(""), S("")};
    scan_begin(s, s->totals ? "_totals" : "");
    struct slots t = s->names;
    str columns = place_count(sh, s->in, s->fold, kept_vars(s));
    slots_put(&t, "kernel", s->k.name);
    slots_put(&t, "index", str_view(scope_index_type(&s->k)));
    slots_put(&t, "columns", scope_int_plan(&s->k, "columns", columns));
    slots_number(&t, "stretch", STRETCH);
    slots_put(&t, "times", s->width > 1 ? sheet_printf(sh, " * %lld", (long long)s->width) : S(""));
    if (s->split == 1) {
        slots_put(&t, "begin", S("0"));
        slots_put(&t, "end", scope_int(&s->k, axis(s)));
    }
    if (!s->totals && !scan_write_results(s, slots_get(&s->names, "value"), &r))
        return false;
    put_element(s, &t, &r);
    slots_put(&t, "load", loads_text(s));
    slots_put(&t, "declare", scan_declare(s));
    slots_put(&t, "place", place_text(s, mentioned(s, &t)));
    put_parts(s, &t, parts);
    slots_put(&t, "headline", headline(s));
    launch(s, &t, columns, parts);
    return sheet_put(sh, "scan/columns.cu", &t, &sh->kernels);
}

bool scan_write_columns(struct scan *s) {
    struct sheet *sh = s->sh;
    str columns = place_count(sh, s->in, s->fold, kept_vars(s)), parts = S("");
    str name = s->in->task->tensors[s->fold->tensor].name;
    sheet_note(sh,
               "scan: %.*s: %lld threads a block, %lld column%s a thread, %lld rows at a time%s",
               STR_ARG(name), (long long)s->block, (long long)s->width, s->width > 1 ? "s" : "",
               (long long)s->items, s->split > 1 ? ", the axis in parts" : "");
    scan_note_used(s);
    if (s->split > 1) {
        parts = sheet_name(sh, S("parts"));
        sheet_memory(sh, "workspace %.*s[%lld, %.*s] : %s", STR_ARG(parts), (long long)s->split,
                     STR_ARG(columns), s->memory);
        s->totals = true;
        if (!write_kernel(s, parts))
            return false;
        s->totals = false;
    }
    return write_kernel(s, parts);
}
