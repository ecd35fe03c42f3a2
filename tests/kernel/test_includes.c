/* Which includes pass, however they are written. */
#include "tap.h"

#include "kernel/includes.h"

static struct arena *arena;

static void scan(void) {
    static const struct {
        const char *text;
        bool allowed, cute;
    } rows[] = {
        {"", true, false},
        {"#include <cuda_fp16.h>", true, false},
        {"#include \"cuda_bf16.h\"\n", true, false},
        {"  #  include\t<cuda/std/cstdint> // why\n", true, false},
        {"#include <cooperative_groups.h>\n#include <cooperative_groups/reduce.h>\n", true, false},
        {"#include <cute/tensor.hpp>\n", true, true},
        {"#include <cutlass/cutlass.h>\n", true, true},
        {"#define A #x\n#if 1\n#endif\n", true, false},
        {"#include_once", true, false},
        {"#include \"/etc/passwd\"", false, false},
        {"#include </proc/self/environ>", false, false},
        {"#include \"../secret.h\"", false, false},
        {"#include <cuda/std/../../../secret>", false, false},
        {"#include <cuda_fp16.h/../x>", false, false},
        {"#include <cuda_runtime.h>", false, false},
        {"#include <stdio.h>", false, false},
        {"#define H \"/etc/passwd\"\n#include H\n", false, false},
        {"#inc\\\nlude \"x.h\"", false, false},
        {"#\\\n\\\ninclude \"x.h\"", false, false},
        {"#inc\\  \r\nlude \"x.h\"", false, false},
        {"#/**/include/* a */\"x.h\"", false, false},
        {"# /* over\nlines */ include \"x.h\"", false, false},
        {"/*\n*/ #include \"x.h\"", false, false},
        {"\"/*\"\n#include \"x.h\"\n/* */", false, false},
        {"R\"(\n)\"\n#include \"x.h\"", false, false},
        {"%:include \"x.h\"", false, false},
        {"\?\?=include \"x.h\"", false, false},
        {"#include_next <cuda_fp1.h>", false, false},
        {"#import \"x.h\"", false, false},
        {"#embed \"x.h\"", false, false},
        {"#include", false, false},
        {"#include \"cuda_fp16.h", false, false},
        {"#include <cuda_fp16.h>\n#include \"x.h\"\n", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct includes inc;
        includes_scan(str_view(rows[i].text), arena, &inc);
        CHECKF(inc.allowed == rows[i].allowed && inc.cute == rows[i].cute, "%s", rows[i].text);
        CHECKF(inc.allowed || (inc.refused.n && inc.why), "%s", rows[i].text);
    }
}

/* All that has to go is said at once, a line for each. */
static void several(void) {
    struct includes inc;
    includes_scan(S("#include <cuda_runtime.h>\n#include <cuda_fp16.h>\n#include <stdint.h>\n"
                    "#include <cuda_runtime.h>\n#include <vector>\n"),
                  arena, &inc);
    CHECK(str_is(inc.refused, "<cuda_runtime.h>") && inc.nrefused == 4);
    CHECKF(str_is(inc.others,
                  "\n#include <stdint.h>: uint32_t and the like are there already: remove it"
                  "\n#include <vector>: it is not on the list of headers"),
           "%.*s", STR_ARG(inc.others));
}

/* The scan is linear, also on a text made to make it look far ahead again and again. */
static void hostile_size(void) {
    size_t n = 1u << 20;
    char *text = arena_alloc(arena, n, 1);
    for (size_t i = 0; i < n; i++)
        text[i] = "#/*"[i % 3];
    struct includes inc;
    includes_scan((str){text, n}, arena, &inc);
    CHECK(!inc.allowed);
    memset(text, '#', n);
    includes_scan((str){text, n}, arena, &inc);
    CHECK(inc.allowed);
    memset(text, '\\', n);
    includes_scan((str){text, n}, arena, &inc);
    CHECK(inc.allowed);
}

/* The lines for nvcc are no part of a source where it begins with them, and are there once. */
static void for_nvcc(void) {
    static const char body[] = "#include <cuda_fp16.h>\n";
    str file = includes_file(str_view(body), arena), again = includes_file(file, arena);
    struct includes inc;
    CHECK(str_starts(file, str_view(includes_for_nvcc)) && str_eq(file, again));
    CHECK(str_is(includes_body(file), body) && str_is(includes_body(str_view(body)), body));
    includes_scan(file, arena, &inc);
    CHECK(!inc.allowed);
    str late = arena_printf(arena, "\n%.*s", STR_ARG(file));
    CHECK(str_eq(includes_body(late), late));
}

static void unopened(void) {
    str name;
    CHECK(includes_unopened(
              S("kernel.cu(1): catastrophic error: cannot open source file \"a/b\"\n"), &name) &&
          str_is(name, "a/b"));
    CHECK(!includes_unopened(S("kernel.cu(1): error: no\n"), &name));
}

static const struct tap_case cases[] = {
    {"directives", scan},
    {"several that are not allowed", several},
    {"hostile sizes", hostile_size},
    {"the lines for nvcc", for_nvcc},
    {"what the compiler could not open", unopened},
};

int main(void) {
    arena = arena_new(256u << 20);
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return failed;
}
