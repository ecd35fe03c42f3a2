/* The command provider: what a program gets, what is made of how it ends, and that nothing of it
 * is left. */
#include "llm/fixture.h"

#include <errno.h>

static char folder[] = "/tmp/cutepilot-llm-XXXXXX";

static struct provider_options command_options(const char *command) {
    struct provider_options o = options_of("command");
    o.command = command;
    o.model = NULL;
    return o;
}

static const struct row {
    const char *command, *text;
    enum err_kind error;
    const char *why, *notice;
    uint64_t timeout_ms;
} rows[] = {
    {"cat", "You are terse.\n\nhi\n"},
    {"echo short", "short\n"},
    {"printf 'a\\377b'", "a\xef\xbf\xbd"
                         "b"},
    {"echo early; sleep 60 &", "early\n"},
    {"echo $OPENAI_API_KEY", "the user's own\n"},
    {"exec 1>&-; echo no >&2; exit 3", NULL, ERR_ENV,
     "gave up after 4 tries: command: the command ended with exit code 3: no",
     "command: coder 5: the command ended with exit code 3: no; asking again"},
    {"kill -9 $$", NULL, ERR_ENV, "ended with killed by SIGKILL"},
    {"true", NULL, ERR_ENV, "the command answered nothing"},
    {"no-such-program-anywhere", NULL, ERR_INPUT, "the command ended with exit code 127: "},
    {"sleep 60 & sleep 60", NULL, ERR_ENV, "took longer than 0 s and was killed",
     .timeout_ms = 200},
    {"yes", NULL, ERR_ENV, "the command's answer is over 16 MiB"},
    {"yes >&2 & sleep 0.3; kill $!; exit 9", NULL, ERR_ENV, "exit code 9: y y y"},
    {"cd $LLM_FOLDER && test -e once || { touch once; echo away >&2; exit 75; }; echo ok", "ok\n",
     .notice = "exit code 75: away; paused"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void every_command(void) {
    static struct subject subjects[ROWS];
    static struct outcome outcomes[ROWS];
    fixture_open();
    setenv("OPENAI_API_KEY", "the user's own", 1);
    setenv("LLM_FOLDER", folder, 1);
    for (size_t i = 0; i < ROWS; i++) {
        struct provider_options o = command_options(rows[i].command);
        o.timeout_ms = rows[i].timeout_ms ? rows[i].timeout_ms : 20000;
        CHECKF(subject_open(&subjects[i], o), "%s", err.text);
        ask(&subjects[i], "coder", i, "hi", &outcomes[i]);
    }
    CHECK(wait_for(outcomes, ROWS, 60000));
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *r = &rows[i];
        struct outcome *o = &outcomes[i];
        const char *got = o->err.kind ? o->err.text : o->text.p;
        CHECKF(r->text ? said(o, r->text) : o->err.kind == r->error && strstr(got, r->why),
               "%s: %s", r->command, got);
        CHECKF(!r->notice || noticed(&subjects[i], r->notice), "%s: %s", r->command,
               subjects[i].notices.p);
        buf_release(&o->text);
        subject_close(&subjects[i]);
    }
}

static void json_prompt(void) {
    struct subject s;
    struct outcome o;
    struct provider_options options = command_options("cat");
    str text;
    int64_t n;
    fixture_open();
    options.command_json = true;
    CHECK(subject_open(&s, options));
    ask(&s, "debugger", 7, "line\nline", &o);
    CHECK(wait_for(&o, 1, 10000) && !o.err.kind);
    json *j = json_parse(buf_str(&o.text), &err);
    CHECK(json_get_str(j, "role", &text) && str_is(text, "debugger"));
    CHECK(json_get_i64(j, "ordinal", &n) && n == 7);
    CHECK(json_get_i64(j, "max_tokens", &n) && n == 100);
    CHECK(json_get_str(j, "user", &text) && str_is(text, "line\nline"));
    CHECK(json_get_str(j, "system", &text) && str_is(text, "You are terse."));
    CHECK(o.reply.tokens_estimated);
    json_free(j);
    buf_release(&o.text);
    subject_close(&s);
}

/* More than a pipe holds, to programs that read all, or nothing, of it. */
static void large_prompt(void) {
    static char prompt[3 << 20];
    struct subject s[2];
    struct outcome o[2];
    fixture_open();
    memset(prompt, 'p', sizeof prompt - 1);
    CHECK(subject_open(&s[0], command_options("wc -c")));
    CHECK(subject_open(&s[1], command_options("echo unread")));
    ask(&s[0], "coder", 0, prompt, &o[0]);
    ask(&s[1], "coder", 0, prompt, &o[1]);
    CHECK(wait_for(o, 2, 20000));
    CHECKF(said(&o[0], "3145744\n"), "%s", o[0].err.kind ? o[0].err.text : o[0].text.p);
    CHECKF(said(&o[1], "unread\n"), "%s", o[1].err.kind ? o[1].err.text : o[1].text.p);
    for (size_t i = 0; i < 2; i++) {
        buf_release(&o[i].text);
        subject_close(&s[i]);
    }
}

static pid_t pid_in(const char *name) {
    char path[256], text[32] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "r");
    if (f && !fgets(text, sizeof text, f))
        text[0] = 0;
    if (f)
        fclose(f);
    return (pid_t)strtol(text, NULL, 10);
}

