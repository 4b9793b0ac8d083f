/* tape.h: what a formula of derivatives.def is made of: values, and ops on them. A failed op gives NULL, and an op
 * on NULL is NULL, so formulas nest without checks; the run ends after them. With create_graph the ops record as any
 * others do. */
#ifndef DT_GRAD_TAPE_H
#define DT_GRAD_TAPE_H

#include "params.h"

#define DT_TAPE_VALUES 96

/* An array, or a number (no storage: an immediate). */
typedef const dt_array *dt_value;

typedef struct dt_tape {
    const dt_node *node;
    const void *params;
    bool create_graph;
    dt_value grad;         /* of the result */
    const dt_array *parts; /* of the outputs of a function; without a storage where nothing came */
    int nparts;
    struct dt_task *caught;     /* of a node with hooks: what was given to each operand, for them to see; else NULL */
    dt_value kept[DT_MAX_KEPT]; /* operands, 15: the result; NULL: not kept */
    struct dt_run *run;
    dt_status rc;
    dt_error *err;
    int n;
    dt_array values[DT_TAPE_VALUES];
    bool fresh[DT_TAPE_VALUES]; /* made by an op and read by one place: that may write over it */
} dt_tape;

/* Whether operand i wants a gradient, and this run needs it. */
bool dt_tape_wants(const dt_tape *t, int i);

/* What operand i, which wants a gradient, looked like. */
static inline const dt_node *
dt_tape_input(const dt_tape *t, int i)
{
    return t->node->inputs[i];
}

/* The gradient of operand i, of any shape that it broadcast to and of any float dtype: summed and cast (give.c).
 * Several are added. */
void dt_tape_give(dt_tape *t, int i, dt_value gradient);
/* leftᵀ @ right, of (rows, m) and (rows, n). Where other products have the same operand, their rows become one. */
void dt_tape_give_product(dt_tape *t, int i, dt_value left, dt_value right);
/* The same of the part of operand i that is in the region. */
void dt_tape_give_region(dt_tape *t, int i, const dt_region *region, dt_value gradient);
/* Gives operand i the gradient of the result with zeros in the region, mostly the very memory of it: nothing reads it
 * after that. */
void dt_tape_give_rest(dt_tape *t, int i, const dt_region *region);

/* gradient, summed over what was broadcast and cast, as node's result is. */
dt_value dt_tape_fit(dt_tape *t, const dt_node *node, dt_value gradient);
/* The gradient of output i to the function that is operand 0, which has so many. */
void dt_tape_give_part(dt_tape *t, int nparts, int i);

/* Zeros of this shape with part in the region; and the region of a dense whole. */
dt_status dt_embed(const dt_array *part, const dt_region *region, int ndim, const int64_t *shape, dt_array *out,
                   dt_error *err) DT_MUST_CHECK;
