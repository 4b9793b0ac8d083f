/* front.h: the door of the host backend: all that csrc/py may ask of it. */
#ifndef DT_CPU_FRONT_H
#define DT_CPU_FRONT_H

#include "../core/devtensor.h"

/* The backend's entry: what the registry calls on first use. */
dt_status cpu_open(const dt_backend **backend, dt_error *err);

/* threads.c: how many threads ops use; n is from 1 to CPU_MAX_THREADS. */
#define CPU_MAX_THREADS 1024 /* of DEVTENSOR_NUM_THREADS, too: environment.def */
int cpu_num_threads(void);
void cpu_set_num_threads(int n);

#endif
