/* process.h: other programs, started and waited for. */
#ifndef DT_SIM_PROCESS_H
#define DT_SIM_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox.h"

#define SIM_EXECUTABLE_FD 15 /* of a program in memory, until it has begun */

typedef struct {
    const char *path; /* NULL: the program is the file `executable` */
    int executable;
    char *const *argv, *const *environment;
    const int *fds; /* become its files 0, 1, ...; -1: stays as it is here. It gets no others */
    int nfds;
    uint64_t memory;          /* bytes of addresses; 0: no limit */
    uint64_t file_bytes;      /* of each file that it writes; 0: no limit */
    double seconds;           /* then it is ended; 0: no limit */
    bool group;               /* a process group of its own, so that what it starts is ended too */
    bool loads;               /* it opens shared libraries, one at a time */
    const sim_filter *filter; /* NULL: a program that is trusted */
} sim_command;

typedef struct {
    int status; /* as waitpid gives it */
    bool started, late;
} sim_ending;

/* Runs a program to its end. Only one thread at a time. */
sim_ending sim_process_run(const sim_command *command);
/* A file in memory with these bytes, closed on exec; -1 where there is none. */
int sim_memory_file(const void *data, size_t nbytes);

#endif
