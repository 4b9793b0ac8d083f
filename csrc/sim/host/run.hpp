// run.hpp: runs the blocks of one launch one after the other, in a process in which the only memory beside its own is
// that of the simulated device. Threads are fibres: one runs until it waits for others or ends. Threads of odd blocks
// run in descending order, so that a missing barrier shows in one of two blocks.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>

#define DT_MAX_THREADS 1024
#define DT_STACK_BYTES ((size_t)576 << 10) // a GPU gives a thread 512 KiB of local memory at most
#define DT_PAGE ((size_t)64 << 10)
#define DT_MAX_SHARED (228 << 10)
#define DT_NULL_BYTES ((uint64_t)64 << 10) // from address 0: nobody has memory there
#define DT_UNCHECKED __attribute__((no_sanitize("kernel-address")))

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

// After the user's source.
void dt_entry(const unsigned char *params);
extern const unsigned dt_param_bytes;

extern "C" {
extern unsigned char __start_dt_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_dt_shared[] __attribute__((weak, visibility("hidden")));
// What `extern __shared__` names stand for; behind the bytes asked for lies a zone that nobody may touch.
unsigned char dt_dynamic_shared[DT_MAX_SHARED + 4096] __attribute__((aligned(128), used));
}

static sim_launch *dt_launch;

// ---------------------------------------------------------------- faults

[[noreturn]] DT_UNCHECKED static void dt_fault(sim_fault fault, uint64_t address, unsigned nbytes, bool writes) {
    const unsigned blocks[3] = {blockIdx.x, blockIdx.y, blockIdx.z};
    const unsigned threads[3] = {threadIdx.x, threadIdx.y, threadIdx.z};
    for (int i = 0; i < 3; i++) {
        dt_launch->at_block[i] = blocks[i];
        dt_launch->at_thread[i] = threads[i];
    }
    dt_launch->fault = fault;
    dt_launch->address = address;
    dt_launch->nbytes = nbytes;
    dt_launch->writes = writes;
    dt_launch->state = SIM_LAUNCH_FAULT;
    _exit(SIM_LAUNCH_EXIT);
}

void dt_trap() {
    fflush(stdout);
    dt_fault(SIM_FAULT_TRAP, 0, 0, false);
}

void dt_failed_assertion(const char *file, int line, const char *text) {
    fflush(stdout);
    snprintf(dt_launch->text, sizeof(dt_launch->text), "%s:%d: %s", file, line, text);
    dt_fault(SIM_FAULT_ASSERT, 0, 0, false);
}

// Each access of the kernel passes here: the compiler sees to that. one: a single access, to be aligned.
DT_UNCHECKED static inline void dt_access(const void *pointer, size_t nbytes, bool writes, bool one = true) {
    static unsigned last;
    uint64_t address = (uint64_t)(uintptr_t)pointer;
    sim_launch *l = dt_launch;
    if (l == NULL) {
        return; // not yet
    }
    if (address - l->arena >= l->arena_bytes) {
        if (address < DT_NULL_BYTES) {
            dt_fault(SIM_FAULT_OUTSIDE, address, (unsigned)nbytes, writes);
        }
        uint64_t end = (uint64_t)(uintptr_t)dt_dynamic_shared + l->shared_bytes;
        if (address + nbytes > end && address < (uint64_t)(uintptr_t)dt_dynamic_shared + sizeof(dt_dynamic_shared)) {
            dt_fault(SIM_FAULT_SHARED, address, (unsigned)nbytes, writes);
        }
        return;
    }
    unsigned i = last, n = l->narrays;
    for (unsigned tried = 0; tried < n; tried++, i = i + 1 == n ? 0 : i + 1) {
        const sim_launch_array *a = &l->arrays[i];
        if (address - a->address < a->nbytes && nbytes <= a->nbytes - (address - a->address)) {
            if (writes && !a->writable) {
                continue; // another view of the same memory may allow it
            }
            if (one && nbytes <= 8 && address % nbytes != 0) {
                dt_fault(SIM_FAULT_MISALIGNED, address, (unsigned)nbytes, writes);
            }
            last = i;
            return;
        }
    }
    for (i = 0; i < n; i++) {
        const sim_launch_array *a = &l->arrays[i];
        if (address - a->address < a->nbytes && nbytes <= a->nbytes - (address - a->address)) {
            dt_fault(SIM_FAULT_CONST, address, (unsigned)nbytes, writes);
        }
    }
    dt_fault(SIM_FAULT_OUTSIDE, address, (unsigned)nbytes, writes);
}

