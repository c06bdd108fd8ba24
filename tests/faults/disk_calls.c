/* Between a program and the system: writes down, or lets fail, what is done to the files of one folder.
 *
 * Loaded by LD_PRELOAD, see disk_calls.py. FAULT_FOLDER names the folder, FAULT_RECORD a file outside of it, to which
 * each call is appended: seven little-endian int64 (kind, inode, offset, length, path length, 0, 0), the path, the bytes.
 *
 * fault_arm(kind, n, error) lets the n-th call of a kind from now on, and all that follow, fail with that error;
 * kind 0 counts all that can write, n <= 0 disarms. fault_calls() counts calls of that kind since it was armed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ANY, WRITE, TRUNCATE, SYNC, CREATE, UNLINK, RENAME, LOCK };

static char folder[4096];
static int record = -1, armed_kind = 0, armed_error = 0, transient = 0;
static long armed_n = 0, calls = 0;

void fault_arm(int kind, long n, int error, int once) { armed_kind = kind; armed_n = n; armed_error = error; calls = 0; transient = once; }
long fault_calls(void) { return calls; }

__attribute__((constructor)) static void start(void) {
    const char *name = getenv("FAULT_FOLDER"), *to = getenv("FAULT_RECORD");
    if (name) snprintf(folder, sizeof folder, "%s", name);
    if (to) record = syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int inside(const char *path) {
    size_t n = strlen(folder);
    return n && path && !strncmp(path, folder, n) && (path[n] == '/' || !path[n]);
}

static int path_of(int fd, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, size - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return inside(path);
}

/* Whether the call is to fail. */
static int fails(int kind) {
    if (armed_n <= 0 || (armed_kind != ANY && armed_kind != kind) || (armed_kind == ANY && kind == LOCK)) return 0;
    calls++;
    if (calls < armed_n || (transient && calls > armed_n)) return 0;
    errno = armed_error;
    return 1;
}

static void note(int kind, int fd, const char *path, int64_t offset, const void *bytes, int64_t length, const char *second) {
    if (record < 0) return;
    struct stat found;
    int64_t inode = 0;
    if (fd >= 0 ? !fstat(fd, &found) : !lstat(path, &found)) inode = found.st_ino;
    int64_t head[7] = {kind, inode, offset, length, strlen(path), second ? strlen(second) : 0, 0};
    syscall(SYS_write, record, head, sizeof head);
    syscall(SYS_write, record, path, strlen(path));
    if (second) syscall(SYS_write, record, second, strlen(second));
    if (bytes) syscall(SYS_write, record, bytes, length);
}

static int opened(const char *path, int flags, mode_t mode, int at) {
    struct stat found;
    int is_new = (flags & O_CREAT) && inside(path) && lstat(path, &found);
    if (is_new && fails(CREATE)) return -1;
    int fd = syscall(SYS_openat, at, path, flags, mode);
    if (fd >= 0 && is_new) note(CREATE, fd, path, 0, 0, 0, 0);
    if (fd >= 0 && !is_new && (flags & O_TRUNC) && inside(path)) note(TRUNCATE, fd, path, 0, 0, 0, 0);
    return fd;
}

#define MODE va_list more; va_start(more, flags); mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0; va_end(more)
int open(const char *path, int flags, ...) { MODE; return opened(path, flags, mode, AT_FDCWD); }
int open64(const char *path, int flags, ...) { MODE; return opened(path, flags, mode, AT_FDCWD); }
int openat(int at, const char *path, int flags, ...) { MODE; return opened(path, flags, mode, at); }
int openat64(int at, const char *path, int flags, ...) { MODE; return opened(path, flags, mode, at); }

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t offset) {
    char path[4096];
    int ours = path_of(fd, path, sizeof path);
    if (ours && fails(WRITE)) return -1;
    ssize_t done = syscall(SYS_pwrite64, fd, bytes, n, offset);
    if (ours && done > 0) note(WRITE, fd, path, offset, bytes, done, 0);
    return done;
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t offset) { return pwrite64(fd, bytes, n, offset); }

ssize_t write(int fd, const void *bytes, size_t n) {
    char path[4096];
    int ours = path_of(fd, path, sizeof path);
    if (ours && fails(WRITE)) return -1;
    int is_end = ours && (fcntl(fd, F_GETFL) & O_APPEND);
    off_t offset = ours ? lseek(fd, 0, is_end ? SEEK_END : SEEK_CUR) : 0;
    ssize_t done = syscall(SYS_write, fd, bytes, n);
    if (ours && done > 0) note(WRITE, fd, path, offset, bytes, done, 0);
    return done;
}

static int cut(int fd, off64_t size) {
    char path[4096];
    int ours = path_of(fd, path, sizeof path);
    if (ours && fails(TRUNCATE)) return -1;
    int done = syscall(SYS_ftruncate, fd, size);
    if (ours && !done) note(TRUNCATE, fd, path, size, 0, 0, 0);
    return done;
}
int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

/* Nothing has to reach a disk here: what is recorded is what was asked. */
static int synced(int fd) {
    char path[4096];
    int ours = path_of(fd, path, sizeof path);
    if (ours && fails(SYNC)) return -1;
    if (ours) note(SYNC, fd, path, 0, 0, 0, 0);
    return ours ? 0 : (int)syscall(SYS_fsync, fd);
}
int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

int unlink(const char *path) {
    if (inside(path) && fails(UNLINK)) return -1;
    if (inside(path)) note(UNLINK, -1, path, 0, 0, 0, 0);
    return syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int rename(const char *from, const char *to) {
    if (inside(to) && fails(RENAME)) return -1;
    if (inside(to)) note(RENAME, -1, from, 0, 0, 0, to);
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int locks(int fd, int command, void *more) {
    char path[4096];
    int is_lock = command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK;
    if (is_lock && path_of(fd, path, sizeof path) && fails(LOCK)) return -1;
    return syscall(SYS_fcntl, fd, command, more);
}
#define MORE va_list list; va_start(list, command); void *more = va_arg(list, void *); va_end(list)
int fcntl(int fd, int command, ...) { MORE; return locks(fd, command, more); }
int fcntl64(int fd, int command, ...) { MORE; return locks(fd, command, more); }

int flock(int fd, int operation) {
    char path[4096];
    if (path_of(fd, path, sizeof path) && fails(LOCK)) return -1;
    return syscall(SYS_flock, fd, operation);
}
