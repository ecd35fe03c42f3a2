/* What is recorded is replayed; and of keys nothing is ever written, said or told. */
#include "agent/llm/key.h"
#include "agent/llm/record.h"
#include "llm/fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static char folder[] = "/tmp/cutepilot-llm-XXXXXX";

static const char *in_folder(const char *name) {
    static char path[4][256];
    static unsigned turn;
    char *p = path[turn++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void put_file(const char *path, const char *text, mode_t mode) {
    CHECK(file_replace(path, str_view(text), &err));
    CHECK(chmod(path, mode) == 0);
}

static bool file_has(const char *path, const char *what) {
    struct arena *a = arena_new(64 << 20);
    str text;
    bool found =
        file_read(path, 32 << 20, a, &text, &err) && str_find(text, str_view(what)) < text.n;
    arena_free(a);
    return found;
}

static struct provider_options replay_options(const char *path) {
    struct provider_options o = options_of("replay");
    o.command = path;
    return o;
}

/* ---- recordings ---- */

static const char *const prompts[] = {"first \u2192", "second\n\tline", "third \"quoted\"", ""};

static void ask_all(struct subject *s, struct outcome o[4]) {
    for (uint64_t i = 0; i < 4; i++) {
        struct llm_request q = request_of(i < 2 ? "coder" : "planner", i % 2, prompts[i]);
        memset(&o[i], 0, sizeof o[i]);
        q.candidate = i == 3 ? UINT64_MAX : i;
        s->provider.ask(s->provider.self, &q, on_done, &o[i]);
    }
    CHECK(wait_for(o, 4, 20000));
}

static void replay_equals(void) {
    struct subject live, again;
    struct outcome a[4], b[4];
    struct provider_options o = options_of("openai");
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    o.record = in_folder("run.jsonl");
    CHECKF(subject_at(&live, o, "echo.r"), "%s", err.text);
    ask_all(&live, a);
    json *paid = live.provider.account(live.provider.self);
    subject_close(&live);
    CHECKF(subject_open(&again, replay_options(in_folder("run.jsonl"))), "%s", err.text);
    CHECK(!strcmp(again.provider.model, "m"));
    ask_all(&again, b);
    for (size_t i = 0; i < 4; i++) {
        CHECKF(str_eq(buf_str(&a[i].text), buf_str(&b[i].text)), "%s", b[i].err.text);
        CHECK(str_is(buf_str(&b[i].text), prompts[i]));
        CHECK(a[i].reply.tokens_in == b[i].reply.tokens_in);
        CHECK(a[i].reply.cost == b[i].reply.cost && a[i].reply.seconds == b[i].reply.seconds);
        buf_release(&a[i].text);
        buf_release(&b[i].text);
    }
    CHECK(again.notices.n == 0);
    struct buf x, y;
    buf_init(&x, 1 << 20);
    buf_init(&y, 1 << 20);
    json *replayed = again.provider.account(again.provider.self);
    json_write(paid, &x);
    json_write(replayed, &y);
    CHECKF(str_eq(buf_str(&x), buf_str(&y)), "%s\n# %s", x.p, y.p);
    CHECKF(str_find(buf_str(&x), S("\"candidates\":{\"0\":{\"calls\":1")) < x.n, "%s", x.p);
    buf_release(&x);
    buf_release(&y);
    json_free(paid);
    json_free(replayed);
    subject_close(&again);
}

#define LINE(role, n, prompt, rest)                                                                \
    "{\"role\":\"" role "\",\"ordinal\":" #n ",\"prompt\":\"" prompt "\"," rest "}\n"

static void replay_differs(void) {
    struct subject s;
    struct outcome o[4];
    const char *path = in_folder("other.jsonl");
    fixture_open();
    put_file(
        path,
        LINE("coder", 0, "x", "\"system\":\"You are terse.\",\"user\":\"a\\nb\",\"reply\":\"old\"")
            LINE("coder", 0, "x",
                 "\"system\":\"You are terse.\",\"user\":\"a\\nb\",\"reply\":\"new\"")
                LINE("coder", 1, "x",
                     "\"error\":\"the cap of 2 model calls is reached\",\"exit\":1")
                    LINE("coder", 2, "x",
                         "\"error\":\"gone\",\"exit\":3") "{\"role\":\"coder\",\"ordi\n\n",
        0600);
    CHECKF(subject_open(&s, replay_options(path)), "%s", err.text);
    CHECKF(noticed(&s, "1 lines of the recording are no records"), "%s", s.notices.p);
    for (uint64_t i = 0; i < 4; i++)
        ask(&s, "coder", i, "a\nB", &o[i]);
    CHECK(wait_for(o, 4, 10000));
    CHECK(said(&o[0], "new"));
    CHECKF(noticed(&s, "coder 0: the prompt is not the recorded one (line 2 of its user text"),
           "%s", s.notices.p);
    CHECKF(o[1].err.kind == ERR_NO && strstr(o[1].err.text, "cap of 2"), "%s", o[1].err.text);
    CHECKF(o[2].err.kind == ERR_ENV && strstr(o[2].err.text, "gone"), "%s", o[2].err.text);
    CHECKF(o[3].err.kind == ERR_INPUT && strstr(o[3].err.text, "has no answer for coder 3"), "%s",
           o[3].err.text);
    buf_release(&o[0].text);
    subject_close(&s);
    put_file(path, "not a recording\n", 0600);
    CHECK(!subject_open(&s, replay_options(path)));
    CHECKF(strstr(err.text, "no recorded call in it"), "%s", err.text);
}

/* A recording is appended to, after a line that a killed run left unfinished too; errors are part
 * of it; what cannot be recorded is not answered. */
static void recorder_appends(void) {
    struct subject s;
    struct outcome o;
    struct provider_options options = options_of("command");
    const char *path = in_folder("append.jsonl");
    struct stat st;
    fixture_open();
    put_file(path, LINE("coder", 0, "x", "\"reply\":\"kept\"") "{\"role\":\"cod", 0644);
    options.record = path;
    options.command = "no-such-program-anywhere";
    CHECK(subject_open(&s, options));
    ask(&s, "coder", 1, "hi", &o);
    CHECK(wait_for(&o, 1, 10000) && o.err.kind == ERR_INPUT);
    subject_close(&s);
    struct recording *r = recording_read(path, &err);
    str text;
    CHECK(r && r->skipped == 1 && recording_count(r, "coder") == 2);
    CHECK(json_get_str(recording_find(r, "coder", 0), "reply", &text) && str_is(text, "kept"));
    CHECK(json_get_str(recording_find(r, "coder", 1), "error", &text));
    recording_free(r);
    options.record = in_folder("fresh.jsonl");
    CHECK(subject_open(&s, options));
    subject_close(&s);
    CHECK(stat(in_folder("fresh.jsonl"), &st) == 0 && (st.st_mode & 0777) == 0600);
    options.record = "/dev/full";
    options.command = "echo hi";
    CHECKF(subject_open(&s, options), "%s", err.text);
    ask(&s, "coder", 0, "hi", &o);
    CHECK(wait_for(&o, 1, 10000));
    CHECKF(o.err.kind == ERR_ENV && strstr(o.err.text, "record /dev/full: "), "%s", o.err.text);
    subject_close(&s);
}

/* ---- keys ---- */

static void key_places(void) {
    static const struct {
        const char *url, *key, *why; /* why: of an error */
    } table[] = {
        {"https://api.openai.com/v1", "openai-key-000000", NULL},
        {"https://API.OpenAI.com:443/v1", "openai-key-000000", NULL},
        {"https://api.anthropic.com", NULL, "set ANTHROPIC_API_KEY, or --provider-key-file"},
        {"https://api.openai.com.example.org/v1", "", NULL},
        {"http://localhost:11434/v1", "", NULL},
        {"http://api.openai.com/v1", "", NULL},
        {"ftp://api.openai.com/", NULL, "does not begin with https://"},
        {"https:///v1", NULL, "names no host"},
        {"http://:80/v1", NULL, "names no host"},
        {"not a url", NULL, "does not begin with https://"},
        {"https://exam ple.org/v1", NULL, "a blank or a control character"},
        {"https://example.org/a\nb", NULL, "a blank or a control character"},
        {"https://exa%6dple.org/v1", NULL, "not the name of one"},
        {"https://[::1/v1", NULL, "not the name of one"},
        {"https://example.org:0/v1", NULL, "the port"},
        {"https://example.org:65536/v1", NULL, "the port"},
        {"https://example.org:http/v1", NULL, "the port"},
        {"https://example.org:/v1", NULL, "the port"},
        {"http://[::1]:8000/v1", "", NULL},
        {"https://stra\xc3\x9f"
         "e.example/v1",
         "", NULL},
        {"http://gpu_box-2.local:8000/v1?x=1", "", NULL},
        {"https://user:" SECRET "@example.org/v1", NULL, "a name or key before the host"},
    };
    setenv("OPENAI_API_KEY", " openai-key-000000\n", 1);
    unsetenv("ANTHROPIC_API_KEY");
    setenv("CUTEPILOT_PROVIDER_KEY", "", 1); /* as if it were not set */
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct key k;
        char note[256];
        bool ok = key_find(&k, table[i].url, NULL, note, &err);
        CHECKF(ok == (table[i].why == NULL), "%s: %s", table[i].url, err.text);
        if (ok)
            CHECKF(str_is(buf_str(&k.bytes), table[i].key), "%s", table[i].url);
        else
            CHECKF(strstr(err.text, table[i].why) && !strstr(err.text, SECRET), "%s", err.text);
        key_release(&k);
    }
    unsetenv("OPENAI_API_KEY");
    unsetenv("CUTEPILOT_PROVIDER_KEY");
}

static void key_files(void) {
    static const struct {
        mode_t mode;
        const char *text, *url, *why;
    } table[] = {
        {0600, SECRET "\n", "https://example.org", NULL},
        {0400, SECRET "\n", "http://127.0.0.1:1", NULL},
        {0640, SECRET "\n", "https://example.org", "others can read it (mode 640)"},
        {0604, SECRET "\n", "https://example.org", "chmod 600"},
        {0600, "", "https://example.org", "is empty"},
        {0600, "two words", "https://example.org", "is not one word"},
        {0600, "new\nline: x", "https://example.org", "is not one word"},
        {0600, SECRET, "http://example.org", "not sent over plain http"},
        {0600, SECRET, "http://127.example.org", "not sent over plain http"},
    };
    const char *path = in_folder("key");
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct key k;
        char note[256];
        put_file(path, table[i].text, table[i].mode);
        bool ok = key_find(&k, table[i].url, path, note, &err);
        CHECKF(ok == (table[i].why == NULL), "%zu: %s", i, err.text);
        CHECKF(ok ? str_is(buf_str(&k.bytes), SECRET) : strstr(err.text, table[i].why) != NULL,
               "%zu: %s", i, err.text);
        key_release(&k);
        unlink(path);
    }
    struct key k;
    char note[256];
    CHECK(!key_find(&k, "https://example.org", folder, note, &err));
    CHECKF(strstr(err.text, "not a regular file"), "%s", err.text);
    key_release(&k);
}

