/* Whether a kernel is slower where it meets a content for the first time.
 *
 * A kernel that keeps results from launch to launch is fast only on what it has met. So timed runs
 * are told apart: first meetings and repeated ones. Their logarithms are explained by the kind of
 * data, by the round and by whether the run is the first after the modules were loaded (it fetches
 * its instructions), by least squares; what is left between first and repeated meetings of the same
 * round is the question, and the scatter that nothing explains is its error. */
#ifndef DEVICE_MEETINGS_H
#define DEVICE_MEETINGS_H

#include <stdbool.h>
#include <stddef.h>

#define MEETING_KINDS  4 /* of data that are told apart; further ones count as the last */
#define MEETING_SLOWER 0.05
#define MEETING_TOUCH  0.03   /* what memory that no kernel has touched yet may cost: page tables */
#define MEETING_TICK_S 0.5e-6 /* and what is less than a few ticks of the clock */

struct meeting {
    size_t kind, round;
    bool first; /* nobody has run this content before */
    bool start; /* the first run of its round */
    double seconds;
};

/* True: the first meetings of this round took longer than repeated ones, by more than
 * MEETING_SLOWER, and by more than MEETING_TOUCH and three standard errors (as Student's t has
 * them, for as many samples as there are). *slower is by how much, as a fraction. Where the round
 * has no repeated ones, those of all other rounds stand for them. */
bool meetings_slower(const struct meeting *m, size_t n, size_t round, double *slower);

#endif
