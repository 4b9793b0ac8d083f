/* plan.h: what the files of the convolution share: cuDNN graphs, planned once and cached. */
#ifndef DT_CUDA_CONV_PLAN_H
#define DT_CUDA_CONV_PLAN_H

#include "../device.h"

/* What is computed of the three: the result, or what its gradient, in its place, gives x or the weight. */
enum { CONV_FORWARD, CONV_INPUT_GRAD, CONV_WEIGHT_GRAD };

/* Everything that a plan depends on, in 64-bit words; shapes are N C H W, strides in elements. activation is NONE or
 * RELU: the others are never part of a graph. */
typedef struct {
    int64_t kind, dtype, tf32, channels_last, workspace_limit, has_bias, activation;
    int64_t x[4], weight[4], out[4];
    int64_t x_strides[4], weight_strides[4], out_strides[4];
    int64_t before[2], after[2], stride[2], dilation[2];
} conv_key;

/* What a graph does besides the convolution. */
enum { CONV_BIAS = 1, CONV_RELU = 2 };

/* Who plans: a device through its handle; or a description of a device, which need not be there. */
typedef struct {
    cuda_device *device;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} conv_planner;

/* What a plan is to be. */
typedef struct {
    int fused;     /* CONV_BIAS, CONV_RELU: the most that it does in one graph */
    int first;     /* from this candidate on; those for graphs that do less are all tried */
    int64_t room;  /* bytes of workspace that can be had */
    bool compiled; /* engines that are compiled at run time may be taken */
} conv_wish;

typedef struct conv_plan {
    struct conv_plan *next; /* of the retired */
    cuda_device *device;
    cudnnBackendDescriptor_t plan;
    int64_t workspace, engine;
    int64_t images;            /* not 0: no plan but advice, to convolve so many images at a time */
    int64_t room;              /* for workspaces when it was chosen: more than it found, where memory was in pieces */
    uint32_t notes, behaviors; /* bit i: the engine has numerical note i, behavior note i */
    int candidate;             /* its place among the engines of the heuristics */
    int fused;                 /* CONV_BIAS, CONV_RELU: what it does of what the key asks for */
    bool tuned;
    bool fallback;   /* named by the fallback list */
    bool crowded;    /* a better engine wants more room: one with tensor cores, or of the first list */
    bool unloadable; /* an engine before it could not be loaded */
    bool squeezed;   /* an engine before it found no memory for its code */
    bool marked;     /* last_run stands in a stream */
    int outgrown;    /* how often plans of its key made room for a better one: each time later */
    int64_t runs;    /* while it was outgrown */
    CUevent last_run;
    uint64_t queues[CUDA_MAX_QUEUES / 64]; /* bit i: it was sent to stream i, and last_run is not behind that yet */
} conv_plan;

typedef struct {
    CUdeviceptr x, weight, bias, out;
} conv_pointers;

/* Whether both sides of each dimension are padded alike. */
static inline bool
cuda_conv_is_even(const conv_key *key)
{
    return key->before[0] == key->after[0] && key->before[1] == key->after[1];
}

/* Whether cuDNN found no memory of the device. */
static inline bool
cuda_conv_found_no_memory(int status)
{
    return status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
}

/* Whether another engine may do with less: not where memory of the host was lacking. */
static inline bool
cuda_conv_device_is_full(dt_status rc, const dt_error *err)
{
    return rc == DT_EOUTOFMEMORY && err->library_status != CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
}

/* What every plan promises of every address: with less there are no tensor cores, and graphs with bias or ReLU are
 * planned as if there were no less. */
#define CONV_ALIGNMENT 16

/* graph.c: how tensors are called in the graph and in the pack of pointers */
enum { CONV_ID_X = 1, CONV_ID_WEIGHT, CONV_ID_BIAS, CONV_ID_OUT, CONV_ID_CONVOLVED, CONV_ID_BIASED };
#define CONV_MAX_PARTS 96
typedef struct {
    cudnnBackendDescriptor_t parts[CONV_MAX_PARTS]; /* of the graph, the graph last */
    int nparts;
} conv_graph;

