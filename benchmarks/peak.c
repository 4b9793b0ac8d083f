/* peak.c: what this machine can do at most. Prints the multiply-adds of float32 and float64 in GFLOP/s and the bandwidth
 * of a copy of memory in GB/s (bytes read and written), of argv[1] threads, best of five. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __AVX512F__
#define WIDTH 64
#else
#define WIDTH 32
#endif
#define CHAINS 12 /* latency times units, and a few more */
#define STEPS 4000000L
#define COPY ((size_t)256 << 20)
#define COPIES 4

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#define MULTIPLY_ADDS(type)                                                                                            \
    static double multiply_adds_##type(void)                                                                           \
    {                                                                                                                  \
        typedef type vector __attribute__((vector_size(WIDTH)));                                                       \
        volatile type one = 1, small = (type)1e-9;                                                                     \
        vector x[CHAINS], b = one - (vector){0}, c = small - (vector){0};                                              \
        for (int j = 0; j < CHAINS; j++) {                                                                             \
            x[j] = small - (vector){0}; /* read each time, so that no chain is known to equal another */               \
        }                                                                                                              \
        for (long i = 0; i < STEPS; i++) {                                                                             \
            _Pragma("GCC unroll 12") for (int j = 0; j < CHAINS; j++) {                                                \
                x[j] = x[j] * b + c;                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
        volatile type sink;                                                                                            \
        for (int j = 0; j < CHAINS; j++) {                                                                             \
            sink = x[j][0];                                                                                            \
        }                                                                                                              \
        (void)sink;                                                                                                    \
        return 2.0 * (double)STEPS * CHAINS * (WIDTH / sizeof(type));                                                  \
    }
MULTIPLY_ADDS(float)
MULTIPLY_ADDS(double)

static pthread_barrier_t barrier;

typedef struct {
    double (*work)(void *memory);
    void *memory;
    double start, end, done;
} job;

static double
floats(void *memory)
{
    (void)memory;
    return multiply_adds_float();
}

static double
doubles(void *memory)
{
    (void)memory;
    return multiply_adds_double();
}

static double
copies(void *memory)
{
    for (int i = 0; i < COPIES; i++) {
        memcpy((char *)memory + COPY, memory, COPY);
    }
    return 2.0 * (double)COPY * COPIES;
}

static void *
run(void *argument)
{
    job *j = argument;
    pthread_barrier_wait(&barrier);
    j->start = now();
    j->done = j->work(j->memory);
    j->end = now();
    return NULL;
}

static double
rate(int n, double (*work)(void *), job *jobs)
{
    double best = 0;
    for (int round = 0; round < 5; round++) {
        pthread_t threads[n];
        double start = 1e300, end = 0, done = 0;
        pthread_barrier_init(&barrier, NULL, (unsigned)n);
        for (int i = 0; i < n; i++) {
            jobs[i].work = work;
            if (pthread_create(&threads[i], NULL, run, &jobs[i]) != 0) {
                exit(1);
            }
        }
        for (int i = 0; i < n; i++) {
            pthread_join(threads[i], NULL);
            start = jobs[i].start < start ? jobs[i].start : start;
            end = jobs[i].end > end ? jobs[i].end : end;
            done += jobs[i].done;
        }
        pthread_barrier_destroy(&barrier);
        best = done / (end - start) > best ? done / (end - start) : best;
    }
    return 1e-9 * best;
}

int
main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 1;
    if (n < 1 || n > 1024) {
        return 2;
    }
    job jobs[n];
    for (int i = 0; i < n; i++) {
        jobs[i].memory = malloc(2 * COPY);
        if (jobs[i].memory == NULL) {
            return 1;
        }
        memset(jobs[i].memory, i, 2 * COPY);
    }
    printf("%.1f %.1f %.1f\n", rate(n, floats, jobs), rate(n, doubles, jobs), rate(n, copies, jobs));
    return 0;
}
