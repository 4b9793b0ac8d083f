/* engine.c: which of cuDNN's engines may run a graph. Heuristics name candidates, those of mode A first, then
 * those of the fallback list.
 *
 * Numerical notes. An engine is taken only if all of its notes are among those allowed here, so that one of a later
 * version is no surprise:
 *   TENSOR_CORE                  allowed; for float32 only under "tf32", since it rounds the inputs to ten bits
 *   STRICT_NAN_PROP              allowed
 *   DOWN_CONVERT_INPUTS          never: float32 or float64 would be computed in fewer bits
 *   REDUCED_PRECISION_REDUCTION  never: sums are made in float32 (float64 in itself)
 *   FFT, WINOGRAD and its tiles  never: their error is not bounded by the sum of absolute products
 *   NONDETERMINISTIC             never: a run repeats bit for bit
 * Behavior notes. Engines that want filters or biases reordered for int8 are never taken; those that are compiled at
 * run time, which takes a second, where that is asked for; a need of cuBLASLt and support of CUDA graphs change no
 * result. */
#include "plan.h"
#include "../memory/memory.h"

#define MAX_CONFIGS 64
#define MAX_NOTES 32
#define NOTE(name) (UINT32_C(1) << CUDNN_NUMERICAL_NOTE_##name)
#define BEHAVIOR(name) (UINT32_C(1) << CUDNN_BEHAVIOR_NOTE_##name)

static uint32_t
allowed_notes(bool strict)
{
    return NOTE(STRICT_NAN_PROP) | (strict ? 0 : NOTE(TENSOR_CORE));
}

static bool
is_allowed(bool strict, const conv_wish *wish, const conv_plan *p)
{
    const uint32_t unwanted = BEHAVIOR(REQUIRES_FILTER_INT8x32_REORDER) | BEHAVIOR(REQUIRES_BIAS_INT8x32_REORDER) |
                              (wish->compiled ? 0 : BEHAVIOR(RUNTIME_COMPILATION));
    return (p->notes & ~allowed_notes(strict)) == 0 && (p->behaviors & unwanted) == 0;
}

/* Notes of a kind as bits. */
static dt_status
read_notes(cuda_device *d, cudnnBackendDescriptor_t engine, int name, int type, uint32_t *bits, dt_error *err)
{
    int notes[MAX_NOTES];
    int64_t count = 0;
    *bits = 0;
    CUDA_TRY(d, cudnnBackendGetAttribute, (engine, name, type, MAX_NOTES, &count, notes));
    for (int64_t i = 0; i < count && i < MAX_NOTES; i++) {
        *bits |= UINT32_C(1) << (notes[i] < 31 ? notes[i] : 31);
    }
    return DT_OK;
}

/* Fills p's engine, notes and behaviors from config. */
static dt_status
read_engine(cuda_device *d, cudnnBackendDescriptor_t config, conv_plan *p, dt_error *err)
{
    cudnnBackendDescriptor_t engine = NULL;
    int64_t count = 0;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine));
    dt_status rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                             (config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &engine));
    if (rc == DT_OK) {
        rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                       (engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &count, &p->engine));
    }
    if (rc == DT_OK) {
        rc = read_notes(d, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, &p->notes, err);
    }
    if (rc == DT_OK) {
        rc = read_notes(d, engine, CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, CUDNN_TYPE_BEHAVIOR_NOTE, &p->behaviors, err);
    }
    (void)cu.cudnnBackendDestroyDescriptor(engine);
    return rc;
}

static dt_status
fill_plan(const conv_planner *planner, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t config, dt_error *err)
{
    cuda_device *d = planner->device;
    if (planner->handle != NULL) {
        CONV_SET(d, plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &planner->handle);
    }
    if (planner->properties != NULL) {
        CONV_SET(d, plan, EXECUTION_PLAN_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &planner->properties);
    }
    CONV_SET(d, plan, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1, &config);
    return DT_OK;
}

/* Code that cannot be made or loaded here, as where there is no driver. */
static bool
is_unloadable(int status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED ||
           (status >= CUDNN_STATUS_EXECUTION_FAILED && status < CUDNN_STATUS_EXECUTION_FAILED + 1000);
}

/* Whether the engine is passed over: it is not for this graph or device, finds no memory, or parameters wrong that
 * another takes. */
static bool
is_passed_over(int status)
{
    return is_unloadable(status) || cuda_conv_refused(status) || cuda_conv_found_no_memory(status) ||
           (status >= CUDNN_STATUS_BAD_PARAM && status < CUDNN_STATUS_NOT_SUPPORTED);
}

/* Where there is a device, code may be loaded. */
static dt_status
finalize_plan(cuda_device *d, cudnnBackendDescriptor_t plan, conv_plan *p, int *status, dt_error *err)
{
    CUDA_TRY_WITH_ROOM(d, *status, d != NULL && cuda_conv_found_no_memory(*status), cu.cudnnBackendFinalize(plan));
    p->unloadable = p->unloadable || is_unloadable(*status);
    p->squeezed = p->squeezed || cuda_conv_found_no_memory(*status);
    return is_passed_over(*status) ? DT_OK : cuda_check(d, DT_API_cudnnBackendFinalize, *status, err);
}