/* Cancelled, late or released: neither the program nor what it started lives on. */
static void nothing_is_left(void) {
    static const char *const names[] = {"cancelled", "late", "released"};
    fixture_open();
    for (size_t i = 0; i < 3; i++) {
        struct subject s;
        struct outcome o;
        char command[256];
        snprintf(command, sizeof command, "sleep 60 & echo $! >%s/%s; wait", folder, names[i]);
        struct provider_options options = command_options(command);
        options.timeout_ms = i == 1 ? 500 : 20000;
        CHECK(subject_open(&s, options));
        uint64_t call = ask(&s, "coder", 0, "hi", &o);
        for (uint64_t end = clock_ms() + 5000; !pid_in(names[i]) && clock_ms() < end;)
            loop_step(loop, 10, &err);
        pid_t pid = pid_in(names[i]);
        CHECK(pid > 1 && kill(pid, 0) == 0);
        if (i == 0)
            s.provider.cancel(s.provider.self, call);
        for (uint64_t end = clock_ms() + 5000; i == 1 && kill(pid, 0) == 0 && clock_ms() < end;)
            loop_step(loop, 10, &err);
        subject_close(&s);
        for (uint64_t end = clock_ms() + 5000; kill(pid, 0) == 0 && clock_ms() < end;)
            usleep(1000); /* killed, and waits for whoever adopted it */
        CHECKF(kill(pid, 0) != 0 && errno == ESRCH, "%s", names[i]);
        CHECK(!o.done);
    }
}

static void refused_options(void) {
    static const struct {
        const char *kind, *command, *why;
    } table[] = {
        {"command", NULL, "model provider: command: name the program with --command"},
        {"command", "", "name the program"},
        {"replay", NULL, "name the recording with --replay FILE"},
        {"replay", "/nonexistent.jsonl", "No such file"},
        {"oracle", NULL, "unknown provider 'oracle'"},
        {NULL, NULL, "no model provider is named"},
        {"openai", NULL, "name the model with --model"},
    };
    fixture_open();
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct subject s;
        struct provider_options o = command_options(table[i].command);
        o.kind = table[i].kind;
        CHECK(!subject_open(&s, o));
        CHECKF(strstr(err.text, table[i].why), "%s", err.text);
    }
    struct subject s;
    struct provider_options o = command_options("cat");
    o.price_in = -1;
    o.max_cost = 1;
    CHECK(!subject_open(&s, o));
    CHECKF(err.kind == ERR_INPUT && strstr(err.text, "the price of command is not known"), "%s",
           err.text);
}

static const struct tap_case cases[] = {
    {"every way to end", every_command},
    {"the prompt as JSON", json_prompt},
    {"a large prompt", large_prompt},
    {"nothing is left of it", nothing_is_left},
    {"options that are refused", refused_options},
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