extern "C" {
#define DT_HOOKS(n)                                                                                                    \
    DT_UNCHECKED void __asan_load##n##_noabort(const void *p) { dt_access(p, n, false); }                              \
    DT_UNCHECKED void __asan_store##n##_noabort(const void *p) { dt_access(p, n, true); }
DT_HOOKS(1)
DT_HOOKS(2)
DT_HOOKS(4)
DT_HOOKS(8)
DT_HOOKS(16)
#undef DT_HOOKS
DT_UNCHECKED void __asan_loadN_noabort(const void *p, size_t n) { dt_access(p, n, false); }
DT_UNCHECKED void __asan_storeN_noabort(const void *p, size_t n) { dt_access(p, n, true); }
DT_UNCHECKED void __asan_handle_no_return(void) {}
DT_UNCHECKED void __asan_before_dynamic_init(const char *) {}
DT_UNCHECKED void __asan_after_dynamic_init(void) {}

// What copies by a length that the compiler does not know: the linker sends such calls here.
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *to, int byte, size_t n);
DT_UNCHECKED static void dt_range(const void *p, size_t n, bool writes) {
    if (n > 0) {
        dt_access(p, n, writes, false);
    }
}
DT_UNCHECKED void *__wrap_memcpy(void *to, const void *from, size_t n) {
    dt_range(from, n, false);
    dt_range(to, n, true);
    return __real_memcpy(to, from, n);
}
DT_UNCHECKED void *__wrap_memmove(void *to, const void *from, size_t n) {
    dt_range(from, n, false);
    dt_range(to, n, true);
    return __real_memmove(to, from, n);
}
DT_UNCHECKED void *__wrap_memset(void *to, int byte, size_t n) {
    dt_range(to, n, true);
    return __real_memset(to, byte, n);
}
// A place in the user's source, as the compiler writes it down.
struct dt_place {
    const char *file;
    unsigned line, column;
};
[[noreturn]] DT_UNCHECKED static void dt_fault_at(sim_fault fault, const dt_place *place) {
    snprintf(dt_launch->text, sizeof(dt_launch->text), "%s:%u", place->file, place->line);
    dt_fault(fault, 0, 0, false);
}
DT_UNCHECKED void __ubsan_handle_divrem_overflow_abort(dt_place *place, uintptr_t, uintptr_t) {
    dt_fault_at(SIM_FAULT_DIVISION, place);
}
DT_UNCHECKED void __ubsan_handle_missing_return(dt_place *place) { dt_fault_at(SIM_FAULT_RETURN, place); }
DT_UNCHECKED void __ubsan_handle_missing_return_abort(dt_place *place) { dt_fault_at(SIM_FAULT_RETURN, place); }

DT_UNCHECKED void *__asan_memcpy(void *to, const void *from, size_t n) { return __wrap_memcpy(to, from, n); }
DT_UNCHECKED void *__asan_memmove(void *to, const void *from, size_t n) { return __wrap_memmove(to, from, n); }
DT_UNCHECKED void *__asan_memset(void *to, int byte, size_t n) { return __wrap_memset(to, byte, n); }
}

// ---------------------------------------------------------------- threads

enum dt_state { DT_NEW, DT_READY, DT_AT_BARRIER, DT_AT_WARP, DT_ENDED };

struct dt_fibre {
    ucontext_t context;
    unsigned char *stack; // above a page without access
};

