#include "base/near.h"

enum { NAME_MAX_HELD = 64 }; /* longer names are near to none */

/* Edits (insert, remove, replace) from a to b, both at most NAME_MAX_HELD long. */
static size_t edit_distance(str a, str b) {
    size_t row[NAME_MAX_HELD + 1];
    for (size_t j = 0; j <= b.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t replace = diagonal + (a.p[i - 1] != b.p[j - 1]);
            size_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[b.n];
}

/* A third of the name may differ, of a short one a letter; of a single letter nothing is left then.
 */
struct near near_begin(str unknown) {
    size_t most = unknown.n < 6 ? unknown.n > 1 : unknown.n / 3;
    return (struct near){.unknown = unknown, .least = 1 + most};
}

void near_try(struct near *n, str known) {
    if (n->unknown.n > NAME_MAX_HELD || known.n > NAME_MAX_HELD)
        return;
    size_t d = edit_distance(n->unknown, known);
    if (d < n->least) {
        n->least = d;
        n->best = known;
    }
}
