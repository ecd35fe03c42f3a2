/* The key of a model server: from a file that only its owner can read, or from the environment
 * variable that belongs to the server's host. A key for one company is never sent to another, and
 * none over plain http to another machine. It is held here alone, and wiped.
 *
 * What comes back from a server is scrubbed of it: some echo it in their errors. */
#ifndef AGENT_LLM_KEY_H
#define AGENT_LLM_KEY_H

#include "base/err.h"

struct key {
    struct buf bytes; /* empty: none */
    bool here;        /* the server is this machine: no proxy may come between */
};

/* Whether a server can be meant by it: http or https, a host, a port if any, no key within. The
 * message names the option it comes from. */
bool url_check(const char *url, struct err *err);

/* url: of the server, checked here as well. file may be NULL. `note` gets a
 * sentence where a key was there but is not used, else "". */
bool key_find(struct key *k, const char *url, const char *file, char note[256], struct err *err);
void key_release(struct key *k); /* wipes */
/* The text with every occurrence of the key as [key]. */
void key_scrub(const struct key *k, str text, struct buf *out);

/* The i-th variable that keys are looked for in; NULL at the end. */
const char *key_variable(size_t i);

#endif
