/* The counters below are the one mutable global of the program: a fault is a property of the
 * process, and the seams that ask (an allocation deep in a parser) have nobody to hand them a
 * context. They are atomic, because the simulator allocates on several threads. */
#include "base/fault.h"

#ifdef CUTEPILOT_FAULTS

#include "base/str.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct {
    atomic_ullong seen[FAULT_COUNT];
    unsigned long long at[FAULT_COUNT]; /* 0: never */
} faults;

static const char *const names[FAULT_COUNT] = {[FAULT_ALLOC] = "alloc",
                                               [FAULT_WRITE] = "write",
                                               [FAULT_CHILD] = "child",
                                               [FAULT_NETWORK] = "network"};

/* One `[ROLE/]NAME:N`; another role's is well formed and ignored. */
static bool fault_read(str item, str role) {
    str name, count = item, who;
    uint64_t n;
    str_word(&count, ':', &name);
    if (!str_to_u64(count, &n) || n == 0)
        return false;
    size_t slash = str_find(name, S("/"));
    bool mine = true;
    if (slash < name.n) {
        who = str_cut(name, 0, slash);
        mine = str_eq(who, role);
        name = str_from(name, slash + 1);
    }
    for (size_t f = 0; f < FAULT_COUNT; f++) {
        if (!str_is(name, names[f]))
            continue;
        if (mine)
            faults.at[f] = n;
        return true;
    }
    return false;
}

void fault_init(const char *role) {
    for (size_t f = 0; f < FAULT_COUNT; f++) {
        atomic_store(&faults.seen[f], 0);
        faults.at[f] = 0;
    }
    str rest = str_view(getenv("CUTEPILOT_FAULT")), item;
    while (str_word(&rest, ',', &item)) {
        if (fault_read(item, str_view(role)))
            continue;
        fprintf(stderr, "cutepilot: CUTEPILOT_FAULT: '%.*s' is not [ROLE/]alloc|write|child:N\n",
                STR_ARG(item));
        _exit(2);
    }
}

bool fault_hit(enum fault f) {
    return faults.at[f] && atomic_fetch_add(&faults.seen[f], 1) + 1 == faults.at[f];
}

#else

void fault_init(const char *role) {
    (void)role;
}

bool fault_hit(enum fault f) {
    (void)f;
    return false;
}

#endif
