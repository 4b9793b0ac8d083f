/* sandbox.c: the system calls of a kernel's process. A list of what is let through, written as a program of the
 * kernel's packet filter; everything else ends the process by SIGSYS. */
#define _GNU_SOURCE
#include "sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "../cuda/api.h"
#include "launch.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Numbers that the headers of an older system lack; these are the same on every processor. */
#ifndef SYS_rseq
#ifdef __x86_64__
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif
#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif
#define LAST_KNOWN 439 /* a C library that asks for a newer one can do without it */

#if defined(__x86_64__)
#define PROCESSOR AUDIT_ARCH_X86_64
#define X32_CALLS 0x40000000u
#elif defined(__aarch64__)
#define PROCESSOR AUDIT_ARCH_AARCH64
#endif

/* ---------------------------------------------------------------- the lists */

/* One system call. With an argument, only where its low half is value under the mask; else any. */
typedef struct {
    long number;
    int argument; /* -1: none counts */
    uint32_t mask, value;
    int failure; /* 0: the call is let through; else it fails with that */
} rule;

#define ANY(call)                                                                                                      \
    {                                                                                                                  \
        SYS_##call, -1, 0, 0, 0                                                                                        \
    }
#define FAILS(call, code)                                                                                              \
    {                                                                                                                  \
        SYS_##call, -1, 0, 0, code                                                                                     \
    }
#define WHERE(call, argument, value)                                                                                   \
    {                                                                                                                  \
        SYS_##call, argument, UINT32_MAX, value, 0                                                                     \
    }
#define MASKED(call, argument, mask, value)                                                                            \
    {                                                                                                                  \
        SYS_##call, argument, mask, value, 0                                                                           \
    }

/* The most frequent first: fibres change places by it. */
static const rule running[] = {
    ANY(rt_sigprocmask),
    WHERE(write, 0, 1),
    WHERE(write, 0, 2),
    WHERE(writev, 0, 1),
    WHERE(writev, 0, 2),
    ANY(mmap),
    ANY(munmap),
    ANY(mremap),
    ANY(mprotect),
    ANY(madvise),
    ANY(brk),
    ANY(futex),
    ANY(clock_gettime),
    ANY(clock_getres),
    ANY(gettimeofday),
    ANY(getrandom),
    ANY(getpid),
    ANY(gettid),
    ANY(getppid),
    ANY(rt_sigreturn),
    ANY(restart_syscall),
    WHERE(exit_group, 0, SIM_LAUNCH_EXIT),
    /* the C library asks what its output is, and can do without an answer */
    ANY(fstat),
    FAILS(ioctl, ENOTTY),
    FAILS(lseek, ESPIPE),
#ifdef SYS_newfstatat
    WHERE(newfstatat, 3, AT_EMPTY_PATH),
#endif
#ifdef SYS_time
    ANY(time),
#endif
};

/* Beside those, until the kernel begins. */
static const rule starting[] = {
    ANY(exit_group),
    ANY(close),
    ANY(rt_sigaction),
    ANY(sigaltstack),
    ANY(set_tid_address),
    ANY(set_robust_list),
    ANY(rseq),
    ANY(uname),
    ANY(getuid),
    ANY(geteuid),
    ANY(getgid),
    ANY(getegid),
    ANY(sched_getaffinity),
    FAILS(prlimit64, EPERM),
    WHERE(prctl, 0, PR_SET_SECCOMP),
    FAILS(prctl, EINVAL),
    FAILS(readlinkat, ENOENT),
    FAILS(faccessat, ENOENT),
    FAILS(faccessat2, ENOENT),
    FAILS(clone3, ENOSYS),
#ifdef SYS_arch_prctl
    ANY(arch_prctl),
#endif
#ifdef SYS_getrlimit
    FAILS(getrlimit, EPERM),
#endif
#ifdef SYS_readlink
    FAILS(readlink, ENOENT),
    FAILS(access, ENOENT),
#endif
};

/* Beside those, where libraries are loaded. 0100000 and 0400000 are what C libraries call large files. */
#define OPEN_MASK (~(uint32_t)(O_CLOEXEC | 0500000))
static const rule loading[] = {
    MASKED(openat, 2, OPEN_MASK, O_RDONLY),
#ifdef SYS_open
    MASKED(open, 1, OPEN_MASK, O_RDONLY),
#endif
    ANY(read),
    ANY(pread64),
#ifdef SYS_newfstatat
    ANY(newfstatat),
#endif
};

