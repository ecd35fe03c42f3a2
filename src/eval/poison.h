/* Patterns that show what a kernel did not write, and what it should not have.
 *
 * Poison is a pure function of a secret key and the element, so it need not be kept. For floats it
 * is a signalling NaN with a random payload: no instruction produces one, so bits that still equal
 * the poison were never written, whatever the reference is. For booleans it is a byte that is
 * neither 0 nor 1; for integers random bits, where only an element that is also wrong counts. */
#ifndef EVAL_POISON_H
#define EVAL_POISON_H

#include "spec/task.h"

void poison_fill(enum dtype t, uint64_t key, size_t count, unsigned threads, void *dst);
/* Elements whose bits are still the poison; *first is the lowest. An integer that is within
 * worst·estimate of what is expected may have been written. */
uint64_t poison_count(enum dtype t, uint64_t key, const void *got, const double *expected,
                      const double *estimate, double worst, size_t count, unsigned threads,
                      size_t *first);

void canary_fill(uint64_t key, void *dst, size_t bytes);
bool canary_holds(uint64_t key, const void *p, size_t bytes, size_t *first);

#endif
