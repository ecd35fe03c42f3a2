/* Reductions, pads, guards, scans: values against a second evaluator, in every way of running them;
 * then all tasks that come with the program. */
#include "oracle.h"

#include "spec/cost.h"
#include <dirent.h>

#define HEAD                                                                                       \
    "task t \"T\"\ndim A = 5, B = 7, C = 300\nin x[A,B] : f32 ~ normal(0,1)\n"                     \
    "in y[B,C] : f32 ~ normal(0,1)\nin w[C] : f32 ~ normal(0,1)\nin v[A,C] : f32 ~ normal(0,1)\n"  \
    "in n[A] : i32 ~ randint(0,7)\nin m[A,C] : bool ~ bernoulli(0.7)\nin d[C] : f64 ~ "            \
    "normal(0,1)\n"

static const struct {
    const char *text;
} rows[] = {
    /* along axes, along the reduction, both small and both large */
    {"out o[A,C] : f32\no[i,j] = sum(k) x[i,k]*y[k,j]\n"},
    {"out o[A,A] : f32\no[i,j] = sum(k) v[i,k]*v[j,k]\n"},
    {"out o[C,C] : f32\no[i,j] = sum(k) y[k,i]*y[k,j]\n"},
    {"out o : f32\no = sum(i,j) y[i,j]\n"},
    {"out o : f32\no = mean(i,j) (v[i,j] - w[j])*(v[i,j] - w[j])\n"},
    {"out o[A] : f32\no[i] = sum(k) v[i,k]\n"},
    {"out o[C] : f32\no[j] = sum(k) y[k,j]\n"},
    {"out o[C] : f32\no[j] = mean(k) y[k,j]*2 + w[j]\n"},
    {"out o[A] : f32\no[i] = max(k) v[i,k]\n"},
    {"out o[C] : f32\no[j] = min(k) y[k,j]*y[k,j]\n"},
    {"out o[A] : f32\no[i] = prod(k) (x[i,k] + 1)\n"},
    {"out o[C] : f32\no[j] = prod(k) y[k,j]\n"},
    {"out o : f32\no = prod(k) (1 + w[k]/1000)\n"},
    {"out o[A] : i64\no[i] = argmax(k) v[i,k]\n"},
    {"out o[C] : i32\no[j] = argmin(k) y[k,j]\n"},
    {"out o[A] : i32\no[i] = argmax(k) v[i,k]*v[i,k]\n"},
    {"out o[A] : f32\no[i] = v[i, argmax(k) v[i,k]]\n"},
    /* reductions in expressions, in each other, and over each other's variables */
    {"out o[A,C] : f32\no[i,j] = exp(v[i,j] - (max(k) v[i,k]))/(sum(k) exp(v[i,k] - "
     "(max(l) v[i,l])))\n"},
    {"out o : f32\no = sum(i) max(k) v[i,k]\n"},
    {"out o[A] : f32\no[i] = sum(k) pow(sum(l) x[i,l]*y[l,k], 2)\n"},
    {"out o[A,A] : f32\no[i,e] = sum(k) exp(sum(c) x[i,c]*y[c,k])*v[e,k]\n"},
    {"let s[i] = sum(k) v[i,k]\nout o[A,C] : f32\no[i,j] = v[i,j]/(1 + s[i]*s[i])\n"},
    {"let s[i] : bf16 = sum(k) x[i,k]\nout o[A] : f32\no[i] = s[i] + max(k) x[i,k]\n"},
    {"out o[A] : f32\no[i] = if(i > 2, sum(k) v[i,k], max(k) v[A-1-i,k])\n"},
    {"out o[A] : f32\no[i] = if(i > 0, sum(k) v[i-1,k], 0)\n"},
    /* scans */
    {"out o[A,C] : f32\no[i,j] = sum(k <= j) v[i,k]\n"},
    {"out o[A,C] : f32\no[i,j] = sum(k < j) v[i,k]\n"},
    {"out o[A,C] : f32\no[i,j] = sum(j <= k < C) v[i,k]\n"},
    {"out o[A,C] : f32\no[i,j] = sum(k <= j | m[i,k]) v[i,k]\n"},
    {"out o[A,C] : f32\no[i,j] = prod(k <= j) (1 + v[i,k]/64)\n"},
    {"out o[B,C] : f32\no[i,j] = max(k <= i) y[k,j]\n"},
    {"out o[B,C] : f32\no[i,j] = mean(k <= j) y[i,k]\n"},
    {"out o[B,C] : f32\no[i,j] = min(i <= k < B) y[k,j]\n"},
    {"out o[A,C] : f32\no[i,j] = sum(i <= k <= j) v[i,k]\n"},
    {"out o[C] : f32\no[j] = (sum(k <= j) w[k])*2 - (max(k < j) w[k])\n"},
    {"let s[j < C - 5] = sum(k < j + 3) w[k]\nout o[C-5] : f32\no[j] = s[j]\n"},
    /* bounds that vary over the lanes, and are no scan */
    {"out o[C] : f32\no[j] = sum(k <= j) w[k]*w[j-k]\n"},
    {"out o[A,C] : f32\no[i,j] = sum(k < B - i) y[k,j]\n"},
    {"out o[C] : f32\no[j] = max(j//2 <= k < j + 1) w[k]\n"},
    {"out o[B] : f32\no[i] = sum(k <= i, l <= k) x[2,l]*x[3,k]\n"},
    {"out o[B] : f32\no[i] = sum(k <= i) max(l <= k) x[1,l]\n"},
    {"out o[C] : i32\no[j] = argmax(k <= j) w[k]\n"},
    /* guards */
    {"out o[A] : f32\no[i] = sum(k | k % 3 == 1) v[i,k]\n"},
    {"out o[A] : f32\no[i] = mean(k | m[i,k]) v[i,k]\n"},
    {"out o[A] : f32\no[i] = max(k | v[i,k] < 0.5 && k > i) v[i,k]\n"},
    {"out o[C] : f32\no[j] = sum(k | (j + k) % 2 == 0) y[k,j]\n"},
    {"out o[2*C-1] : f32\no[p] = sum(r < 2 | (p - r) % 2 == 0 && (p - r)//2 >= 0 && (p - r)//2 < "
     "C) w[(p - r)//2]*x[r,1]\n"},
    {"out o[3] : f32\no[p] = sum(r < 3 | (p + 1 - r) % 2 == 0) pad(x[0,(p + 1 - r)//2], 0)*w[r]\n"},
    {"out o[A] : i32\no[i] = sum(k < B | k == n[i]) 3\n"},
    {"out o[A] : f32\no[i] = sum(k | k == n[i]) x[i,k]\n"},
    {"out o[A] : f32\no[i] = sum(k | k > 400) v[i,k]\n"},
    {"out o[A] : f32\no[i] = max(k | k > 400) v[i,k]\n"},
    {"out o[A] : f32\no[i] = prod(k | k > 400) v[i,k]\n"},
    /* pads, gathers, constants on the left */
    {"out o[C] : f32\no[j] = sum(r < 5) pad(w[j + r - 2], 0)*x[r,0]\n"},
    {"out o[C] : f32\no[j] = max(r < 3) pad(w[2*j - r], -inf)\n"},
    {"out o[B,C] : f32\no[i,j] = sum(r < 3, s < 3) pad(y[i + r - 1, j + s - 1], 1)*x[r,s]\n"},
    {"out o[C] : f32\no[j] = pad(w[(j - 3)*2//3], 7) + pad(w[C - 2*j], w[j])\n"},
    {"out o[A] : f32\no[i] = x[i, n[i]]\n"},
    {"out o[A,C] : f32\no[i,j] = y[n[i], j] + sum(k) x[k,n[i]]*v[k,j]\n"},
    {"out o[A,3] : f32\no[i,0] = sum(k) v[i,k]\no[i,1] = max(k) v[i,k]\no[i,2] = x[i,0]\n"},
    {"out o[3,A] : i64\no[0,i] = argmax(k) v[i,k]\no[1,i] = n[i]\no[2,i] = argmin(k) x[i,k]\n"},
    /* integers, doubles, few-bit types */
    {"out o : i64\no = sum(i) n[i]*n[i]\n"},
    {"out o : f32\no = mean(i) n[i]\n"},
    {"out o : i32\no = max(i) n[i] - min(i) n[i]\n"},
    {"out o : f32\no = sum(k) d[k]*d[k]\n"},
    {"out o[A] : f32\no[i] = sum(k) (if(m[i,k], v[i,k], 0))\n"},
    {"out o[A] : bool\no[i] = (max(k) v[i,k]) > 2.5\n"},
    {"out o[A] : f32\no[i] = sum(k) (floor(v[i,k]) + ceil(v[i,k])*round(v[i,k]) + sign(v[i,k]) + "
     "expm1(v[i,k]) - log1p(abs(v[i,k])))\n"},
};

