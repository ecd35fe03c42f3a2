/* Statements whose work grows faster than the data are found, and products, attention, windows and
 * scans are not taken for such; nor is any task that comes with the program. */
#include "fixture.h"
#include "spec/growth.h"

#include <dirent.h>

#define V "dim N = 4096\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"

static const struct {
    const char *name, *text, *tensor; /* NULL: nothing is said */
    int work, data;                   /* powers of the dimension */
} table[] = {
    /* Sums that share their terms, in a form that hides it. */
    {"a sum over all pairs", V "y[i] = sum(j) abs(x[i] - x[j])\n", "y", 2, 1},
    {"the greatest of a let of pairs", V "let d[i,j] = abs(x[i] - x[j])\ny[i] = max(j) d[i,j]\n",
     "d", 2, 1},
    {"a factor that could stand before the sum", V "y[i] = sum(j) x[i]*x[j]\n", "y", 2, 1},
    {"a prefix sum from the other end", V "y[i] = sum(k <= i) x[i-k]\n", "y", 2, 1},
    {"a sum of prefix sums", V "y[i] = sum(j <= i, k <= j) x[k]\n", "y", 3, 1},
    {"how many are smaller", V "y[i] = sum(j | x[j] < x[i]) 1\n", "y", 2, 1},
    {"a mean within the sum",
     "dim R = 512, C = 512\nin x[R,C] : f32 ~ normal(0,1)\nout y[R,C] : f32\n"
     "y[i,j] = sum(k) (x[i,j] - x[i,k]) / C\n",
     "y", 2, 1},
    {"a mean within the sum of a square matrix",
     "dim N = 512\nin x[N,N] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
     "y[i,j] = sum(k) (x[i,j] - x[i,k])\n",
     "y", 3, 2},
    {"a loss over all pairs of a batch",
     "dim B = 4096\nin s[B] : f32 ~ normal(0,1)\nin t[B] : f32 ~ normal(0,1)\nout y : f32\n"
     "let h[i,j] = maximum(0, 1 - (s[i]-s[j]) * t[i])\ny = mean(i,j) h[i,j]\n",
     "h", 2, 1},
    {"a large table beside it",
     "dim N = 4096, T = 1000000\nin x[N] : f32 ~ normal(0,1)\nin t[T] : f32 ~ normal(0,1)\n"
     "out y[N] : f32\ny[i] = t[i] * sum(j, k < 8) abs(x[i] - x[j]) * k\n",
     "y", 2, 1},
    {"a decay of another distance", V "y[i] = sum(k <= i) x[k] * pow(0.5, 2*i - k)\n", "y", 2, 1},
    {"segments whose starts are data",
     V "in s[N] : i32 ~ randint(0, N)\ny[i] = sum(k <= i | k >= s[i]) x[k]\n", "y", 2, 1},
    /* The same as they should be written. */
    {"a factor before the sum", V "y[i] = x[i] * sum(j) x[j]\n", NULL, 0, 0},
    {"a prefix sum", V "y[i] = sum(k <= i) x[k]\n", NULL, 0, 0},
    {"a recurrence", V "y[i] = sum(j <= i) x[j] * prod(j < k <= i) sigmoid(x[k])\n", NULL, 0, 0},
    {"a recurrence from the end", V "y[i] = sum(i <= j < N) (prod(i <= k < j) x[k]) * x[j]\n", NULL,
     0, 0},
    {"a moving average", V "y[i] = sum(k <= i) 0.1 * x[k] * exp(-0.1*(i - k))\n", NULL, 0, 0},
    {"a running log-sum-exp",
     V "let m[i < N] = max(k <= i) x[k]\ny[i] = m[i] + log(sum(k <= i) exp(x[k] - m[i]))\n", NULL,
     0, 0},
    {"a sum that starts anew",
     V "let s[i < N] : i32 = max(k <= i) if(x[k] > 2, k, 0)\n"
       "y[i] = sum(k <= i | k >= s[i]) x[k]\n",
     NULL, 0, 0},
    {"a suffix sum", V "y[i] = sum(i <= k < N) x[k]\n", NULL, 0, 0},
    {"a running mean of exponentials", V "y[i] = x[i] / mean(k <= i) exp(x[k])\n", NULL, 0, 0},
    {"prefix sums of prefix sums", V "let p[j < N] = sum(k <= j) x[k]\ny[i] = sum(j <= i) p[j]\n",
     NULL, 0, 0},
    /* What cannot do with less, or is not quadratic. */
    {"a product of square matrices",
     "dim N = 512\nin a[N,N] : f32 ~ normal(0,1)\nin b[N,N] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
     "y[i,j] = sum(k) a[i,k]*b[k,j]\n",
     NULL, 0, 0},
    {"shortest paths of two steps",
     "dim N = 256\nin a[N,N] : f32 ~ uniform(0,1)\nout y[N,N] : f32\n"
     "y[i,j] = min(k) (a[i,k] + a[k,j])\n",
     NULL, 0, 0},
    {"distances of all pairs",
     "dim N = 1024, D = 3\nin p[N,D] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
     "y[i,j] = sqrt(sum(d) (p[i,d]-p[j,d])*(p[i,d]-p[j,d]))\n",
     NULL, 0, 0},
    {"attention with a bias",
     "dim H = 8, S = 2048, D = 64\nin q[H,S,D] : f32 ~ normal(0,1)\nin k[H,S,D] : f32 ~ "
     "normal(0,1)\n"
     "in v[H,S,D] : f32 ~ normal(0,1)\nin slope[H] : f32 ~ uniform(0,1)\nout y[H,S,D] : f32\n"
     "let s[h,i,j] = 0.125 * (sum(d) q[h,i,d]*k[h,j,d]) - slope[h]*abs(i-j)\n"
     "let m[h,i] = max(j) s[h,i,j]\nlet p[h,i,j] = exp(s[h,i,j] - m[h,i])\n"
     "let l[h,i] = sum(j) p[h,i,j]\ny[h,i,d] = (sum(j) p[h,i,j]*v[h,j,d]) / l[h,i]\n",
     NULL, 0, 0},
    {"a contrastive loss",
     "dim B = 1024, D = 16\nin a[B,D] : f32 ~ normal(0,0.1)\nin b[B,D] : f32 ~ normal(0,0.1)\n"
     "out y : f32\nlet s[i,j] = sum(d) a[i,d]*b[j,d]\nlet m[i] = max(j) s[i,j]\n"
     "let l[i] = log(sum(j) exp(s[i,j]-m[i])) + m[i]\ny = mean(i) (l[i] - s[i,i])\n",
     NULL, 0, 0},
    {"a filter as long as the signal",
     "dim N = 2048\nin x[N] : f32 ~ normal(0,1)\nin w[N] : f32 ~ normal(0,1)\nout y[N] : f32\n"
     "y[i] = sum(k <= i) w[i-k]*x[k]\n",
     NULL, 0, 0},
    {"means over square windows",
     "dim N = 256, W = 9\nin x[N+W-1,N+W-1] : f32 ~ normal(0,1)\nout y[N,N] : f32\n"
     "y[i,j] = sum(a < W, b < W) x[i+a,j+b] / (W*W)\n",
     NULL, 0, 0},
    {"a norm of rows, all in one expression",
     "dim T = 512, D = 1024\nin x[T,D] : f32 ~ normal(0,1)\nout y[T,D] : f32\n"
     "y[t,d] = (x[t,d] - mean(j) x[t,j])"
     " * rsqrt(mean(k) (x[t,k] - mean(j) x[t,j])*(x[t,k] - mean(j) x[t,j]) + 1e-5)\n",
     NULL, 0, 0},
    {"pairs of so few that nobody cares",
     "dim N = 8\nin x[N] : f32 ~ normal(0,1)\nout y[N] : f32\ny[i] = sum(j) abs(x[i] - x[j])\n",
     NULL, 0, 0},
};

