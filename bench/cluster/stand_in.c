/* A stand-in for a worker: answers every job as recorded, after a delay.
 *
 *     stand-in FOLDER DELAY_MS [WORD...]
 *
 * The words that the coordinator puts behind a worker's command are not looked at.
 * Hundreds of these share the machine with the coordinator that is being measured, while workers
 * would have machines of their own. So a stand-in costs as little as it can: it needs the C library
 * alone (a start loads nothing else), reads of a job its number and its modules, and puts the
 * answer together from text that it has read once. Exit code 0 at the end of its input, 3 where it
 * cannot answer. */
#include "stand_in.h"
#include "device/wire.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HEADER_BYTES 24 /* base/frame.h */
#define ANSWERS_MOST 1024

struct answer {
    uint64_t key;
    char *rest; /* of the object, behind its opening brace */
};

struct stand_in {
    const char *folder;
    uint64_t delay_ms;
    struct answer answers[ANSWERS_MOST];
    size_t nanswers;
    char *body; /* of the frame: JSON, then blob */
    size_t room;
};

static _Noreturn void fail(const char *why) {
    fprintf(stderr, "stand-in: %s\n", why);
    exit(3);
}

/* False at the end of the input. */
static bool read_all(char *p, size_t n) {
    while (n) {
        ssize_t got = read(0, p, n);
        if (got == 0)
            return false;
        if (got < 0 && errno != EINTR)
            fail("the input cannot be read");
        p += got > 0 ? got : 0;
        n -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void write_all(const char *p, size_t n) {
    while (n) {
        ssize_t put = write(1, p, n);
        if (put < 0 && errno != EINTR)
            fail("the answer cannot be written");
        p += put > 0 ? put : 0;
        n -= put > 0 ? (size_t)put : 0;
    }
}

static uint64_t get_le(const char *p, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)p[i] << (8 * i);
    return v;
}

static void put_le(char *p, uint64_t v, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        p[i] = (char)(v >> (8 * i));
}

/* A frame of JSON in two pieces, of which the second may be empty. */
static void send(uint32_t type, const char *head, const char *rest) {
    size_t nhead = strlen(head), nrest = strlen(rest);
    char *all = malloc(HEADER_BYTES + nhead + nrest);
    if (!all)
        fail("out of memory");
    memset(all, 0, HEADER_BYTES);
    memcpy(all, "CPF1", 4);
    put_le(all + 4, type, 4);
    put_le(all + 8, nhead + nrest, 4);
    memcpy(all + HEADER_BYTES, head, nhead);
    memcpy(all + HEADER_BYTES + nhead, rest, nrest);
    write_all(all, HEADER_BYTES + nhead + nrest);
    free(all);
}

static const struct answer *answer_of(struct stand_in *s, uint64_t key) {
    char path[4096];
    for (size_t i = 0; i < s->nanswers; i++)
        if (s->answers[i].key == key)
            return &s->answers[i];
    snprintf(path, sizeof path, "%s/%016llx.json", s->folder, (unsigned long long)key);
    FILE *f = fopen(path, "r");
    size_t room = 0;
    struct answer a = {.key = key};
    if (!f || s->nanswers == ANSWERS_MOST)
        fail("no answer to this job was recorded");
    if (fgetc(f) != '{' || getdelim(&a.rest, &room, '\0', f) < 0)
        fail("a recorded answer cannot be read");
    fclose(f);
    s->answers[s->nanswers] = a;
    return &s->answers[s->nanswers++];
}

/* Half of the delay to one and a half. */
static uint64_t delay_us(uint64_t delay_ms, uint64_t job) {
    uint64_t mixed = stand_in_key((const char *)&job, sizeof job);
    return delay_ms * (500 + mixed % 1001);
}

static void answer_job(struct stand_in *s, size_t njson, size_t nblob) {
    const char key[] = "\"job\":";
    char head[128];
    const char *at = memmem(s->body, njson, key, sizeof key - 1);
    if (!at)
        fail("a job without a number");
    uint64_t job = strtoull(at + sizeof key - 1, NULL, 10), us = delay_us(s->delay_ms, job);
    const struct answer *a = answer_of(s, stand_in_key(s->body + njson, nblob));
    usleep((useconds_t)us);
    snprintf(head, sizeof head, "{\"job\":%llu,\"verify_ms\":%.3f,", (unsigned long long)job,
             (double)us / 1000);
    send(WIRE_RESULT, head, a->rest);
}

static bool take_frame(struct stand_in *s) {
    char header[HEADER_BYTES];
    if (!read_all(header, sizeof header))
        return false;
    size_t njson = get_le(header + 8, 4), nblob = get_le(header + 16, 8), n = njson + nblob;
    if (n >= s->room) {
        s->body = realloc(s->body, s->room = n + 1);
        if (!s->body)
            fail("out of memory");
    }
    if (!read_all(s->body, n))
        return false;
    s->body[n] = '\0';
    if (get_le(header + 4, 4) == WIRE_JOB)
        answer_job(s, njson, nblob);
    return true;
}

int main(int argc, char **argv) {
    static struct stand_in s;
    char hello[256];
    if (argc < 3)
        fail("usage: stand-in FOLDER DELAY_MS");
    s.folder = argv[1];
    s.delay_ms = strtoull(argv[2], NULL, 10);
    snprintf(hello, sizeof hello,
             "{\"role\":\"worker\",\"protocol\":%d,\"build\":\"%s\",\"node\":\"stand-in\"}",
             WIRE_VERSION, CUTEPILOT_VERSION);
    send(WIRE_HELLO, hello, "");
    while (take_frame(&s))
        ;
    return 0;
}
