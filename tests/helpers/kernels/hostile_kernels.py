"""Kernels that do what a GPU could not: by mistake or on purpose. For each what the user is told."""

from __future__ import annotations

from dataclasses import dataclass

SYSTEM = "of the host's system, which a GPU does not have"
FAILED = "LAUNCH_FAILED (719)"
ILLEGAL = "ILLEGAL_ADDRESS (700)"
FIRST = "kernel k, block (0, 0, 0), thread (0, 0, 0)"
EARLY = "the process of kernel k made a system call that is not allowed, and ended before the kernel began"


@dataclass(frozen=True)
class Hostile:
    """body is that of a kernel of `float *x, int n`, run with n = 0; PATH names a file. head comes before it."""

    name: str
    body: str
    words: tuple[str, ...]  # all in the error; none: no error
    head: str = ""

    def __str__(self) -> str:
        return self.name


def calls(name: str, body: str, told: str, head: str = "") -> Hostile:
    return Hostile(name, body, (FAILED, FIRST, f"called {told} {SYSTEM}"), head)


def illegal(name: str, body: str, told: str, head: str = "") -> Hostile:
    return Hostile(name, body, (ILLEGAL, FIRST, f"{told}, which is not memory of the device"), head)


def early(name: str, head: str, body: str = "x[0] = 1;") -> Hostile:
    return Hostile(name, body, ("KernelCompileError", EARLY), head)


# What the system is asked for while the kernel runs.
CALLS = [
    calls("kill the parent", "kill(getppid(), 9);", "kill"),
    calls("kill everybody", "kill(-1, 9);", "kill"),
    calls("kill the group", "kill(0, 9);", "kill"),
    calls("a thread of the parent", "syscall(SYS_tgkill, getppid(), getppid(), 9);", "raise or abort"),
    calls("system", 'system("touch " PATH);', "rt_sigaction"),
    calls("fork", "fork();", "clone"),
    calls("vfork", "if (vfork() == 0) _exit(0);", "vfork"),
    calls("exec", 'char *argv[] = {0}; execve("/bin/true", argv, argv);', "execve"),
    calls("open to read", 'open("/etc/passwd", O_RDONLY);', "openat"),
    calls("open to write", "open(PATH, O_WRONLY | O_CREAT, 0600);", "openat"),
    calls("fopen", 'FILE *f = fopen(PATH, "w"); fputs("x", f);', "openat"),
    calls("read /proc", 'open("/proc/self/mem", O_RDWR);', "openat"),
    calls("unlink", "unlinkat(AT_FDCWD, PATH, 0);", "unlinkat"),
    calls("read standard input", "read(0, x, 4);", "read"),
    calls("a file of the parent", 'write(INHERITED, "x", 1);', "write"),
    calls("dup", "dup(1);", "dup"),
    calls("fcntl", "fcntl(1, F_SETFL, O_NONBLOCK);", "fcntl"),
    calls("socket", "socket(AF_INET, SOCK_STREAM, 0);", "socket"),
    calls("ptrace", "ptrace(PTRACE_ATTACH, getppid(), 0, 0);", "ptrace"),
    calls(
        "memory of the parent", "iovec v = {x, 4}; process_vm_writev(getppid(), &v, 1, &v, 1, 0);",
        "process_vm_writev",
    ),
    calls("more limits", "rlimit r = {99, 99}; setrlimit(RLIMIT_NOFILE, &r);", "prlimit64"),
    calls("another filter", "prctl(PR_SET_NO_NEW_PRIVS, 0);", "prctl"),
    calls("a handler", "signal(SIGSEGV, SIG_IGN); *(int *)n = 1;", "rt_sigaction"),
    calls("sleep", "timespec t = {100, 0}; nanosleep(&t, 0);", "clock_nanosleep"),
    calls("exit", "exit(0);", "exit"),
    calls("exit at once", "_exit(0);", "exit"),
    calls("abort", "abort();", "raise or abort"),
    Hostile("a rare call", "syscall(SYS_sethostname, PATH, 3);", (FAILED, FIRST, "made system call ")),
    Hostile(
        "its own status, with no answer", "syscall(SYS_exit_group, 77);",
        (FAILED, "the process of kernel k ended early"),
    ),
]  # fmt: skip

# What the C library or a compiler would do before the kernel begins.
STARTS = [
    early("a constructor", "__attribute__((constructor(101))) static void f() { kill(getppid(), 9); }"),
    early("an initializer", "static int f = open(PATH, O_WRONLY | O_CREAT, 0600);", "x[0] = f;"),
    early(
        "before constructors",
        "static void f() { fork(); }\n"
        '__attribute__((section(".preinit_array"), used)) static void (*const first)() = f;',
    ),
    early(
        "the loader",
        'extern "C" { static int one(int i) { return i; }\n'
        "static int (*choose())(int) { syscall(SYS_kill, getppid(), 9); return one; }\n"
        'int f(int) __attribute__((ifunc("choose"))); }',
        "x[0] = f(1);",
    ),
    Hostile("an initializer of numbers", "x[0] = f;", (), "static float f = sqrtf(strlen(PATH));"),
]  # fmt: skip

