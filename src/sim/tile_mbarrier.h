/* mbarrier: an 8-byte word in shared memory that counts arrivals and bytes of a phase.
 *
 * PTX leaves the word's layout open; this one is the simulator's own:
 *
 *     bits 0-19   arrivals still missing in this phase
 *     bits 20-39  arrivals expected in each phase
 *     bits 40-60  bytes of transactions still missing, two's complement
 *     bit  61     parity of the current phase
 *     bits 62-63  01: a barrier is here
 *
 * so that a word that was never initialised, or was overwritten, is known as such. A phase ends
 * when neither arrivals nor bytes are missing. The token of an arrival is the word before it. */
#ifndef SIM_TILE_MBARRIER_H
#define SIM_TILE_MBARRIER_H

#include <stdbool.h>
#include <stdint.h>

#define TILE_MBARRIER_MAX_COUNT ((1u << 20) - 1)

enum tile_mbarrier_status {
    MBARRIER_OK,
    MBARRIER_COMPLETED,  /* the operation ended the phase */
    MBARRIER_NONE_HERE,  /* not initialised, or overwritten */
    MBARRIER_BAD_COUNT,  /* init with 0 or more than TILE_MBARRIER_MAX_COUNT */
    MBARRIER_TOO_MANY,   /* more arrivals than the phase expects */
    MBARRIER_TX_OVERFLOW /* bytes out of +-(2^20 - 1) */
};
const char *tile_mbarrier_words(enum tile_mbarrier_status s); /* for messages */

bool tile_mbarrier_valid(uint64_t word);
enum tile_mbarrier_status tile_mbarrier_init(uint64_t *word, uint32_t count);
/* With the operation's token in *token, if that is not NULL. On an error nothing is changed. */
enum tile_mbarrier_status tile_mbarrier_arrive(uint64_t *word, uint32_t count, uint64_t *token);
/* arrive_drop: one arrival fewer in this phase and in all that follow. */
enum tile_mbarrier_status tile_mbarrier_drop(uint64_t *word, uint32_t count, uint64_t *token);
enum tile_mbarrier_status tile_mbarrier_expect_tx(uint64_t *word, uint32_t bytes);
enum tile_mbarrier_status tile_mbarrier_complete_tx(uint64_t *word, uint32_t bytes);
/* arrive.expect_tx: both as one. */
enum tile_mbarrier_status tile_mbarrier_arrive_expect_tx(uint64_t *word, uint32_t count,
                                                         uint32_t bytes, uint64_t *token);
/* cp.async.mbarrier.arrive without .noinc: the arrival that will come is expected in addition. */
enum tile_mbarrier_status tile_mbarrier_expect_arrival(uint64_t *word);

/* test_wait and try_wait: has the phase of this token, or of this parity, ended? */
bool tile_mbarrier_passed(uint64_t word, uint64_t token);
bool tile_mbarrier_passed_parity(uint64_t word, uint32_t parity);

/* For messages and mbarrier.pending_count (of a token). */
uint32_t tile_mbarrier_pending(uint64_t word);
uint32_t tile_mbarrier_expected(uint64_t word);
int32_t tile_mbarrier_tx(uint64_t word);
uint32_t tile_mbarrier_parity(uint64_t word);

#endif
