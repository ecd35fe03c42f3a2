/* Any bytes as a table of openings, of the family that the first byte chooses. What is accepted has
 * kinds, values and reasons that hold together; what is refused says where. */
#include "agent/expert/expert.h"
#include "agent/expert/plan/openings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t n;
    const struct family *const *families = expert_families(&n);
    if (size == 0)
        return 0;
    struct arena *a = arena_new(64u << 20);
    str text = {(const char *)data + 1, size - 1};
    struct catalogue *c;
    struct openings o;
    struct err err = {0};
    if (catalogue_load(NULL, a, &c, &err)) {
        bool ok =
            openings_parse(S("fuzz.openings"), families[data[0] % n]->name, text, c, a, &o, &err);
        BUG_IF(!ok && err.text[0] == 0);
        for (size_t i = 0; ok && i < o.n; i++)
            BUG_IF(o.at[i].kind.n == 0 || o.at[i].why.n == 0 || o.at[i].nvalues == 0);
        for (size_t i = 0; ok && i < o.nkinds; i++)
            for (size_t k = 0; k < o.kinds[i].n; k++)
                BUG_IF(o.kinds[i].all[k].which >= STEP_FACTS);
    }
    arena_free(a);
    return 0;
}
