/* races.c: the clocks of streams, events and the host, and what is in no order by them. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

static atomic_int mode;
static unsigned (*place_now)(void);
static _Thread_local int implied;

/* Clock 0 is the host's. A clock is used again when its stream has ended and there is no other, and goes on from its
 * last tick. */
static struct {
    uint64_t tick;
    sim_stream *stream; /* NULL: nobody's */
    int device;
    void *handle;
} clocks[SIM_CLOCKS];
static unsigned nclocks = 1;
static sim_clock host[SIM_NORDERS];

static sim_race found;
static bool untold;

bool
sim_races_on(void)
{
    return DT_UNLIKELY(atomic_load_explicit(&mode, memory_order_relaxed) != SIM_RACES_OFF);
}

sim_race_mode
sim_races(void)
{
    return (sim_race_mode)atomic_load(&mode);
}

void
sim_set_place(unsigned (*place)(void))
{
    place_now = place;
}

uint32_t
sim_race_place(void)
{
    return place_now != NULL ? place_now() : 0;
}

void
sim_imply(bool now)
{
    implied += now ? 1 : -1;
}

bool
sim_take_race(sim_race *race)
{
    sim_lock();
    bool any = untold;
    untold = false;
    *race = found;
    sim_unlock();
    return any;
}

CUresult
sim_race_untold(void)
{
    return DT_UNLIKELY(untold) ? CUDA_ERROR_UNKNOWN : CUDA_SUCCESS;
}

/* The first that nobody has been told of is the one to tell. */
static void
write_down(const sim_race *race)
{
    if (!untold) {
        found = *race;
        untold = true;
    }
}

/* ---------------------------------------------------------------- names */

#define NAMES 1024

const char *
sim_race_name(const char *name)
{
    static char names[NAMES][SIM_KERNEL_NAME];
    unsigned i = 0;
    while (i < NAMES && names[i][0] != '\0' && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i < NAMES && names[i][0] == '\0') {
        snprintf(names[i], sizeof(names[i]), "%s", name);
    }
    return i < NAMES ? names[i] : "a user's kernel";
}

/* ---------------------------------------------------------------- clocks */

CUresult
sim_pace_open(sim_stream *stream)
{
    unsigned id = nclocks < SIM_CLOCKS ? nclocks : 1; /* that of a stream which ended would hide its races */
    while (id < nclocks && clocks[id].stream != NULL) {
        id++;
    }
    stream->pace = (sim_pace){0};
    if (id == SIM_CLOCKS) {
        return CUDA_SUCCESS;
    }
    sim_clock *both = dt_calloc(SIM_NORDERS, sizeof(*both));
    if (both == NULL) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    nclocks = id < nclocks ? nclocks : id + 1;
    clocks[id].stream = stream;
    clocks[id].device = stream->device->ordinal;
    stream->pace.id = id;
    for (int i = 0; i < SIM_NORDERS; i++) {
        stream->pace.clock[i] = &both[i];
        both[i].at[id] = clocks[id].tick;
    }
    return CUDA_SUCCESS;
}

void
sim_pace_close(sim_stream *stream)
{
    if (stream->pace.id != 0) {
        clocks[stream->pace.id].stream = NULL;
    }
    dt_free(stream->pace.clock[0]);
}

static void
join(sim_clock *clock, const uint64_t *at, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        clock->at[i] = clock->at[i] < at[i] ? at[i] : clock->at[i];
    }
}

static void
join_stream(sim_clock *clock, const sim_stream *stream, int order)
{
    if (stream->pace.id != 0) {
        join(clock, stream->pace.clock[order]->at, nclocks);
    }
}

/* What is sent to stream now comes after the host so far, and after what the NULL stream's rules say. */
static void
catch_up(sim_stream *stream, int order)
{
    sim_clock *clock = stream->pace.clock[order];
    join(clock, host[order].at, nclocks);
    if (!stream->blocking) {
        return;
    }
    sim_device *device = stream->device;
    if (stream != device->null_stream) {
        join_stream(clock, device->null_stream, order);
        return;
    }
    for (const sim_stream *other = device->streams; other != NULL; other = other->next) {
        if (other->blocking) {
            join_stream(clock, other, order);
        }
    }
}

/* ---------------------------------------------------------------- events and waits */

