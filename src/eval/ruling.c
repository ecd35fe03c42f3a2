#include "eval/ruling.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void ruling_init(struct ruling *r) {
    *r = (struct ruling){
        .verdict = VERDICT_ACCEPTED, .all_worst = json_array(), .all_rms = json_array()};
}

static void close_case(struct ruling *r) {
    if (!r->cases)
        return;
    json_push_f64(r->all_worst, r->worst);
    json_push_f64(r->all_rms, r->rms);
}

void ruling_next(struct ruling *r) {
    close_case(r);
    r->worst = r->rms = 0;
    r->cases++;
}

void ruling_to_json(struct ruling *r, json *out) {
    close_case(r);
    json_set_str(out, "verdict", str_view(verdict_name(r->verdict)));
    json_set_str(out, "why", str_view(r->why));
    json_set_i64(out, "at", r->cases ? (int64_t)r->cases - 1 : 0);
    json_set(out, "worst", r->all_worst);
    json_set(out, "rms", r->all_rms);
    if (r->mismatches)
        json_set(out, "mismatches", r->mismatches);
    *r = (struct ruling){.verdict = r->verdict};
}

bool rule(struct ruling *r, enum verdict v, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, args);
    va_end(args);
    r->verdict = v;
    return false;
}

bool rule_unwritten(struct ruling *r, const struct inst *in, size_t tensor, uint64_t n,
                    int64_t first) {
    struct arena *a = arena_new(1 << 16);
    str name = element_name(in, tensor, first, a);
    rule(r, VERDICT_UNWRITTEN, "%llu of %lld elements were never written, %.*s the first",
         (unsigned long long)n, (long long)in->tensors[tensor].count, STR_ARG(name));
    arena_free(a);
    return false;
}

bool rule_no_bool(struct ruling *r, const struct inst *in, size_t tensor, int64_t at,
                  unsigned byte) {
    struct arena *a = arena_new(1 << 16);
    str name = element_name(in, tensor, at, a);
    rule(r, VERDICT_WRONG, "%.*s is the byte %u, a bool is 0 or 1", STR_ARG(name), byte);
    arena_free(a);
    return false;
}

static void list_mismatches(struct ruling *r, const struct inst *in, size_t tensor,
                            const struct comparison *cmp, struct arena *a) {
    r->mismatches = json_array();
    for (size_t i = 0; i < cmp->nfirst; i++) {
        const struct mismatch *m = &cmp->first[i];
        json *o = json_object();
        json_set_str(o, "element", element_name(in, tensor, m->index, a));
        json_set_f64(o, "expected", m->expected);
        json_set_f64(o, "got", m->got);
        json_push(r->mismatches, o);
    }
}

static str allowance(const struct comparison *cmp, struct arena *a) {
    if (isinf(cmp->worst))
        return S("no rounding is allowed there");
    return arena_printf(a, "the worst error is %.3g times what the accuracy class allows",
                        cmp->worst / cmp->worst_limit);
}

static void describe(struct ruling *r, const struct inst *in, size_t tensor,
                     const struct comparison *cmp, struct arena *a) {
    long long count = (long long)in->tensors[tensor].count;
    str name = cmp->nfirst ? element_name(in, tensor, cmp->first[0].index, a) : S("?");
    int digits = dtype_digits(in->task->tensors[tensor].dtype);
    if (r->verdict == VERDICT_NONFINITE)
        rule(r, r->verdict,
             "%llu of %lld elements are NaN or infinite where they should not be, or the "
             "reverse; %.*s is %g, expected %g",
             (unsigned long long)cmp->nonfinite, count, STR_ARG(name), cmp->first[0].got,
             cmp->first[0].expected);
    else if (cmp->wrong)
        rule(r, r->verdict, "%llu of %lld elements are off; %.*s is %.*g, expected %.*g; %.*s",
             (unsigned long long)cmp->wrong, count, STR_ARG(name), digits, cmp->first[0].got,
             digits, cmp->first[0].expected, STR_ARG(allowance(cmp, a)));
    else
        rule(r, r->verdict,
             "no element is far off, but all together are: the RMS error is %.3g times what the "
             "accuracy class allows",
             cmp->rms / cmp->rms_limit);
}

bool rule_values(struct ruling *r, const struct inst *in, size_t tensor,
                 const struct comparison *cmp) {
    r->worst = cmp->worst > r->worst ? cmp->worst : r->worst;
    r->rms = cmp->rms > r->rms ? cmp->rms : r->rms;
    if (cmp->pass)
        return true;
    r->verdict = cmp->nonfinite     ? VERDICT_NONFINITE
                 : cmp->pass_looser ? VERDICT_INACCURATE
                                    : VERDICT_WRONG;
    struct arena *a = arena_new(1 << 20);
    list_mismatches(r, in, tensor, cmp, a);
    describe(r, in, tensor, cmp, a);
    arena_free(a);
    return false;
}
