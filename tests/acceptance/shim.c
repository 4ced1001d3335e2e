/* Ends the process at its n-th write or sync below a directory, and drops what was not synced: a power cut.
 *
 * Loaded with LD_PRELOAD; does nothing until `shim_arm`. For each file (by inode) it keeps how far it was written and
 * how far it was when last synced; at the end every file written in this life is cut to its synced length, plus
 * `keep` thousandths of what came after (the system may have written some of it by itself). Lengths are those of
 * writes, not of the file: stores allocate ahead. The n-th operation itself does not happen: what would have been
 * after it is what is before the next one. sync_file_range and writes through stdio or a mapping promise nothing and
 * are not followed.
 *
 * Also: `shim_slow` makes each sync take longer, `shim_full` lets the disk be full after so many bytes.
 * SHIM_DIR with SHIM_FULL or SHIM_SLOW in the environment do the same for a process that cannot call.
 *
 * SHIM_CLOCK names a file with a binary long: so many seconds are added to the wall clock, also while the process runs.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX 4096

struct file {
    dev_t device;
    ino_t inode;
    off_t written, synced;
    char path[PATH_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char directory[PATH_MAX];
static size_t directory_length;
static long last, done, keep, sync_ms, bytes_left = -1;
static const volatile long *clock_step;
static struct file *files;
static int files_used;

#define REAL(name) __typeof__(&name) real = (__typeof__(&name))real_of(#name)

static void *real_of(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    return found;
}

static void watch(const char *path)
{
    if (!realpath(path, directory))
        abort();
    directory_length = strlen(directory);
}

static int note_length(const char *path, const struct stat *now, int kind, struct FTW *place)
{
    (void)place;
    if (kind == FTW_F && files_used < FILES_MAX) {
        struct file *file = &files[files_used++];
        file->inode = now->st_ino;
        file->device = now->st_dev;
        file->written = file->synced = now->st_size;
        strcpy(file->path, path);
    }
    return 0;
}

/* Die at the n-th operation; 0 never. Counting begins anew. */
void shim_arm(long n, const char *path, long keep_thousandths)
{
    if (!files)
        files = calloc(FILES_MAX, sizeof *files);
    watch(path);
    files_used = 0;
    done = 0;
    last = n;
    keep = keep_thousandths;
    /* What an earlier life left is on the disk. */
    if (nftw(directory, note_length, 16, FTW_PHYS))
        abort();
}

long shim_count(void)
{
    return done;
}

void shim_slow(const char *path, long milliseconds)
{
    watch(path);
    sync_ms = milliseconds;
}

void shim_full(const char *path, long after_bytes)
{
    watch(path);
    bytes_left = after_bytes;
}

__attribute__((constructor)) static void from_environment(void)
{
    const char *path = getenv("SHIM_DIR"), *full = getenv("SHIM_FULL"), *slow = getenv("SHIM_SLOW");
    if (path && full)
        shim_full(path, atol(full));
    if (path && slow)
        shim_slow(path, atol(slow));
    const char *step = getenv("SHIM_CLOCK");
    int fd = step ? open(step, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *shared = mmap(0, sizeof *clock_step, PROT_READ, MAP_SHARED, fd, 0);
        if (shared != MAP_FAILED)
            clock_step = shared;
        close(fd);
    }
}

/* Processes that are started meanwhile may ask before the constructor has run: then the step is none. */
int clock_gettime(clockid_t clock, struct timespec *now)
{
    static __typeof__(&clock_gettime) real;
    if (!real)
        real = (__typeof__(&clock_gettime))real_of("clock_gettime");
    int result = real(clock, now);
    if (!result && clock == CLOCK_REALTIME && clock_step)
        now->tv_sec += *clock_step;
    return result;
}

static int below(const char *path)
{
    return directory_length && !strncmp(path, directory, directory_length) && path[directory_length] == '/';
}

static int below_at(int at, const char *path)
{
    char whole[PATH_MAX];
    if (path[0] == '/' )
        return below(path);
    if (at == AT_FDCWD)
        return getcwd(whole, sizeof whole) && below(whole);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, whole, sizeof whole - 2);
    if (length < 0)
        return 0;
    whole[length] = '/';
    whole[length + 1] = 0;
    return below(whole);
}

