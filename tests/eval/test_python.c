/* What the process of an imported module may do, by a script that does whatever it is asked to:
 * no PyTorch is needed. */
#include "eval/python.h"

#include "base/file.h"
#include "tap.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_MS = 60000 };

static struct arena *arena;
static bool landlock;

static struct python *start(void) {
    struct err err = {0};
    json *hello = NULL;
    struct python_options o = {
        .what = "the script",
        .role = "module",
        .script = "probe.py",
        .python = "python3",
        .assets = arena_printf(arena, "%s/tests/eval/python_script", getenv("SOURCE_ROOT")).p,
        .program = getenv("CUTEPILOT")};
    struct python *t = python_open(&o, &err);
    bool ok = t && python_start(t, LIMIT_MS, &hello, &err);
    CHECKF(ok, "%s", err.text);
    landlock = false;
    CHECK(!ok || json_get_bool(json_get(hello, "sandbox"), "landlock", &landlock));
    json_free(hello);
    if (ok)
        return t;
    python_close(t);
    return NULL;
}

/* What Python makes of an expression: its value, or the name of the exception. */
static str ask(struct python *t, const char *what) {
    struct err err = {0};
    json *request = json_object();
    str value = {0};
    json_set_str(request, "run", str_view(what));
    json *answer = python_ask(t, request, LIMIT_MS, &err);
    CHECKF(answer && json_get_str(answer, "value", &value), "%s: %s", what, err.text);
    value = arena_str(arena, value);
    json_free(request);
    json_free(answer);
    return value;
}

#define CHECK_ASK(t, what, want)                                                                   \
    do {                                                                                           \
        str got_ = ask(t, what);                                                                   \
        CHECKF(str_is(got_, want), "%s gives %.*s", what, STR_ARG(got_));                          \
    } while (0)

#define NEED_PYTHON                                                                                \
    if (!getenv("CUTEPILOT") || !getenv("SOURCE_ROOT") || system("python3 -c ''") != 0)            \
    SKIP("no python3, or not run by meson test")

/* The files that it is given are written by us, who may write everywhere. */
static void test_given(void) {
    struct err err = {0};
    NEED_PYTHON;
    struct python *t = start();
    if (!t)
        return;
    char *victim = arena_cstr(arena, arena_printf(arena, "%s/victim", python_dir(t)));
    CHECK(file_replace(victim, S("precious"), &err));
    const char *link = arena_printf(arena, "os.symlink('%s', GIVEN + '/input-0')", victim).p;
    if (landlock) {
        CHECK_ASK(t, link, "PermissionError");
        CHECK_ASK(t, "os.mkfifo(GIVEN + '/input-0')", "PermissionError");
        CHECK_ASK(t, "open(GIVEN + '/helper.py', 'a')", "PermissionError");
        CHECK_ASK(t, "os.rename('../work', '../other')", "PermissionError");
    }
    /* … and not even where it could make links. */
    CHECK(symlink(victim, arena_printf(arena, "%s/input-0", python_dir(t)).p) == 0);
    CHECK(mkfifo(arena_printf(arena, "%s/input-1", python_dir(t)).p, 0600) == 0);
    CHECKF(python_give(t, S("input-0"), S("numbers"), &err), "%s", err.text);
    CHECKF(python_give(t, S("input-1"), S("others"), &err), "%s", err.text);
    CHECK_ASK(t, "open(GIVEN + '/input-0').read()", "'numbers'");
    CHECK_ASK(t, "open(GIVEN + '/input-1').read()", "'others'");
    CHECK_ASK(t, "open(GIVEN + '/victim').read()", "'precious'");
    python_close(t);
}

static void test_taken(void) {
    static const struct {
        const char *made, *says;
    } rows[] = {
        {"os.symlink('/etc/passwd', 'output-0')", "is a link"},
        {"os.mkfifo('output-0')", "no regular file"},
        {"os.mkdir('output-0')", "no regular file"},
        {"open('output-0', 'w').write('x'*101) and None", "more than"},
    };
    NEED_PYTHON;
    struct python *t = start();
    if (!t)
        return;
    str got = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct err err = {0};
        CHECK_ASK(t, rows[i].made, "None");
        CHECKF(!python_take(t, S("output-0"), 100, arena, &got, &err), "%s", rows[i].made);
        CHECKF(err.kind == ERR_INPUT && strstr(err.text, rows[i].says), "%s: %s", rows[i].made,
               err.text);
        ask(t, "os.rmdir('output-0') if os.path.isdir('output-0') else os.unlink('output-0')");
    }
    struct err err = {0};
    CHECK_ASK(t, "open('output-0', 'w').write('numbers')", "7");
    CHECKF(python_take(t, S("output-0"), 100, arena, &got, &err), "%s", err.text);
    CHECK(str_is(got, "numbers"));
    CHECK(!python_take(t, S("output-0"), 100, arena, &got, &err)); /* it was taken */
    python_close(t);
}

static void test_null(void) {
    NEED_PYTHON;
    struct python *t = start();
    if (!t)
        return;
    CHECK_ASK(t, "open(os.devnull, 'r+b').read(1)", "b''");
    CHECK_ASK(t, "open(os.devnull, 'w').write('x')", "1");
    CHECK_ASK(t, "subprocess.call(['true'], stdout=subprocess.DEVNULL)", "0");
    python_close(t);
}

/* How many processes have this word among theirs; the pattern does not match itself. */
static int count_processes(const char *word) {
    char command[256];
    snprintf(command, sizeof command, "grep -slz -- '[%c]%s' /proc/[0-9]*/cmdline | wc -l", word[0],
             word + 1);
    FILE *f = popen(command, "re");
    int n = -1;
    if (f && fscanf(f, "%d", &n) != 1)
        n = -1;
    if (f)
        pclose(f);
    return n;
}

/* One in a session of its own, where that is allowed, and one that stays in the group. */
static void test_left(void) {
    char code[256], word[32];
    NEED_PYTHON;
    struct python *t = start();
    if (!t)
        return;
    snprintf(word, sizeof word, "8639%ld.25", (long)getpid());
    snprintf(code, sizeof code,
             "subprocess.Popen(['sh', '-c', 'setsid sleep %s & sleep %s &']).wait()", word, word);
    CHECK_ASK(t, code, "0");
    for (int i = 0; i < 200 && count_processes(word) < 2; i++)
        usleep(10000);
    CHECK(count_processes(word) > 0);
    python_close(t);
    for (int i = 0; i < 500 && count_processes(word) > 0; i++)
        usleep(10000);
    CHECK(count_processes(word) == 0);
}

static const struct tap_case cases[] = {
    {"what it is given is never a link", test_given},
    {"what it leaves is read only where it is a file", test_taken},
    {"/dev/null is there", test_null},
    {"processes that it left end with it", test_left},
};

int main(void) {
    arena = arena_new(16u << 20);
    int code = tap_main(cases, sizeof cases / sizeof *cases);
    arena_free(arena);
    return code;
}