struct dt_thread {
    dt_state state;
    unsigned mask; // of the lanes that it waits for
    dt_fibre *fibre;
};

static dt_thread dt_threads[DT_MAX_THREADS];
static dt_fibre dt_fibres[DT_MAX_THREADS], *dt_idle[DT_MAX_THREADS];
static unsigned dt_nfibres, dt_nidle, dt_nthreads, dt_current;
static bool dt_descending;
static ucontext_t dt_scheduler;
static uint64_t dt_slots[DT_MAX_THREADS / 32][32];
static unsigned dt_sums[2], dt_sum_phase, dt_steps;

static void dt_enter(unsigned thread) {
    dt_current = thread;
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y, thread / blockDim.x / blockDim.y};
}

static bool dt_next(unsigned *thread) {
    if (dt_descending ? *thread == 0 : *thread + 1 == dt_nthreads) {
        return false;
    }
    *thread += dt_descending ? -1u : 1u;
    return true;
}

// Threads that never wait run one after the other in one fibre.
static void dt_fibre_main() {
    for (;;) {
        dt_fibre *self = dt_threads[dt_current].fibre;
        dt_entry(dt_launch->params);
        dt_threads[dt_current].state = DT_ENDED;
        unsigned next = dt_current;
        if (dt_next(&next) && dt_threads[next].state == DT_NEW) {
            dt_enter(next);
            dt_threads[next].fibre = self;
            continue;
        }
        dt_idle[dt_nidle++] = self;
        swapcontext(&self->context, &dt_scheduler);
    }
}

static dt_fibre *dt_new_fibre() {
    if (dt_nidle > 0) {
        return dt_idle[--dt_nidle];
    }
    dt_fibre *fibre = &dt_fibres[dt_nfibres++];
    void *memory = mmap(NULL, DT_PAGE + DT_STACK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED ||
        mprotect((unsigned char *)memory + DT_PAGE, DT_STACK_BYTES, PROT_READ | PROT_WRITE) != 0) {
        dt_fault(SIM_FAULT_MEMORY, 0, 0, false);
    }
    fibre->stack = (unsigned char *)memory + DT_PAGE;
    getcontext(&fibre->context);
    fibre->context.uc_stack.ss_sp = fibre->stack;
    fibre->context.uc_stack.ss_size = DT_STACK_BYTES;
    fibre->context.uc_link = NULL;
    makecontext(&fibre->context, dt_fibre_main, 0);
    return fibre;
}

static void dt_resume(unsigned thread) {
    dt_thread *t = &dt_threads[thread];
    dt_enter(thread);
    if (t->state == DT_NEW) {
        t->fibre = dt_new_fibre();
    }
    t->state = DT_READY;
    swapcontext(&dt_scheduler, &t->fibre->context);
}

// A thread gives way to the others.
static void dt_wait(dt_state state, unsigned mask) {
    dt_thread *t = &dt_threads[dt_current];
    t->state = state;
    t->mask = mask;
    swapcontext(&t->fibre->context, &dt_scheduler);
}

void dt_barrier() { dt_wait(DT_AT_BARRIER, 0); }
void dt_warp_barrier(unsigned mask) { dt_wait(DT_AT_WARP, mask); }
unsigned dt_lane() { return dt_current % 32; }
uint64_t *dt_warp_slots() { return dt_slots[dt_current / 32]; }

unsigned dt_live_lanes() {
    unsigned first = dt_current / 32 * 32, lanes = 0;
    for (unsigned i = 0; i < 32 && first + i < dt_nthreads; i++) {
        lanes |= dt_threads[first + i].state != DT_ENDED ? 1u << i : 0;
    }
    return lanes;
}

int dt_barrier_sum(int value, int *all) {
    unsigned *sum = &dt_sums[dt_sum_phase & 1];
    *sum += (unsigned)value;
    dt_barrier();
    int result = (int)*sum, n = 0;
    for (unsigned i = 0; i < dt_nthreads; i++) {
        n += dt_threads[i].state != DT_ENDED;
    }
    *all = n;
    dt_barrier();
    *sum = 0;
    return result;
}