/* The server tells the key in errors and answers: it is sent, and never shown. */
static void key_is_never_shown(void) {
    static const struct {
        const char *kind, *way, *shown;
    } table[] = {
        {"openai", "key_said", "your key is Bearer [key]."},
        {"anthropic", "key_said", "your key is [key]."},
        {"openai", "key_told", "HTTP 403: not allowed for Bearer [key]"},
        {"openai", "key_refused", "HTTP 401: the key is missing or refused"},
    };
    const char *skip = fixture_open();
    if (skip)
        SKIP(skip);
    put_file(in_folder("key"), SECRET "\n", 0600);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct subject s;
        struct outcome o;
        struct provider_options options = options_of(table[i].kind);
        options.key_file = in_folder("key");
        options.record = in_folder("keys.jsonl");
        CHECKF(subject_at(&s, options, table[i].way), "%s", err.text);
        ask(&s, "coder", i, "hi", &o);
        CHECK(wait_for(&o, 1, 10000));
        const char *got = o.err.kind ? o.err.text : o.text.p;
        CHECKF(strstr(got, table[i].shown) && !strstr(got, SECRET), "%s", got);
        CHECK(!noticed(&s, SECRET));
        buf_release(&o.text);
        subject_close(&s);
    }
    CHECK(file_has(in_folder("keys.jsonl"), "your key is"));
    CHECK(!file_has(in_folder("keys.jsonl"), SECRET));
}

static const struct tap_case cases[] = {
    {"a replay equals what was recorded", replay_equals},
    {"a replay that differs", replay_differs},
    {"a recorder appends", recorder_appends},
    {"where a key goes", key_places},
    {"key files", key_files},
    {"a key is never shown", key_is_never_shown},
};

int main(void) {
    if (!mkdtemp(folder))
        return 1;
    int failed = tap_main(cases, sizeof cases / sizeof *cases);
    server_stop();
    loop_free(loop);
    dir_remove_tree(folder, &err);
    return failed;
}
