/* Writes the corpus of instruction forms: corpus-forms DIR puts forms.ptx and forms.def there.
 * To be run when the simulator's table of operations changes; test_corpus says when. */
#include "forms.h"

static bool put(const char *folder, const char *name, const struct buf *b) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(b->p, 1, b->n, f) == b->n;
    if (f)
        ok &= fclose(f) == 0;
    if (!ok)
        fprintf(stderr, "corpus-forms: cannot write %s\n", path);
    return ok;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: corpus-forms DIR\n");
        return 2;
    }
    struct buf ptx, def;
    buf_init(&ptx, 1u << 20);
    buf_init(&def, 1u << 16);
    forms_write(&ptx, &def);
    bool ok = put(argv[1], "forms.ptx", &ptx) && put(argv[1], "forms.def", &def);
    buf_release(&ptx);
    buf_release(&def);
    return ok ? 0 : 1;
}
