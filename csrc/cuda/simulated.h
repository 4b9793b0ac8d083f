/* simulated.h: what the simulated GPU answers beside the table. Implemented by csrc/sim; may be called from any thread.
 */
#ifndef DT_CUDA_SIMULATED_H
#define DT_CUDA_SIMULATED_H

#include <stdbool.h>
#include <stdint.h>

/* How long a launch of a user's kernel may take from now on; 0: as long as it likes. */
void sim_set_kernel_seconds(unsigned seconds);
/* Devices that were lost can be used again; what was queued on them is gone. */
void sim_reset(void);
/* Whether this system refuses a user's kernel what only the host could do for it. */
bool sim_has_filters(void);

/* ---------------------------------------------------------------- for tests */

/* Of every device, from the next query on; 9.0 at first. */
void sim_set_compute_capability(int major, int minor);
/* Number of blocks found so far, now included, whose guard bytes were overwritten. */
int64_t sim_guard_violations(void);
/* The most elements, rows or columns that cuDNN and cuBLASLt take; 0: 2**31 - 1, as the real ones. */
void sim_set_size_limit(int64_t limit);
/* What is alive on all devices: blocks that nobody asked to free and their bytes, streams, events, modules; and the
 * descriptors and programs of the libraries (not their handles). */
void sim_ledger(int64_t *blocks, int64_t *bytes, int64_t *streams, int64_t *events, int64_t *modules,
                int64_t *descriptors);

#endif
