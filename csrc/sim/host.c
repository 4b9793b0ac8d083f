/* host.c: the C++ compiler of the host, found on PATH. */
#define _GNU_SOURCE
#include "host.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../cuda/load.h"
#include "process.h"

#define MAX_EXECUTABLE ((off_t)32 << 20)
#define MAX_LOG ((off_t)64 << 10)
#define FIXED_ARGUMENTS 48
/* A compiler that takes more than this is at a source made for it: what it includes has no end, or no bounds. */
#define COMPILER_SECONDS 300
#define COMPILER_MEMORY ((uint64_t)2 << 30)
#define COMPILER_FILE ((uint64_t)256 << 20)

extern char **environ;

/* ---------------------------------------------------------------- the compiler */

/* An executable file of that name in a folder of PATH; folders that are not absolute do not count. */
static bool
find_program(const char *name, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    for (const char *at = folders; at != NULL && *at != '\0';) {
        size_t length = strcspn(at, ":");
        int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, at, name);
        if (length > 0 && at[0] == '/' && n > 0 && n < PATH_MAX && access(path, X_OK) == 0) {
            return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

static bool
find_compiler(char path[PATH_MAX])
{
    static const char *const names[] = {"c++", "g++", "clang++", "cc", "gcc", "clang"};
    const char *own = getenv("CXX");
    if (own != NULL && own[0] == '/' && access(own, X_OK) == 0 && strlen(own) < PATH_MAX) {
        memcpy(path, own, strlen(own) + 1);
        return true;
    }
    if (own != NULL && own[0] != '\0' && strpbrk(own, "/ ") == NULL && find_program(own, path)) {
        return true;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (find_program(names[i], path)) {
            return true;
        }
    }
    return false;
}

/* This process's, without libraries that would be loaded into the compiler too. */
static char **
make_environment(void)
{
    size_t n = 0, kept = 0;
    while (environ != NULL && environ[n] != NULL) {
        n++;
    }
    char **copy = dt_malloc((n + 1) * sizeof(*copy));
    for (size_t i = 0; copy != NULL && i < n; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", strlen("LD_PRELOAD=")) != 0) {
            copy[kept++] = environ[i];
        }
    }
    if (copy != NULL) {
        copy[kept] = NULL;
    }
    return copy;
}

static char *
read_all(int fd, off_t limit, size_t *nbytes)
{
    off_t size = lseek(fd, 0, SEEK_END);
    size = size > limit ? limit : size;
    char *data = size < 0 ? NULL : dt_malloc((size_t)size + 1);
    ssize_t got = data != NULL ? pread(fd, data, (size_t)size, 0) : -1;
    if (got < 0) {
        dt_free(data);
        return NULL;
    }
    data[got] = '\0';
    *nbytes = (size_t)got;
    return data;
}

typedef struct {
    const char *compiler;
    char **environment;
    char folder[PATH_MAX];
    int source, output; /* files in memory */
    bool late;          /* its time was over */
} job;

/* Runs the compiler; what it says goes to the output. True when it was content. */
static bool
run_compiler(job *j, const char *const *arguments)
{
    const int fds[] = {j->source, j->output, j->output};
    const sim_command command = {.path = j->compiler,
                                 .argv = (char *const *)(uintptr_t)arguments,
                                 .environment = j->environment,
                                 .fds = fds,
                                 .nfds = 3,
                                 .memory = COMPILER_MEMORY,
                                 .file_bytes = COMPILER_FILE,
                                 .seconds = COMPILER_SECONDS,
                                 .group = true};
    (void)!ftruncate(j->output, 0);
    (void)lseek(j->output, 0, SEEK_SET);
    sim_ending ending = sim_process_run(&command);
    j->late = ending.late;
    return ending.started && WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0;
}

/* Whether the compiler is Clang or one that says so, and whether it can fill variables that have no value. */
static bool
is_clang(job *j, bool *fills)
{
    static const char version[] = "#define __GNUC__ ";
    const char *const arguments[] = {j->compiler, "-dM", "-E", "-x", "c++", "/dev/null", NULL};
    size_t nbytes = 0;
    char *text = run_compiler(j, arguments) ? read_all(j->output, (off_t)1 << 20, &nbytes) : NULL;
    const char *line = text != NULL ? strstr(text, version) : NULL;
    bool found = text != NULL && strstr(text, "__clang__") != NULL;
    *fills = found || (line != NULL && strtol(line + strlen(version), NULL, 10) >= 12);
    dt_free(text);
    return found;
}

/* Headers of CUDA whose contents are there already. */
static const char *const headers[] = {
    "cuda_fp16.h", "cuda_bf16.h", "cuda_runtime.h", "device_launch_parameters.h", "math_constants.h", "cuda_fp16.hpp"};
#define NHEADERS (sizeof(headers) / sizeof(headers[0]))

static const char *
in_folder(const job *j, const char *name, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/%s", j->folder, name);
    return n > 0 && n < PATH_MAX ? path : NULL;
}

static bool
open_folder(job *j)
{
    const char *temporary = getenv("TMPDIR");
    char path[PATH_MAX];
    int n = snprintf(j->folder, PATH_MAX - 64, "%s/devtensor.XXXXXX",
                     temporary != NULL && temporary[0] == '/' ? temporary : "/tmp");
    if (n < 0 || n >= PATH_MAX - 64 || mkdtemp(j->folder) == NULL) {
        j->folder[0] = '\0';
        return false;
    }
    for (size_t i = 0; i < NHEADERS; i++) {
        int fd = open(in_folder(j, headers[i], path), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0) {
            return false;
        }
        close(fd);
    }
    return true;
}

static void
close_folder(const job *j)
{
    char path[PATH_MAX];
    if (j->folder[0] == '\0') {
        return;
    }
    for (size_t i = 0; i < NHEADERS; i++) {
        (void)unlink(in_folder(j, headers[i], path));
    }
    (void)unlink(in_folder(j, "kernel.o", path));
    (void)unlink(in_folder(j, "kernel", path));
    (void)rmdir(j->folder);
}

/* One of NVRTC's options as the host's compiler takes it: how many arguments it becomes, 0 where it means nothing
 * there.
 */
static size_t
as_hosts(const char *option, const char *arguments[2])
{
    static const char *const known[][2] = {{"-D", "-D"},
                                           {"-U", "-U"},
                                           {"-I", "-I"},
                                           {"--define-macro=", "-D"},
                                           {"--undefine-macro=", "-U"},
                                           {"--include-path=", "-I"}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t length = strlen(known[i][0]);
        if (strncmp(option, known[i][0], length) == 0) {
            arguments[0] = known[i][1];
            arguments[1] = option + length;
            return 2;
        }
    }
    arguments[0] = option;
    return strstr(option, "std=c++20") != NULL;
}

/* What a kernel does that C++ leaves undefined is to happen, so that it can be told, where an optimizer would take it
 * as never done and drop it. Division by zero and functions without their return come to run.hpp, as do all accesses.
 */
static const char *const fixed[] = {"-x",
                                    "c++",
                                    "-std=c++17",
                                    "-O1",
                                    "-w",
                                    "-pipe",
                                    "-fPIE",
                                    "-fwrapv",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-strict-aliasing",
                                    "-fno-delete-null-pointer-checks",
                                    "-fno-finite-loops",
                                    "-fstack-clash-protection",
                                    "-fno-stack-protector",
                                    "-fno-math-errno",
                                    "-ffp-contract=off",
                                    "-fdiagnostics-color=never",
                                    "-fmax-errors=20",
                                    "-fsanitize=kernel-address,integer-divide-by-zero,return",
                                    "-fno-sanitize-recover=integer-divide-by-zero,return"};
static const char *const gcc[] = {
    "--param",        "asan-instrumentation-with-call-threshold=0", "--param", "asan-stack=0", "--param",
    "asan-globals=0", "-fno-aggressive-loop-optimizations"};
static const char *const clang[] = {"-mllvm",
                                    "-asan-instrumentation-with-call-threshold=0",
                                    "-mllvm",
                                    "-asan-stack=0",
                                    "-mllvm",
                                    "-asan-globals=0",
                                    "-fno-strict-return"};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool
make_object(job *j, int arch, int noptions, const char *const *options, const char *object)
{
    const char **arguments = dt_malloc((FIXED_ARGUMENTS + 2 * (size_t)noptions) * sizeof(*arguments));
    char macro[40], include[PATH_MAX + 2];
    size_t n = 0;
    bool fills;
    if (arguments == NULL) {
        return false;
    }
    snprintf(macro, sizeof(macro), "-DDT_CUDA_ARCH=%d", 10 * arch);
    snprintf(include, sizeof(include), "-I%s", j->folder);
    arguments[n++] = j->compiler;
    memcpy(arguments + n, fixed, sizeof(fixed));
    n += COUNT(fixed);
    memcpy(arguments + n, is_clang(j, &fills) ? clang : gcc, sizeof(gcc));
    n += COUNT(gcc);
    if (fills) {
        arguments[n++] = "-ftrivial-auto-var-init=pattern";
    }
    arguments[n++] = macro;
    arguments[n++] = include;
    for (int i = 0; i < noptions; i++) {
        n += as_hosts(options[i], arguments + n);
    }
    const char *const last[] = {"-c", "-", "-o", object, NULL};
    memcpy(arguments + n, last, sizeof(last));
    bool content = run_compiler(j, arguments);
    dt_free(arguments);
    return content;
}

/* Without shared libraries where the host has what that takes: such a program starts sooner, and opens no file. */
static bool
link_program(job *j, const char *object, const char *program)
{
    static const char *const ways[] = {"-static-pie", "-pie"};
    for (size_t i = 0; i < COUNT(ways); i++) {
        const char *const arguments[] = {j->compiler,
                                         ways[i],
                                         "-s",
                                         object,
                                         "-o",
                                         program,
                                         "-Wl,--as-needed",
                                         "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",
                                         "-lm",
                                         NULL};
        if (run_compiler(j, arguments)) {
            return true;
        }
    }
    return false;
}

static bool
compile(job *j, int arch, int noptions, const char *const *options, sim_text *log)
{
    char object[PATH_MAX], program[PATH_MAX];
    size_t said;
    if (in_folder(j, "kernel.o", object) == NULL || in_folder(j, "kernel", program) == NULL) {
        return false;
    }
    if (make_object(j, arch, noptions, options, object) && link_program(j, object, program)) {
        return true;
    }
    char *text = read_all(j->output, MAX_LOG, &said);
    if (text != NULL) {
        sim_text_add(log, text, said);
        dt_free(text);
    }
    if (j->late) {
        sim_text_print(log, "the host's C++ compiler was ended after %d seconds\n", COMPILER_SECONDS);
    }
    return false;
}

static void *
read_executable(const job *j, size_t *nbytes)
{
    char path[PATH_MAX];
    int fd = open(in_folder(j, "kernel", path), O_RDONLY | O_CLOEXEC);
    void *data = fd >= 0 ? read_all(fd, MAX_EXECUTABLE, nbytes) : NULL;
    if (fd >= 0) {
        close(fd);
    }
    return data;
}

nvrtcResult
sim_host_compile(const char *source, const char *name, const char *kernel, int arch, int noptions,
                 const char *const *options, void **executable, size_t *nbytes, sim_text *log)
{
    char compiler[PATH_MAX];
    sim_text text = {0};
    job j = {.compiler = compiler, .source = -1, .output = -1};
    nvrtcResult result = NVRTC_ERROR_OUT_OF_MEMORY;
    *executable = NULL;
    if (!sim_source_prepare(source, name, kernel, &text, log)) {
        dt_free(text.data);
        return log->failed ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_COMPILATION;
    }
    if (!find_compiler(compiler)) {
        sim_text_print(log,
                       "a simulated GPU runs kernels with the host's C++ compiler, and neither c++, g++ nor clang++ "
                       "is on PATH (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++; conda: conda "
                       "install gxx)\n");
        dt_free(text.data);
        return log->failed ? NVRTC_ERROR_OUT_OF_MEMORY : NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
    j.environment = make_environment();
    if (text.failed || j.environment == NULL) {
        goto done;
    }
    j.source = sim_memory_file(text.data, text.used);
    j.output = sim_memory_file("", 0);
    if (j.source < 0 || j.output < 0 || !open_folder(&j)) {
        sim_text_print(log, "no temporary files can be made for the host's C++ compiler: %s\n", strerror(errno));
        result = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
        goto done;
    }
    result = NVRTC_ERROR_COMPILATION;
    if (compile(&j, arch, noptions, options, log)) {
        *executable = read_executable(&j, nbytes);
        result = *executable == NULL                                    ? NVRTC_ERROR_OUT_OF_MEMORY
                 : sim_program_check(kernel, *executable, *nbytes, log) ? NVRTC_SUCCESS
                                                                        : NVRTC_ERROR_COMPILATION;
    } else if (log->used == 0) {
        sim_text_print(log, "the host's C++ compiler %s fails without a word\n", compiler);
        result = NVRTC_ERROR_BUILTIN_OPERATION_FAILURE;
    }
done:
    close_folder(&j);
    if (j.source >= 0) {
        close(j.source);
    }
    if (j.output >= 0) {
        close(j.output);
    }
    dt_free(j.environment);
    dt_free(text.data);
    return log->failed ? NVRTC_ERROR_OUT_OF_MEMORY : result;
}

/* ---------------------------------------------------------------- the real NVRTC */

#define DT_API_CUDA(symbol, ret, params)
#define DT_API_CUBLASLT(symbol, ret, params)
#define DT_API_CUDNN(symbol, ret, params)
#define DT_API_NVRTC(symbol, ret, params) ret(*symbol) params;

/* Its functions; looked for once. */
typedef struct {
#define DT_API(library, symbol, ret, params, names) DT_API_##library(symbol, ret, params)
#include "../cuda/api.def"
#undef DT_API
} nvrtc_table;

#undef DT_API_NVRTC
#define DT_API_NVRTC(symbol, ret, params)                                                                              \
    address = cuda_load_symbol(handle, DT_LIBRARY_NVRTC, #symbol);                                                     \
    memcpy(&table.symbol, &address, sizeof(address));                                                                  \
    found = found && address != NULL;

static const nvrtc_table *
find_nvrtc(void)
{
    static nvrtc_table table;
    static bool looked, found;
    if (!looked) {
        void *handle = cuda_load_library(DT_LIBRARY_NVRTC), *address = NULL;
        looked = true;
        found = handle != NULL;
        if (found) {
#define DT_API(library, symbol, ret, params, names) DT_API_##library(symbol, ret, params)
#include "../cuda/api.def"
#undef DT_API
        }
    }
    return found ? &table : NULL;
}

nvrtcResult
sim_real_compile(const char *source, const char *name, int nheaders, const char *const *header_texts,
                 const char *const *header_names, const char *kernel, int noptions, const char *const *options,
                 sim_text *log)
{
    const nvrtc_table *nvrtc = find_nvrtc();
    nvrtcProgram program = NULL;
    size_t size = 0;
    if (nvrtc == NULL) {
        return NVRTC_SUCCESS;
    }
    nvrtcResult result = nvrtc->nvrtcCreateProgram(&program, source, name, nheaders, header_texts, header_names);
    if (result != NVRTC_SUCCESS) {
        return result;
    }
    result = nvrtc->nvrtcAddNameExpression(program, kernel);
    if (result == NVRTC_SUCCESS) {
        result = nvrtc->nvrtcCompileProgram(program, noptions, options);
    }
    if (nvrtc->nvrtcGetProgramLogSize(program, &size) == NVRTC_SUCCESS && size > 1) {
        char *text = dt_malloc(size);
        if (text == NULL) {
            result = NVRTC_ERROR_OUT_OF_MEMORY;
        } else if (nvrtc->nvrtcGetProgramLog(program, text) == NVRTC_SUCCESS) {
            sim_text_add(log, text, strlen(text));
        }
        dt_free(text);
    }
    (void)nvrtc->nvrtcDestroyProgram(&program);
    return result;
}