/* The path of a file of ours, or 0. */
static int ours(int fd, char *path)
{
    char link[64];
    if (!directory_length)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0)
        return 0;
    path[length] = 0;
    return below(path);
}

/* A thread that reads a mapped file which was just cut waits here for the end, which is a SIGKILL's to bring. */
static void wait_for_the_end(int number)
{
    (void)number;
    for (;;)
        pause();
}

static void end(void)
{
    struct sigaction stay;
    memset(&stay, 0, sizeof stay);
    stay.sa_handler = wait_for_the_end;
    sigaction(SIGBUS, &stay, 0);
    for (int i = 0; i < files_used; i++) {
        struct file *file = &files[i];
        struct stat now;
        if (stat(file->path, &now) || now.st_ino != file->inode || now.st_dev != file->device)
            continue;
        off_t length = file->synced + (file->written - file->synced) * keep / 1000;
        if (now.st_size > length && truncate(file->path, length))
            abort();
    }
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* Count one operation. Called with the lock held. */
static void step(void)
{
    if (last && ++done >= last)
        end();
}

static struct file *file_of(int fd, const char *path)
{
    struct stat now;
    if (!last || fstat(fd, &now) || !S_ISREG(now.st_mode))
        return NULL;
    struct file *file = NULL;
    for (int i = 0; i < files_used && !file; i++)
        if (files[i].inode == now.st_ino && files[i].device == now.st_dev)
            file = &files[i];
    if (!file) {
        if (files_used == FILES_MAX)
            abort();
        file = &files[files_used++];
        file->inode = now.st_ino;
        file->device = now.st_dev;
        file->written = file->synced = 0;
    }
    strcpy(file->path, path);
    return file;
}

static int refused(ssize_t wanted)
{
    if (bytes_left < 0)
        return 0;
    bytes_left = bytes_left > wanted ? bytes_left - wanted : 0;
    if (bytes_left)
        return 0;
    errno = ENOSPC;
    return 1;
}

#define WRITING(wanted, call, end_of_write)                        \
    char path[PATH_MAX];                                           \
    if (!ours(fd, path))                                           \
        return call;                                               \
    pthread_mutex_lock(&lock);                                     \
    step();                                                        \
    struct file *file = file_of(fd, path);                         \
    ssize_t result = refused(wanted) ? -1 : call;                  \
    int error = errno;                                             \
    if (result > 0 && file) {                                      \
        off_t written = end_of_write;                              \
        if (written > file->written)                               \
            file->written = written;                               \
    }                                                              \
    pthread_mutex_unlock(&lock);                                   \
    errno = error;                                                 \
    return result

static ssize_t length_of(const struct iovec *parts, int count)
{
    ssize_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += parts[i].iov_len;
    return sum;
}

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    WRITING(size, real(fd, data, size), lseek(fd, 0, SEEK_CUR));
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
    REAL(writev);
    WRITING(length_of(parts, count), real(fd, parts, count), lseek(fd, 0, SEEK_CUR));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    REAL(pwrite);
    WRITING(size, real(fd, data, size, at), at + result);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at)
{
    REAL(pwrite64);
    WRITING(size, real(fd, data, size, at), at + result);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
    REAL(pwritev);
    WRITING(length_of(parts, count), real(fd, parts, count, at), at + result);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at)
{
    REAL(pwritev64);
    WRITING(length_of(parts, count), real(fd, parts, count, at), at + result);
}

/* Room that is reserved counts as written; what a store allocates ahead for itself (fallocate) does not. */
#define RESERVING(call)                                            \
    char path[PATH_MAX];                                           \
    if (!ours(fd, path))                                           \
        return call;                                               \
    pthread_mutex_lock(&lock);                                     \
    int result = refused(size) ? ENOSPC : call;                    \
    pthread_mutex_unlock(&lock);                                   \
    return result

int posix_fallocate(int fd, off_t at, off_t size)
{
    REAL(posix_fallocate);
    RESERVING(real(fd, at, size));
}

