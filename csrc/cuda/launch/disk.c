/* disk.c: a directory of files named by what they were made from. A file carries its key, its length and a hash of its
 * contents, and is read only from a place where nobody else can write. */
#define _XOPEN_SOURCE 700
#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../core/environment.h"
#include "../front.h"

#define MAX_BYTES ((int64_t)64 << 20) /* of all files together; the least recently used are removed */
#define MAX_REMOVED 64                /* at a time */
#define SUFFIX ".bin"
#define NAME_BYTES (2 * DT_SHA256_BYTES + 48)

typedef struct {
    char magic[8];
    uint8_t key[DT_SHA256_BYTES], digest[DT_SHA256_BYTES];
    uint64_t nbytes;
} header;

static const char magic[8] = "dtkept1";

/* ---------------------------------------------------------------- the directory */

const char *
cuda_disk_path(char path[CUDA_PATH_BYTES])
{
    const char *own = dt_environment_path(DT_ENV_CACHE_DIR);
    const char *caches = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = 0;
    path[0] = '\0';
    if (own != NULL) {
        n = snprintf(path, CUDA_PATH_BYTES, "%s", own);
    } else if (caches != NULL && caches[0] == '/') {
        n = snprintf(path, CUDA_PATH_BYTES, "%s/devtensor", caches);
    } else if (home != NULL && home[0] == '/') {
        n = snprintf(path, CUDA_PATH_BYTES, "%s/.cache/devtensor", home);
    } else {
        return "HOME is not set";
    }
    if (n < 0 || n >= CUDA_PATH_BYTES) {
        return "the path is too long";
    }
    while (n > 1 && path[n - 1] == '/') { /* a link with a slash behind it would be followed */
        path[--n] = '\0';
    }
    return NULL;
}

static void
make_directories(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    (void)mkdir(path, 0700);
}

/* Ours alone: nobody else can have put anything there. */
static const char *
distrust(const struct stat *status)
{
    if (status->st_uid != geteuid()) {
        return "it belongs to another user";
    }
    return status->st_mode & (S_IWGRP | S_IWOTH) ? "others may write there" : NULL;
}

/* A descriptor, or -1 and why. */
static int
open_directory(char path[CUDA_PATH_BYTES], bool create, const char **why)
{
    struct stat status;
    *why = cuda_disk_path(path);
    if (dt_environment_word(DT_ENV_CACHE, 1) == 0) {
        *why = "switched off by DEVTENSOR_CACHE=0";
    }
    if (*why != NULL) {
        return -1;
    }
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && create) {
        make_directories(path);
        folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (folder < 0) {
        *why = errno == ENOENT                      ? "it does not exist yet"
               : errno == ELOOP || errno == ENOTDIR ? "it is a link or no directory"
                                                    : "it cannot be opened";
        return -1;
    }
    *why = fstat(folder, &status) != 0 ? "it cannot be opened" : distrust(&status);
    if (*why != NULL) {
        close(folder);
        return -1;
    }
    return folder;
}

const char *
cuda_disk_where(char *text, size_t size)
{
    char path[CUDA_PATH_BYTES];
    const char *why;
    int folder = open_directory(path, false, &why);
    snprintf(text, size, "%s", path);
    if (folder >= 0) {
        why = faccessat(folder, ".", W_OK | X_OK, 0) != 0 ? "it cannot be written" : NULL;
        close(folder);
    }
    return why;
}

static void
file_name(const uint8_t key[DT_SHA256_BYTES], char name[NAME_BYTES])
{
    dt_sha256_text(key, name);
    memcpy(name + 2 * DT_SHA256_BYTES, SUFFIX, sizeof(SUFFIX));
}

/* ---------------------------------------------------------------- reading */

static bool
read_all(int file, void *data, size_t nbytes)
{
    for (char *at = data; nbytes > 0;) {
        ssize_t n = read(file, at, nbytes);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            return false;
        }
        if (n > 0) {
            at += n;
            nbytes -= (size_t)n;
        }
    }
    return true;
}

static void
digest_of(const void *data, size_t nbytes, uint8_t digest[DT_SHA256_BYTES])
{
    dt_sha256 hash;
    dt_sha256_init(&hash);
    dt_sha256_add(&hash, data, nbytes);
    dt_sha256_end(&hash, digest);
}

