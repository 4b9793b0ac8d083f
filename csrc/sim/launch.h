/* launch.h: what a simulated GPU and the process that runs a user's kernel tell each other, through memory that both
 * have mapped. Also compiled as C++ by the user's compiler, so it includes nothing of ours. */
#ifndef DT_SIM_LAUNCH_H
#define DT_SIM_LAUNCH_H

#include <stdint.h>

#define SIM_LAUNCH_VERSION 2
#define SIM_LAUNCH_ARRAYS 128
#define SIM_LAUNCH_NAME 64
#define SIM_LAUNCH_PARAMS 4096
#define SIM_LAUNCH_STEPS 128
#define SIM_LAUNCH_EXIT 77 /* the status of a process that has answered */

/* File descriptors of that process. */
enum { SIM_LAUNCH_ARENA_FD = 3, SIM_LAUNCH_FD = 4 };

typedef enum {
    SIM_LAUNCH_SENT,
    SIM_LAUNCH_OCCUPIED, /* the addresses of the device are taken there: another process may be luckier */
    SIM_LAUNCH_RUNNING,
    SIM_LAUNCH_OVER,
    SIM_LAUNCH_FAULT,
} sim_launch_state;

typedef enum {
    SIM_FAULT_OUTSIDE,    /* an access that no array holds */
    SIM_FAULT_CONST,      /* a write to what the kernel declares const */
    SIM_FAULT_MISALIGNED, /* an address that is no multiple of the size */
    SIM_FAULT_SHARED,     /* past the end of dynamic shared memory */
    SIM_FAULT_STACK,      /* a thread's own memory ran out */
    SIM_FAULT_DIVISION,   /* of integers by zero, or of the lowest by -1 */
    SIM_FAULT_ASSERT,     /* text */
    SIM_FAULT_TRAP,
    SIM_FAULT_DEADLOCK,
    SIM_FAULT_MEMORY, /* the host has none for the threads' stacks */
    SIM_FAULT_SYSTEM, /* a system call: address is its number */
    SIM_FAULT_RETURN, /* a function that is to return a value ended without one: text */
} sim_fault;

typedef struct {
    uint64_t address, nbytes;
    uint32_t writable;
    uint32_t itemsize;
    char name[SIM_LAUNCH_NAME];
} sim_launch_array;

typedef struct {
    /* asked */
    uint32_t version, narrays;
    uint64_t arena, arena_bytes; /* where device memory stands */
    uint32_t grid[3], block[3];  /* grid[0] == 0: only what the kernel is */
    uint32_t shared_bytes, param_bytes;
    sim_launch_array arrays[SIM_LAUNCH_ARRAYS];
    unsigned char params[SIM_LAUNCH_PARAMS];
    uint64_t steps[SIM_LAUNCH_STEPS]; /* the filter of system calls while the kernel runs */
    uint32_t nsteps;                  /* 0: none */
    /* answered, from here on: nothing before it is believed of the process */
    uint32_t state; /* sim_launch_state */
    uint32_t static_shared_bytes, kernel_param_bytes;
    uint32_t fault; /* sim_fault, and where: */
    uint32_t at_block[3], at_thread[3];
    uint64_t address;
    uint32_t nbytes, writes;
    char text[256];
} sim_launch;

#endif
