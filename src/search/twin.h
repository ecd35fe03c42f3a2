/* When two sources are one candidate: when the compiler and the reader of the plan see the same
 * lines. The expert says above a kernel which strategy it was asked for, and several of them often
 * come to the same code, which is evaluated once. */
#ifndef SEARCH_TWIN_H
#define SEARCH_TWIN_H

#include "base/str.h"

/* The same for twins: of the lines that are not comments alone (`//`, but not the plan's `//!`). */
void twin_hash(str source, char hex[65]);

#endif
