#include "base/spread.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread spread_of(double *samples, size_t n) {
    if (!n)
        return (struct spread){0, NAN, NAN, NAN};
    qsort(samples, n, sizeof *samples, ascending);
    double half = 0.98 * sqrt((double)n), middle = (double)(n - 1) / 2;
    double low = floor(middle - half), high = ceil(middle + half);
    return (struct spread){.n = n,
                           .median = (samples[(n - 1) / 2] + samples[n / 2]) / 2,
                           .low = samples[low > 0 ? (size_t)low : 0],
                           .high = samples[high < (double)n ? (size_t)high : n - 1]};
}
