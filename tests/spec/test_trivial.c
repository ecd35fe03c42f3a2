/* Outputs that take no computing: refused where they would pass, and every task that comes with the
 * program tells them apart, in little time. */
#include "fixture.h"
#include "spec/trivial.h"

#include <dirent.h>
#include <time.h>

static const struct {
    const char *name, *text, *want; /* NULL: nothing trivial passes */
} table[] = {
    {"a copy", "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = x[i]\n", NULL},
    {"a number that is a mean", "in x[N] : f32 ~ uniform(0,1)\nout y : f32\ny = mean(i) x[i]\n",
     NULL},
    {"row means", "in x[N,M] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = mean(j) x[i,j]\n", NULL},
    {"a comparison", "in x[N] : f32 ~ uniform(0,1)\nout y[N] : bool\ny[i] = x[i] > 0.5\n", NULL},
    {"a comparison, always true on stated data",
     "in x[N] : f32 ~ uniform(0,1)\nout y[N] : bool\ny[i] = x[i] >= 0\n", NULL},
    {"an index", "in x[N,M] : f32 ~ normal(0,1)\nout y[N] : i64\ny[i] = argmax(j) x[i,j]\n", NULL},
    {"a constant at the smallest shape",
     "in x[N,M] : f32 ~ normal(0,1)\nout y[N,M] : f32\n"
     "y[i,j] = exp(x[i,j])/(sum(k) exp(x[i,k]))\ncheck N = 1, M = 1\n",
     NULL},
    {"zero", "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = if(x[i] > 0, 0, 0)\n",
     "'y' passes on every kind of data when all its elements are 0"},
    {"one", "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = if(x[i] > 0, 1, 1)\n",
     "when all its elements are 1"},
    {"a truth",
     "in x[N] : f32 ~ uniform(0,1)\nout y[N] : bool\ny[i] = abs(x[i]) >= 0 || x[i] != "
     "x[i]\n",
     "when all its elements are 1"},
    {"lost in its error",
     "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\n"
     "y[i] = 1000000 + if(x[i] > 0.5, 0.001, 0)\n",
     "when all its elements are 1e+06"},
    {"one of two",
     "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\nout z[N] : f32\ny[i] = x[i]\n"
     "z[i] = 3\n",
     "'z' passes on every kind of data when all its elements are 3"},
    {"the mean of an input",
     "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = (mean(k) x[k]) "
     "+ 0*i\n",
     "'y' passes on every kind of data when all its elements are the mean of 'x'"},
    {"nothing judged", "in x[N] : f32 ~ uniform(0,1)\nout y[N] : f32\ny[i] = inf - inf\n",
     "when all its elements are 0"},
};

static void trivial_outputs(void) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct fixture f;
        struct err err = {0};
        char text[512];
        snprintf(text, sizeof text, "task t \"T\"\ndim N = 9, M = 7\n%s", table[i].text);
        if (!fixture_text(&f, text))
            continue;
        bool ok = task_check_trivial(f.in, 1, &err);
        if (table[i].want)
            CHECKF(!ok && strstr(err.text, table[i].want) && strstr(err.text, "t.task:"), "%s: %s",
                   table[i].name, ok ? "passes" : err.text);
        else
            CHECKF(ok, "%s: %s", table[i].name, err.text);
        fixture_end(&f);
    }
}

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SLOWER 20
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SLOWER 20
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif

struct slowest {
    double seconds;
    char name[256];
    int tasks;
};

/* In processor time: a busy machine's clock says little. */
static void try_task(const char *path, const char *name, struct slowest *slow) {
    struct fixture f = {.a = arena_new((size_t)64 << 20)};
    bool ok =
        task_load(path, f.a, &f.task, &f.err) && task_bind(f.task, NULL, 0, f.a, &f.in, &f.err);
    clock_t begun = clock();
    ok = ok && task_check_trivial(f.in, 1, &f.err);
    double seconds = (double)(clock() - begun) / CLOCKS_PER_SEC;
    CHECKF(ok, "%s: %s", name, f.err.text);
    CHECKF(seconds < 0.3 * SLOWER, "%s: %.3f s", name, seconds);
    slow->tasks++;
    if (seconds > slow->seconds) {
        slow->seconds = seconds;
        snprintf(slow->name, sizeof slow->name, "%s", name);
    }
    fixture_end(&f);
}

static void every_task(void) {
    static const char *const folders[] = {"smoke", "layers", "kernelbench/level1"};
    const char *root = getenv("SOURCE_ROOT");
    struct slowest slow = {0};
    for (size_t k = 0; k < sizeof folders / sizeof *folders; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/tasks/%s", root ? root : ".", folders[k]);
        DIR *d = opendir(path);
        CHECKF(d, "%s", path);
        for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d)) {
            char file[8192];
            snprintf(file, sizeof file, "%s/%s", path, e->d_name);
            if (strstr(e->d_name, ".task"))
                try_task(file, e->d_name, &slow);
        }
        if (d)
            closedir(d);
    }
    printf("# %d tasks, the slowest %s in %.3f s\n", slow.tasks, slow.name, slow.seconds);
    CHECK(slow.tasks > 100);
}

static const struct tap_case cases[] = {
    {"trivial outputs that pass are named", trivial_outputs},
    {"every task tells trivial outputs apart", every_task},
};
TAP_CASES(cases)