void dt_atomic_step() {
    if (++dt_steps % 4096 == 0) {
        dt_wait(DT_READY, 0);
    }
}

long long clock64() {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000000000 + now.tv_nsec;
}

// Whether all lanes that a thread waits for have come, or ended.
static bool dt_warp_complete(unsigned thread) {
    unsigned first = thread / 32 * 32, mask = dt_threads[thread].mask;
    for (unsigned i = 0; i < 32 && first + i < dt_nthreads; i++) {
        dt_state state = dt_threads[first + i].state;
        if ((mask >> i & 1) && state != DT_AT_WARP && state != DT_ENDED) {
            return false;
        }
    }
    return true;
}

static void dt_release_warp(unsigned thread) {
    unsigned first = thread / 32 * 32, mask = dt_threads[thread].mask;
    for (unsigned i = 0; i < 32 && first + i < dt_nthreads; i++) {
        dt_thread *t = &dt_threads[first + i];
        if ((mask >> i & 1) && t->state == DT_AT_WARP) {
            t->state = DT_READY;
        }
    }
}

// All threads once, as far as they can go; whether one of them could.
static bool dt_round() {
    bool moved = false;
    unsigned thread = dt_descending ? dt_nthreads - 1 : 0;
    do {
        if (dt_threads[thread].state == DT_AT_WARP && dt_warp_complete(thread)) {
            dt_release_warp(thread);
        }
        if (dt_threads[thread].state <= DT_READY) {
            moved = true;
            dt_resume(thread);
        }
    } while (dt_next(&thread));
    return moved;
}

// The barrier opens when all threads that have not ended stand there.
static bool dt_open_barrier() {
    bool opened = false;
    for (unsigned i = 0; i < dt_nthreads; i++) {
        if (dt_threads[i].state == DT_AT_WARP) {
            dt_enter(i);
            dt_fault(SIM_FAULT_DEADLOCK, 0, 0, false);
        }
    }
    for (unsigned i = 0; i < dt_nthreads; i++) {
        if (dt_threads[i].state == DT_AT_BARRIER) {
            dt_threads[i].state = DT_READY;
            opened = true;
        }
    }
    return opened;
}

static void dt_run_block() {
    memset(dt_threads, 0, sizeof(dt_threads[0]) * dt_nthreads);
    if (__start_dt_shared != NULL) {
        memset(__start_dt_shared, 0xff, (size_t)(__stop_dt_shared - __start_dt_shared));
    }
    memset(dt_dynamic_shared, 0xff, dt_launch->shared_bytes);
    do {
        while (dt_round()) {
        }
    } while (dt_open_barrier());
}

// ---------------------------------------------------------------- the process

DT_UNCHECKED static void dt_on_signal(int number, siginfo_t *info, void *) {
    unsigned char *address = (unsigned char *)info->si_addr;
    if (number == SIGFPE) {
        dt_fault(SIM_FAULT_DIVISION, 0, 0, false);
    }
    if (number == SIGILL) {
        dt_fault(SIM_FAULT_TRAP, 0, 0, false);
    }
    if (number == SIGSYS) {
        dt_fault(SIM_FAULT_SYSTEM, (uint64_t)info->si_syscall, 0, false);
    }
    for (unsigned i = 0; i < dt_nfibres; i++) {
        if (address < dt_fibres[i].stack && address >= dt_fibres[i].stack - DT_PAGE) {
            dt_fault(SIM_FAULT_STACK, 0, 0, false);
        }
    }
    dt_fault(SIM_FAULT_OUTSIDE, (uint64_t)(uintptr_t)address, 0, false);
}

