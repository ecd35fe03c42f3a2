/* What a scan or a window is like, for whoever plans: the cases of the comments at the head of
 * scan.c and window.c. */
#ifndef AGENT_EXPERT_SCAN_KIND_H
#define AGENT_EXPERT_SCAN_KIND_H

#include "agent/expert/sheet/sheet.h"

enum scan_kind {
    SCAN_SHORT,   /* many rows that a warp scans well by itself */
    SCAN_LONG,    /* many longer rows */
    SCAN_FEW,     /* fewer long rows than the GPU holds blocks */
    SCAN_PARTS,   /* the same, where chunks cannot look back */
    SCAN_COLUMNS, /* along another axis, columns enough for all SMs */
    SCAN_NARROW,  /* along another axis, few columns */
    SCAN_NONE,
};
enum scan_kind scan_kind_of(const struct briefing *b, const struct step *st);

enum window_kind {
    WINDOW_LINE,  /* along the innermost axis only */
    WINDOW_APART, /* steps as wide as the window or nearly so */
    WINDOW_POOL,  /* overlapping, of elements alone */
    WINDOW_SLABS, /* the same over three axes */
    WINDOW_WEIGHTED,
    WINDOW_NONE,
};
enum window_kind window_kind_of(const struct briefing *b, const struct step *st);

#endif