CUresult
sim_race_record(sim_moment *moment, sim_device *device, sim_stream *stream)
{
    if (!sim_races_on() || (stream != NULL && stream->pace.id == 0)) {
        moment->n = 0;
        return CUDA_SUCCESS;
    }
    if (moment->room < nclocks) {
        uint64_t *at = dt_malloc((size_t)SIM_NORDERS * nclocks * sizeof(*at));
        if (at == NULL) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        dt_free(moment->at);
        moment->at = at;
        moment->room = nclocks;
    }
    moment->n = nclocks;
    for (int order = 0; order < SIM_NORDERS; order++) {
        sim_clock all = {{0}};
        if (stream != NULL) {
            catch_up(stream, order);
            join_stream(&all, stream, order);
        } else {
            join_stream(&all, device->null_stream, order);
            for (const sim_stream *s = device->streams; s != NULL; s = s->next) {
                join_stream(&all, s, order);
            }
        }
        memcpy(moment->at + (size_t)order * nclocks, all.at, nclocks * sizeof(all.at[0]));
    }
    return CUDA_SUCCESS;
}

/* What only the backend orders is not what the program says. */
static int
orders_made(void)
{
    return implied > 0 ? SIM_SAID : SIM_NORDERS;
}

void
sim_race_wait(sim_stream *stream, const sim_moment *moment)
{
    for (int order = 0; sim_races_on() && stream->pace.id != 0 && moment->n > 0 && order < orders_made(); order++) {
        join(stream->pace.clock[order], moment->at + (size_t)order * moment->n, moment->n);
    }
}

void
sim_race_host_reached(const sim_moment *moment)
{
    for (int order = 0; sim_races_on() && moment->n > 0 && order < orders_made(); order++) {
        join(&host[order], moment->at + (size_t)order * moment->n, moment->n);
    }
}

void
sim_race_host_drained(sim_stream *stream)
{
    for (int order = 0; sim_races_on() && stream->pace.id != 0 && order < orders_made(); order++) {
        catch_up(stream, order);
        join_stream(&host[order], stream, order);
    }
}

void
sim_race_host_drained_all(sim_device *device)
{
    if (sim_races_on()) {
        sim_race_host_drained(device->null_stream);
        for (sim_stream *stream = device->streams; stream != NULL; stream = stream->next) {
            sim_race_host_drained(stream);
        }
    }
}

/* ---------------------------------------------------------------- memory */

void
sim_histories_init(sim_histories *histories, size_t nbytes)
{
    for (int order = 0; order < SIM_NORDERS; order++) {
        sim_history_init(&histories->of[order], nbytes);
    }
}

void
sim_histories_clear(sim_histories *histories)
{
    for (int order = 0; order < SIM_NORDERS; order++) {
        sim_history_clear(&histories->of[order]);
    }
}

/* The history of the bytes, which begin into it; NULL: of memory that has none. */
static sim_history *
history_of(const sim_touch *touch, int order, size_t *into)
{
    sim_device *device = touch->nbytes > 0 ? sim_owner(touch->address) : NULL;
    if (device != NULL) {
        sim_block *block = sim_block_holding(device, touch->address, touch->nbytes);
        *into = block != NULL ? touch->address - sim_block_address(block) : 0;
        return block != NULL ? &block->histories.of[order] : NULL;
    }
    sim_histories *pinned =
        touch->nbytes > 0 ? sim_pinned_histories((const void *)(uintptr_t)touch->address, touch->nbytes, into) : NULL;
    return pinned != NULL ? &pinned->of[order] : NULL;
}

static sim_access
access_of(const sim_mark *mark, bool writes)
{
    return (sim_access){.what = mark->what,
                        .device = clocks[mark->clock].device,
                        .stream = clocks[mark->clock].handle,
                        .writes = writes,
                        .place = mark->place};
}

/* Whether something there is in no order with an access behind clock, by whom of second. */
static bool
races(const sim_touch *touch, int order, const sim_clock *clock, const sim_access *second)
{
    size_t into;
    bool written = false;
    const sim_history *history = history_of(touch, order, &into);
    const sim_mark *mark =
        history != NULL ? sim_history_conflict(history, into, into + touch->nbytes, touch->writes, clock, &written)
                        : NULL;
    if (mark == NULL) {
        return false;
    }
    const sim_race race = {.first = access_of(mark, written),
                           .second = *second,
                           .of_host = sim_owner(touch->address) == NULL,
                           .said = order == SIM_SAID,
                           .bytes = touch->nbytes};
    write_down(&race);
    return true;
}

static bool
stream_races(const sim_stream *stream, int order, const char *what, const sim_touch *touches, int n)
{
    for (int i = 0; i < n; i++) {
        const sim_access second = {what, stream->device->ordinal, stream->handle, touches[i].writes, sim_race_place()};
        if (races(&touches[i], order, stream->pace.clock[order], &second)) {
            return true;
        }
    }
    return false;
}

static void
note(sim_stream *stream, int order, const char *what, const sim_touch *touches, int n)
{
    uint32_t id = stream->pace.id;
    const sim_mark mark = {++clocks[id].tick, what, sim_race_place(), id};
    clocks[id].handle = stream->handle;
    stream->pace.clock[order]->at[id] = mark.tick;
    for (int i = 0; i < n; i++) {
        size_t into;
        sim_history *history = history_of(&touches[i], order, &into);
        if (history != NULL) {
            sim_history_note(history, into, into + touches[i].nbytes, touches[i].writes, stream->pace.clock[order],
                             &mark);
        }
    }
}

