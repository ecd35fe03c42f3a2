/* Every path that can fail names the file and the step, and says what to do where that is known.
 * A folder is opened once and everything below it goes through its descriptor, so that renaming
 * or replacing a parent meanwhile cannot redirect a write or a removal. */
#include "base/file.h"

#include "base/fault.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Deeper trees are not ours; each level of a removal holds one descriptor. */
enum { TREE_DEPTH_MAX = 64, TEMP_TRIES = 64 };

/* Errors that the user's choice of a path brings about, as against those of the machine. */
static enum err_kind kind_of_errno(int number) {
    switch (number) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EACCES:
    case ELOOP:
    case ENAMETOOLONG:
        return ERR_INPUT;
    default:
        return ERR_ENV;
    }
}

static const char *remedy(int number) {
    switch (number) {
    case ENOSPC:
    case EDQUOT:
        return ": free some space or choose another folder";
    case EFBIG:
        return ": raise the limit on file sizes (ulimit -f)";
    case EROFS:
    case EACCES:
    case EPERM:
        return ": choose a folder you may write to";
    default:
        return "";
    }
}

static bool write_error(struct err *err, const char *step) {
    const char *what = remedy(errno);
    err_errno(err, ERR_ENV, "%s", step);
    return *what && err ? err_set(err, ERR_ENV, "%s%s", err->text, what) : false;
}

static bool check_regular(const struct stat *st, size_t max, struct err *err) {
    if (S_ISDIR(st->st_mode))
        return err_set(err, ERR_INPUT, "it is a folder, a file is needed");
    if (!S_ISREG(st->st_mode))
        return err_set(err, ERR_INPUT, "it is not a regular file");
    if (st->st_size > 0 && (uintmax_t)st->st_size > max)
        return err_set(err, ERR_INPUT, "%jd bytes, at most %zu are read", (intmax_t)st->st_size,
                       max);
    return true;
}

/* Up to n bytes, fewer only at the end of the file; -1 with errno. */
static ssize_t read_up_to(int fd, char *p, size_t n) {
    size_t have = 0;
    while (have < n) {
        ssize_t got = read(fd, p + have, n - have);
        if (got == 0)
            break;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLIN};
            poll(&ready, 1, -1);
            continue;
        }
        if (got < 0)
            return -1;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* Of unknown length (a pipe, /proc): collected first, copied once it is known to fit. */
bool file_read_fd(int fd, size_t max, struct arena *a, str *out, struct err *err) {
    struct buf b;
    buf_init(&b, max < SIZE_MAX ? max + 1 : max);
    bool ok = false;
    for (;;) {
        size_t want = b.max - b.n < 65536 ? b.max - b.n : 65536;
        ssize_t got = read_up_to(fd, buf_reserve(&b, want), want);
        if (got < 0) {
            err_errno(err, kind_of_errno(errno), "read");
            break;
        }
        buf_grown(&b, (size_t)got);
        if (b.n > max) {
            err_set(err, ERR_INPUT, "more than the %zu bytes that are read", max);
            break;
        }
        if ((size_t)got < want) {
            *out = arena_str(a, buf_str(&b));
            ok = true;
            break;
        }
    }
    buf_release(&b);
    return ok;
}

/* A file of known length goes straight into the arena, aligned for whatever it holds. One that
 * grows meanwhile is read as long as it was when it was opened. */
static bool read_sized(int fd, size_t size, struct arena *a, str *out, struct err *err) {
    char *p = arena_alloc(a, size + 1, 64);
    ssize_t got = read_up_to(fd, p, size);
    if (got < 0)
        return err_errno(err, kind_of_errno(errno), "read");
    *out = (str){p, (size_t)got};
    return true;
}

bool file_read(const char *path, size_t max, struct arena *a, str *out, struct err *err) {
    struct stat st;
    /* O_NONBLOCK: opening a named pipe must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return err_errno(err, kind_of_errno(errno), "open %s", path);
    bool ok = fstat(fd, &st) == 0 || err_errno(err, ERR_ENV, "stat");
    ok = ok && check_regular(&st, max, err);
    if (ok && st.st_size > 0)
        ok = read_sized(fd, (size_t)st.st_size, a, out, err);
    else if (ok)
        ok = file_read_fd(fd, max, a, out, err);
    close(fd);
    return ok || err_wrap(err, "%s", path);
}

/* What the descriptor is, and so what to do, the caller knows. */
bool file_write_all(int fd, const void *p, size_t n, struct err *err) {
    const char *from = p;
    if (fault_hit(FAULT_WRITE)) {
        errno = ENOSPC;
        return err_errno(err, ERR_ENV, "write");
    }
    while (n > 0) {
        ssize_t put = write(fd, from, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EAGAIN) {
            struct pollfd ready = {.fd = fd, .events = POLLOUT};
            poll(&ready, 1, -1);
            continue;
        }
        if (put < 0)
            return err_errno(err, ERR_ENV, "write");
        from += put;
        n -= (size_t)put;
    }
    return true;
}

/* The two halves of a path; the folder's must fit PATH_MAX, as it must for the kernel. */
static bool split_path(const char *path, char dir[PATH_MAX], const char **base, struct err *err) {
    const char *slash = strrchr(path, '/');
    *base = slash ? slash + 1 : path;
    if (**base == 0)
        return err_set(err, ERR_INPUT, "the path names no file");
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= PATH_MAX)
        return err_set(err, ERR_INPUT, "the path is too long");
    memcpy(dir, path, n);
    dir[n] = 0;
    if (n == 0)
        memcpy(dir, slash ? "/" : ".", 2);
    return true;
}