static void statements(void) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct fixture f;
        struct growth g = {0};
        char text[1024];
        snprintf(text, sizeof text, "task t \"T\"\n%s", table[i].text);
        if (!fixture_text(&f, text))
            continue;
        bool found = growth_find(f.in, &g);
        CHECKF(found == (table[i].tensor != NULL), "%s", table[i].name);
        if (found && table[i].tensor) {
            str name = f.task->tensors[f.task->statements[g.statement].tensor].name;
            CHECKF(str_is(name, table[i].tensor) && g.work_power == table[i].work &&
                       g.data_power == table[i].data && g.operations > g.elements,
                   "%s: %.*s %d %d", table[i].name, STR_ARG(name), g.work_power, g.data_power);
        }
        fixture_end(&f);
    }
}

static size_t look_at_tasks(const char *folder) {
    char path[1024];
    size_t n = 0;
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/tasks/%s", getenv("SOURCE_ROOT"), folder);
    DIR *d = opendir(path);
    CHECKF(d, "%s", path);
    while (d && (entry = readdir(d))) {
        struct arena *a = arena_new((size_t)64 << 20);
        struct task *t;
        struct inst *in;
        struct err err = {0};
        struct growth g;
        char file[2048];
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (str_ends(str_view(file), S(".task"))) {
            bool ok = task_load(file, a, &t, &err) && task_bind(t, NULL, 0, a, &in, &err);
            CHECKF(ok, "%s", err.text);
            CHECKF(!ok || !growth_find(in, &g), "%s", file);
            n++;
        }
        arena_free(a);
    }
    if (d)
        closedir(d);
    return n;
}

static void shipped_tasks(void) {
    if (!getenv("SOURCE_ROOT"))
        SKIP("SOURCE_ROOT is not set");
    CHECK(look_at_tasks("kernelbench/level1") >= 100);
    CHECK(look_at_tasks("layers") >= 24);
    CHECK(look_at_tasks("smoke") >= 9);
}

static const struct tap_case cases[] = {
    {"statements whose work grows faster than the data", statements},
    {"none among the tasks that come with the program", shipped_tasks},
};
TAP_CASES(cases)