int posix_fallocate64(int fd, off64_t at, off64_t size)
{
    REAL(posix_fallocate64);
    RESERVING(real(fd, at, size));
}

static void sleep_before_sync(void)
{
    struct timespec wait = {sync_ms / 1000, sync_ms % 1000 * 1000000};
    if (sync_ms)
        nanosleep(&wait, NULL);
}

#define SYNCING(call)                                              \
    char path[PATH_MAX];                                           \
    if (!ours(fd, path))                                           \
        return call;                                               \
    sleep_before_sync();                                           \
    pthread_mutex_lock(&lock);                                     \
    step();                                                        \
    struct file *file = file_of(fd, path);                         \
    int result = call;                                             \
    if (!result && file)                                           \
        file->synced = file->written;                              \
    pthread_mutex_unlock(&lock);                                   \
    return result

int fsync(int fd)
{
    REAL(fsync);
    SYNCING(real(fd));
}

int fdatasync(int fd)
{
    REAL(fdatasync);
    SYNCING(real(fd));
}

int sync_file_range(int fd, off64_t at, off64_t size, unsigned int flags)
{
    REAL(sync_file_range);
    char path[PATH_MAX];
    if (ours(fd, path)) {
        pthread_mutex_lock(&lock);
        step();
        pthread_mutex_unlock(&lock);
    }
    return real(fd, at, size, flags);
}

static void cut(int fd, off_t length)
{
    char path[PATH_MAX];
    if (!ours(fd, path))
        return;
    step();
    struct file *file = file_of(fd, path);
    if (file && file->written > length)
        file->written = length;
    if (file && file->synced > length)
        file->synced = length;
}

int ftruncate(int fd, off_t length)
{
    REAL(ftruncate);
    pthread_mutex_lock(&lock);
    cut(fd, length);
    int result = real(fd, length);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate64(int fd, off64_t length)
{
    REAL(ftruncate64);
    pthread_mutex_lock(&lock);
    cut(fd, length);
    int result = real(fd, length);
    pthread_mutex_unlock(&lock);
    return result;
}

/* A file keeps its inode when it is renamed: only where it will be found changes. */
static void moved(const char *to)
{
    struct stat now;
    char whole[PATH_MAX];
    if (stat(to, &now) || !realpath(to, whole))
        return;
    for (int i = 0; i < files_used; i++)
        if (files[i].inode == now.st_ino && files[i].device == now.st_dev)
            strcpy(files[i].path, whole);
}

/* A file that is gone leaves its inode to another. */
static void gone(int at, const char *path)
{
    struct stat now;
    if (fstatat(at, path, &now, AT_SYMLINK_NOFOLLOW) || now.st_nlink > 1)
        return;
    for (int i = 0; i < files_used; i++)
        if (files[i].inode == now.st_ino && files[i].device == now.st_dev)
            files[i] = files[--files_used];
}

int rename(const char *from, const char *to)
{
    REAL(rename);
    if (!below_at(AT_FDCWD, from))
        return real(from, to);
    pthread_mutex_lock(&lock);
    step();
    gone(AT_FDCWD, to);
    int result = real(from, to);
    if (!result)
        moved(to);
    pthread_mutex_unlock(&lock);
    return result;
}

int renameat(int from_at, const char *from, int to_at, const char *to)
{
    REAL(renameat);
    if (!below_at(from_at, from))
        return real(from_at, from, to_at, to);
    pthread_mutex_lock(&lock);
    step();
    gone(to_at, to);
    int result = real(from_at, from, to_at, to);
    if (!result && to[0] == '/')
        moved(to);
    pthread_mutex_unlock(&lock);
    return result;
}

static void count_at(int at, const char *path)
{
    if (!below_at(at, path))
        return;
    pthread_mutex_lock(&lock);
    step();
    gone(at, path);
    pthread_mutex_unlock(&lock);
}

int unlink(const char *path)
{
    REAL(unlink);
    count_at(AT_FDCWD, path);
    return real(path);
}

int unlinkat(int at, const char *path, int flags)
{
    REAL(unlinkat);
    count_at(at, path);
    return real(at, path, flags);
}