# Memory and time.
LIMITS = [
    Hostile("little memory", "char *p = (char *)malloc(1 << 20); p[5] = 1; x[0] = p[5];", ()),
    illegal("much memory", "volatile char *p = (char *)malloc(1ll << 40); p[n] = 1; x[0] = p[n];", "wrote address 0x0"),
    Hostile(
        "memory piece by piece",
        "for (;;) { void *p = mmap(0, 1 << 28, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);"
        " if (p == MAP_FAILED) __trap(); }",
        (FAILED, FIRST, "trapped"),
    ),
    Hostile("recursion", "x[0] = f(n);", ("HARDWARE_STACK_ERROR (714)", FIRST, "no more stack"),
            "__device__ float f(int n) { volatile char a[200000]; a[n] = 1; return n < 0 ? 0 : f(n + 1) + a[n]; }"),
    Hostile("a large local array", "char a[500000]; for (int i = 0; i < 500000; i++) a[i] = i * n; x[0] = a[n];", ()),
    Hostile("too large a local array", "char a[700000]; for (int i = 0; i < 700000; i++) a[i] = i * n; x[0] = a[n];",
            ("HARDWARE_STACK_ERROR (714)", FIRST, "no more stack")),
    Hostile("400 MB of shared memory", "__shared__ float a[100000000]; a[n] = 1; x[0] = a[n];",
            ("KernelCompileError", "line 3: ", "a uses too much shared data (0xc000 bytes max)")),
    Hostile("48 KiB of shared memory", "__shared__ char a[49152]; a[n] = 1; x[0] = a[n];", ()),
    Hostile("48 KiB and a byte", "__shared__ char b, a[49153]; a[n] = b = 1; x[0] = a[n];",
            ("KernelCompileError", "a uses too much shared data (0xc000 bytes max)")),
    Hostile("too much in two arrays",
            "__shared__ double a[4000], b[4000]; a[n] = b[n] = 1; __syncthreads(); x[0] = a[n] + b[n];",
            ("KernelCompileError", "entry function 'k' uses too much shared data (0xfa00 bytes, 0xc000 max)")),
    Hostile("too much in two kernels", "__shared__ double a[4000]; a[n] = 1; x[0] = a[n];", (),
            'extern "C" __global__ void __launch_bounds__(64) j(double *x) {\n'
            "__shared__ double b[4000]; b[1] = 1; x[0] = b[0]; }"),
    Hostile("64 KiB of constants", "x[0] = w[n];", (), "__constant__ float w[16384] = {1, 2};"),
    Hostile("64 KiB of constants and more", "x[0] = w[n];",
            ("KernelCompileError", "line 2: ", "w uses too much constant data (0x10000 bytes max)"),
            "__constant__ float w[16385];"),
]  # fmt: skip

# What C++ leaves undefined, so that an optimizer may drop it.
UNDEFINED = [
    illegal("write to null", "*(int *)0 = 1;", "wrote address 0x0"),
    illegal("read of null", "x[0] = *(float *)0;", "read address 0x0"),
    illegal("null, twice", "int *p = nullptr; *p = 1; if (p) x[0] = 1;", "wrote address 0x0"),
    illegal("null that is computed", "*(int *)((char *)0 + n) = 3;", "wrote address 0x0"),
    illegal("elements of null", "float *p = nullptr; p[threadIdx.x + 3] = 3;", "wrote address 0xc"),
    illegal("a member of null", "struct S { int a; float b[10]; }; ((S *)0)->b[3] = 1;", "wrote address 0x10"),
    illegal("a vector at null", "((float4 *)0)[1].z = 3;", "wrote address 0x18"),
    illegal("atomicAdd to null", "atomicAdd((int *)0, 1);", "read address 0x0"),
    illegal("atomicCAS of null", "atomicCAS((unsigned *)nullptr, 0, 1);", "read address 0x0"),
    illegal("memset of null", "memset((void *)0, 0, 100);", "wrote address 0x0"),
    illegal("memcpy from null", "memcpy(x, (void *)0, 8);", "read address 0x0"),
    illegal("a function that does no more", "f();", "wrote address 0x0", "__device__ void f() { *(int *)0 = 1; }"),
    Hostile("an int divided by 0", "x[0] = n / 0;", (FAILED, FIRST, "divided an integer by zero", "at k.cu:3")),
    Hostile("a remainder by 0", "int z = 0; x[0] = (n + 1) % z;", (FAILED, FIRST, "divided an integer by zero")),
    Hostile("no return", "x[0] = f(n);",
            (FAILED, FIRST, "reached the end of a function that is to return a value, at k.cu:2"),
            "__device__ float f(int n) { if (n) return 1; }"),
    Hostile("overflow", "int i = 0x7fffffff - n; x[0] = i + 1 < i;", ()),
    Hostile("another type", "float f = x[n]; *(int *)&f += 1 << 23; x[0] = f;", ()),
]  # fmt: skip

# All that a loop without end does is to take time.
ENDLESS = [
    "for (;;) { }",
    "int i = 0; while (i < 10) { }",
    "while (n == 0) { }",
    "f();",
    "while (atomicAdd(&x[1], 0.0f) == 0) { }",
]

HEAD = """#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#define INHERITED {inherited}
#define PATH "{path}"
#line 1
"""


def source(head: str, body: str, path: str, inherited: int = 9) -> str:
    first = HEAD.replace("{inherited}", str(inherited)).replace("{path}", path)
    return f'{first}\n{head}\nextern "C" __global__ void k(float *x, int n) {{ {body} }}'