/* O_EXCL settles who gets a name; a number after the process's id steps over what a crashed
 * process with the same id, or one on another host, has left. */
static int temp_open(int dir, const char *base, char name[NAME_MAX + 1], struct err *err) {
    for (int i = 0; i < TEMP_TRIES; i++) {
        snprintf(name, NAME_MAX + 1, ".%.64s.tmp.%ld.%d", base, (long)getpid(), i);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (fd >= 0)
            return fd;
        if (errno != EEXIST)
            break;
    }
    write_error(err, "create");
    return -1;
}

static bool temp_fill(int fd, const str *parts, size_t n, struct err *err) {
    bool ok = true;
    for (size_t i = 0; ok && i < n; i++)
        ok = file_write_all(fd, parts[i].p, parts[i].n, NULL) || write_error(err, "write");
    if (ok && fsync(fd) != 0)
        ok = write_error(err, "flush");
    /* Network file systems report a full disk as late as here. */
    if (close(fd) != 0 && ok)
        ok = write_error(err, "close");
    return ok;
}

static bool dir_flush(int dir, struct err *err) {
    if (fsync(dir) == 0 || errno == EINVAL || errno == ENOTSUP)
        return true;
    return write_error(err, "replaced, but flushing its folder failed");
}

static bool replace_in(int dir, const char *base, const str *parts, size_t n, struct err *err) {
    char temp[NAME_MAX + 1];
    int fd = temp_open(dir, base, temp, err);
    if (fd < 0)
        return false;
    bool ok = temp_fill(fd, parts, n, err);
    if (ok && renameat(dir, temp, dir, base) != 0)
        ok = write_error(err, "rename");
    if (!ok) {
        unlinkat(dir, temp, 0);
        return false;
    }
    return dir_flush(dir, err);
}

bool file_replace_parts(const char *path, const str *parts, size_t n, struct err *err) {
    char name[PATH_MAX];
    const char *base;
    if (!split_path(path, name, &base, err))
        return err_wrap(err, "%s", path);
    int dir = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0) {
        err_errno(err, kind_of_errno(errno), "open folder %s", name);
        return err_wrap(err, "%s", path);
    }
    bool ok = replace_in(dir, base, parts, n, err);
    close(dir);
    return ok || err_wrap(err, "%s", path);
}

bool file_replace(const char *path, str content, struct err *err) {
    return file_replace_parts(path, &content, 1, err);
}

bool file_exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

/* One level; another process may make it at the same time. */
static bool make_one(const char *path, struct err *err) {
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return true;
    int number = errno;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return true;
        return err_set(err, ERR_INPUT, "make folder %s: it exists and is not a folder", path);
    }
    errno = number;
    write_error(err, "make folder");
    return err_wrap(err, "%s", path);
}

bool dir_make(const char *path, struct err *err) {
    char part[PATH_MAX];
    size_t n = strlen(path);
    if (n == 0 || n >= sizeof part)
        return err_set(err, ERR_INPUT, "make folder '%.64s': %s", path,
                       n ? "the path is too long" : "the path is empty");
    for (size_t i = 1; i <= n; i++) {
        if (path[i] != '/' && path[i] != 0)
            continue;
        memcpy(part, path, i);
        part[i] = 0;
        if (!make_one(part, err))
            return false;
    }
    return true;
}

static bool is_anothers(const struct stat *st) {
    return st->st_uid != geteuid() && st->st_uid != 0;
}

bool dir_check_private(const char *path, struct err *err) {
    struct stat st;
    if (lstat(path, &st) != 0)
        return err_errno(err, kind_of_errno(errno), "%s", path);
    bool link = S_ISLNK(st.st_mode);
    if (is_anothers(&st) || (link && stat(path, &st) == 0 && is_anothers(&st)))
        return err_set(err, ERR_ENV, "%s belongs to another user (%ld)", path, (long)st.st_uid);
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_ENV, "%s is not a folder", path);
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return err_set(err, ERR_ENV, "%s may be written to by other users (mode %03o)", path,
                       (unsigned)st.st_mode & 0777);
    return true;
}

