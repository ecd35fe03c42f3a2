/* Writing and reading recordings. */
#include "agent/llm/record.h"

#include "base/file.h"
#include "base/hash.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 256 << 20, FILE_MAX_BYTES = 1 << 30 };

struct recorder {
    int fd;
    struct arena *arena;
    const char *path, *provider, *model;
};

void prompt_hash(str system, str user, char out[65]) {
    struct sha256 h;
    sha256_init(&h);
    sha256_put_str(&h, system);
    sha256_put_str(&h, user);
    digest_hex(sha256_end(&h), out);
}

/* ---- writing ---- */

/* A line that a killed run left unfinished is ended, not removed: the reader passes over it. */
static bool end_last_line(int fd, struct err *err) {
    struct stat st;
    char last = '\n';
    if (fstat(fd, &st) != 0)
        return err_errno(err, ERR_ENV, "stat");
    if (S_ISREG(st.st_mode) && st.st_size && pread(fd, &last, 1, st.st_size - 1) != 1)
        return err_errno(err, ERR_ENV, "read");
    return last == '\n' || file_write_all(fd, "\n", 1, err);
}

struct recorder *recorder_open(const char *path, const char *provider, const char *model,
                               struct err *err) {
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        err_errno(err, ERR_INPUT, "record %s", path);
        return NULL;
    }
    if (!end_last_line(fd, err)) {
        err_wrap(err, "record %s", path);
        close(fd);
        return NULL;
    }
    struct arena *a = arena_new(1 << 20);
    struct recorder *r = arena_new_of(a, struct recorder);
    *r = (struct recorder){.fd = fd, .arena = a};
    r->path = arena_cstr(a, str_view(path));
    r->provider = arena_cstr(a, str_view(provider));
    r->model = arena_cstr(a, str_view(model));
    return r;
}

static void set_reply(json *j, const struct llm_reply *reply) {
    json_set_str(j, "reply", reply->text);
    json_set_i64(j, "tokens_in", (int64_t)reply->tokens_in);
    json_set_i64(j, "tokens_out", (int64_t)reply->tokens_out);
    json_set_bool(j, "tokens_estimated", reply->tokens_estimated);
    json_set_f64(j, "cost", reply->cost);
    json_set_f64(j, "seconds", reply->seconds);
    json_set_bool(j, "cut", reply->cut);
}

static json *line_json(const struct recorder *r, const struct llm_request *q) {
    char hash[65];
    json *j = json_object();
    prompt_hash(q->system, q->user, hash);
    json_set_str(j, "role", str_view(q->role));
    json_set_i64(j, "ordinal", (int64_t)q->ordinal);
    if (q->candidate != UINT64_MAX)
        json_set_i64(j, "candidate", (int64_t)q->candidate);
    json_set_str(j, "provider", str_view(r->provider));
    json_set_str(j, "model", str_view(r->model));
    json_set_i64(j, "max_tokens", (int64_t)q->max_tokens);
    json_set_str(j, "prompt", str_view(hash));
    json_set_str(j, "system", q->system);
    json_set_str(j, "user", q->user);
    return j;
}

bool recorder_put(struct recorder *r, const struct llm_request *q, const struct llm_reply *reply,
                  const struct err *failure, struct err *err) {
    struct buf line;
    json *j = line_json(r, q);
    if (reply) {
        set_reply(j, reply);
    } else {
        json_set_str(j, "error", str_view(failure->text));
        json_set_i64(j, "exit", failure->kind);
    }
    buf_init(&line, LINE_MAX_BYTES);
    json_write(j, &line);
    buf_putc(&line, '\n');
    bool ok = line.failed ? err_set(err, ERR_ENV, "the call is too large to be recorded")
                          : file_write_all(r->fd, line.p, line.n, err);
    buf_release(&line);
    json_free(j);
    return ok || err_wrap(err, "record %s", r->path);
}

void recorder_close(struct recorder *r) {
    if (!r)
        return;
    close(r->fd);
    arena_free(r->arena);
}

/* ---- reading ---- */

static bool is_record(const json *j) {
    str s;
    int64_t n;
    return json_get_str(j, "role", &s) && json_get_i64(j, "ordinal", &n) && n >= 0 &&
           json_get_str(j, "prompt", &s) &&
           (json_get_str(j, "reply", &s) || json_get_str(j, "error", &s));
}

static void add_line(struct recording *r, str line) {
    struct err none = {0};
    json *j = json_parse(line, &none);
    if (!is_record(j)) {
        json_free(j);
        r->skipped++;
        return;
    }
    r->lines = mem_grow(r->lines, &r->cap, r->n + 1, sizeof *r->lines);
    r->lines[r->n++] = j;
}

struct recording *recording_read(const char *path, struct err *err) {
    struct arena *a = arena_new((size_t)FILE_MAX_BYTES + (1 << 20));
    struct recording *r = arena_new_of(a, struct recording);
    str text, line;
    r->arena = a;
    bool ok = file_read(path, FILE_MAX_BYTES, a, &text, err);
    while (ok && str_line(&text, &line))
        if (str_trim(line).n)
            add_line(r, line);
    if (ok && !r->n)
        ok = err_set(err, ERR_INPUT, "replay %s: no recorded call in it", path);
    if (ok)
        return r;
    recording_free(r);
    return NULL;
}

void recording_free(struct recording *r) {
    for (size_t i = 0; i < r->n; i++)
        json_free(r->lines[i]);
    mem_free(r->lines);
    arena_free(r->arena);
}

static bool has_role(const json *j, const char *role) {
    str s;
    return json_get_str(j, "role", &s) && str_is(s, role);
}

const json *recording_find(const struct recording *r, const char *role, uint64_t ordinal) {
    for (size_t i = r->n; i-- > 0;) {
        int64_t n;
        if (has_role(r->lines[i], role) && json_get_i64(r->lines[i], "ordinal", &n) &&
            (uint64_t)n == ordinal)
            return r->lines[i];
    }
    return NULL;
}

size_t recording_count(const struct recording *r, const char *role) {
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += has_role(r->lines[i], role);
    return n;
}
