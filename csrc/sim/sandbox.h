/* sandbox.h: what the process of a user's kernel may ask of the system: filters of system calls. */
#ifndef DT_SIM_SANDBOX_H
#define DT_SIM_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/filter.h>

#define SIM_FILTER_STEPS 240

typedef struct {
    struct sock_filter steps[SIM_FILTER_STEPS];
    unsigned short nsteps; /* 0: none for this kind of processor */
} sim_filter;

/* From before the program begins: what the C library's start needs, and to become file `executable`, once. With loads
 * also what the loader of shared libraries needs: to open files for reading. */
void sim_filter_start(sim_filter *filter, int executable, bool loads);
/* From the first line of the kernel on: its own memory, the time, and to print. Leaving is for run.hpp alone. */
void sim_filter_run(sim_filter *filter);
/* Puts the calling thread under the filter; false where the system has none. Safe between fork and exec. */
bool sim_filter_enter(const sim_filter *filter);
/* The name of a system call that kernels are seen to make; NULL: one of the others. */
const char *sim_system_call(uint64_t number);

#endif