bool dir_make_private(const char *path, struct err *err) {
    char parent[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash ? (size_t)(slash - path) : 0;
    if (n >= sizeof parent)
        return err_set(err, ERR_INPUT, "make folder '%.64s': the path is too long", path);
    memcpy(parent, path, n);
    parent[n] = 0;
    if (n && !dir_make(parent, err))
        return false;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        write_error(err, "make folder");
        return err_wrap(err, "%s", path);
    }
    return dir_check_private(path, err);
}

static bool is_dot(const char *name) {
    return !strcmp(name, ".") || !strcmp(name, "..");
}

static bool remove_at(int dir, const char *name, int depth, struct err *err);

static bool remove_entries(int fd, int depth, struct err *err) {
    DIR *d = fdopendir(fd);
    if (!d) {
        close(fd);
        return err_errno(err, ERR_ENV, "list");
    }
    bool ok = true;
    struct dirent *entry;
    errno = 0;
    while (ok && (entry = readdir(d))) {
        if (!is_dot(entry->d_name))
            ok = remove_at(dirfd(d), entry->d_name, depth + 1, err);
        errno = 0;
    }
    if (ok && errno)
        ok = err_errno(err, ERR_ENV, "list");
    closedir(d);
    return ok;
}

/* Anything but a folder, links included, is unlinked as it stands. */
static bool remove_at(int dir, const char *name, int depth, struct err *err) {
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return true;
    if (fd < 0 && errno != ENOTDIR && errno != ELOOP)
        return err_errno(err, ERR_ENV, "remove %s", name);
    if (fd < 0) {
        if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
            return true;
        return err_errno(err, ERR_ENV, "remove %s", name);
    }
    if (depth >= TREE_DEPTH_MAX) {
        close(fd);
        return err_set(err, ERR_ENV, "remove %s: more than %d folders deep", name, TREE_DEPTH_MAX);
    }
    if (!remove_entries(fd, depth, err))
        return err_wrap(err, "%s", name);
    if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return true;
    return err_errno(err, ERR_ENV, "remove %s", name);
}

bool dir_remove_tree(const char *path, struct err *err) {
    return remove_at(AT_FDCWD, path, 0, err);
}

static int by_name(const void *a, const void *b) {
    return str_cmp(*(const str *)a, *(const str *)b);
}

bool dir_list(const char *path, struct arena *a, str **names, size_t *n, struct err *err) {
    DIR *d = opendir(path);
    if (!d)
        return err_errno(err, kind_of_errno(errno), "read the folder %s", path);
    str *found = NULL;
    size_t cap = 0, count = 0;
    struct dirent *entry;
    errno = 0;
    while ((entry = readdir(d))) {
        if (!is_dot(entry->d_name)) {
            found = mem_grow(found, &cap, count + 1, sizeof *found);
            found[count++] = arena_str(a, str_view(entry->d_name));
        }
        errno = 0;
    }
    bool ok = errno == 0 || err_errno(err, ERR_ENV, "read the folder %s", path);
    closedir(d);
    if (ok) {
        *names = arena_array(a, str, count);
        *n = count;
        if (count) {
            memcpy(*names, found, count * sizeof *found);
            qsort(*names, count, sizeof **names, by_name);
        }
    }
    mem_free(found);
    return ok;
}

/* The process in .NAME.tmp.PROCESS.N; false: that is no such name. */
static bool temporary_of(str name, uint64_t *process) {
    static const str mark = {".tmp.", 5};
    size_t at = str_find(name, mark);
    str rest = at < name.n ? str_from(name, at + mark.n) : S(""), first, second;
    uint64_t number;
    return str_starts(name, S(".")) && str_word(&rest, '.', &first) &&
           str_word(&rest, '.', &second) && !rest.n && str_to_u64(first, process) &&
           str_to_u64(second, &number);
}

bool file_is_temporary(str name) {
    uint64_t process;
    return temporary_of(name, &process);
}

bool dir_remove_temporaries(const char *path, bool all, struct err *err) {
    struct arena *a = arena_new(64u << 20);
    str *names = NULL;
    size_t n = 0;
    uint64_t process;
    bool ok = dir_list(path, a, &names, &n, err);
    for (size_t i = 0; ok && i < n; i++) {
        if (!temporary_of(names[i], &process) ||
            !(all || (kill((pid_t)process, 0) != 0 && errno == ESRCH)))
            continue;
        str file = arena_printf(a, "%s/%.*s", path, STR_ARG(names[i]));
        ok = unlink(file.p) == 0 || errno == ENOENT || err_errno(err, ERR_ENV, "remove %s", file.p);
    }
    arena_free(a);
    return ok;
}