dt_status dt_take_region(const dt_array *whole, const dt_region *region, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* whole[region] = or += part, whole[region] = 0 */
dt_status dt_write_region(const dt_array *whole, const dt_region *region, const dt_array *part, bool add,
                          dt_error *err) DT_MUST_CHECK;
dt_status dt_clear_region(const dt_array *whole, const dt_region *region, dt_error *err) DT_MUST_CHECK;
/* A copy of whole with zeros in the region of a dense one. */
dt_status dt_without_region(const dt_array *whole, const dt_region *region, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* A value that is read in several places. */
dt_value dt_tape_hold(dt_tape *t, dt_value x);
dt_value dt_tape_number(dt_tape *t, double number);
dt_value dt_tape_integer(dt_tape *t, int64_t number);
/* An empty place, and what became of it. */
dt_array *dt_tape_slot(dt_tape *t);
dt_value dt_tape_made(dt_tape *t, dt_status rc, dt_array *slot);

/* Ends all values from the mark-th on, which are read no more. */
void dt_tape_drop(dt_tape *t, int mark);

dt_value dt_tape_unary(dt_tape *t, dt_unary_op op, dt_value x);
dt_value dt_tape_binary(dt_tape *t, dt_binary_op op, dt_value a, dt_value b);
/* One of the ops of elementwise.def that only gradients need, on that of the result and x. */
dt_value dt_tape_fused(dt_tape *t, dt_binary_op op, dt_value x, const dt_params *params);
dt_value dt_tape_where(dt_tape *t, dt_value condition, dt_value a, dt_value b);
dt_value dt_tape_sum(dt_tape *t, dt_value x, int ndims, const int64_t *dims, bool keepdim);
dt_value dt_tape_reduce(dt_tape *t, dt_reduce_op op, dt_value x, int ndims, const int64_t *dims, bool keepdim);
dt_value dt_tape_scan(dt_tape *t, dt_scan_op op, dt_value x, int64_t dim, bool reverse);
dt_value dt_tape_reshape(dt_tape *t, dt_value x, int ndim, const int64_t *shape);
dt_value dt_tape_expand(dt_tape *t, dt_value x, int ndim, const int64_t *shape);
dt_value dt_tape_transpose(dt_tape *t, dt_value x, int dim0, int dim1);
dt_value dt_tape_unsqueeze(dt_tape *t, dt_value x, int dim);
dt_value dt_tape_narrow(dt_tape *t, dt_value x, int dim, int64_t start, int64_t length);
dt_value dt_tape_select(dt_tape *t, dt_value x, int dim, int64_t index);
dt_value dt_tape_permute(dt_tape *t, dt_value x, int n, const int64_t *dims);
dt_value dt_tape_matmul(dt_tape *t, dt_value a, dt_value b);
dt_value dt_tape_tri(dt_tape *t, dt_value x, int64_t diagonal, bool upper);
dt_value dt_tape_to(dt_tape *t, dt_value x, dt_device device, dt_dtype dtype);
dt_value dt_tape_region(dt_tape *t, dt_value x, const dt_region *region);
dt_value dt_tape_clone(dt_tape *t, dt_value x);
/* New: zeros of this shape, of the dtype and device of the gradient. */
dt_value dt_tape_zeros(dt_tape *t, int ndim, const int64_t *shape);

/* ---------------------------------------------------------------- the words of formulas */

/* scalar.h has some of them for numbers */
#undef ADD
#undef SUB
#undef MUL
#undef NEG
#undef FLOORDIV
#undef SIGMOID

#define G (t->grad)
#define A (t->kept[0])
#define B (t->kept[1])
#define C (t->kept[2])
#define Y (t->kept[15])
#define N(number) dt_tape_number(t, (number))
#define ADD(x, y) dt_tape_binary(t, DT_BINARY_add, x, y)
#define SUB(x, y) dt_tape_binary(t, DT_BINARY_sub, x, y)
#define MUL(x, y) dt_tape_binary(t, DT_BINARY_mul, x, y)
#define DIV(x, y) dt_tape_binary(t, DT_BINARY_div, x, y)
#define POW(x, y) dt_tape_binary(t, DT_BINARY_pow, x, y)
#define FLOORDIV(x, y) dt_tape_binary(t, DT_BINARY_floor_divide, x, y)
#define MINIMUM(x, y) dt_tape_binary(t, DT_BINARY_minimum, x, y)
#define EQ(x, y) dt_tape_binary(t, DT_BINARY_eq, x, y)
#define LT(x, y) dt_tape_binary(t, DT_BINARY_lt, x, y)
#define LE(x, y) dt_tape_binary(t, DT_BINARY_le, x, y)
#define GT(x, y) dt_tape_binary(t, DT_BINARY_gt, x, y)
#define GE(x, y) dt_tape_binary(t, DT_BINARY_ge, x, y)
#define OR(x, y) dt_tape_binary(t, DT_BINARY_logical_or, x, y)
#define AND(x, y) dt_tape_binary(t, DT_BINARY_logical_and, x, y)
#define NEG(x) dt_tape_unary(t, DT_UNARY_neg, x)
#define SIGN(x) dt_tape_unary(t, DT_UNARY_sign, x)
#define SQUARE(x) dt_tape_unary(t, DT_UNARY_square, x)
#define EXP(x) dt_tape_unary(t, DT_UNARY_exp, x)
#define LOG(x) dt_tape_unary(t, DT_UNARY_log, x)
#define SIN(x) dt_tape_unary(t, DT_UNARY_sin, x)
#define COS(x) dt_tape_unary(t, DT_UNARY_cos, x)
#define SINH(x) dt_tape_unary(t, DT_UNARY_sinh, x)
#define COSH(x) dt_tape_unary(t, DT_UNARY_cosh, x)
#define RSQRT(x) dt_tape_unary(t, DT_UNARY_rsqrt, x)
#define TRUNC(x) dt_tape_unary(t, DT_UNARY_trunc, x)
#define TANH(x) dt_tape_unary(t, DT_UNARY_tanh, x)
#define SIGMOID(x) dt_tape_unary(t, DT_UNARY_sigmoid, x)
#define ERF(x) dt_tape_unary(t, DT_UNARY_erf, x)
#define ERFINV(x) dt_tape_unary(t, DT_UNARY_erfinv, x)
#define WHERE(condition, x, y) dt_tape_where(t, condition, x, y)
#define HOLD(x) dt_tape_hold(t, x)

#endif
