/* threads.c: one pool of detached workers, started by the first region that is worth them.
 *
 * A region is announced by its ticket: how many regions there have been, and in how many parts this one is cut. Worker
 * i takes part i + 1, the caller part 0; a worker without a part reads nothing but the ticket, so that the caller need
 * not wait for it. Whoever waits spins a little, then sleeps. A child of fork has no workers and starts its own. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../core/environment.h"
#include "cpu.h"

#define SPINS 2000
#define PARTS_BITS 16
#define WORKER_STACK ((size_t)2 << 20)

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE() atomic_signal_fence(memory_order_seq_cst)
#endif

static pthread_mutex_t region = PTHREAD_MUTEX_INITIALIZER; /* held as long as a region runs; guards nworkers and job */
static pthread_mutex_t sleepers = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static atomic_uint_fast64_t ticket;
static atomic_int pending;  /* parts of the region that workers have not finished */
static atomic_int sleeping; /* workers */
static atomic_bool waiting; /* the caller sleeps */
static atomic_int wanted;   /* threads; 0: not known yet */
static atomic_int caller_processor;
static atomic_bool crowded; /* a worker woke up there */
static int nworkers;
static struct {
    cpu_body body;
    void *ctx;
    int64_t nitems;
} job;

static int
default_num_threads(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof(set), &set) == 0) {
        n = CPU_COUNT(&set);
    }
#endif
    int limit = (int)dt_environment_number(DT_ENV_NUM_THREADS, CPU_MAX_THREADS);
    return n < 1 ? 1 : n > limit ? limit : (int)n;
}

int
cpu_num_threads(void)
{
    int n = atomic_load_explicit(&wanted, memory_order_relaxed);
    if (n == 0) {
        n = default_num_threads();
        int unknown = 0;
        if (!atomic_compare_exchange_strong(&wanted, &unknown, n)) {
            n = unknown;
        }
    }
    return n;
}

void
cpu_set_num_threads(int n)
{
    atomic_store(&wanted, n);
}

static void
run_part(int part, int parts)
{
    int64_t size = job.nitems / parts, larger = job.nitems % parts;
    int64_t begin = part * size + CPU_MIN(part, larger);
    job.body(job.ctx, begin, begin + size + (part < larger));
}

