/* Between the files that make sheets and scopes. Private to them. */
#ifndef AGENT_EXPERT_SHEET_PRIVATE_H
#define AGENT_EXPERT_SHEET_PRIVATE_H

#include "agent/expert/sheet/sheet.h"

/* Counts and sizes up to this are int; beyond it indices are long long. */
#define SCOPE_INT_MAX (INT64_C(1) << 30)

bool text_is_word_char(char c);
size_t text_find_word(str text, str word); /* text.n: it has none */
void sheet_init_names(struct sheet *sh);   /* the task's are taken */
void sheet_release_names(struct sheet *sh);
/* A let of the task, or a tensor that the form has made. */
bool sheet_is_workspace(const struct sheet *sh, size_t tensor);
/* The type of its elements in memory. */
enum dtype sheet_dtype(const struct sheet *sh, const struct step *st, size_t tensor);
/* What became of a decision, whatever the head says of it. */
void sheet_note_effective(struct sheet *sh, const struct used *u);
/* Makes the plan's workspaces few enough. False: the plan would be refused, err says why. */
bool sheet_gather(struct sheet *sh);

/* A name for something of the task's: none that templates use either. */
str scope_free_name(struct scope *k, str base);
/* How many values a variable of the scope's statement takes, from 0 on; NULL: not known. */
const struct expr *scope_extent(const struct scope *k, size_t var);

#endif