CUresult
sim_race_check(sim_stream *stream, const char *what, const sim_touch *touches, int n)
{
    if (!sim_races_on() || stream->pace.id == 0) {
        return CUDA_SUCCESS;
    }
    for (int order = 0; order < SIM_NORDERS; order++) {
        catch_up(stream, order);
    }
    (void)stream_races(stream, SIM_ACTUAL, what, touches, n);
    return sim_race_untold();
}

void
sim_race_note(sim_stream *stream, const char *what, const sim_touch *touches, int n)
{
    if (sim_races_on() && stream->pace.id != 0) {
        note(stream, SIM_ACTUAL, what, touches, n);
    }
}

/* ---------------------------------------------------------------- what the program says */

static bool
use_by_stream(int device, void *handle, const char *what, const sim_touch *touches, int n)
{
    sim_stream *stream = device >= 0 && device < sim_ndevices ? sim_stream_named(&sim_devices[device], handle) : NULL;
    if (stream == NULL || stream->pace.id == 0) {
        return true;
    }
    catch_up(stream, SIM_SAID);
    if (stream_races(stream, SIM_SAID, what, touches, n)) {
        return false;
    }
    note(stream, SIM_SAID, what, touches, n);
    return true;
}

bool
sim_use(int device, void *handle, const char *what, const sim_touch *touches, int n)
{
    sim_lock();
    bool fine = sim_races() != SIM_RACES_STRICT || use_by_stream(device, handle, what, touches, n);
    sim_unlock();
    return fine;
}

bool
sim_use_by_host(const char *what, const void *memory, size_t nbytes, bool writes)
{
    const sim_touch touch = {(uint64_t)(uintptr_t)memory, nbytes, writes};
    sim_lock();
    bool wrong = false;
    int norders = sim_races() == SIM_RACES_STRICT ? SIM_NORDERS : sim_races() == SIM_RACES_ON ? SIM_SAID : 0;
    const sim_access second = {what, -1, NULL, writes, norders > 0 ? sim_race_place() : 0};
    for (int order = 0; order < norders && !wrong; order++) {
        wrong = races(&touch, order, &host[order], &second);
    }
    sim_unlock();
    return !wrong;
}

void
sim_use_afresh(uint64_t address, size_t nbytes)
{
    if (sim_races() == SIM_RACES_STRICT) {
        size_t into;
        const sim_touch touch = {address, nbytes, true};
        sim_lock();
        sim_history *history = history_of(&touch, SIM_SAID, &into);
        if (history != NULL) {
            sim_history_forget(history, into, into + nbytes);
        }
        sim_unlock();
    }
}

/* ---------------------------------------------------------------- the host's own writes */

bool
sim_race_host_is_behind_writes(const void *memory, size_t nbytes)
{
    size_t into;
    bool written;
    sim_histories *histories = sim_races_on() ? sim_pinned_histories(memory, nbytes, &into) : NULL;
    return histories != NULL && sim_history_conflict(&histories->of[SIM_ACTUAL], into, into + nbytes, false,
                                                     &host[SIM_ACTUAL], &written) == NULL;
}

uint64_t
sim_race_digest(const void *bytes, size_t nbytes)
{
    const unsigned char *at = bytes;
    uint64_t digest = nbytes, word;
    for (; nbytes >= sizeof(word); nbytes -= sizeof(word), at += sizeof(word)) {
        memcpy(&word, at, sizeof(word));
        digest = (digest ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        digest ^= digest >> 29;
    }
    for (; nbytes > 0; nbytes--, at++) {
        digest = (digest ^ *at) * UINT64_C(0x100000001b3);
    }
    return digest | 1;
}

void
sim_race_host_wrote(sim_stream *stream, size_t nbytes, uint32_t place)
{
    const sim_race race = {
        .first = {"copy to the device", stream->device->ordinal, stream->handle, false, place},
        .second = {"the host", -1, NULL, true, 0},
        .of_host = true,
        .bytes = nbytes,
    };
    write_down(&race);
}

/* ---------------------------------------------------------------- on and off */

void
sim_set_races(sim_race_mode wanted)
{
    sim_lock();
    if (wanted != sim_races()) {
        for (int i = 0; i < sim_ndevices; i++) {
            for (size_t k = 0; k < sim_devices[i].nblocks; k++) {
                sim_histories_clear(&sim_devices[i].blocks[k]->histories);
            }
        }
        sim_pinned_forget();
        untold = false;
        atomic_store(&mode, wanted);
    }
    sim_unlock();
}
