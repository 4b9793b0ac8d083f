/* table.c: the way in. Every stand-in is called through a function that holds the one lock. */
#include "sim.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void
sim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void
sim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

static int
enter_simulator(void)
{
    sim_lock();
    return 0;
}

static void
leave_simulator(const int *entered)
{
    (void)entered;
    sim_unlock();
}

#define DT_API(library, symbol, ret, params, names)                                                                    \
    static ret locked_##symbol params                                                                                  \
    {                                                                                                                  \
        int entered __attribute__((cleanup(leave_simulator), unused)) = enter_simulator();                             \
        return sim_##symbol names;                                                                                     \
    }
#include "../cuda/api.def"
#undef DT_API

/* Another thread may have held the lock when this process was forked. */
static void
after_fork(void)
{
    pthread_mutex_init(&lock, NULL);
    sim_fork();
}

static void
watch_forks_of_sim(void)
{
    pthread_atfork(NULL, NULL, after_fork);
}

dt_status
sim_open(int devices, size_t memory, cuda_api *table, dt_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (devices < 0 || devices > SIM_MAX_DEVICES) {
        return dt_fail(err, DT_EVALUE, "value", "simulate_cuda", "%d simulated GPUs asked for, 0 to %d can be had",
                       devices, SIM_MAX_DEVICES);
    }
    if (memory == 0 || memory > (size_t)1 << 44) {
        return dt_fail(err, DT_EVALUE, "value", "simulate_cuda", "a simulated GPU cannot have %zu bytes of memory",
                       memory);
    }
    pthread_once(&once, watch_forks_of_sim);
    sim_lock();
    bool configured = sim_configure(devices, memory);
    sim_unlock();
    if (!configured) {
        return dt_fail(err, DT_EVALUE, "value", "simulate_cuda",
                       "the simulated GPUs are in use: their number and memory stay");
    }
#define DT_API(library, symbol, ret, params, names) table->symbol = locked_##symbol;
#include "../cuda/api.def"
#undef DT_API
    return DT_OK;
}
