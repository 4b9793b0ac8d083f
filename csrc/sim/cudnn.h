/* cudnn.h: what stands behind cuDNN's backend descriptors. A descriptor keeps copies of those it was given, so that
 * they may be destroyed. */
#ifndef DT_SIM_CUDNN_H
#define DT_SIM_CUDNN_H

#include "sim.h"

#define SIM_DNN_MAX_OPS 28
#define SIM_DNN_MAX_TENSORS 16
#define SIM_DNN_MAX_JSON 1024
#define SIM_DNN_MAX_CONFIGS 40 /* of a list */

typedef struct {
    int dtype; /* CUDNN_DATA_ */
    int64_t dims[DT_MAX_NDIM], strides[DT_MAX_NDIM];
    int64_t ndim, nstrides, uid, alignment;
    bool is_virtual, by_value; /* by_value: a number of the host */
} sim_tensor;

typedef struct {
    int compute, mode;
    int64_t spatial, pre[2], post[2], strides[2], dilations[2];
} sim_convolution;

/* Also of a reduction, whose mode is its operator, and a product. */
typedef struct {
    int mode, compute, nans; /* nans: CUDNN_PROPAGATE_NAN or not */
    int64_t axis;
} sim_pointwise;

typedef enum {
    SIM_POINTWISE,
    SIM_MATMUL,
    SIM_REDUCTION,
    SIM_RESHAPE,
    SIM_CONVOLUTION,
    SIM_INPUT_GRAD,
    SIM_WEIGHT_GRAD
} sim_operation_kind;

/* Of a gradient y is the gradient that comes, and x or b the result. */
typedef struct {
    sim_operation_kind kind;
    sim_convolution convolution;
    sim_pointwise pointwise;
    sim_tensor x, b, t, y; /* b: the weight, or the second operand; t: what a choice is by */
    float alpha, beta;
    double alpha_double, beta_double;
} sim_operation;

typedef struct {
    void *handle;
    sim_operation ops[SIM_DNN_MAX_OPS];
    int64_t nops;
} sim_graph;

/* The engines on offer, named by their index. */
enum { SIM_ENGINE_TENSOR_CORE, SIM_ENGINE_DOWN_CONVERT, SIM_ENGINE_PLAIN, SIM_ENGINE_COMPILED, SIM_NENGINES };

typedef struct {
    sim_graph graph;
    int64_t index;
} sim_engine;

/* A device that need not be there. */
typedef struct {
    char json[SIM_DNN_MAX_JSON];
    int64_t length;
} sim_properties;

typedef struct {
    sim_graph graph;
    sim_properties properties;
    int mode;
} sim_heuristics;

typedef struct {
    void *handle;
    sim_properties properties;
    sim_engine engine;
    int64_t workspace;
} sim_plan;

typedef struct {
    int64_t uids[SIM_DNN_MAX_TENSORS];
    void *pointers[SIM_DNN_MAX_TENSORS];
    int64_t nuids, npointers;
    void *workspace;
} sim_pack;

/* An engine's configuration is its engine. */
typedef struct {
    cudnnBackendDescriptorType_t type;
    bool final;
    uint64_t set[2]; /* bit i: attribute i of the table was set */
    union {
        sim_tensor tensor;
        sim_convolution convolution;
        sim_pointwise pointwise;
        sim_operation operation;
        sim_graph graph;
        sim_heuristics heuristics;
        sim_engine engine;
        sim_plan plan;
        sim_pack pack;
        sim_properties properties;
    };
} sim_dnn_desc;

typedef struct {
    sim_device *device;
    CUstream stream;
    bool busy; /* a thread is inside */
} sim_dnn;

/* cudnn.c: remembers text for cudnnGetLastErrorString and returns status. */
cudnnStatus_t sim_dnn_fail(cudnnStatus_t status, const char *text);

/* conv2d.c: whether a finished graph, or a plan of it, can be had; and how much workspace the plan wants. */
cudnnStatus_t sim_check_convolution(const sim_operation *op);
cudnnStatus_t sim_check_graph(const sim_graph *graph);
/* The engines that a heuristic names for a graph, best first, one as often as it has settings; returns their number. */
int sim_list_engines(const sim_graph *graph, int mode, int64_t engines[SIM_DNN_MAX_CONFIGS]);
/* What it answers when it is asked how many there will be: not less. */
int sim_engine_bound(int mode);
cudnnStatus_t sim_check_plan(sim_plan *plan);
/* The address that the pack gives for a tensor. */
cudnnStatus_t sim_find_address(const sim_pack *pack, const sim_tensor *tensor, uint64_t *address);
/* -1: none of ours */
int sim_dnn_dtype(int type);

/* attention.c: graphs that begin with a product, or as the gradient of attention does. */
bool sim_is_attention(const sim_graph *graph);
cudnnStatus_t sim_check_attention(const sim_graph *graph);
#define SIM_ATTENTION_WORKSPACE 256
#define SIM_MAX_TOUCHES 11
/* Makes the item that runs the plan, and says what it touches. */
cudnnStatus_t sim_attention_item(const sim_plan *plan, const sim_pack *pack, cudnnBackendDescriptor_t handle,
                                 sim_item *item, sim_touch touches[SIM_MAX_TOUCHES]);

#endif
