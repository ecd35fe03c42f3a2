/* Any JSON as a recorded graph: it is refused, or becomes a task, several in order or none. */
#include "import/cut.h"
#include "import/write.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* ---- changes that leave JSON what it is: other numbers, lists and words ---- */

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* From a random place on, the next byte that begins something; size: there is none. */
static size_t find_from(const uint8_t *data, size_t size, const char *set, unsigned *state) {
    size_t from = size ? next(state) % size : 0;
    while (from < size && !(data[from] && strchr(set, data[from])))
        from++;
    return from;
}

static size_t end_of(const uint8_t *data, size_t size, size_t at) {
    int depth = 0;
    size_t end = at;
    if (data[at] == '"') {
        for (end = at + 1; end < size && data[end] != '"'; end++)
            ;
        return end < size ? end + 1 : size;
    }
    if (data[at] == '[') {
        do
            depth += (data[end] == '[') - (data[end] == ']');
        while (++end < size && depth);
        return end;
    }
    while (end < size && data[end] && strchr("0123456789-", data[end]))
        end++;
    return end;
}

static size_t replace(uint8_t *data, size_t size, size_t max, size_t at, size_t end, str with) {
    if (size - (end - at) + with.n > max)
        return size;
    memmove(data + at + with.n, data + end, size - end);
    memcpy(data + at, with.p, with.n);
    return size - (end - at) + with.n;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "2",
                                          "3",
                                          "4",
                                          "5",
                                          "7",
                                          "-1",
                                          "64",
                                          "9223372036854775807",
                                          "-9223372036854775808"};
    static const char *const lists[] = {"[]", "[1]", "[2,3]", "[2,1,3,2,5,2,2,2]"};
    unsigned state = seed;
    switch (next(&state) % 4) {
    case 0: {
        size_t at = find_from(data, size, "0123456789-", &state);
        if (at < size)
            return replace(data, size, max, at, end_of(data, size, at),
                           str_view(numbers[next(&state) % 11]));
        break;
    }
    case 1: {
        size_t at = find_from(data, size, "[", &state);
        if (at < size)
            return replace(data, size, max, at, end_of(data, size, at),
                           str_view(lists[next(&state) % 4]));
        break;
    }
    case 2: { /* a word, a number or a list in the place of another */
        const char *kind = next(&state) % 2 ? "\"" : "[";
        size_t at = find_from(data, size, kind, &state), from = find_from(data, size, kind, &state);
        if (at < size && from < size) {
            size_t n = end_of(data, size, from) - from;
            uint8_t *copy = mem_alloc(n + 1);
            memcpy(copy, data + from, n);
            size =
                replace(data, size, max, at, end_of(data, size, at), (str){(const char *)copy, n});
            mem_free(copy);
            return size;
        }
        break;
    }
    default:
        break;
    }
    return LLVMFuzzerMutate(data, size, max);
}

/* ---- what is tried ---- */

/* As one task; what is written can be read by the parser, or it says why not. */
static void write_one(const json *j, struct arena *a) {
    struct graph g;
    struct buf text;
    struct task *task;
    struct err err = {0};
    bool too_large = false;
    buf_init(&text, TASK_MAX_BYTES);
    if (graph_read(j, a, &g, &err) && write_task(&g, "graph.json", a, &text, &too_large, &err) &&
        err.kind)
        abort();
    if (!err.kind && !text.failed)
        task_parse(S("graph.task"), arena_str(a, buf_str(&text)), a, &task, &err);
    buf_release(&text);
}

static void cut(const json *j, struct arena *a) {
    struct graph g;
    struct chain chain = {0};
    struct err err = {0};
    struct buf order;
    if (!graph_read(j, a, &g, &err))
        return;
    buf_init(&order, 1u << 24);
    if (cut_graph(j, &g, "graph.json", a, &chain, &err))
        chain_write(&chain, &order);
    buf_release(&order);
    chain_release(&chain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err err = {0};
    json *j = json_parse((str){(const char *)data, size}, &err);
    if (!j)
        return 0;
    struct arena *a = arena_new((size_t)4 << 30);
    write_one(j, a);
    cut(j, a);
    arena_free(a);
    json_free(j);
    return 0;
}