#define CONV_SET(d, desc, name, type, count, value)                                                                    \
    CUDA_TRY(d, cudnnBackendSetAttribute, ((desc), CUDNN_ATTR_##name, CUDNN_TYPE_##type, (count), (value)))
/* Not an error but an answer: this graph or engine is not for this library or device. */
static inline bool
cuda_conv_refused(int status)
{
    return status >= CUDNN_STATUS_NOT_SUPPORTED && status < CUDNN_STATUS_INTERNAL_ERROR;
}
/* On failure too, graph is to be cleared. */
dt_status cuda_conv_graph(const conv_planner *planner, const conv_key *key, int fused, conv_graph *graph,
                          dt_error *err) DT_MUST_CHECK;
void cuda_conv_graph_clear(conv_graph *graph);
/* A new descriptor that the graph owns. */
dt_status cuda_graph_part(cuda_device *d, conv_graph *g, cudnnBackendDescriptorType_t type,
                          cudnnBackendDescriptor_t *out, dt_error *err) DT_MUST_CHECK;
/* A tensor of four dimensions; by_value: one number of the host, of float32, given at each run. */
typedef struct {
    int64_t id;
    int type;
    const int64_t *shape, *strides;
    bool is_virtual, by_value;
} graph_tensor;
dt_status cuda_graph_tensor(cuda_device *d, conv_graph *g, const graph_tensor *t, cudnnBackendDescriptor_t *out,
                            dt_error *err) DT_MUST_CHECK;
/* y = mode(x, b, chosen), of which those that are NULL are not there; axis is that of an index. */
typedef struct {
    int mode, compute;
    int64_t axis;
    cudnnBackendDescriptor_t x, b, chosen, y;
} graph_pointwise;
dt_status cuda_graph_pointwise(cuda_device *d, conv_graph *g, const graph_pointwise *p, cudnnBackendDescriptor_t *op,
                               dt_error *err) DT_MUST_CHECK;
/* The graph of operations that are its parts already. */
dt_status cuda_graph_finish(const conv_planner *planner, conv_graph *g, const cudnnBackendDescriptor_t *ops, int nops,
                            dt_error *err) DT_MUST_CHECK;

/* describe.c: the properties of a device that need not be there. */
dt_status cuda_describe_device(const char *json, size_t length, cudnnBackendDescriptor_t *out,
                               dt_error *err) DT_MUST_CHECK;

/* engine.c: plans graph by the first engine that keeps what the dtype promises and for which there is room (or,
 * where there is for none, by the one that wants least); p->plan stays NULL when there is none. strict: float32 is
 * computed in float32, without tensor cores. */
dt_status cuda_graph_plan(const conv_planner *planner, bool strict, const conv_graph *graph, const conv_wish *wish,
                          conv_plan *p, dt_error *err) DT_MUST_CHECK;

/* plan.c: a new plan that does as much in one graph as can be had. */
int cuda_conv_wanted(const conv_key *key);
dt_status cuda_conv_plan_new(const conv_planner *planner, const conv_key *key, const conv_wish *wish, conv_plan **out,
                             dt_error *err) DT_MUST_CHECK;
/* The same, or the advice to convolve in parts where that keeps an engine for which there is no room. */
dt_status cuda_conv_choose(const conv_planner *planner, const conv_key *key, const conv_wish *wish, conv_plan **out,
                           dt_error *err) DT_MUST_CHECK;
dt_status cuda_conv_fail_none(const conv_planner *planner, const conv_key *key, dt_error *err);
/* At once, where it never ran. cuda_conv2d_retire: when its runs are over, which nobody waits for. */
void cuda_conv_destroy(conv_plan *p);

/* memory.c: the bytes that a workspace may have now */
int64_t cuda_conv_room(cuda_device *d, const conv_key *key);
/* A bias that changes nothing, for convolutions with a ReLU and no bias; for so many channels. */
#define CONV_MAX_NO_BIAS 8192
dt_status cuda_conv_no_bias(cuda_device *d, const conv_key *key, CUdeviceptr *address, dt_error *err) DT_MUST_CHECK;

/* run.c: sends the convolution to the device; *fused: what of bias and activation it does. *images not 0: nothing
 * was sent, since it is better done so many images at a time. */
dt_status cuda_conv_run(cuda_device *device, const conv_key *key, const conv_pointers *pointers, int *fused,
                        int64_t *images, dt_error *err) DT_MUST_CHECK;
/* The addresses of tensors of a graph, by their ids. */
#define GRAPH_MAX_POINTERS 16
typedef struct {
    int64_t count, ids[GRAPH_MAX_POINTERS];
    void *addresses[GRAPH_MAX_POINTERS];
} graph_pointers;

dt_status cuda_graph_open_library(cuda_device *device, dt_error *err) DT_MUST_CHECK;
/* One run of a plan; *status: what the library answered. The library lock is held. */
dt_status cuda_graph_run_plan(cuda_device *device, conv_plan *p, const graph_pointers *pointers, int *status,
                              dt_error *err) DT_MUST_CHECK;
dt_status cuda_conv_run_plan(cuda_device *device, conv_plan *p, const conv_pointers *pointers, int *status,
                             dt_error *err) DT_MUST_CHECK;

/* conv2d.c: strides of a dense array of this shape, channels last or not; sizes of 1 do not matter */
void cuda_conv_strides(const int64_t *shape, bool channels_last, int64_t *strides);
bool cuda_conv_has_layout(const dt_array *x, bool channels_last);
/* The key of a convolution over arrays that all have the layout. */
void cuda_conv_key(const dt_array *x, const dt_array *weight, bool has_bias, const dt_conv2d_params *params,
                   const dt_array *out, bool channels_last, conv_key *key);

/* product.c: whether a convolution (of any layout) is better done as a product of matrices, with the result in a
 * dense layout; *done becomes false where there is no memory for that. */
bool cuda_conv_is_product(const dt_array *x, const dt_array *weight, const dt_conv2d_params *params,
                          const dt_array *out);
dt_status cuda_conv_product(cuda_device *d, const dt_array *x, const dt_array *weight, const dt_array *bias,
                            const dt_conv2d_params *params, dt_array *out, bool *done, dt_error *err) DT_MUST_CHECK;

/* The matrix x (rows, columns) for each of n, step elements apart. */
dt_array cuda_conv_for_each(const dt_array *x, int64_t n, int64_t step);

/* product_grad.c: the same for a gradient (CONV_INPUT_GRAD writes x, CONV_WEIGHT_GRAD the weight). All are dense, x and
 * grad in one layout. */
bool cuda_conv_grad_is_product(int kind, const dt_array *x, const dt_array *weight, const dt_conv2d_params *params,
                               const dt_array *grad);
dt_status cuda_conv_grad_product(cuda_device *d, int kind, const dt_array *x, const dt_array *weight,
                                 const dt_conv2d_params *params, const dt_array *grad, bool *done,
                                 dt_error *err) DT_MUST_CHECK;

/* tune.c: the plan that is fastest on these pointers, or one that was found so before; the library lock is held.
 */
dt_status cuda_conv_tune(const conv_planner *planner, const conv_key *key, const conv_pointers *pointers,
                         conv_plan **out, dt_error *err) DT_MUST_CHECK;
/* What was found no longer holds. */
void cuda_conv_forget(cuda_device *d, const conv_key *key);

#endif
