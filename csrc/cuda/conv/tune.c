/* tune.c: the first engines of a convolution timed on the arrays at hand, and the fastest remembered: by its place
 * among the candidates, which for one version of cuDNN and one kind of device is always the same, and by its number, so
 * that a place that now holds another engine is noticed. */
#include <limits.h>
#include <string.h>

#include "plan.h"
#include "../plans.h"
#include "../streams/stream.h"

#define MAX_TRIED 8
#define RUNS 3
#define BUDGET 200.0f /* milliseconds of a device's time for one key */
#define KEY_WORDS (sizeof(conv_key) / sizeof(int64_t))

/* What a key was found to do best with; candidate -1: what was found before no longer holds. */
typedef struct {
    int64_t fused, candidate, engine;
} choice;

#define CHOICE_WORDS (sizeof(choice) / sizeof(int64_t))

static atomic_bool tuning;

bool
cuda_tuning(void)
{
    return atomic_load_explicit(&tuning, memory_order_relaxed);
}

void
cuda_set_tuning(bool tune)
{
    atomic_store(&tuning, tune);
}

/* ---------------------------------------------------------------- timing */

static dt_status
time_runs(cuda_device *d, conv_plan *p, const conv_pointers *pointers, const CUevent events[2], int *status,
          float *milliseconds, dt_error *err)
{
    CUstream stream = cuda_stream(d);
    for (int i = 0; i <= RUNS && *status == 0; i++) { /* the first one loads its code */
        if (i == 1) {
            CUDA_TRY(d, cuEventRecord, (events[0], stream));
        }
        DT_TRY(cuda_conv_run_plan(d, p, pointers, status, err));
    }
    if (*status != 0) {
        return DT_OK;
    }
    CUDA_TRY(d, cuEventRecord, (events[1], stream));
    CUDA_TRY(d, cuEventSynchronize, (events[1]));
    return CUDA_CALL(d, cuEventElapsedTime, (milliseconds, events[0], events[1]));
}

/* *status: what the library answered to a run; only then no time. */
static dt_status
time_plan(cuda_device *d, conv_plan *p, const conv_pointers *pointers, int *status, float *milliseconds, dt_error *err)
{
    CUevent events[2] = {NULL, NULL};
    dt_status rc = CUDA_CALL(d, cuEventCreate, (&events[0], 0));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cuEventCreate, (&events[1], 0));
    }
    if (rc == DT_OK) {
        rc = time_runs(d, p, pointers, events, status, milliseconds, err);
    }
    for (int i = 0; i < 2; i++) {
        if (events[i] != NULL) {
            (void)cu.cuEventDestroy_v2(events[i]);
        }
    }
    return rc;
}

/* Times the candidates of one graph; *best stays NULL when all of them refuse to run. */
static dt_status
find_best(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers, conv_plan **best,
          dt_error *err)
{
    cuda_device *d = planner->device;
    conv_wish wish = {cuda_conv_wanted(key), 0, cuda_conv_room(d, key), true};
    float least = 0, spent = 0;
    for (int i = 0; i < MAX_TRIED && spent < BUDGET; i++) {
        conv_plan *p = NULL;
        dt_status rc = cuda_conv_plan_new(planner, key, &wish, &p, err);
        if (rc != DT_OK) { /* no more of them is no error */
            return rc == DT_ECUDA && cuda_conv_refused(err->library_status) ? DT_OK : rc;
        }
        if (*best != NULL && (p->fused != (*best)->fused || p->workspace > wish.room)) {
            cuda_conv_destroy(p);
            return DT_OK;
        }
        int status = 0;
        float milliseconds = 0;
        wish.fused = p->fused;
        wish.first = p->candidate + 1;
        rc = time_plan(d, p, pointers, &status, &milliseconds, err);
        if (rc == DT_OK && !cuda_conv_refused(status)) {
            rc = cuda_check(d, DT_API_cudnnBackendExecute, status, err);
        }
        if (cuda_conv_device_is_full(rc, err)) {
            cuda_conv2d_retire(p);
            continue;
        }
        if (rc == DT_OK && status == 0 && (*best == NULL || milliseconds < least)) {
            conv_plan *worse = *best;
            least = milliseconds;
            *best = p;
            p = worse;
        }
        spent += milliseconds;
        if (p != NULL) {
            cuda_conv2d_retire(p);
        }
        DT_TRY(rc);
    }
    return DT_OK;
}

/* ---------------------------------------------------------------- remembering */

