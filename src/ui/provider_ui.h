/* A model provider from the command line. */
#ifndef UI_PROVIDER_UI_H
#define UI_PROVIDER_UI_H

#include "agent/llm/provider.h"
#include "ui/ui.h"

/* Of --provider and the options beside it; kind is NULL where none is named. Strings are borrowed
 * from the options; notice is left to the caller. */
bool ui_provider_options(struct ui *ui, struct provider_options *out, struct err *err);

#endif
