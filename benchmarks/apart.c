/* apart.c: how far two processors are from each other: prints the nanoseconds that a number takes from one to the other
 * and back, the least of some stretches. In a virtual machine it changes: what shares a cache now may not do so soon. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STRETCHES 5
#define TRIPS 2000

static _Alignas(128) atomic_int ball, done;
static int processors[2];

static double
now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int
stay(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)processor, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

static void *
give_back(void *argument)
{
    (void)argument;
    if (stay(processors[1]) != 0) {
        exit(1);
    }
    while (!atomic_load_explicit(&done, memory_order_relaxed)) {
        if (atomic_load(&ball) == 1) {
            atomic_store(&ball, 0);
        }
    }
    return NULL;
}

int
main(void)
{
    cpu_set_t all;
    int found = 0;
    if (sched_getaffinity(0, sizeof(all), &all) != 0) {
        return 1;
    }
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++) {
        if (CPU_ISSET((size_t)i, &all)) {
            processors[found++] = i;
        }
    }
    pthread_t other;
    if (found < 2 || stay(processors[0]) != 0 || pthread_create(&other, NULL, give_back, NULL) != 0) {
        return 1;
    }
    double least = 1e300;
    for (int stretch = 0; stretch < STRETCHES; stretch++) {
        const double start = now();
        for (int i = 0; i < TRIPS; i++) {
            atomic_store(&ball, 1);
            while (atomic_load(&ball) != 0) {
            }
        }
        const double spent = (now() - start) / TRIPS;
        least = spent < least ? spent : least;
    }
    atomic_store(&done, 1);
    pthread_join(other, NULL);
    printf("%.0f\n", least);
    return 0;
}
