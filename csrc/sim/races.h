/* races.h: which accesses to memory come after which others (races.c, history.c).
 *
 * Every stream has a clock, and so has the host, all of whose threads count as one: an entry for each clock, up to
 * where it is behind that one. Work on a stream is behind what the stream and the host had reached; an event remembers
 * the clock of its stream, which a wait joins. Each piece of memory remembers its last write and the reads since, as
 * entries of the clocks that made them. Two that conflict and are in no order are a race, whichever ran first here. */
#ifndef DT_SIM_RACES_H
#define DT_SIM_RACES_H

#include "../cuda/api.h"
#include "../cuda/simulated.h"

/* What really orders work, and what the program itself has said, without what the backend adds for it. */
typedef enum { SIM_ACTUAL, SIM_SAID, SIM_NORDERS } sim_order;

#define SIM_CLOCKS 1024 /* of streams at once, on all devices, and the host's, the first; more are not looked at */

typedef struct {
    uint64_t at[SIM_CLOCKS];
} sim_clock;

/* ---------------------------------------------------------------- history.c: of a piece of memory */

/* Who did something to memory: at which entry of which clock. tick 0: nobody. */
typedef struct {
    uint64_t tick;
    const char *what; /* for people; stays */
    uint32_t place;   /* of the caller; 0: not known */
    uint32_t clock;
} sim_mark;

#define SIM_READERS 3 /* of a piece, for which it has room of its own */

/* Bytes from begin to the next piece that have been used alike. The readers are in no order with each other. */
typedef struct {
    size_t begin;
    sim_mark written, few[SIM_READERS], *more; /* more: all readers, where they are not few */
    unsigned nread, room;                      /* room: of more */
} sim_piece;

typedef struct {
    sim_piece one, *many; /* many: where there are several */
    unsigned n, room;     /* n 0: one piece that nobody has used */
    size_t nbytes;
} sim_history;

void sim_history_init(sim_history *history, size_t nbytes);
void sim_history_clear(sim_history *history);
/* The first mark that an access to [begin, end) behind clock conflicts with; NULL: none. */
const sim_mark *sim_history_conflict(const sim_history *history, size_t begin, size_t end, bool writes,
                                     const sim_clock *clock, bool *written);
/* Writes the access down. Where the host has no memory for it, all is forgotten. */
void sim_history_note(sim_history *history, size_t begin, size_t end, bool writes, const sim_clock *clock,
                      const sim_mark *mark);
/* Forgets a part. */
void sim_history_forget(sim_history *history, size_t begin, size_t end);

/* ---------------------------------------------------------------- races.c */

/* Clocks of a stream. id 0: not looked at. */
typedef struct {
    uint32_t id;
    sim_clock *clock[SIM_NORDERS];
} sim_pace;

/* A stream's clocks when an event was recorded: SIM_NORDERS times n entries, the first of them of SIM_ACTUAL. */
typedef struct {
    uint64_t *at;
    unsigned n, room;
} sim_moment;

struct sim_stream;
struct sim_device;

/* Of a block, and of page-locked memory. */
typedef struct {
    sim_history of[SIM_NORDERS];
} sim_histories;

bool sim_races_on(void);
void sim_histories_init(sim_histories *histories, size_t nbytes);
void sim_histories_clear(sim_histories *histories);

/* CUDA_ERROR_OUT_OF_MEMORY */
CUresult sim_pace_open(struct sim_stream *stream);
void sim_pace_close(struct sim_stream *stream);

/* Work that stream is about to be sent, called what, which stays: it is behind all that the stream, the host and the
 * rules of the NULL stream say. CUDA_ERROR_UNKNOWN for a race. sim_race_note: it has been sent. */
CUresult sim_race_check(struct sim_stream *stream, const char *what, const sim_touch *touches, int n);
void sim_race_note(struct sim_stream *stream, const char *what, const sim_touch *touches, int n);

/* The moment is now in stream; or, with stream NULL, in all streams of device. CUDA_ERROR_OUT_OF_MEMORY */
CUresult sim_race_record(sim_moment *moment, struct sim_device *device, struct sim_stream *stream);
void sim_race_wait(struct sim_stream *stream, const sim_moment *moment);
/* The host has waited for it; for all that stream was sent; for all of device. */
void sim_race_host_reached(const sim_moment *moment);
void sim_race_host_drained(struct sim_stream *stream);
void sim_race_host_drained_all(struct sim_device *device);

/* The same name, which stays. */
const char *sim_race_name(const char *name);

/* Whether page-locked memory is what it will be, unless the host writes to it. */
bool sim_race_host_is_behind_writes(const void *memory, size_t nbytes);
/* Of bytes that a copy reads later; never 0. */
uint64_t sim_race_digest(const void *bytes, size_t nbytes);
void sim_race_host_wrote(struct sim_stream *stream, size_t nbytes, uint32_t place);
uint32_t sim_race_place(void);
/* CUDA_ERROR_UNKNOWN where a race has been found and nobody was told. */
CUresult sim_race_untold(void);

#endif
