/* process.c: other programs, started and waited for. A new process shares this one's memory until its program begins,
 * as posix_spawn has it, which is quick however large this process is; what it does until then is only system calls. */
#define _GNU_SOURCE
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#define FIRST_COPY (SIM_EXECUTABLE_FD + 1)
#define MOST_FILES 8
#define STACK_BYTES ((size_t)64 << 10)
#define SIGNALS 64

/* The child's frames stand in memory that another child's will use, so no marks of AddressSanitizer may stay there. */
#if defined(__SANITIZE_ADDRESS__)
#define CHILD __attribute__((no_sanitize_address))
#else
#define CHILD
#endif

int
sim_memory_file(const void *data, size_t nbytes)
{
    int fd = memfd_create("devtensor kernel", MFD_CLOEXEC);
    const char *at = data;
    while (fd >= 0 && nbytes > 0) {
        ssize_t n = write(fd, at, nbytes);
        if (n <= 0 && !(n < 0 && errno == EINTR)) {
            close(fd);
            return -1;
        }
        at += n > 0 ? n : 0;
        nbytes -= n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0) {
        (void)lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

/* ---------------------------------------------------------------- in the child, until its program begins */

typedef struct {
    const sim_command *command;
    int copies[MOST_FILES], executable; /* of its files, out of the way of the numbers that it will know them by */
    pid_t parent;
} birth;

/* No signal is blocked, ignored or handled, whatever the parent does with them. The kernel's own structure: zeros. */
static CHILD void
reset_signals(void)
{
    const uint64_t none = 0;
    char by_default[64] = {0};
    for (int number = 1; number <= SIGNALS; number++) {
        (void)syscall(SYS_rt_sigaction, number, by_default, NULL, sizeof(none));
    }
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof(none));
}

static CHILD void
close_files(int first, int last)
{
    if (syscall(SYS_close_range, first, last, 0) != 0) {
        struct rlimit limit = {0, 0};
        (void)getrlimit(RLIMIT_NOFILE, &limit);
        for (int fd = first; fd <= last && (rlim_t)fd < limit.rlim_cur; fd++) {
            (void)close(fd);
        }
    }
}

static CHILD bool
set_files(const birth *b)
{
    const sim_command *c = b->command;
    for (int i = 0; i < c->nfds; i++) {
        if (b->copies[i] >= 0 && dup2(b->copies[i], i) < 0) {
            return false;
        }
    }
    if (c->path == NULL && dup3(b->executable, SIM_EXECUTABLE_FD, O_CLOEXEC) < 0) {
        return false;
    }
    close_files(c->nfds, SIM_EXECUTABLE_FD - (c->path == NULL));
    close_files(SIM_EXECUTABLE_FD + 1, INT32_MAX);
    return true;
}

/* Of what is not let through by a filter much is not possible either, so that less hangs on the filter. */
static CHILD void
set_limits(const sim_command *c)
{
    const struct rlimit none = {0, 0}, memory = {c->memory, c->memory}, file = {c->file_bytes, c->file_bytes};
    const struct rlimit files = {(rlim_t)c->nfds + c->loads, (rlim_t)c->nfds + c->loads};
    (void)setrlimit(RLIMIT_CORE, &none);
    if (c->memory > 0) {
        (void)setrlimit(RLIMIT_AS, &memory);
    }
    if (c->file_bytes > 0) {
        (void)setrlimit(RLIMIT_FSIZE, &file);
    }
    if (c->filter != NULL) {
        (void)setrlimit(RLIMIT_NPROC, &none);
        (void)setrlimit(RLIMIT_NOFILE, &files);
        (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void)sim_filter_enter(c->filter);
    }
}

static CHILD int
begin_child(void *context)
{
    const birth *b = context;
    const sim_command *c = b->command;
    reset_signals();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (c->group) {
        (void)setpgid(0, 0);
    }
    if (getppid() == b->parent && set_files(b)) {
        set_limits(c);
        if (c->path != NULL) {
            (void)execve(c->path, c->argv, c->environment);
        } else {
            (void)syscall(SYS_execveat, SIM_EXECUTABLE_FD, "", c->argv, c->environment, AT_EMPTY_PATH);
        }
    }
    _exit(127);
}

/* ---------------------------------------------------------------- in the parent */

static bool
copy_files(birth *b)
{
    const sim_command *c = b->command;
    bool fine = c->nfds <= MOST_FILES;
    for (int i = 0; i < c->nfds && fine; i++) {
        b->copies[i] = c->fds[i] >= 0 ? fcntl(c->fds[i], F_DUPFD_CLOEXEC, FIRST_COPY) : -1;
        fine = c->fds[i] < 0 || b->copies[i] >= 0;
    }
    if (c->path == NULL && fine) {
        b->executable = fcntl(c->executable, F_DUPFD_CLOEXEC, FIRST_COPY);
        fine = b->executable >= 0;
    }
    return fine;
}

static void
close_copies(const birth *b)
{
    for (int i = 0; i < MOST_FILES; i++) {
        if (b->copies[i] >= 0) {
            close(b->copies[i]);
        }
    }
    if (b->executable >= 0) {
        close(b->executable);
    }
}

/* -1: none. */
static pid_t
give_birth(birth *b)
{
    sigset_t all, before;
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return -1;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the child would run this process's handlers */
    pid_t child = clone(begin_child, (char *)stack + STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD, b);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_BYTES);
    return child;
}

static double
now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Until the child may have ended or the time is over. Systems that cannot wait for both are asked now and then. */
static void
wait_a_while(int watched, double seconds)
{
    const struct timespec moment = {0, 1000000};
    struct pollfd event = {.fd = watched, .events = POLLIN};
    if (watched < 0) {
        (void)nanosleep(&moment, NULL);
    } else {
        (void)poll(&event, 1, seconds > 3600 ? 3600000 : seconds > 0 ? (int)(1000 * seconds) + 1 : 0);
    }
}

static void
wait_for_child(pid_t child, const sim_command *c, sim_ending *ending)
{
    int watched = c->seconds > 0 ? (int)syscall(SYS_pidfd_open, child, 0) : -1;
    double end = now() + c->seconds;
    pid_t ended = 0;
    while (ended == 0 || (ended < 0 && errno == EINTR)) {
        double left = end - now();
        if (c->seconds > 0 && left > 0) {
            wait_a_while(watched, left);
        } else if (c->seconds > 0 && !ending->late) {
            ending->late = true;
            (void)kill(c->group ? -child : child, SIGKILL);
        }
        ended = waitpid(child, &ending->status, c->seconds > 0 && !ending->late ? WNOHANG : 0);
    }
    if (ended < 0) {
        ending->status = 0; /* somebody else in this process has collected it: it is over all the same */
    }
    if (watched >= 0) {
        close(watched);
    }
}

sim_ending
sim_process_run(const sim_command *command)
{
    birth b = {.command = command, .executable = -1, .parent = getpid()};
    sim_ending ending = {0};
    for (int i = 0; i < MOST_FILES; i++) {
        b.copies[i] = -1;
    }
    pid_t child = copy_files(&b) ? give_birth(&b) : -1;
    close_copies(&b);
    if (child >= 0) {
        ending.started = true;
        wait_for_child(child, command, &ending);
    }
    return ending;
}