/* Makes an execution plan of config; p->plan stays NULL when it is refused. */
static dt_status
plan_config(const conv_planner *planner, cudnnBackendDescriptor_t config, conv_plan *p, dt_error *err)
{
    cuda_device *d = planner->device;
    cudnnBackendDescriptor_t plan = NULL;
    int64_t count = 0;
    int status = 0;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, &plan));
    dt_status rc = fill_plan(planner, plan, config, err);
    if (rc == DT_OK) {
        rc = finalize_plan(d, plan, p, &status, err);
    }
    if (rc == DT_OK && d != NULL && is_unloadable(status)) {
        rc = cuda_check_lost(d, err);
    }
    if (rc == DT_OK && status == 0) {
        rc = CUDA_CALL(d, cudnnBackendGetAttribute,
                       (plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &p->workspace));
    }
    if (rc != DT_OK || status != 0) {
        (void)cu.cudnnBackendDestroyDescriptor(plan);
        return rc;
    }
    p->plan = plan;
    return DT_OK;
}

/* The configurations that one heuristic names. */
typedef struct {
    cudnnBackendDescriptor_t heuristics, configs[MAX_CONFIGS];
    int nconfigs;  /* made */
    int64_t count; /* named */
} config_list;

static void
list_close(config_list *list)
{
    for (int i = 0; i < list->nconfigs; i++) {
        (void)cu.cudnnBackendDestroyDescriptor(list->configs[i]);
    }
    if (list->heuristics != NULL) {
        (void)cu.cudnnBackendDestroyDescriptor(list->heuristics);
    }
}

/* On failure too, the list is to be closed. A heuristic that refuses names nothing. */
static dt_status
list_open(const conv_planner *planner, cudnnBackendDescriptor_t graph, int mode, config_list *list, dt_error *err)
{
    cuda_device *d = planner->device;
    CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, &list->heuristics));
    CONV_SET(d, list->heuristics, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1, &graph);
    CONV_SET(d, list->heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
    if (planner->properties != NULL) {
        CONV_SET(d, list->heuristics, ENGINEHEUR_DEVICEPROP, BACKEND_DESCRIPTOR, 1, &planner->properties);
    }
    int status = cu.cudnnBackendFinalize(list->heuristics);
    if (cuda_conv_refused(status)) {
        return DT_OK;
    }
    DT_TRY(cuda_check(d, DT_API_cudnnBackendFinalize, status, err));
    for (; list->nconfigs < MAX_CONFIGS; list->nconfigs++) {
        CUDA_TRY(d, cudnnBackendCreateDescriptor, (CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &list->configs[list->nconfigs]));
    }
    status = cu.cudnnBackendGetAttribute(list->heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                         MAX_CONFIGS, &list->count, list->configs);
    if (cuda_conv_refused(status)) {
        list->count = 0;
        return DT_OK;
    }
    list->count = list->count < MAX_CONFIGS ? list->count : MAX_CONFIGS;
    return cuda_check(d, DT_API_cudnnBackendGetAttribute, status, err);
}

/* Keeps in *best the plan for which there is room, or else the one that wants least; whether the search is over. */
static bool
keep_better(const conv_wish *wish, const conv_plan *p, conv_plan *best)
{
    if (p->plan == NULL) {
        return false;
    }
    bool fits = p->workspace <= wish->room;
    if (best->plan == NULL || fits || p->workspace < best->workspace) {
        if (best->plan != NULL) {
            (void)cu.cudnnBackendDestroyDescriptor(best->plan);
        }
        *best = *p;
    } else {
        (void)cu.cudnnBackendDestroyDescriptor(p->plan);
    }
    return fits;
}

/* How far a search has come. */
typedef struct {
    int rank; /* candidates so far */
    bool fallback, done;
    bool wide_tensor_core, wide_first; /* passed over for want of room: tensor cores, an engine of the first list */
} search;

/* Goes over the candidates of one list. */
static dt_status
try_list(const conv_planner *planner, bool strict, const config_list *list, const conv_wish *wish, search *s,
         conv_plan *best, dt_error *err)
{
    for (int64_t i = 0; i < list->count && !s->done; i++) {
        conv_plan p = *best;
        p.plan = NULL;
        p.fallback = s->fallback;
        p.candidate = s->rank++;
        if (p.candidate < wish->first) {
            continue;
        }
        DT_TRY(read_engine(planner->device, list->configs[i], &p, err));
        if (is_allowed(strict, wish, &p)) {
            DT_TRY(plan_config(planner, list->configs[i], &p, err));
            s->done = keep_better(wish, &p, best);
            best->unloadable = p.unloadable;
            best->squeezed = p.squeezed;
            s->wide_first |= p.plan != NULL && !s->done && !p.fallback;
            s->wide_tensor_core |= p.plan != NULL && !s->done && (p.notes & NOTE(TENSOR_CORE)) != 0;
        }
    }
    return DT_OK;
}

dt_status
cuda_graph_plan(const conv_planner *planner, bool strict, const conv_graph *graph, const conv_wish *wish, conv_plan *p,
                dt_error *err)
{
    static const int modes[] = {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK};
    search s = {.rank = 0};
    for (int i = 0; i < 2 && !s.done; i++) {
        config_list list = {.heuristics = NULL};
        s.fallback = i == 1;
        dt_status rc = list_open(planner, graph->parts[graph->nparts - 1], modes[i], &list, err);
        if (rc == DT_OK) {
            rc = try_list(planner, strict, &list, wish, &s, p, err);
        }
        list_close(&list);
        DT_TRY(rc);
    }
    p->crowded = p->squeezed || !s.done || (s.wide_first && p->fallback) ||
                 (s.wide_tensor_core && (p->notes & NOTE(TENSOR_CORE)) == 0);
    return DT_OK;
}
