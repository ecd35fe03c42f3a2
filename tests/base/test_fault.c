#include "base/arena.h"
#include "base/fault.h"
#include "base/file.h"
#include "tap.h"

#include <stdlib.h>

#ifdef CUTEPILOT_FAULTS

#include "forked.h"

static void set(const char *value, const char *role) {
    setenv("CUTEPILOT_FAULT", value, 1);
    fault_init(role);
}

static int counts_from_one(void) {
    set("write:2", "main");
    bool a = fault_hit(FAULT_WRITE), b = fault_hit(FAULT_WRITE), c = fault_hit(FAULT_WRITE);
    return !a && b && !c && !fault_hit(FAULT_ALLOC) && !fault_hit(FAULT_CHILD) ? 42 : 1;
}
static int several(void) {
    set("alloc:1,child:2", "main");
    return fault_hit(FAULT_ALLOC) && !fault_hit(FAULT_CHILD) && fault_hit(FAULT_CHILD) ? 42 : 1;
}
static int other_role(void) {
    set("device/alloc:1", "judge");
    return !fault_hit(FAULT_ALLOC) ? 42 : 1;
}
static int own_role(void) {
    set("device/alloc:1", "device");
    return fault_hit(FAULT_ALLOC) ? 42 : 1;
}
static int unset(void) {
    unsetenv("CUTEPILOT_FAULT");
    fault_init("main");
    return !fault_hit(FAULT_ALLOC) && !fault_hit(FAULT_WRITE) ? 42 : 1;
}
static int unknown_name(void) {
    set("disk:1", "main");
    return 42;
}
static int no_number(void) {
    set("alloc", "main");
    return 42;
}
static int zeroth(void) {
    set("alloc:0", "main");
    return 42;
}
static int alloc_is_fatal(void) {
    set("alloc:2", "main");
    mem_alloc(10);
    mem_alloc(10);
    return 42;
}
static int arena_is_fatal(void) {
    set("alloc:2", "main"); /* the arena itself, then its first block */
    arena_alloc(arena_new(100), 1, 1);
    return 42;
}
static int buf_is_fatal(void) {
    struct buf b;
    set("alloc:1", "main");
    buf_init(&b, 100);
    buf_puts(&b, S("x"));
    return 42;
}
static int write_is_out_of_space(void) {
    struct err e = {0};
    set("write:1", "main");
    return !file_write_all(STDERR_FILENO, "x", 1, &e) && e.kind == ERR_ENV &&
                   strstr(e.text, "No space left") && !strstr(e.text, "--out")
               ? 42
               : 1;
}

static void rows(void) {
    static const struct {
        const char *name;
        int (*f)(void);
        int code;
        const char *says;
    } table[] = {
        {"counted from one, once", counts_from_one, 42, ""},
        {"several", several, 42, ""},
        {"another role's", other_role, 42, ""},
        {"the role's own", own_role, 42, ""},
        {"unset", unset, 42, ""},
        {"unknown name", unknown_name, 2, "'disk:1' is not"},
        {"no number", no_number, 2, "'alloc' is not"},
        {"the zeroth", zeroth, 2, "'alloc:0' is not"},
        {"mem_alloc ends the process", alloc_is_fatal, 3, "out of memory"},
        {"an arena's block ends the process", arena_is_fatal, 3, "out of memory"},
        {"a buf ends the process", buf_is_fatal, 3, "out of memory"},
        {"a write is out of space", write_is_out_of_space, 42, ""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct forked r = forked_run(table[i].f);
        CHECKF(r.code == table[i].code && strstr(r.err, table[i].says), "%s: %d '%s'",
               table[i].name, r.code, r.err);
    }
}

#else

static void rows(void) {
    setenv("CUTEPILOT_FAULT", "alloc:1", 1);
    fault_init("main");
    CHECK(!fault_hit(FAULT_ALLOC));
}

#endif

static const struct tap_case cases[] = {{"faults", rows}};
TAP_CASES(cases)
