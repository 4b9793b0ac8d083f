/* emulate.h: kernels with every thread of a block, for the tests that include it after csrc/kernels with DT_EMULATED.
 *
 * Each thread is a fiber; DT_SYNC gives way to the next, DT_SYNC_SIDE to the next of 32. Fibers run in rising and in
 * falling order, so that a missing DT_SYNC is seen from one side or the other. Grids and blocks of many sizes must give
 * the same bits. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

/* ---------------------------------------------------------------- a block of fibers */

#define STACK_BYTES (64 * 1024)
#define SIDE 32
#define FALLING 1

typedef struct {
    ucontext_t start;
    jmp_buf place; /* once it has run; a context would ask the system for its signals each time */
    char stack[STACK_BYTES];
    int done, waits, syncs; /* waits: for the whole block */
} fiber;

static fiber *fibers;
static ucontext_t template;
static jmp_buf scheduler;
static int current, nthreads, nsplit_syncs;
static int64_t block, nblocks;
static void (*running)(const void *);
static const void *arguments;

int
emulated_thread(void)
{
    return current;
}

int
emulated_threads(void)
{
    return nthreads;
}

int64_t
emulated_block(void)
{
    return block;
}

int64_t
emulated_blocks(void)
{
    return nblocks;
}

/* Between 32 threads side by side: others may go on, or not yet have come so far. */
void
emulated_sync_side(void)
{
    fibers[current].syncs++;
    if (_setjmp(fibers[current].place) == 0) {
        _longjmp(scheduler, 1);
    }
}

void
emulated_sync(void)
{
    fibers[current].waits = 1;
    emulated_sync_side();
}

void *
sim_global(uint64_t address, uint64_t nbytes, int written, unsigned alignment)
{
    (void)nbytes;
    (void)written;
    (void)alignment;
    return (void *)(uintptr_t)address;
}

static void
enter(void)
{
    running(arguments);
    fibers[current].done = 1;
    _longjmp(scheduler, 1);
}

static void
resume(fiber *f, int started)
{
    if (_setjmp(scheduler) == 0) {
        if (started) {
            _longjmp(f->place, 1);
        }
        setcontext(&f->start);
    }
}

/* Threads first to last - 1 as far as they get without the others; whether any has more to do. */
static int
run_side(int first, int last, int falling)
{
    int alive, awake;
    do {
        alive = awake = 0;
        for (int i = first; i < last; i++) {
            current = falling ? last - 1 - (i - first) : i;
            if (!fibers[current].done && !fibers[current].waits) {
                resume(&fibers[current], fibers[current].syncs > 0);
            }
            alive |= !fibers[current].done;
            awake |= !fibers[current].done && !fibers[current].waits;
        }
    } while (awake);
    for (int i = first; i < last; i++) {
        fibers[i].waits = 0;
    }
    return alive;
}

static void
run_block(int falling)
{
    for (int i = 0; i < nthreads; i++) {
        fibers[i].done = fibers[i].waits = fibers[i].syncs = 0;
        fibers[i].start = template;
        fibers[i].start.uc_stack.ss_sp = fibers[i].stack;
        fibers[i].start.uc_stack.ss_size = STACK_BYTES;
        makecontext(&fibers[i].start, enter, 0);
    }
    for (int alive = 1; alive;) {
        alive = 0;
        for (int i = 0; i < nthreads; i += SIDE) {
            const int first = falling ? (nthreads - 1) / SIDE * SIDE - i : i;
            alive |= run_side(first, first + SIDE < nthreads ? first + SIDE : nthreads, falling);
        }
    }
    for (int i = 1; i < nthreads; i++) { /* a barrier that some threads do not reach hangs a GPU */
        nsplit_syncs += fibers[i].syncs != fibers[0].syncs;
    }
}

extern const dt_host_kernel __start_dt_kernels[], __stop_dt_kernels[];

static void
launch(const char *name, int64_t grid, int threads, int falling, const void *args)
{
    for (const dt_host_kernel *k = __start_dt_kernels; k < __stop_dt_kernels; k++) {
        if (strcmp(k->name, name) == 0) {
            running = k->run;
            arguments = args;
            nthreads = threads;
            nblocks = grid;
            for (block = 0; block < grid; block++) {
                run_block(falling);
            }
            return;
        }
    }
    printf("no kernel %s\n", name);
    exit(2);
}