/* By the magic numbers of statfs(2), which few headers have together. */
bool dir_is_remote(const char *path) {
    static const uint32_t remote[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xff534d42, /* CIFS */
        0xfe534d42, /* SMB 2 */
        0x65735546, /* FUSE: sshfs, GlusterFS, … */
        0x0bd00bd0, /* Lustre */
        0x47504653, /* GPFS */
        0x00c36400, /* Ceph */
        0x19830326, /* BeeGFS */
        0x5346414f, /* AFS */
        0x01021997, /* 9P */
    };
    struct statfs fs;
    if (fault_hit(FAULT_NETWORK))
        return true;
    if (statfs(path, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++)
        if ((uint32_t)fs.f_type == remote[i])
            return true;
    return false;
}

/* What a lock that cannot be had for another reason than its holder is about. */
static void no_lock(const char *path, struct err *err) {
    bool without = errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP;
    err_errno(err, ERR_ENV, "lock %s", path);
    if (without)
        err_set(
            err, ERR_ENV,
            "lock %s: its file system has no locks\nhint: use a folder on a local disk, or have "
            "the file system mounted with locks (NFS: without nolock; Lustre: with flock)",
            path);
}

#define WAIT "; wait for it to end, or choose another --out"

/* The holder wrote its process id and host into the file. */
static void lock_refused(int fd, const char *path, struct err *err) {
    char who[256];
    if (errno != EWOULDBLOCK) {
        no_lock(path, err);
        return;
    }
    ssize_t n = pread(fd, who, sizeof who, 0);
    str line = str_trim((str){who, n > 0 ? (size_t)n : 0});
    if (line.n)
        err_set(err, ERR_ENV, "lock %s: held by process %.*s" WAIT, path, STR_ARG(line));
    else
        err_set(err, ERR_ENV, "lock %s: held by another process" WAIT, path);
}

/* A lock is emptied and written to, so a link in its place would let whoever made it choose which
 * file that happens to. */
static int lock_open(const char *path, struct err *err) {
    struct stat st;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd < 0 && errno == ELOOP) {
        err_set(err, ERR_INPUT,
                "lock %s: it is a symbolic link, which is not followed\nhint: remove the link, or "
                "choose another --out",
                path);
    } else if (fd < 0) {
        err_errno(err, errno == EACCES ? ERR_ENV : kind_of_errno(errno), "open lock %s", path);
    } else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        err_set(err, ERR_INPUT, "lock %s: it is not a regular file; choose another --out", path);
        close(fd);
        fd = -1;
    }
    return fd;
}

int file_lock(const char *path, struct err *err) {
    char who[320], host[256];
    int fd = lock_open(path, err);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        lock_refused(fd, path, err);
        close(fd);
        return -1;
    }
    if (gethostname(host, sizeof host) != 0)
        snprintf(host, sizeof host, "this host");
    host[sizeof host - 1] = 0;
    int n = snprintf(who, sizeof who, "%ld on %s\n", (long)getpid(), host);
    /* Only a courtesy to whoever is refused: the lock holds without it. */
    if (ftruncate(fd, 0) == 0 && pwrite(fd, who, (size_t)n, 0) != n)
        (void)!ftruncate(fd, 0);
    return fd;
}

int file_open_locked(const char *path, bool wait, struct err *err) {
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0666), got = -1;
    if (fd < 0) {
        err_errno(err, kind_of_errno(errno), "open %s", path);
        return -1;
    }
    do
        got = flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB);
    while (got != 0 && errno == EINTR);
    if (got == 0)
        return fd;
    if (errno == EWOULDBLOCK)
        err_set(err, ERR_ENV, "%s: another process writes to it" WAIT, path);
    else
        no_lock(path, err);
    close(fd);
    return -1;
}

str data_dir(struct arena *a) {
    const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    if (xdg && xdg[0] == '/')
        return arena_printf(a, "%s/cutepilot", xdg);
    return home && home[0] == '/' ? arena_printf(a, "%s/.local/share/cutepilot", home) : S("");
}

/* Everybody may write to /tmp, and knows this name. */
static bool cache_dir_fallback(struct arena *a, str *out, struct err *err) {
    *out = arena_printf(a, "/tmp/cutepilot-%ld", (long)geteuid());
    return dir_make_private(out->p, err);
}

bool cache_dir(struct arena *a, str *out, struct err *err) {
    const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    /* The XDG specification: a relative path is ignored. */
    if (xdg && xdg[0] == '/')
        *out = arena_printf(a, "%s/cutepilot", xdg);
    else if (home && home[0] == '/')
        *out = arena_printf(a, "%s/.cache/cutepilot", home);
    else
        return cache_dir_fallback(a, out, err);
    return true;
}

str self_path(struct arena *a) {
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path);
    if (n <= 0 || (size_t)n >= sizeof path)
        return S("/proc/self/exe");
    return arena_str(a, (str){path, (size_t)n});
}
