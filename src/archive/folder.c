#include "archive/folder.h"
#include "base/file.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static const char lock_name[] = "run.lock";
static const char *const own_names[] = {"run.db",         "run.db-wal", "run.db-shm",
                                        "run.db-journal", "kernel.cu",  "outcome.json",
                                        "events.jsonl"};
/* These come after run.db and go before it (names are sorted), so that whatever ends a run, what it
 * leaves is known for a run's. */
static const char *const result_names[] = {"kernel.cu", "outcome.json", "events.jsonl"};

/* What file_replace leaves behind when it is killed: .NAME.tmp.SUFFIX. */
static bool is_temporary(str name) {
    return str_starts(name, S(".")) && str_find(name, S(".tmp.")) < name.n;
}

static bool is_ours(str name) {
    for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++)
        if (str_is(name, own_names[i]))
            return true;
    return is_temporary(name);
}

static bool check_place(const char *dir, struct err *err) {
    struct stat st;
    if (stat(dir, &st) != 0) {
        if (errno != ENOENT && errno != ENOTDIR)
            return err_errno(err, ERR_ENV, "run folder %s", dir);
        return dir_make(dir, err) || err_wrap(err, "run folder; choose another --out");
    }
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_INPUT, "%s is not a folder; choose another --out", dir);
    return true;
}

static bool listed(const str *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_is(names[i], name))
            return true;
    return false;
}

static bool check_content(const char *dir, const str *names, size_t n, struct err *err) {
    for (size_t i = 0; i < n; i++)
        if (!is_ours(names[i]) && !str_is(names[i], lock_name))
            return err_set(err, ERR_INPUT, "%s holds other files (%.*s); choose another --out", dir,
                           STR_ARG(names[i]));
    for (size_t i = 0; i < sizeof result_names / sizeof *result_names; i++)
        if (listed(names, n, result_names[i]) && !listed(names, n, own_names[0]))
            return err_set(
                err, ERR_INPUT,
                "%s holds %s but no %s: it is not the folder of a run; choose another --out", dir,
                result_names[i], own_names[0]);
    return true;
}

static bool remove_run(const char *dir, const str *names, size_t n, struct arena *a,
                       struct err *err) {
    for (size_t i = 0; i < n; i++) {
        if (!is_ours(names[i]))
            continue;
        str path = arena_printf(a, "%s/%.*s", dir, STR_ARG(names[i]));
        if (unlink(path.p) != 0 && errno != ENOENT)
            return err_errno(err, ERR_ENV, "remove %s", path.p);
    }
    return true;
}

/* The content is looked at before the lock file is made, so that nothing is added to a folder that
 * is not ours, and listed again under the lock. */
bool folder_open(const char *dir, bool fresh, struct arena *a, int *lock, struct err *err) {
    str *names;
    size_t n;
    if (!check_place(dir, err) || !dir_list(dir, a, &names, &n, err) ||
        !check_content(dir, names, n, err))
        return false;
    *lock = file_lock(arena_printf(a, "%s/%s", dir, lock_name).p, err);
    if (*lock < 0)
        return err_wrap(err, "run folder %s", dir);
    if (!fresh || (dir_list(dir, a, &names, &n, err) && check_content(dir, names, n, err) &&
                   remove_run(dir, names, n, a, err)))
        return true;
    close(*lock);
    *lock = -1;
    return false;
}