/* ---------------------------------------------------------------- checking */

static int passed, failed;

static void
check(int right, const char *what)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s\n", what);
    }
}

static const struct {
    int64_t grid;
    int threads, order;
} SHAPES[] = {{1, 1, 0}, {1, 256, 0}, {3, 256, FALLING}, {7, 64, 0}, {2, 96, FALLING}};
#define NSHAPES ((int)(sizeof(SHAPES) / sizeof(SHAPES[0])))

/* Runs a kernel on every shape of grid; out (nbytes) must always come out alike, and is left filled. */
static void
run_all(const char *name, const void *args, void *out, size_t nbytes, const char *what)
{
    void *first = malloc(nbytes), *before = malloc(nbytes);
    memcpy(before, out, nbytes);
    for (int i = 0; i < NSHAPES; i++) {
        memcpy(out, before, nbytes);
        launch(name, SHAPES[i].grid, SHAPES[i].threads, SHAPES[i].order, args);
        if (i == 0) {
            memcpy(first, out, nbytes);
        }
        check(memcmp(first, out, nbytes) == 0, what);
    }
    check(nsplit_syncs == 0, what);
    free(first);
    free(before);
}

static uint64_t state = 88172645463325252u;

static double
number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(int64_t)(state >> 40) / (1 << 23) - 1;
}

static float *
numbers(int64_t n, int whole)
{
    float *x = aligned_alloc(64, (size_t)(n * 4 + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)(whole ? floor(number() * 8) : number());
    }
    return x;
}

static k_operand
operand(const void *p)
{
    k_operand o = {(uint64_t)(uintptr_t)p, 0, 0};
    return o;
}

/* contiguous or with the strides given */
static k_index
index_of(int ndim, const int64_t *shape, int narrays, const int64_t (*strides)[3])
{
    k_index index = {.numel = 1, .ndim = ndim, .wide = 1};
    for (int d = 0; d < ndim; d++) {
        index.numel *= shape[d];
        index.shape[d] = shape[d];
        for (int k = 0; k < narrays; k++) {
            index.strides[k][d] = strides[k][d];
        }
    }
    return index;
}

static k_index
line(int64_t n, int64_t first, int64_t second)
{
    const int64_t strides[2][3] = {{first}, {second}};
    return index_of(1, &n, 2, strides);
}

/* ---------------------------------------------------------------- the emulation itself */

DT_KERNEL(k_planted, k_transpose_args, a)
{
    DT_SHARED float shared[DT_MAX_THREADS];
    float *out = (float *)(uintptr_t)a.out.address;
    DT_FOR_THREADS(v, DT_MAX_THREADS) {
        shared[v] = (float)v;
    }
    if (a.rows) {
        DT_SYNC();
    }
    DT_FOR_THREADS(v, DT_MAX_THREADS) {
        out[v] = shared[DT_MAX_THREADS - 1 - v];
    }
    DT_SYNC();
    DT_FOR_THREADS(v, DT_MAX_THREADS) {
        shared[v] = -1;
    }
}

/* A kernel without its barrier must be noticed, or all that passes above says nothing. */
static void
test_missing_sync(void)
{
    float out[DT_MAX_THREADS];
    k_transpose_args a = {.out = operand(out), .rows = 1};
    int wrong[2] = {0, 0};
    for (int with = 1; with >= 0; with--) {
        a.rows = with;
        for (int order = 0; order < 2; order++) {
            launch("k_planted", 2, 256, order, &a);
            for (int i = 0; i < DT_MAX_THREADS; i++) {
                wrong[with] += out[i] != (float)(DT_MAX_THREADS - 1 - i);
            }
        }
    }
    check(wrong[1] == 0 && wrong[0] > 0, "a missing barrier shows");
}

static void
emulation_open(void)
{
    fibers = calloc(DT_MAX_THREADS, sizeof(*fibers));
    getcontext(&template);
    test_missing_sync();
}

static int
emulation_close(void)
{
    free(fibers);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
