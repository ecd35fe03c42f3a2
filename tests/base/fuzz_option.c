/* The first byte picks the command; the rest are arguments, each ended by a NUL, and an empty one
 * separates them from the environment. */
#include "fuzz_option.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { WORDS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 1 << 16)
        return 0;
    struct arena *a = arena_new(16 << 20);
    char *text = arena_cstr(a, (str){(const char *)data + 1, size - 1});
    char *argv[WORDS], *env[WORDS + 1];
    int argc = 0, nenv = 0;
    bool to_env = false;
    for (size_t at = 0; at < size - 1; at += strlen(text + at) + 1) {
        if (!text[at])
            to_env = true;
        else if (!to_env && argc < WORDS)
            argv[argc++] = text + at;
        else if (to_env && nenv < WORDS)
            env[nenv++] = text + at;
    }
    env[nenv] = NULL;
    struct options *o;
    struct err err = {0};
    if (options_parse(&fuzz_set, data[0] & 1, argc, argv, env, NULL, a, &o, &err))
        BUG_IF(option_int(o, "jobs") < 1 || option_int(o, "jobs") > 64);
    else
        BUG_IF(err.kind != ERR_INPUT || !err.text[0]);
    arena_free(a);
    return 0;
}