static const struct {
    long number;
    const char *name;
} names[] = {
#define NAME(call)                                                                                                     \
    {                                                                                                                  \
        SYS_##call, #call                                                                                              \
    }
    NAME(kill),
    NAME(tkill),
    NAME(ptrace),
    NAME(clone),
    NAME(clone3),
    NAME(execve),
    NAME(execveat),
    NAME(openat),
    NAME(unlinkat),
    NAME(read),
    NAME(write),
    NAME(close),
    NAME(socket),
    NAME(connect),
    NAME(rt_sigaction),
    NAME(sigaltstack),
    NAME(prctl),
    NAME(seccomp),
    NAME(prlimit64),
    NAME(setrlimit),
    NAME(clock_nanosleep),
    NAME(nanosleep),
    NAME(sched_yield),
    NAME(dup),
    NAME(dup3),
    NAME(pipe2),
    NAME(fcntl),
    NAME(setitimer),
    NAME(wait4),
    NAME(chdir),
    NAME(mkdirat),
    NAME(ftruncate),
    NAME(memfd_create),
    NAME(process_vm_readv),
    NAME(process_vm_writev),
    NAME(setpgid),
    NAME(setsid),
    NAME(renameat2),
    NAME(getdents64),
    NAME(exit),
    NAME(writev),
    {SYS_exit_group, "exit"},
    {SYS_tgkill, "raise or abort"},
#ifdef __x86_64__
    NAME(fork),
    NAME(vfork),
    NAME(open),
    NAME(creat),
    NAME(unlink),
    NAME(mkdir),
    NAME(rename),
    NAME(pause),
    NAME(alarm),
    NAME(dup2),
    NAME(pipe),
    NAME(access),
    NAME(stat),
    NAME(poll),
    NAME(select),
#endif
#undef NAME
};

const char *
sim_system_call(uint64_t number)
{
    for (size_t i = 0; i < COUNT(names); i++) {
        if ((uint64_t)names[i].number == number) {
            return names[i].name;
        }
    }
    return NULL;
}

/* ---------------------------------------------------------------- programs */

#ifdef PROCESSOR

static void
add_step(sim_filter *f, uint16_t code, uint8_t if_true, uint8_t if_false, uint32_t k)
{
    f->steps[f->nsteps++] = (struct sock_filter){code, if_true, if_false, k};
}

static void
add_load(sim_filter *f, size_t offset)
{
    add_step(f, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void
add_end(sim_filter *f, uint32_t action)
{
    add_step(f, BPF_RET | BPF_K, 0, 0, action);
}

static void
add_rule(sim_filter *f, const rule *r)
{
    uint32_t action = r->failure != 0 ? SECCOMP_RET_ERRNO | (uint32_t)r->failure : SECCOMP_RET_ALLOW;
    if (r->argument < 0) {
        add_step(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, (uint32_t)r->number);
        add_end(f, action);
        return;
    }
    add_step(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 5, (uint32_t)r->number);
    /* both processors are little-endian: the low half comes first */
    add_load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)r->argument);
    add_step(f, BPF_ALU | BPF_AND | BPF_K, 0, 0, r->mask);
    add_step(f, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, r->value);
    add_end(f, action);
    add_load(f, offsetof(struct seccomp_data, nr));
}

static void
add_rules(sim_filter *f, const rule *rules, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        add_rule(f, &rules[i]);
    }
}

static void
begin_filter(sim_filter *f)
{
    f->nsteps = 0;
    add_load(f, offsetof(struct seccomp_data, arch));
    add_step(f, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, PROCESSOR);
    add_end(f, SECCOMP_RET_KILL);
    add_load(f, offsetof(struct seccomp_data, nr));
#ifdef X32_CALLS
    add_step(f, BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32_CALLS);
    add_end(f, SECCOMP_RET_KILL);
#endif
}

void
sim_filter_start(sim_filter *f, int executable, bool loads)
{
    const rule become = WHERE(execveat, 0, (uint32_t)executable);
    begin_filter(f);
    add_rules(f, running, COUNT(running));
    add_rules(f, starting, COUNT(starting));
    add_rules(f, loading, loads ? COUNT(loading) : 0);
    add_rule(f, &become);
    add_step(f, BPF_JMP | BPF_JGT | BPF_K, 0, 1, LAST_KNOWN);
    add_end(f, SECCOMP_RET_ERRNO | ENOSYS);
    add_end(f, SECCOMP_RET_TRAP);
}

void
sim_filter_run(sim_filter *f)
{
    begin_filter(f);
    add_rules(f, running, COUNT(running));
    add_end(f, SECCOMP_RET_TRAP);
}

#else

void
sim_filter_start(sim_filter *f, int executable, bool loads)
{
    (void)executable;
    (void)loads;
    f->nsteps = 0;
}

void
sim_filter_run(sim_filter *f)
{
    f->nsteps = 0;
}

#endif

bool
sim_filter_enter(const sim_filter *f)
{
    const struct sock_fprog program = {f->nsteps, (struct sock_filter *)(uintptr_t)f->steps};
    return f->nsteps > 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

/* A system that has them looks for one at the address given. */
bool
sim_has_filters(void)
{
    sim_filter filter;
    sim_filter_run(&filter);
    return filter.nsteps > 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL, 0, 0) < 0 && errno == EFAULT;
}
