/* load.c: where the CUDA libraries are looked for. Absolute paths and bare names only; every attempt is written down.
 */
#define _GNU_SOURCE /* RTLD_NOLOAD, dlinfo */
#include "load.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPORT_BYTES 8192
#define PATH_BYTES 4096

/* version: a function without arguments that tells it, for libraries of which a process may have several copies; least:
 * of the versions that will do. */
static const struct {
    const char *soname, *purpose, *version;
    int least;
} libraries[DT_NLIBRARIES] = {
    [DT_LIBRARY_CUDA] = {"libcuda.so.1", "CUDA", NULL, 13000},
    [DT_LIBRARY_CUBLASLT] = {"libcublasLt.so.13", "matrix multiplication on CUDA", "cublasLtGetVersion", 130000},
    [DT_LIBRARY_CUDNN] = {"libcudnn.so.9", "convolution on CUDA", "cudnnGetVersion", 91200},
    [DT_LIBRARY_NVRTC] = {"libnvrtc.so.13", "compiling kernels at run time", NULL, 13000},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *handles[DT_NLIBRARIES];
static char reports[DT_NLIBRARIES][REPORT_BYTES];
static char search_path[PATH_BYTES];
static char too_old[PATH_BYTES]; /* the first copy of the library looked for that was passed over */

const char *
cuda_load_soname(dt_library library)
{
    return libraries[library].soname;
}

const char *
cuda_load_purpose(dt_library library)
{
    return libraries[library].purpose;
}

int
cuda_load_least(dt_library library)
{
    return libraries[library].least;
}

void
cuda_set_search_path(const char *directories)
{
    pthread_mutex_lock(&lock);
    snprintf(search_path, sizeof(search_path), "%s", directories);
    pthread_mutex_unlock(&lock);
}

/* cuDNN's first library ends the process when its second one is missing, so that one is looked for here. */
static const char *const companions[DT_NLIBRARIES] = {[DT_LIBRARY_CUDNN] = "libcudnn_graph.so.9"};

static void
note_attempt(dt_library library, const char *what, const char *outcome)
{
    size_t used = strlen(reports[library]);
    snprintf(reports[library] + used, REPORT_BYTES - used, "%s: %s\n", what, outcome);
}

void
cuda_load_path(dt_library library, char *text, size_t size)
{
    struct link_map *map = NULL;
    bool known = handles[library] != NULL && dlinfo(handles[library], RTLD_DI_LINKMAP, &map) == 0 && map != NULL;
    snprintf(text, size, "%s", known && map->l_name[0] ? map->l_name : "?");
}

static void *
try_dlopen(dt_library library, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *reason = dlerror();
        size_t length = strlen(path);
        char outcome[512];
        if (reason != NULL && strncmp(reason, path, length) == 0 && strncmp(reason + length, ": ", 2) == 0) {
            reason += length + 2;
        }
        snprintf(outcome, sizeof(outcome), "not loaded (%s)", reason ? reason : "no reason given");
        note_attempt(library, path, outcome);
    }
    return handle;
}

/* Loads what belongs to library from the folder that it came from. */
static bool
open_companion(dt_library library, const char *path)
{
    char companion[PATH_BYTES];
    if (companions[library] == NULL) {
        return true;
    }
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(companion, sizeof(companion), "%.*s%s", folder, path, companions[library]);
    return n > 0 && (size_t)n < sizeof(companion) && try_dlopen(library, companion) != NULL;
}

/* NVRTC finds its other half only where the system's loader would look, or when it is loaded already. */
static void
open_builtins(void *nvrtc, const char *path)
{
    int (*version)(int *, int *) = NULL;
    int major = 0, minor = 0;
    char builtins[PATH_BYTES];
    void *address = dlsym(nvrtc, "nvrtcVersion");
    memcpy(&version, &address, sizeof(version));
    if (version == NULL || version(&major, &minor) != 0) {
        return;
    }
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) + 1 : 0;
    int n = snprintf(builtins, sizeof(builtins), "%.*slibnvrtc-builtins.so.%d.%d", folder, path, major, minor);
    if (n > 0 && (size_t)n < sizeof(builtins)) {
        (void)try_dlopen(DT_LIBRARY_NVRTC, builtins);
    }
}

/* Closes a copy that is too old, so that another one can be looked for. */
static bool
pass_over(dt_library library, void *handle, const char *path)
{
    size_t (*version)(void) = NULL;
    char outcome[64];
    void *address = libraries[library].version ? dlsym(handle, libraries[library].version) : NULL;
    memcpy(&version, &address, sizeof(version));
    if (version == NULL || version() >= (size_t)libraries[library].least) {
        return false;
    }
    snprintf(outcome, sizeof(outcome), "too old (version %zu)", version());
    note_attempt(library, path, outcome);
    if (too_old[0] == '\0') {
        snprintf(too_old, sizeof(too_old), "%s", path);
    }
    dlclose(handle);
    return true;
}