static const enum data_kind kinds[] = {DATA_STATED,   DATA_SIGNED, DATA_ZEROS,
                                       DATA_CONSTANT, DATA_SORTED, DATA_NONFINITE};

/* Watching magnitudes, or having other threads, changes no value. */
static bool same_when_watched(struct fixture *f) {
    struct reference *r;
    size_t n;
    double peak = 0;
    bool same = true;
    if (!reference_eval(f->in, (const void *const *)f->inputs, 3, &r, &n, &peak, &f->err))
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < r[i].count; k++) {
            double v = r[i].value[k], w = f->refs[i].value[k];
            double e = r[i].estimate[k], d = f->refs[i].estimate[k];
            same =
                same && (v == w || fabs(v - w) <= 1e-12 * (1 + fabs(w)) || (isnan(v) && isnan(w)));
            same = same && isinf(e) == isinf(d) && (e == 0) == (d == 0);
        }
    reference_release(r, n);
    return same && !isnan(peak);
}

static void statements_agree(void) {
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        struct fixture f;
        char text[2048];
        snprintf(text, sizeof text, HEAD "%s", rows[k].text);
        if (!fixture_text(&f, text)) {
            printf("# row %zu: %s\n", k, rows[k].text);
            fixture_end(&f);
            continue;
        }
        for (size_t j = 0; j < sizeof kinds / sizeof *kinds; j++) {
            size_t unjudged;
            fixture_data(&f, kinds[j], 11);
            double off = oracle_compare(&f, 1e-3, &unjudged);
            CHECKF(off < 1e-11, "row %zu on %s: off by %g: %s", k, data_name(kinds[j]), off,
                   rows[k].text);
            CHECKF(same_when_watched(&f), "row %zu on %s: other values with peaks: %s", k,
                   data_name(kinds[j]), rows[k].text);
            /* No term is selected where all masks are false. */
            bool open =
                kinds[j] == DATA_NONFINITE || kinds[j] == DATA_ZEROS || unjudged < f.refs[0].count;
            CHECKF(open, "row %zu on %s: nothing judged: %s", k, data_name(kinds[j]), rows[k].text);
        }
        fixture_end(&f);
    }
}

