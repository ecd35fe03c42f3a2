#include "import/refused.h"

#include <string.h>

/* The number in "NAME:LINE:COLUMN: …"; 0: there is none. */
static int64_t line_of(str diagnostic) {
    str head = diagnostic, word;
    int64_t line = 0;
    str_line(&head, &word);
    head = word;
    if (str_word(&head, ':', &word) && str_word(&head, ':', &word) && str_to_i64(word, &line))
        return line;
    return 0;
}

/* What follows "NAME:LINE:COLUMN: ". */
static str words_of(str diagnostic) {
    for (int colons = 0; colons < 3; colons++) {
        size_t at = str_find(diagnostic, S(":"));
        if (at == diagnostic.n)
            return diagnostic;
        diagnostic = str_from(diagnostic, at + 1);
    }
    return str_trim(diagnostic);
}

/* The comment "# MODULE, line N" that the line stands below: who it was written for. */
static str origin_of(str text, int64_t line) {
    str at, found = {0};
    for (int64_t i = 1; i <= line && str_line(&text, &at); i++)
        if (str_starts(at, S("# ")) && str_find(at, S(", line ")) < at.n)
            found = str_from(at, 2);
    return found;
}

bool task_refused(struct err *err, const char *file, str text) {
    struct err was = *err;
    str diagnostic = str_view(was.text);
    int64_t line = line_of(diagnostic);
    if (!line)
        return err_set(err, ERR_NO, "%s: what was written of it is no task: %s", file, was.text);
    str origin = origin_of(text, line), words = words_of(diagnostic);
    size_t comma = str_find(origin, S(", line "));
    if (!origin.n)
        return err_set(err, ERR_NO,
                       "%s: cannot be expressed as a task: in what was written of it, %.*s", file,
                       STR_ARG(words));
    return err_set(
        err, ERR_NO,
        "%s:%.*s: cannot be expressed as a task (in %.*s): in what was written of it, %.*s", file,
        STR_ARG(str_from(origin, comma + 7)), STR_ARG(str_cut(origin, 0, comma)), STR_ARG(words));
}
