/* races.c: what the simulated GPU's race detector finds becomes an error, and it learns what no call of the driver
 * says: what an op of the program uses, and what the host does with page-locked memory. Nothing of it on a real GPU. */
#include <stdio.h>
#include <string.h>

#include "../memory/memory.h"
#include "stream.h"

static const char *(*text_of)(unsigned place);

void
cuda_set_places(unsigned (*place)(void), const char *(*text)(unsigned place))
{
    text_of = text;
    sim_set_place(place);
}

void
cuda_set_races(sim_race_mode mode)
{
    sim_set_races(mode);
    if (mode == SIM_RACES_STRICT) {
        atomic_store(&cuda_many_streams, true); /* what one stream does counts too */
    }
}

bool
cuda_looks_for_races(void)
{
    return cuda_is_simulated() && sim_races() != SIM_RACES_OFF;
}

void
cuda_imply(bool implied)
{
    if (cuda_is_simulated()) {
        sim_imply(implied);
    }
}

/* ---------------------------------------------------------------- errors */

static void
name_stream(const sim_access *access, char *name, size_t size)
{
    cuda_device *device = access->device >= 0 ? cuda_find(access->device) : NULL;
    if (access->stream == NULL) {
        snprintf(name, size, "the NULL stream");
    } else if (device != NULL && device->stream == access->stream) {
        snprintf(name, size, "the default stream");
    } else {
        snprintf(name, size, "stream %p", access->stream);
    }
    if (access->device >= 0) {
        size_t used = strlen(name);
        snprintf(name + used, size - used, " of cuda:%d", access->device);
    }
}

/* "k_add_float32" is "add_float32" for people, and a slot for many ops has no name of theirs. */
static const char *
name_of(const char *what)
{
    static const char *const families[][2] = {
        {"unary", "an elementwise op"}, {"binary", "an elementwise op"}, {"ternary", "an elementwise op"},
        {"reduce", "a reduction"},      {"scan", "a running sum"},       {"copy", "a copy"},
        {"gather", "a selection"},      {"scatter", "an assignment"},
    };
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strcmp(what, families[i][0]) == 0) {
            return families[i][1];
        }
    }
    return strncmp(what, "k_", 2) == 0 ? what + 2 : what;
}

static void
describe(const sim_access *access, char *text, size_t size)
{
    char stream[64];
    const char *what = name_of(access->what);
    const char *place = access->place != 0 && text_of != NULL ? text_of(access->place) : NULL;
    if (access->device < 0) {
        snprintf(text, size, "%s%s%s", what, place != NULL ? ", " : "", place != NULL ? place : "");
        return;
    }
    name_stream(access, stream, sizeof(stream));
    snprintf(text, size, "%s (%s%s%s)", what, stream, place != NULL ? ", " : "", place != NULL ? place : "");
}

static dt_status
fail_race(const sim_race *race, dt_error *err)
{
    char first[400], second[400];
    describe(&race->first, first, sizeof(first));
    describe(&race->second, second, sizeof(second));
    dt_fail(err, DT_ECUDA, "stream-race", NULL,
            "A race: %s %s %llu bytes of %s that %s %s, and nothing puts the two in order. Let the second wait: "
            "stream.wait_stream(other), an event recorded after the first, or a synchronize() between them.%s",
            second, race->second.writes ? "writes" : "reads", (unsigned long long)race->bytes,
            race->of_host ? "page-locked memory" : "device memory", first, race->first.writes ? "writes" : "reads",
            race->said ? " devtensor waits by itself; PyTorch, CuPy and CUDA do not." : "");
    int device = race->second.device >= 0 ? race->second.device : race->first.device;
    err->device = (dt_device){DT_CUDA, device};
    return DT_ECUDA;
}

dt_status
cuda_fail_race(cuda_device *device, dt_api_symbol symbol, int status, dt_error *err)
{
    sim_race race;
    (void)device;
    if (!cuda_looks_for_races() || !sim_take_race(&race)) {
        return DT_OK;
    }
    (void)fail_race(&race, err);
    err->symbol = cuda_api_names[symbol];
    err->library_status = status;
    return DT_ECUDA;
}

static dt_status
fail_taken(dt_error *err)
{
    sim_race race;
    return sim_take_race(&race) ? fail_race(&race, err) : DT_OK;
}

/* ---------------------------------------------------------------- what the program says */

/* The bytes from a's first to its last element. */
static sim_touch
touch_of(const dt_array *a, bool writes)
{
    int64_t first, last;
    dt_array_extent(a, &first, &last);
    return (sim_touch){(uint64_t)(uintptr_t)a->storage->data + (uint64_t)first, (size_t)(last - first), writes};
}

/* Page-locked memory is used by the stream of the array that it meets. */
static dt_status
say_uses(const char *what, const cuda_operands *operands, dt_error *err)
{
    cuda_device *device = NULL;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < CUDA_MAX_OPERANDS; i++) {
            const dt_array *a = operands->array[i];
            bool ours = a != NULL && a->storage != NULL && dt_array_numel(a) > 0 &&
                        (pass == 0 ? a->storage->device.type == DT_CUDA : cuda_is_pinned(a) && device != NULL);
            if (!ours) {
                continue;
            }
            if (pass == 0) {
                DT_TRY(cuda_enter(a->storage->device.index, &device, err));
            }
            const sim_touch touch = touch_of(a, operands->written[i]);
            if (!sim_use(device->index, cuda_stream(device), what, &touch, 1)) {
                return fail_taken(err);
            }
        }
    }
    return DT_OK;
}

dt_status
cuda_order_use(const char *what, const cuda_operands *operands, dt_error *err)
{
    if (!cuda_is_simulated() || sim_races() != SIM_RACES_STRICT) {
        return cuda_order(operands, err);
    }
    DT_TRY(say_uses(what, operands, err));
    cuda_imply(true);
    dt_status rc = cuda_order(operands, err);
    cuda_imply(false);
    return rc;
}

dt_status
cuda_host_use(const char *what, const void *memory, size_t nbytes, bool writes, dt_error *err)
{
    bool wrong = cuda_looks_for_races() && !sim_use_by_host(what, memory, nbytes, writes);
    return wrong ? fail_taken(err) : DT_OK;
}

void
cuda_fill_again(cuda_device *device, CUdeviceptr address, size_t nbytes)
{
    if (cuda_is_simulated()) {
        sim_fill_again(cuda_stream(device), device->index, address, nbytes);
    }
}

void
cuda_use_afresh(CUdeviceptr address, size_t nbytes)
{
    if (cuda_looks_for_races()) {
        sim_use_afresh(address, nbytes);
    }
}