static int
processor_here(void)
{
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* A guest of a virtual machine takes a processor that sleeps for one that it was deprived of, and wakes a thread where
 * the one that wakes it runs: there the two would take turns. Such a worker goes elsewhere, if all have room. */
static void
leave_caller(int parts)
{
#ifdef __linux__
    cpu_set_t all, others;
    int here = processor_here();
    if (here < 0 || here != atomic_load_explicit(&caller_processor, memory_order_relaxed) ||
        sched_getaffinity(0, sizeof(all), &all) != 0 || parts > CPU_COUNT(&all)) {
        return;
    }
    atomic_store_explicit(&crowded, true, memory_order_relaxed);
    others = all;
    CPU_CLR((size_t)here, &others);
    if (sched_setaffinity(0, sizeof(others), &others) == 0) {
        (void)sched_setaffinity(0, sizeof(all), &all);
    }
#else
    (void)parts;
#endif
}

static uint_fast64_t
next_ticket(uint_fast64_t seen)
{
    for (int i = 0; i < SPINS; i++) {
        uint_fast64_t now = atomic_load(&ticket);
        if (now != seen) {
            return now;
        }
        PAUSE();
    }
    uint_fast64_t now;
    pthread_mutex_lock(&sleepers);
    atomic_fetch_add(&sleeping,
                     1); /* before the last look at the ticket, which the caller writes before it looks here */
    while ((now = atomic_load(&ticket)) == seen) {
        pthread_cond_wait(&wake, &sleepers);
    }
    atomic_fetch_sub(&sleeping, 1);
    pthread_mutex_unlock(&sleepers);
    return now;
}

static void *
work(void *arg)
{
    int part = (int)(intptr_t)arg;
    for (uint_fast64_t seen = 0;;) {
        seen = next_ticket(seen);
        int parts = (int)(seen & ((1u << PARTS_BITS) - 1));
        if (part >= parts) {
            continue;
        }
        leave_caller(parts);
        run_part(part, parts);
        if (atomic_fetch_sub(&pending, 1) == 1 && atomic_load(&waiting)) {
            pthread_mutex_lock(&sleepers);
            pthread_cond_signal(&finished);
            pthread_mutex_unlock(&sleepers);
        }
    }
    return NULL;
}

static void
after_fork_in_child(void)
{
    pthread_mutex_init(&region, NULL);
    pthread_mutex_init(&sleepers, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&finished, NULL);
    atomic_store(&pending, 0);
    atomic_store(&sleeping, 0);
    atomic_store(&waiting, false);
    nworkers = 0;
}

static void
watch_forks_of_pool(void)
{
    (void)pthread_atfork(NULL, NULL, after_fork_in_child);
}

static void
announce(int parts)
{
    uint_fast64_t regions = atomic_load(&ticket) >> PARTS_BITS;
    atomic_store(&ticket, (regions + 1) << PARTS_BITS | (uint_fast64_t)parts);
}

/* Signals are left to the threads of the program, but for those of a fault in the worker itself, which faulthandler
 * tells of. */
static void
start_workers(int n)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks_of_pool);
    announce(1); /* a new worker must not take the last region for its first */
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0) {
        return;
    }
    sigset_t all, old;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    sigdelset(&all, SIGFPE);
    sigdelset(&all, SIGILL);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attr, WORKER_STACK);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_t thread;
    while (nworkers < n && pthread_create(&thread, &attr, work, (void *)(intptr_t)(nworkers + 1)) == 0) {
        nworkers++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

static void
wait_for_workers(void)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load(&pending) == 0) {
            return;
        }
        PAUSE();
    }
    pthread_mutex_lock(&sleepers);
    atomic_store(&waiting, true);
    while (atomic_load(&pending) > 0) {
        pthread_cond_wait(&finished, &sleepers);
    }
    atomic_store(&waiting, false);
    pthread_mutex_unlock(&sleepers);
}

void
cpu_parallel(int64_t nitems, int64_t grain, cpu_body body, void *ctx)
{
    int64_t pieces = nitems / CPU_MAX(grain, 1);
    int parts = pieces < 2 ? 1 : (int)CPU_MIN(pieces, cpu_num_threads());
    if (parts < 2 || pthread_mutex_trylock(&region) != 0) {
        body(ctx, 0, nitems);
        return;
    }
    if (nworkers < parts - 1) {
        start_workers(parts - 1);
        parts = CPU_MIN(parts, nworkers + 1);
    }
    job.body = body;
    job.ctx = ctx;
    job.nitems = nitems;
    atomic_store(&pending, parts - 1);
    atomic_store_explicit(&caller_processor, processor_here(), memory_order_relaxed);
    announce(parts);
    if (atomic_load(&sleeping) > 0) {
        pthread_mutex_lock(&sleepers);
        pthread_cond_broadcast(&wake);
        pthread_mutex_unlock(&sleepers);
        if (atomic_exchange_explicit(&crowded, false, memory_order_relaxed)) {
            sched_yield(); /* so that one that wakes up here again can leave */
        }
    }
    run_part(0, parts);
    wait_for_workers();
    pthread_mutex_unlock(&region);
}

typedef struct {
    cpu_attempt attempt;
    void *ctx;
    dt_error *err;
    atomic_flag taken; /* by the first to fail */
    atomic_int status;
} attempts;

static void
try_part(void *ctx, int64_t begin, int64_t end)
{
    attempts *all = ctx;
    dt_error err;
    const dt_status rc = all->attempt(all->ctx, begin, end, &err);
    if (rc != DT_OK && !atomic_flag_test_and_set(&all->taken)) {
        *all->err = err;
        atomic_store(&all->status, rc);
    }
}

dt_status
cpu_try_parallel(int64_t nitems, int64_t grain, cpu_attempt attempt, void *ctx, dt_error *err)
{
    attempts all = {attempt, ctx, err, .taken = ATOMIC_FLAG_INIT};
    cpu_parallel(nitems, grain, try_part, &all);
    return (dt_status)atomic_load(&all.status);
}
