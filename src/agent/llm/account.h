/* What was spent on models, by role and by candidate, and the caps that are never passed.
 *
 * Before a call is made, the most it may cost is reserved: a generous estimate of the prompt, and
 * the whole reply it is allowed. A call whose reservation does not fit beside what others have
 * reserved waits for them; one that would not fit even then is refused. Afterwards the reservation
 * goes back and what was used is charged, also for answers that came to nothing. */
#ifndef AGENT_LLM_ACCOUNT_H
#define AGENT_LLM_ACCOUNT_H

#include "base/json.h"

struct account;

struct price {
    double in, out; /* dollars a million tokens; NAN: not known */
};

struct caps { /* 0: none */
    double cost;
    uint64_t tokens, calls;
};

struct reservation {
    uint64_t tokens;
    double cost;
};

enum admission { ADMIT_YES, ADMIT_WAIT, ADMIT_NEVER };

struct account *account_new(struct caps caps, struct price price);
void account_free(struct account *a);

/* Of a call's next try. ADMIT_YES reserves; ADMIT_NEVER says in err (ERR_NO) which cap it is. A
 * call is counted at its first try. */
enum admission account_admit(struct account *a, bool first, uint64_t prompt_bytes,
                             uint64_t max_tokens, struct reservation *out, struct err *err);
void account_settle(struct account *a, struct reservation *r); /* gives back and empties */

struct charge {
    const char *role;
    uint64_t candidate; /* UINT64_MAX: none */
    bool answered;      /* counts as a call of the role */
    uint64_t tokens_in, tokens_out;
    double cost;
};
void account_charge(struct account *a, const struct charge *c);
json *account_json(const struct account *a);

double price_cost(struct price p, uint64_t tokens_in, uint64_t tokens_out);
/* From the table of models in the assets; NAN where the model is not in it. */
bool price_find(const char *assets, str model, struct price *out, struct err *err);
/* Tokens of a text that nobody counted. */
uint64_t tokens_estimate(uint64_t bytes);

#endif
