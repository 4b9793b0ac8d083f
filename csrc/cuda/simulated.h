/* simulated.h: what the simulated GPU answers beside the table. Implemented by csrc/sim; may be called from any thread.
 */
#ifndef DT_CUDA_SIMULATED_H
#define DT_CUDA_SIMULATED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How long a launch of a user's kernel may take from now on; 0: as long as it likes. */
void sim_set_kernel_seconds(unsigned seconds);
/* Devices that were lost can be used again; what was queued on them is gone. */
void sim_reset(void);
/* Whether this system refuses a user's kernel what only the host could do for it. */
bool sim_has_filters(void);

/* Work runs as late as it may (0), or some of what may run does at each call, drawn from seed. */
void sim_set_order(uint64_t seed);
/* What memory holds before anybody wrote to it: bytes that are NaN in every float; or in turn, block by block, NaN,
 * large numbers of both signs, and zeros. Then memory that its owner gives to somebody new is filled too. */
void sim_set_fill(bool turns);
void sim_fill_again(void *stream, int device, uint64_t address, size_t nbytes);

/* ---------------------------------------------------------------- races: sim/races.c, cuda/races.c */

/* ON: what really is in no order. STRICT: also what only the backend put in order, where the program says nothing. */
typedef enum { SIM_RACES_OFF, SIM_RACES_ON, SIM_RACES_STRICT } sim_race_mode;

/* From now on: what was sent before is in order with all that comes. */
void sim_set_races(sim_race_mode mode);
sim_race_mode sim_races(void);
/* place answers where the program is, as a number that stays; with any locks held. */
void sim_set_place(unsigned (*place)(void));

/* Bytes of a device or of page-locked memory that a piece of work uses. */
typedef struct {
    uint64_t address;
    size_t nbytes;
    bool writes;
} sim_touch;

typedef struct {
    const char *what; /* "k_add_float32", "copy to the host"; stays */
    int device;       /* -1: the host */
    void *stream;     /* CUstream */
    bool writes;
    unsigned place; /* 0: not known */
} sim_access;

/* Two accesses to the same bytes, the first as it was sent first. */
typedef struct {
    sim_access first, second;
    bool of_host;   /* page-locked memory */
    bool said;      /* the backend ordered them, and the program does not say so */
    uint64_t bytes; /* of the second access */
} sim_race;

/* Whether a race was found that nobody has been told of; it is then told. */
bool sim_take_race(sim_race *race);
/* What this thread orders from now on is not what the program says. */
void sim_imply(bool implied);
/* The program has the stream of a device use memory; the host has it. False for a race. */
bool sim_use(int device, void *stream, const char *what, const sim_touch *touches, int n);
bool sim_use_by_host(const char *what, const void *memory, size_t nbytes, bool writes);
/* Memory is given to somebody new, by whoever sees to the order. */
void sim_use_afresh(uint64_t address, size_t nbytes);

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
