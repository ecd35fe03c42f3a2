/* The table that the two option fuzzers share: one option of each kind. */
#ifndef TESTS_BASE_FUZZ_OPTION_H
#define TESTS_BASE_FUZZ_OPTION_H

#include "base/option.h"

static const struct option_def fuzz_defs[] = {
    {"json", 'q', OPTION_BOOL, .help = "One.", .commands = 3},
    {"jobs", 'j', OPTION_INT, "N", "4", .min = 1, .max = 64, .help = "Two.", .commands = 3},
    {"note", 0, OPTION_TEXT, .help = "Three.", .commands = 1},
    {"out", 'o', OPTION_PATH, .help = "Four.", .commands = 1},
    {"agent", 0, OPTION_CHOICE, NULL, "a", "a|b", .help = "Five.", .commands = 1},
    {"include", 'I', OPTION_LIST, .help = "Six.", .commands = 1},
    {"budget", 'b', OPTION_BUDGET, .help = "Seven.", .commands = 2},
};
static const struct option_command fuzz_commands[] = {
    {"one", "ARG...", "The first.", NULL, 0, -1},
    {"two words", "", "The second.", NULL, 0, 0},
};
static const struct option_set fuzz_set = {
    "tool", "1", "a tool", fuzz_defs, sizeof fuzz_defs / sizeof *fuzz_defs, fuzz_commands, 2};

#endif
