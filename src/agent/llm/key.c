/* Where a key comes from, and where it may go. */
#include "agent/llm/key.h"

#include "base/arena.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANY_HOST "CUTEPILOT_PROVIDER_KEY"
enum {
    KEY_MAX = 8192,
    SECRET_MIN = 12, /* local servers are given words such as "none", which answers contain */
};

/* Variables named like these are kept from children that inherit our environment (base/child.h). */
static const struct home {
    const char *host, *variable;
} homes[] = {
    {"api.openai.com", "OPENAI_API_KEY"},
    {"api.anthropic.com", "ANTHROPIC_API_KEY"},
    {"api.deepseek.com", "DEEPSEEK_API_KEY"},
    {"api.together.xyz", "TOGETHER_API_KEY"},
    {"openrouter.ai", "OPENROUTER_API_KEY"},
    {"api.mistral.ai", "MISTRAL_API_KEY"},
    {"api.groq.com", "GROQ_API_KEY"},
    {"api.fireworks.ai", "FIREWORKS_API_KEY"},
    {"generativelanguage.googleapis.com", "GEMINI_API_KEY"},
};

const char *key_variable(size_t i) {
    enum { HOMES = sizeof homes / sizeof *homes };
    return i < HOMES ? homes[i].variable : i == HOMES ? ANY_HOST : NULL;
}

struct place {
    bool tls;
    str host;
};

/* ---- the URL ---- */

static bool is_port(str s) {
    int64_t port;
    return str_to_i64(s, &port) && port >= 1 && port <= 65535;
}

/* Names in other scripts are for the library to translate; what cannot be part of any is not. */
static bool is_host(str s) {
    bool literal = str_starts(s, S("[")) && str_ends(s, S("]")) && s.n > 2;
    str inner = literal ? str_cut(s, 1, s.n - 2) : s;
    for (size_t i = 0; i < inner.n; i++) {
        char c = inner.p[i];
        bool hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        bool name = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
                    (unsigned char)c >= 0x80;
        if (!hex && c != '.' && (literal ? c != ':' : !name))
            return false;
    }
    return s.n > 0;
}

static bool bad_url(const char *url, const char *why, struct err *err) {
    return err_set(err, ERR_INPUT,
                   "--provider-url %s: %s\nhint: a URL is like https://api.example.com/v1 or "
                   "http://localhost:8000/v1",
                   url, why);
}

static bool place_of(const char *url, struct place *out, struct err *err) {
    str s = str_view(url);
    out->tls = str_starts(s, S("https://"));
    if (!out->tls && !str_starts(s, S("http://")))
        return bad_url(url, "it does not begin with https:// or http://", err);
    s = str_from(s, out->tls ? 8 : 7);
    size_t n = 0;
    while (n < s.n && s.p[n] != '/' && s.p[n] != '?' && s.p[n] != '#')
        n++;
    s = str_cut(s, 0, n);
    /* Not shown: what stands before the @ is a secret. */
    if (str_find(s, S("@")) < s.n)
        return err_set(err, ERR_INPUT,
                       "--provider-url: a name or key before the host is not taken; use "
                       "--provider-key-file");
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c <= ' ' || *c == 0x7f)
            return bad_url(url, "it has a blank or a control character in it", err);
    size_t colon = str_starts(s, S("[")) ? str_find(s, S("]")) + 1 : str_find(s, S(":"));
    out->host = str_cut(s, 0, colon);
    str port = str_from(s, colon);
    if (!out->host.n)
        return bad_url(url, "it names no host", err);
    if (!is_host(out->host))
        return bad_url(url, "what stands for the host is not the name of one", err);
    if (port.n && !(str_starts(port, S(":")) && is_port(str_from(port, 1))))
        return bad_url(url, "the port is not a number from 1 to 65535", err);
    return true;
}

bool url_check(const char *url, struct err *err) {
    struct place ignored;
    return place_of(url, &ignored, err);
}