static void check_task(const char *path) {
    struct fixture f = {.a = arena_new((size_t)64 << 20)};
    CHECKF(task_load(path, f.a, &f.task, &f.err), "%s", f.err.text);
    for (int i = 0; i < DATA_COUNT; i++)
        f.scale.factor[i] = 1;
    for (size_t c = 0; f.task && c < f.task->nchecks; c++) {
        struct cost cost;
        size_t unjudged;
        CHECKF(task_bind_check(f.task, c, f.a, &f.in, &f.err), "%s", f.err.text);
        if (!f.in)
            break;
        cost_of(f.in, &cost);
        if (cost.flops > 2e5) /* the second opinion is slow */
            continue;
        for (int kind = DATA_STATED; kind <= DATA_SIGNED; kind++) {
            fixture_data(&f, (enum data_kind)kind, 3);
            double off = oracle_compare(&f, 1e-6, &unjudged);
            CHECKF(off < 1e-9, "%s check %zu %s: off by %g", path, c,
                   data_name((enum data_kind)kind), off);
        }
    }
    fixture_end(&f);
}

static void tasks_agree(void) {
    static const char *const folders[] = {"smoke", "layers", "kernelbench/level1"};
    const char *root = getenv("SOURCE_ROOT");
    size_t seen = 0;
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tasks/%s", root ? root : ".", folders[k]);
        DIR *d = opendir(path);
        CHECKF(d, "%s", path);
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
            char file[8192];
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            if (strstr(e->d_name, ".task")) {
                check_task(file);
                seen++;
            }
        }
        if (d)
            closedir(d);
    }
    CHECK(seen >= 100);
}

static const struct tap_case cases[] = {
    {"statements agree with the second evaluator", statements_agree},
    {"tasks agree with the second evaluator", tasks_agree},
};
TAP_CASES(cases)
