/* Rounding to element types. Private to the room. */
#ifndef SPEC_CONVERT_H
#define SPEC_CONVERT_H

#include "spec/task.h"

/* Half the distance to the next number of a float type at v, subnormals included. */
double dtype_half_ulp(enum dtype t, double v);
/* To the nearest number of a float type, ties to even; overflow gives infinity. */
double dtype_round(enum dtype t, double v);

#endif
