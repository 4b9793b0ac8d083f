/* attention_graph.h: attention as graphs of cuDNN (attention_graph.c), planned and run (attention_plan.c). */
#ifndef DT_CUDA_ATTENTION_GRAPH_H
#define DT_CUDA_ATTENTION_GRAPH_H

#include "../conv/plan.h"

/* KEPT: forward, with the logarithms that the gradient needs. */
enum { ATTENTION_FORWARD, ATTENTION_KEPT, ATTENTION_GRADIENT };

/* The operands of a half type; forward has the first four. An operand's id is one more. */
enum {
    ATTENTION_QUERY,
    ATTENTION_KEY,
    ATTENTION_VALUE,
    ATTENTION_OUT,
    ATTENTION_GRAD,
    ATTENTION_DQUERY,
    ATTENTION_DKEY,
    ATTENTION_DVALUE,
    ATTENTION_OPERANDS
};

/* What else is given to a run: numbers of float32 for each query, and of the host. */
enum {
    ATTENTION_ID_LOGARITHMS = ATTENTION_OPERANDS + 1,
    ATTENTION_ID_SUMS,
    ATTENTION_ID_SCALE,
    ATTENTION_ID_HIDDEN,
    ATTENTION_ID_ONE,
    ATTENTION_ID_BETWEEN
};

/* All that a plan depends on, in 64-bit words: (batch, heads, rows, columns) and strides in elements. */
typedef struct {
    int64_t kind, dtype, causal;
    int64_t shape[ATTENTION_OPERANDS][4], strides[ATTENTION_OPERANDS][4];
} attention_key;

/* On failure too, graph is to be cleared. */
dt_status cuda_attention_build(const conv_planner *planner, const attention_key *key, conv_graph *graph,
                               dt_error *err) DT_MUST_CHECK;

#endif