static bool dt_prepare() {
    static unsigned char stack[64 << 10] __attribute__((aligned(16)));
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    stack_t other;
    memset(&other, 0, sizeof(other));
    other.ss_sp = stack;
    other.ss_size = sizeof(stack);
    (void)sigaltstack(&other, NULL);
    for (int number : numbers) {
        struct sigaction action;
        memset(&action, 0, sizeof(action));
        action.sa_sigaction = dt_on_signal;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        (void)sigaction(number, &action, NULL);
    }
    (void)signal(SIGINT, SIG_DFL);
    void *memory = mmap(NULL, sizeof(sim_launch), PROT_READ | PROT_WRITE, MAP_SHARED, SIM_LAUNCH_FD, 0);
    if (memory == MAP_FAILED) {
        return false;
    }
    dt_launch = (sim_launch *)memory;
    dt_launch->static_shared_bytes =
        __start_dt_shared != NULL ? (uint32_t)(__stop_dt_shared - __start_dt_shared) : 0;
    return dt_launch->version == SIM_LAUNCH_VERSION;
}

static bool dt_map_device() {
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
    void *wanted = (void *)(uintptr_t)dt_launch->arena;
    void *arena = mmap(wanted, (size_t)dt_launch->arena_bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, SIM_LAUNCH_ARENA_FD, 0);
    return arena == wanted;
}

// The filter of system calls, and no more files.
static void dt_confine() {
    struct {
        unsigned short n;
        const void *steps;
    } filter = {(unsigned short)dt_launch->nsteps, dt_launch->steps};
    struct rlimit none = {0, 0};
    (void)close(SIM_LAUNCH_ARENA_FD);
    (void)close(SIM_LAUNCH_FD);
    (void)setrlimit(RLIMIT_NOFILE, &none);
    (void)prctl(PR_SET_SECCOMP, 2, &filter, 0, 0);
}

static void dt_run_grid() {
    const uint32_t *g = dt_launch->grid, *b = dt_launch->block;
    gridDim = dim3(g[0], g[1], g[2]);
    blockDim = dim3(b[0], b[1], b[2]);
    dt_nthreads = b[0] * b[1] * b[2];
    for (unsigned z = 0; z < g[2]; z++) {
        for (unsigned y = 0; y < g[1]; y++) {
            for (unsigned x = 0; x < g[0]; x++) {
                blockIdx = {x, y, z};
                dt_descending = (x + y + z) % 2 != 0;
                dt_run_block();
            }
        }
    }
}

// How parameters lie in memory: each at a multiple of its alignment.
template <class... A> struct dt_layout {
    size_t at[sizeof...(A) + 1];
    constexpr dt_layout() : at{} {
        size_t offset = 0, i = 0;
        ((offset = (offset + alignof(A) - 1) / alignof(A) * alignof(A), at[i++] = offset, offset += sizeof(A)), ...);
        at[i] = offset;
    }
};
template <class T> static inline T dt_read(const unsigned char *memory) {
    T value;
    memcpy((void *)&value, memory, sizeof(T));
    return value;
}
template <class... A, size_t... I>
static inline void dt_call(void (*kernel)(A...), const unsigned char *params, std::index_sequence<I...>) {
    constexpr dt_layout<A...> layout;
    (void)params;
    (void)layout;
    kernel(dt_read<A>(params + layout.at[I])...);
}
template <class... A> static inline void dt_apply(void (*kernel)(A...), const unsigned char *params) {
    dt_call(kernel, params, std::index_sequence_for<A...>());
}
template <class... A> static constexpr unsigned dt_bytes(void (*)(A...)) {
    return (unsigned)dt_layout<A...>().at[sizeof...(A)];
}

int main() {
    if (!dt_prepare()) {
        return 1;
    }
    if (dt_launch->grid[0] == 0) {
        dt_launch->kernel_param_bytes = dt_param_bytes;
    } else if (!dt_map_device()) {
        dt_launch->state = SIM_LAUNCH_OCCUPIED;
        _exit(SIM_LAUNCH_EXIT);
    } else {
        dt_confine();
        dt_launch->state = SIM_LAUNCH_RUNNING;
        dt_run_grid();
        fflush(stdout);
    }
    dt_launch->state = SIM_LAUNCH_OVER;
    _exit(SIM_LAUNCH_EXIT);
}
