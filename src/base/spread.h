/* A few measurements of one thing: their median, and where the true median lies.
 *
 * The interval is that of order statistics, which asks nothing of the distribution: with 95%
 * confidence the median lies between the samples of ranks n/2 ± 0.98·√n. */
#ifndef BASE_SPREAD_H
#define BASE_SPREAD_H

#include <stddef.h>

struct spread {
    size_t n;
    double median, low, high; /* NAN where n is 0 */
};
/* Sorts the samples. */
struct spread spread_of(double *samples, size_t n);

#endif
