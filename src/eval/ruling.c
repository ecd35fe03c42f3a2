#include "eval/ruling.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void ruling_init(struct ruling *r, struct arena *mem) {
    *r = (struct ruling){.say = {.verdict = VERDICT_ACCEPTED,
                                 .worst = arena_array(mem, double, RULING_MOST),
                                 .rms = arena_array(mem, double, RULING_MOST)},
                         .mem = mem};
}

static void close_case(struct ruling *r) {
    if (!r->cases || r->say.nworst == RULING_MOST)
        return;
    r->say.worst[r->say.nworst++] = r->worst;
    r->say.rms[r->say.nrms++] = r->rms;
}

void ruling_next(struct ruling *r) {
    close_case(r);
    r->worst = r->rms = 0;
    r->cases++;
}

void ruling_forgive(struct ruling *r) {
    r->say.verdict = VERDICT_ACCEPTED;
    r->say.nmismatches = 0;
    r->why[0] = 0;
}

void ruling_end(struct ruling *r) {
    close_case(r);
    r->say.why = str_view(r->why);
    r->say.at = r->cases ? r->cases - 1 : 0;
}

bool rule(struct ruling *r, enum verdict v, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    vsnprintf(r->why, sizeof r->why, fmt, args);
    va_end(args);
    r->say.verdict = v;
    return false;
}

bool rule_unwritten(struct ruling *r, const struct inst *in, size_t tensor, uint64_t n,
                    int64_t first) {
    str name = element_name(in, tensor, first, r->mem);
    return rule(r, VERDICT_UNWRITTEN, "%llu of %lld elements were never written, %.*s the first",
                (unsigned long long)n, (long long)in->tensors[tensor].count, STR_ARG(name));
}

bool rule_no_bool(struct ruling *r, const struct inst *in, size_t tensor, int64_t at,
                  unsigned byte) {
    str name = element_name(in, tensor, at, r->mem);
    return rule(r, VERDICT_WRONG, "%.*s is the byte %u, a bool is 0 or 1", STR_ARG(name), byte);
}

static void list_mismatches(struct ruling *r, const struct inst *in, size_t tensor,
                            const struct comparison *cmp) {
    r->say.mismatches = arena_array(r->mem, struct wire_mismatch, cmp->nfirst);
    r->say.nmismatches = cmp->nfirst;
    for (size_t i = 0; i < cmp->nfirst; i++)
        r->say.mismatches[i] =
            (struct wire_mismatch){element_name(in, tensor, cmp->first[i].index, r->mem),
                                   cmp->first[i].expected, cmp->first[i].got};
}

static str allowance(const struct comparison *cmp, struct arena *a) {
    if (isinf(cmp->worst))
        return S("no rounding is allowed there");
    return arena_printf(a, "the worst error is %.3g times what the accuracy class allows",
                        cmp->worst / cmp->worst_limit);
}

static void describe(struct ruling *r, const struct inst *in, size_t tensor,
                     const struct comparison *cmp) {
    struct arena *a = r->mem;
    enum verdict v = r->say.verdict;
    long long count = (long long)in->tensors[tensor].count;
    str name = cmp->nfirst ? element_name(in, tensor, cmp->first[0].index, a) : S("?");
    int digits = dtype_digits(in->task->tensors[tensor].dtype);
    if (v == VERDICT_NONFINITE)
        rule(r, v,
             "%llu of %lld elements are NaN or infinite where they should not be, or the "
             "reverse; %.*s is %g, expected %g",
             (unsigned long long)cmp->nonfinite, count, STR_ARG(name), cmp->first[0].got,
             cmp->first[0].expected);
    else if (cmp->wrong)
        rule(r, v, "%llu of %lld elements are off; %.*s is %.*g, expected %.*g; %.*s",
             (unsigned long long)cmp->wrong, count, STR_ARG(name), digits, cmp->first[0].got,
             digits, cmp->first[0].expected, STR_ARG(allowance(cmp, a)));
    else
        rule(r, v,
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
    r->say.verdict = cmp->nonfinite     ? VERDICT_NONFINITE
                     : cmp->pass_looser ? VERDICT_INACCURATE
                                        : VERDICT_WRONG;
    list_mismatches(r, in, tensor, cmp);
    describe(r, in, tensor, cmp);
    return false;
}
