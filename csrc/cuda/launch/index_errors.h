/* index_errors.h: indices that kernels find out of range (index_errors.c). */
#ifndef DT_CUDA_INDEX_ERRORS_H
#define DT_CUDA_INDEX_ERRORS_H

#include "../../kernels/args.h"
#include "../device.h"

typedef struct cuda_late cuda_late;

/* A launch that may find indices out of range: where it reports them, and its number. */
dt_status cuda_late_begin(cuda_device *device, const dt_index *index, k_selection *by, dt_error *err) DT_MUST_CHECK;
/* After the host has waited for work on device: fails where an index was out of range there, or on a device whose work
 * came here. Each report is told once. */
dt_status cuda_late_check(cuda_device *device, dt_error *err) DT_MUST_CHECK;

#endif
