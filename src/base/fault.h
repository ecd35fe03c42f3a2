/* Fault seams: CUTEPILOT_FAULT=alloc:N, write:N or child:N (comma-separated) makes the N-th
 * allocation, write or child start of this process, counted from 1, fail, network:N the N-th folder
 * that is asked about one on a network file system; `NAME:N` with a role
 * before it (`device/alloc:3`) only in that role. Built in only with -Dfaults=true. */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>

enum fault { FAULT_ALLOC, FAULT_WRITE, FAULT_CHILD, FAULT_NETWORK, FAULT_COUNT };

void fault_init(const char *role); /* reads the environment; call once, first thing */
bool fault_hit(enum fault f);      /* true when this is the one that must fail */

#endif