static void *
read_file(int file, const uint8_t key[DT_SHA256_BYTES], size_t *nbytes)
{
    struct stat status;
    header head;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || distrust(&status) != NULL ||
        status.st_size <= (off_t)sizeof(head) || status.st_size > MAX_BYTES || !read_all(file, &head, sizeof(head)) ||
        memcmp(head.magic, magic, sizeof(magic)) != 0 || memcmp(head.key, key, sizeof(head.key)) != 0 ||
        head.nbytes != (uint64_t)status.st_size - sizeof(head)) {
        return NULL;
    }
    uint8_t digest[DT_SHA256_BYTES];
    void *data = dt_malloc((size_t)head.nbytes);
    if (data == NULL) {
        return NULL;
    }
    if (read_all(file, data, (size_t)head.nbytes)) {
        digest_of(data, (size_t)head.nbytes, digest);
        if (memcmp(digest, head.digest, sizeof(digest)) == 0) {
            *nbytes = (size_t)head.nbytes;
            return data;
        }
    }
    dt_free(data);
    return NULL;
}

void *
cuda_disk_read(const uint8_t key[DT_SHA256_BYTES], size_t *nbytes)
{
    char path[CUDA_PATH_BYTES], name[NAME_BYTES];
    const char *why;
    void *data = NULL;
    int folder = open_directory(path, false, &why);
    if (folder < 0) {
        return NULL;
    }
    file_name(key, name);
    int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        data = read_file(file, key, nbytes);
        if (data != NULL) {
            (void)futimens(file, NULL); /* used now */
        }
        close(file);
    }
    close(folder);
    return data;
}

/* ---------------------------------------------------------------- writing */

static bool
write_all(int file, const void *data, size_t nbytes)
{
    for (const char *at = data; nbytes > 0;) {
        ssize_t n = write(file, at, nbytes);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            at += n;
            nbytes -= (size_t)n;
        }
    }
    return true;
}

/* The bytes of the files that are ours, unfinished ones too, and the name of the one not used for longest. */
static int64_t
survey(DIR *files, char oldest[NAME_BYTES])
{
    int64_t total = 0;
    struct timespec first = {0};
    struct stat status;
    oldest[0] = '\0';
    rewinddir(files);
    for (const struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files)) {
        const char *name = entry->d_name;
        if (strspn(name, "0123456789abcdef") != 2 * DT_SHA256_BYTES || strlen(name) >= NAME_BYTES ||
            fstatat(dirfd(files), name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
            continue;
        }
        total += status.st_size;
        if (oldest[0] == '\0' || status.st_mtim.tv_sec < first.tv_sec ||
            (status.st_mtim.tv_sec == first.tv_sec && status.st_mtim.tv_nsec < first.tv_nsec)) {
            first = status.st_mtim;
            memcpy(oldest, name, strlen(name) + 1);
        }
    }
    return total;
}

static void
trim(int folder)
{
    char oldest[NAME_BYTES];
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *files = again < 0 ? NULL : fdopendir(again);
    if (files == NULL) {
        if (again >= 0) {
            close(again);
        }
        return;
    }
    for (int i = 0; i < MAX_REMOVED && survey(files, oldest) > MAX_BYTES; i++) {
        if (unlinkat(folder, oldest, 0) != 0) {
            break;
        }
    }
    closedir(files);
}

void
cuda_disk_write(const uint8_t key[DT_SHA256_BYTES], const void *data, size_t nbytes)
{
    static atomic_uint serial;
    char path[CUDA_PATH_BYTES], name[NAME_BYTES], unfinished[2 * NAME_BYTES];
    const char *why;
    header head;
    int folder = open_directory(path, true, &why);
    if (folder < 0) {
        return;
    }
    memcpy(head.magic, magic, sizeof(magic));
    memcpy(head.key, key, sizeof(head.key));
    digest_of(data, nbytes, head.digest);
    head.nbytes = nbytes;
    file_name(key, name);
    snprintf(unfinished, sizeof(unfinished), "%s.%ld.%u", name, (long)getpid(), atomic_fetch_add(&serial, 1));
    int file = openat(folder, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file >= 0) {
        bool written = write_all(file, &head, sizeof(head)) && write_all(file, data, nbytes);
        written = close(file) == 0 && written;
        if (!written || renameat(folder, unfinished, folder, name) != 0) {
            (void)unlinkat(folder, unfinished, 0);
        }
        trim(folder);
    }
    close(folder);
}