static void *
try_open(dt_library library, const char *path)
{
    void *handle = try_dlopen(library, path);
    if (handle != NULL && !open_companion(library, path)) {
        dlclose(handle); /* or it would be found as loaded already */
        handle = NULL;
    }
    if (handle == NULL || pass_over(library, handle, path)) {
        return NULL;
    }
    if (library == DT_LIBRARY_NVRTC) {
        open_builtins(handle, path);
    }
    note_attempt(library, path, "loaded");
    return handle;
}

/* directory[0..length) with below ("" or "/lib") and the library's name */
static void *
try_directory(dt_library library, const char *source, const char *directory, size_t length, const char *below)
{
    char path[PATH_BYTES];
    if (length == 0) {
        return NULL;
    }
    if (directory[0] != '/') {
        snprintf(path, sizeof(path), "%s=%.*s", source, (int)length, directory);
        note_attempt(library, path, "ignored, not an absolute path");
        return NULL;
    }
    int n = snprintf(path, sizeof(path), "%.*s%s/%s", (int)length, directory, below, libraries[library].soname);
    return n > 0 && (size_t)n < sizeof(path) ? try_open(library, path) : NULL;
}

static void *
try_variable(dt_library library, const char *variable, const char *below)
{
    const char *directory = getenv(variable);
    return directory ? try_directory(library, variable, directory, strlen(directory), below) : NULL;
}

static void *
try_search_path(dt_library library)
{
    void *handle = NULL;
    for (const char *p = search_path; handle == NULL && *p != '\0';) {
        size_t length = strcspn(p, ":");
        handle = try_directory(library, "search path", p, length, "");
        p += length + (p[length] == ':');
    }
    return handle;
}

/* Where installers put them without telling the system's loader. */
static void *
try_usual(dt_library library)
{
    static const char *const toolkit[] = {"/usr/local/cuda/lib64", "/opt/cuda/lib64"};
    static const char *const driver[] = {"/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"};
    void *handle = NULL;
    for (int i = 0; i < 2 && handle == NULL; i++) {
        const char *directory = library == DT_LIBRARY_CUDA ? driver[i] : toolkit[i];
        handle = try_directory(library, "usual place", directory, strlen(directory), "");
    }
    return handle;
}

static void *
find_library(dt_library library)
{
    const char *soname = libraries[library].soname;
    void *handle = try_variable(library, "DEVTENSOR_CUDA_LIB_DIR", "");
    if (handle != NULL) {
        return handle;
    }
    handle = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD); /* the copy of another package in this process */
    if (handle != NULL && !pass_over(library, handle, soname)) {
        note_attempt(library, soname, "loaded already");
        return handle;
    }
    (void)dlerror();
    if ((handle = try_search_path(library)) != NULL ||
        (handle = try_variable(library, "CONDA_PREFIX", "/lib")) != NULL ||
        (handle = try_variable(library, "CONDA_PREFIX", "/targets/x86_64-linux/lib")) != NULL ||
        (handle = try_open(library, soname)) != NULL ||
        (handle = try_variable(library, "CUDA_PATH", "/lib64")) != NULL ||
        (handle = try_variable(library, "CUDA_HOME", "/lib64")) != NULL) {
        return handle;
    }
    return try_usual(library);
}

void *
cuda_load_library(dt_library library)
{
    pthread_mutex_lock(&lock);
    if (handles[library] == NULL) {
        reports[library][0] = too_old[0] = '\0'; /* only the latest search */
        handles[library] = find_library(library);
        if (handles[library] == NULL && too_old[0] != '\0') { /* its version is the better error */
            handles[library] = try_dlopen(library, too_old);
        }
        if (handles[library] != NULL) {
            char path[PATH_BYTES];
            cuda_load_path(library, path, sizeof(path));
            note_attempt(library, libraries[library].soname, path);
        }
    }
    void *handle = handles[library];
    pthread_mutex_unlock(&lock);
    return handle;
}

void *
cuda_load_symbol(void *handle, dt_library library, const char *name)
{
    void *address = dlsym(handle, name);
    if (address == NULL) {
        pthread_mutex_lock(&lock);
        note_attempt(library, name, "no such symbol");
        pthread_mutex_unlock(&lock);
    }
    return address;
}

size_t
cuda_load_report(dt_library library, char *text, size_t size)
{
    pthread_mutex_lock(&lock);
    size_t n = strlen(reports[library]);
    if (size > 0) {
        snprintf(text, size, "%s", reports[library]);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

size_t
cuda_api_report(char *text, size_t size)
{
    size_t length = 0;
    for (int i = 0; i < DT_NLIBRARIES; i++) {
        size_t at = length < size ? length : size;
        length += cuda_load_report((dt_library)i, at < size ? text + at : NULL, size - at);
    }
    return length;
}
