/* mbarrier words. Every operation takes the word apart, changes it, and ends the phase if nothing
 * is missing any more. */
#include "sim/tile_mbarrier.h"

#include <stddef.h>

#define COUNT_MASK TILE_MBARRIER_MAX_COUNT
#define TX_MAX     ((1 << 20) - 1)

struct state {
    uint32_t pending, expected, parity;
    int32_t tx;
};

bool tile_mbarrier_valid(uint64_t word) {
    return word >> 62 == 1;
}
static struct state take(uint64_t word) {
    return (struct state){.pending = (uint32_t)word & COUNT_MASK,
                          .expected = (uint32_t)(word >> 20) & COUNT_MASK,
                          .tx = (int32_t)((uint32_t)(word >> 40) << 11) >> 11,
                          .parity = (uint32_t)(word >> 61) & 1};
}
static uint64_t put(struct state s) {
    return UINT64_C(1) << 62 | (uint64_t)s.parity << 61 | ((uint64_t)s.tx & 0x1fffff) << 40 |
           (uint64_t)s.expected << 20 | s.pending;
}
static enum tile_mbarrier_status settle(uint64_t *word, struct state s) {
    bool done = s.pending == 0 && s.tx == 0;
    if (done) {
        s.pending = s.expected;
        s.parity ^= 1;
    }
    *word = put(s);
    return done ? MBARRIER_COMPLETED : MBARRIER_OK;
}

const char *tile_mbarrier_words(enum tile_mbarrier_status s) {
    switch (s) {
    case MBARRIER_OK:
        return "still counting";
    case MBARRIER_COMPLETED:
        return "phase completed";
    case MBARRIER_NONE_HERE:
        return "no initialised mbarrier at this address";
    case MBARRIER_BAD_COUNT:
        return "an mbarrier expects 1 to 1048575 arrivals";
    case MBARRIER_TOO_MANY:
        return "more arrivals than the mbarrier expects in a phase";
    case MBARRIER_TX_OVERFLOW:
        return "the mbarrier's count of bytes leaves its range of +-1048575";
    }
    return "?";
}

enum tile_mbarrier_status tile_mbarrier_init(uint64_t *word, uint32_t count) {
    if (count == 0 || count > COUNT_MASK)
        return MBARRIER_BAD_COUNT;
    *word = put((struct state){.pending = count, .expected = count});
    return MBARRIER_OK;
}

static enum tile_mbarrier_status change(uint64_t *word, uint32_t arrivals, uint32_t drop,
                                        int64_t bytes, uint64_t *token) {
    if (!tile_mbarrier_valid(*word))
        return MBARRIER_NONE_HERE;
    struct state s = take(*word);
    if (bytes > TX_MAX || bytes < -TX_MAX || s.tx + bytes > TX_MAX || s.tx + bytes < -TX_MAX)
        return MBARRIER_TX_OVERFLOW;
    if (arrivals > s.pending || drop > s.expected)
        return MBARRIER_TOO_MANY;
    if (token)
        *token = *word;
    s.tx += (int32_t)bytes;
    s.pending -= arrivals;
    s.expected -= drop;
    return settle(word, s);
}

enum tile_mbarrier_status tile_mbarrier_arrive(uint64_t *word, uint32_t count, uint64_t *token) {
    return change(word, count, 0, 0, token);
}
enum tile_mbarrier_status tile_mbarrier_drop(uint64_t *word, uint32_t count, uint64_t *token) {
    return change(word, count, count, 0, token);
}
enum tile_mbarrier_status tile_mbarrier_expect_tx(uint64_t *word, uint32_t bytes) {
    return change(word, 0, 0, bytes, NULL);
}
enum tile_mbarrier_status tile_mbarrier_complete_tx(uint64_t *word, uint32_t bytes) {
    return change(word, 0, 0, -(int64_t)bytes, NULL);
}
enum tile_mbarrier_status tile_mbarrier_arrive_expect_tx(uint64_t *word, uint32_t count,
                                                         uint32_t bytes, uint64_t *token) {
    return change(word, count, 0, bytes, token);
}
enum tile_mbarrier_status tile_mbarrier_expect_arrival(uint64_t *word) {
    if (!tile_mbarrier_valid(*word))
        return MBARRIER_NONE_HERE;
    struct state s = take(*word);
    if (s.pending == COUNT_MASK)
        return MBARRIER_TOO_MANY;
    s.pending++;
    *word = put(s);
    return MBARRIER_OK;
}

bool tile_mbarrier_passed(uint64_t word, uint64_t token) {
    return tile_mbarrier_parity(word) != tile_mbarrier_parity(token);
}
bool tile_mbarrier_passed_parity(uint64_t word, uint32_t parity) {
    return tile_mbarrier_parity(word) != (parity & 1);
}

uint32_t tile_mbarrier_pending(uint64_t word) {
    return take(word).pending;
}
uint32_t tile_mbarrier_expected(uint64_t word) {
    return take(word).expected;
}
int32_t tile_mbarrier_tx(uint64_t word) {
    return take(word).tx;
}
uint32_t tile_mbarrier_parity(uint64_t word) {
    return take(word).parity;
}