/* The plan that was chosen before; NULL when nothing is known, or when what is known no longer holds. */
static dt_status
plan_known(const conv_planner *planner, const conv_key *key, conv_plan **out, dt_error *err)
{
    const choice *known = cuda_cache_find(&planner->device->tuned, key);
    if (known == NULL || known->candidate < 0) {
        return DT_OK;
    }
    const conv_wish wish = {(int)known->fused, (int)known->candidate, INT64_MAX, true};
    dt_status rc = cuda_conv_plan_new(planner, key, &wish, out, err);
    if (rc != DT_OK && (rc != DT_ECUDA || !cuda_conv_refused(err->library_status))) {
        return rc;
    }
    conv_plan *p = *out;
    if (p != NULL && p->fused == known->fused && p->candidate == known->candidate && p->engine == known->engine) {
        p->tuned = true;
        return DT_OK;
    }
    if (p != NULL) {
        cuda_conv_destroy(p);
        *out = NULL;
    }
    cuda_conv_forget(planner->device, key);
    return DT_OK;
}

void
cuda_conv_forget(cuda_device *d, const conv_key *key)
{
    choice *known = cuda_cache_find(&d->tuned, key);
    if (known != NULL) {
        *known = (choice){-1, -1, -1};
    }
}

static dt_status
remember(cuda_device *d, const conv_key *key, const choice *found, dt_error *err)
{
    choice *own = dt_malloc(sizeof(*own));
    if (own == NULL) {
        return dt_fail_nomem(err, sizeof(*own));
    }
    *own = *found;
    return cuda_cache_put(&d->tuned, key, own, err);
}

dt_status
cuda_conv_tune(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers, conv_plan **out,
               dt_error *err)
{
    conv_plan *p = NULL;
    dt_status rc = plan_known(planner, key, &p, err);
    if (rc == DT_OK && p == NULL) {
        rc = find_best(planner, key, pointers, &p, err);
        if (rc == DT_OK && p == NULL) {
            const conv_wish wish = {cuda_conv_wanted(key), 0, cuda_conv_room(planner->device, key), true};
            return cuda_conv_plan_new(planner, key, &wish, out, err);
        }
        if (rc == DT_OK) {
            const choice found = {p->fused, p->candidate, p->engine};
            p->tuned = true;
            rc = remember(planner->device, key, &found, err);
        }
    }
    if (rc != DT_OK && p != NULL) {
        cuda_conv2d_retire(p);
        return rc;
    }
    *out = p;
    return rc;
}

/* ---------------------------------------------------------------- to and from a file */

size_t
cuda_tuned_key(void)
{
    return KEY_WORDS;
}

size_t
cuda_tuned_width(void)
{
    return KEY_WORDS + CHOICE_WORDS;
}

typedef struct {
    int64_t *next; /* NULL: only count */
    size_t nrows;
} writer;

static void
write_row(void *ctx, const void *key, const void *value)
{
    writer *w = ctx;
    w->nrows++;
    if (w->next != NULL) {
        memcpy(w->next, key, sizeof(conv_key));
        memcpy(w->next + KEY_WORDS, value, sizeof(choice));
        w->next += cuda_tuned_width();
    }
}

dt_status
cuda_tuned_export(int device, int64_t **rows, size_t *nrows, dt_error *err)
{
    cuda_device *d;
    writer count = {NULL, 0};
    DT_TRY(cuda_enter(device, &d, err));
    pthread_mutex_lock(&d->library_lock);
    cuda_cache_visit(&d->tuned, write_row, &count);
    size_t nbytes = (count.nrows + 1) * cuda_tuned_width() * sizeof(int64_t);
    *rows = dt_malloc(nbytes);
    writer w = {*rows, 0};
    if (*rows != NULL) {
        cuda_cache_visit(&d->tuned, write_row, &w);
    }
    pthread_mutex_unlock(&d->library_lock);
    *nrows = w.nrows;
    return *rows != NULL ? DT_OK : dt_fail_nomem(err, nbytes);
}

dt_status
cuda_tuned_import(int device, const int64_t *row, dt_error *err)
{
    cuda_device *d;
    conv_key key;
    choice found;
    memcpy(&key, row, sizeof(key));
    memcpy(&found, row + KEY_WORDS, sizeof(found));
    if (found.fused < 0 || found.fused > (CONV_BIAS | CONV_RELU) || found.candidate < 0 || found.candidate > INT_MAX) {
        return DT_OK; /* nothing that was ever written */
    }
    DT_TRY(cuda_enter(device, &d, err));
    pthread_mutex_lock(&d->library_lock);
    dt_status rc = remember(d, &key, &found, err);
    pthread_mutex_unlock(&d->library_lock);
    return rc;
}