static bool is_here(str host) {
    if (str_is(host, "localhost") || str_is(host, "[::1]"))
        return true;
    for (size_t i = 0; i < host.n; i++)
        if (!strchr("0123456789.", host.p[i])) /* 127.example.org is elsewhere */
            return false;
    return str_starts(host, S("127."));
}

static const char *variable_of(str host) {
    for (size_t i = 0; i < sizeof homes / sizeof *homes; i++)
        if (host.n == strlen(homes[i].host) && !strncasecmp(host.p, homes[i].host, host.n))
            return homes[i].variable;
    return NULL;
}

/* ---- the bytes ---- */

static bool take(struct key *k, str text, const char *from, struct err *err) {
    text = str_trim(text);
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] <= ' ' || text.p[i] > '~')
            return err_set(err, ERR_INPUT, "the key in %s is not one word of plain characters",
                           from);
    if (text.n > KEY_MAX || !text.n)
        return err_set(err, ERR_INPUT, "the key in %s is %s", from, text.n ? "too long" : "empty");
    buf_puts(&k->bytes, text);
    return true;
}

static bool file_is_safe(const char *path, int fd, struct err *err) {
    struct stat st;
    if (fstat(fd, &st) != 0)
        return err_errno(err, ERR_ENV, "key file %s", path);
    if (!S_ISREG(st.st_mode))
        return err_set(err, ERR_INPUT, "key file %s: not a regular file", path);
    if (st.st_uid != geteuid())
        return err_set(err, ERR_INPUT, "key file %s: belongs to another user", path);
    if (st.st_mode & 077)
        return err_set(err, ERR_INPUT,
                       "key file %s: others can read it (mode %03o)\nhint: chmod 600 %s", path,
                       (unsigned)st.st_mode & 0777, path);
    return true;
}

static bool take_file(struct key *k, const char *path, struct err *err) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(err, ERR_INPUT, "key file %s", path);
    char text[KEY_MAX + 2];
    ssize_t n = -1;
    bool ok = file_is_safe(path, fd, err);
    if (ok && (n = read(fd, text, sizeof text)) < 0)
        ok = err_errno(err, ERR_ENV, "key file %s", path);
    ok = ok && take(k, (str){text, (size_t)n}, path, err);
    explicit_bzero(text, sizeof text);
    close(fd);
    return ok;
}

bool key_find(struct key *k, const char *url, const char *file, char note[256], struct err *err) {
    struct place at = {0};
    *note = 0;
    buf_init(&k->bytes, KEY_MAX + 1);
    if (!place_of(url, &at, err))
        return false;
    k->here = is_here(at.host);
    bool private = at.tls || k->here;
    if (file && !private)
        return err_set(err, ERR_INPUT,
                       "--provider-url %s: a key is not sent over plain http to another machine",
                       url);
    if (file)
        return take_file(k, file, err);
    const char *own = variable_of(at.host), *any = getenv(ANY_HOST);
    const char *name = any && *any ? ANY_HOST : own;
    const char *value = name ? getenv(name) : NULL;
    if (value && *value && !private) {
        snprintf(note, 256, "%s is not sent over plain http to another machine", name);
        return true;
    }
    if (value && *value)
        return take(k, str_view(value), name, err);
    return !own || err_set(err, ERR_INPUT, "no key for %.*s\nhint: set %s, or --provider-key-file",
                           STR_ARG(at.host), own);
}

void key_release(struct key *k) {
    if (k->bytes.p)
        explicit_bzero(k->bytes.p, k->bytes.cap);
    buf_release(&k->bytes);
}

void key_scrub(const struct key *k, str text, struct buf *out) {
    str key = buf_str(&k->bytes);
    size_t at;
    while (key.n >= SECRET_MIN && (at = str_find(text, key)) < text.n) {
        buf_puts(out, str_cut(text, 0, at));
        buf_puts(out, S("[key]"));
        text = str_from(text, at + key.n);
    }
    buf_puts(out, text);
}
