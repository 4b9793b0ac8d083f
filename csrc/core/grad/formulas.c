/* formulas.c: the formulas of derivatives.def: its lines as functions, those of ops with numbers, reductions and
 * products. */
#include <math.h>

#include "../ops/clamp.h"
#include "function.h"
#include "scan.h"
#include "shape.h"
#include "tape.h"
#include "../ops/ops.h"

#define KEEP_A DT_KEEP(0)
#define KEEP_B DT_KEEP(1)
#define KEEP_C DT_KEEP(2)
#define KEEP_Y DT_KEEP_RESULT
#define FUSED(x, op, definition) (t->create_graph ? (definition) : dt_tape_fused(t, DT_BINARY_##op, x, t->params))
#define P0 N(((const dt_params *)t->params)->f[0])
#define REST0 N(1 - ((const dt_params *)t->params)->f[0])
#define P1 N(((const dt_params *)t->params)->f[1])

static void
zero_gradient(dt_tape *t)
{
    for (int i = 0; i < t->node->ninputs; i++) {
        dt_tape_give(t, i, dt_tape_wants(t, i) ? dt_tape_zeros(t, G->ndim, G->shape) : NULL);
    }
}

/* ---------------------------------------------------------------- one operand */

/* the normal distribution's cumulative function, and its density times x */
static dt_value
gelu_erf_of(dt_tape *t)
{
    dt_value below = MUL(ADD(ERF(MUL(A, N(0.7071067811865476))), N(1)), N(0.5));
    dt_value density = MUL(EXP(MUL(SQUARE(A), N(-0.5))), N(0.3989422804014327));
    return MUL(ADD(below, MUL(density, A)), G);
}

static dt_value
huber_of(dt_tape *t)
{
    dt_value distance = HOLD(SUB(A, B)), side = HOLD(SIGN(distance));
    return MUL(G, WHERE(GT(MUL(distance, side), P0), MUL(side, P0), distance));
}

/* y = x / 2 * (1 + tanh(u)), u = c (x + d x^3) */
static dt_value
gelu_tanh_of(dt_tape *t)
{
    const double c = 0.7978845608028654, d = 0.044715;
    dt_value squares = HOLD(SQUARE(A));
    dt_value tanh = HOLD(TANH(MUL(ADD(MUL(MUL(squares, A), N(d)), A), N(c))));
    dt_value inner = MUL(ADD(MUL(squares, N(3 * d)), N(1)), N(c));
    dt_value right = MUL(MUL(SUB(N(1), SQUARE(tanh)), inner), MUL(A, N(0.5)));
    return MUL(ADD(right, MUL(ADD(tanh, N(1)), N(0.5))), G);
}

#define DT_UNARY_GRAD(op, name, keeps, gradient)                                                                       \
    static void op##_gradient(dt_tape *t)                                                                              \
    {                                                                                                                  \
        dt_tape_give(t, 0, gradient);                                                                                  \
    }
#include "derivatives.def"

/* ---------------------------------------------------------------- two operands */

/* The value of an operand that is a number. */
static void
fill_numbers(dt_tape *t)
{
    const dt_binary_record *r = t->params;
    if (r->first || r->second) {
        dt_value number =
            r->number.kind == DT_CATEGORY_FLOAT ? dt_tape_number(t, r->number.f) : dt_tape_integer(t, r->number.i);
        t->kept[r->first ? 0 : 1] = number;
    }
}

static bool
is_number(dt_value x)
{
    return x != NULL && x->storage == NULL;
}

/* x x, of an operand that may be a number */
static dt_value
squared(dt_tape *t, dt_value x)
{
    const double number = ((const dt_binary_record *)t->params)->number.f;
    return is_number(x) ? N(number * number) : SQUARE(x);
}

/* g x / (a a + b b), and 0 where that sum is, as in PyTorch */
static dt_value
angle_gradient(dt_tape *t, dt_value x)
{
    dt_value sum = HOLD(ADD(squared(t, A), squared(t, B)));
    return WHERE(EQ(sum, N(0)), N(0), DIV(MUL(G, x), sum));
}

/* b a^(b-1); 0 where b is 0, whatever a is */
static dt_value
base_gradient(dt_tape *t)
{
    if (is_number(B)) {
        const double b = ((const dt_binary_record *)t->params)->number.f;
        if (b == 0) {
            return dt_tape_zeros(t, G->ndim, G->shape);
        }
        dt_value power = b == 2 ? A : POW(A, N(b - 1));
        return MUL(MUL(power, N(b)), G);
    }
    dt_value zero = EQ(B, N(0));
    return WHERE(zero, N(0), MUL(MUL(POW(A, SUB(B, N(1))), B), G));
}

/* y log(a); 0 where a is 0 and b is not negative */
static dt_value
exponent_gradient(dt_tape *t)
{
    if (is_number(A)) {
        const double a = ((const dt_binary_record *)t->params)->number.f;
        return a == 0 ? WHERE(GE(B, N(0)), N(0), MUL(MUL(Y, N(-INFINITY)), G)) : MUL(MUL(Y, N(log(a))), G);
    }
    dt_value none = AND(EQ(A, N(0)), GE(B, N(0)));
    return WHERE(none, N(0), MUL(MUL(LOG(A), Y), G));
}

/* Of x in the larger of x and y: shared where they are equal. */
static dt_value
larger_gradient(dt_tape *t, dt_value x, dt_value y)
{
    return WHERE(LT(x, y), N(0), WHERE(EQ(x, y), MUL(G, N(0.5)), G));
}

#define DT_BINARY_GRAD(op, name, keeps_a, a, keeps_b, b)                                                               \
    static void op##_gradient(dt_tape *t)                                                                              \
    {                                                                                                                  \
        fill_numbers(t);                                                                                               \
        if (dt_tape_wants(t, 0)) {                                                                                     \
            dt_tape_give(t, 0, a);                                                                                     \
        }                                                                                                              \
        if (dt_tape_wants(t, 1)) {                                                                                     \
            dt_tape_give(t, 1, b);                                                                                     \
        }                                                                                                              \
    }
#include "derivatives.def"

/* ---------------------------------------------------------------- three operands */

/* condition, a, b */
static void
where_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, WHERE(A, G, N(0)));
    }
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, WHERE(A, N(0), G));
    }
}

/* input, mask, value */
static void
masked_fill_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, WHERE(B, N(0), G));
    }
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, WHERE(B, G, N(0)));
    }
}

/* input, end, weight */
static void
lerp_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, MUL(SUB(N(1), C), G));
    }
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, MUL(G, C));
    }
    if (dt_tape_wants(t, 2)) {
        dt_tape_give(t, 2, MUL(SUB(B, A), G));
    }
}

/* input, scale, shift */
static void
affine_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, MUL(G, B));
    }
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, MUL(G, A));
    }
    dt_tape_give(t, 2, G);
}

static void
dropout_gradient(dt_tape *t)
{
    dt_array *slot = dt_tape_slot(t);
    dt_tape_give(t, 0,
                 slot == NULL ? NULL : dt_tape_made(t, dt_dropout_again("backward", G, t->params, slot, t->err), slot));
}

/* A limit as a value; NULL: none. */
static dt_value
limit(dt_tape *t, const dt_bound *bound, int operand)
{
    return !bound->given                             ? NULL
           : t->kept[operand] != NULL                ? t->kept[operand]
           : bound->scalar.kind == DT_CATEGORY_FLOAT ? dt_tape_number(t, bound->scalar.f)
                                                     : dt_tape_integer(t, bound->scalar.i);
}

/* input, min, max: a limit that is below the other one decides nothing */
static void
clamp_gradient(dt_tape *t)
{
    const dt_bound *bounds = t->params;
    dt_value low = limit(t, &bounds[0], 1), high = limit(t, &bounds[1], 2);
    if (dt_tape_wants(t, 0)) {
        dt_value above = low == NULL ? NULL : GE(A, low), below = high == NULL ? NULL : LE(A, high);
        dt_value inside = above == NULL ? below : below == NULL ? above : AND(above, below);
        dt_tape_give(t, 0, WHERE(inside, G, N(0)));
    }
    if (dt_tape_wants(t, 1)) {
        dt_value under = LT(A, low);
        dt_tape_give(t, 1, WHERE(high == NULL ? under : AND(under, LT(low, high)), G, N(0)));
    }
    if (dt_tape_wants(t, 2)) {
        dt_value over = GT(A, high);
        dt_tape_give(t, 2, WHERE(low == NULL ? over : OR(over, LT(high, low)), G, N(0)));
    }
}

/* ---------------------------------------------------------------- reductions */

/* x, a result, with the reduced dimensions as ones of size 1. */
static dt_value
with_reduced(dt_tape *t, dt_value x)
{
    const dt_node *input = dt_tape_input(t, 0);
    const uint32_t reduced = ((const dt_reduce_record *)t->params)->reduced;
    int64_t shape[DT_MAX_NDIM];
    for (int d = 0; d < input->ndim; d++) {
        shape[d] = reduced & (1u << d) ? 1 : input->shape[d];
    }
    return dt_tape_reshape(t, x, input->ndim, shape);
}

/* The same over all that was reduced, without memory for it. */
static dt_value
spread(dt_tape *t, dt_value x)
{
    const dt_node *input = dt_tape_input(t, 0);
    return dt_tape_expand(t, with_reduced(t, x), input->ndim, input->shape);
}

static int
reduced_dims(const dt_tape *t, int64_t dims[DT_MAX_NDIM])
{
    const uint32_t reduced = ((const dt_reduce_record *)t->params)->reduced;
    int n = 0;
    for (int d = 0; d < dt_tape_input(t, 0)->ndim; d++) {
        if (reduced & (1u << d)) {
            dims[n++] = d;
        }
    }
    return n;
}

/* op over what was reduced, which stays as dimensions of size 1 */
static dt_value
reduce_again(dt_tape *t, dt_reduce_op op, dt_value x)
{
    int64_t dims[DT_MAX_NDIM];
    const int n = reduced_dims(t, dims);
    return n == 0 ? x : dt_tape_reduce(t, op, x, n, dims, true);
}

static void
sum_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, spread(t, G));
}

static void
mean_gradient(dt_tape *t)
{
    const dt_node *input = dt_tape_input(t, 0);
    int64_t dims[DT_MAX_NDIM];
    double count = 1;
    for (int i = 0, n = reduced_dims(t, dims); i < n; i++) {
        count *= (double)input->shape[dims[i]];
    }
    dt_tape_give(t, 0, spread(t, DIV(G, N(count))));
}

static void
squares_gradient(dt_tape *t)
{
    dt_tape_give(t, 0, MUL(A, with_reduced(t, MUL(G, N(2)))));
}

/* At 0 it is 0. */
static void
root_squares_gradient(dt_tape *t)
{
    dt_value zero = HOLD(EQ(Y, N(0)));
    dt_value g = WHERE(zero, N(0), G), root = WHERE(zero, N(1), Y);
    dt_tape_give(t, 0, MUL(DIV(A, with_reduced(t, root)), with_reduced(t, g)));
}

/* The product of the others: y / a, and where a is the only zero that of all the others. */
static void
prod_gradient(dt_tape *t)
{
    dt_value zero = HOLD(EQ(A, N(0)));
    dt_value zeros = HOLD(reduce_again(t, DT_REDUCE_sum, zero));
    dt_value others = reduce_again(t, DT_REDUCE_prod, WHERE(zero, N(1), A));
    dt_value at_zero = WHERE(EQ(zeros, N(1)), others, N(0));
    dt_value elsewhere = WHERE(EQ(zeros, N(0)), DIV(with_reduced(t, Y), WHERE(zero, N(1), A)), N(0));
    dt_tape_give(t, 0, MUL(WHERE(zero, at_zero, elsewhere), with_reduced(t, G)));
}

/* Shared evenly by those that are equal to it. To NaN nothing is, which divides by 0 and gives NaN to all. */
static void
extremum_gradient(dt_tape *t)
{
    dt_value equal = HOLD(EQ(A, with_reduced(t, Y)));
    if (((const dt_reduce_record *)t->params)->nan_counts) {
        dt_value number = HOLD(EQ(with_reduced(t, Y), with_reduced(t, Y)));
        equal = HOLD(WHERE(number, equal, dt_tape_binary(t, DT_BINARY_ne, A, A)));
    }
    dt_value count = HOLD(reduce_again(t, DT_REDUCE_sum, equal)), share = HOLD(DIV(with_reduced(t, G), count));
    dt_tape_give(t, 0, WHERE(equal, share, WHERE(EQ(count, N(0)), MUL(share, N(0)), N(0))));
}

static dt_value
row_sum(dt_tape *t, dt_value x)
{
    const int64_t dim = ((const dt_pair_record *)t->params)->a;
    return dt_tape_sum(t, x, 1, &dim, true);
}

/* One kernel for both, where no graph is made. */
static void
softmax_at_once(dt_tape *t, bool log)
{
    dt_array *slot = dt_tape_slot(t);
    if (slot != NULL) {
        const dt_status rc =
            dt_softmax_grad("backward", G, Y, ((const dt_pair_record *)t->params)->a, log, slot, t->err);
        dt_tape_give(t, 0, dt_tape_made(t, rc, slot));
    }
}

static void
softmax_gradient(dt_tape *t)
{
    if (!t->create_graph && G->dtype == Y->dtype) {
        softmax_at_once(t, false);
        return;
    }
    dt_tape_give(t, 0, MUL(SUB(G, row_sum(t, MUL(G, Y))), Y));
}

static void
log_softmax_gradient(dt_tape *t)
{
    if (!t->create_graph && G->dtype == Y->dtype) {
        softmax_at_once(t, true);
        return;
    }
    dt_tape_give(t, 0, SUB(G, MUL(EXP(Y), row_sum(t, G))));
}

/* ---------------------------------------------------------------- products */

/* x, of one dimension, as a matrix of one row or column, and back. */
static dt_value
turned(dt_tape *t, dt_value x)
{
    return dt_tape_transpose(t, x, -2, -1);
}

/* x (.., k), not NULL, as (rows, k) */
static dt_value
as_rows(dt_tape *t, dt_value x)
{
    int64_t shape[2] = {1, x->shape[x->ndim - 1]};
    for (int d = 0; d + 1 < x->ndim; d++) {
        shape[0] *= x->shape[d];
    }
    return x->ndim == 2 ? x : dt_tape_reshape(t, x, 2, shape);
}

/* a (.., m, k) @ b (.., k, n), each of which may be a vector. */
static void
matmul_gradient(dt_tape *t)
{
    const dt_pair_record *ranks = t->params;
    const bool row = ranks->a == 1, column = ranks->b == 1;
    if (row && column) {
        if (dt_tape_wants(t, 0)) {
            dt_tape_give(t, 0, MUL(G, B));
        }
        if (dt_tape_wants(t, 1)) {
            dt_tape_give(t, 1, MUL(G, A));
        }
        return;
    }
    dt_value g = row ? dt_tape_unsqueeze(t, G, -2) : column ? dt_tape_unsqueeze(t, G, -1) : G;
    if (dt_tape_wants(t, 0)) {
        dt_value b = column ? dt_tape_unsqueeze(t, B, 0) : turned(t, B);
        dt_tape_give(t, 0, dt_tape_matmul(t, g, b));
    }
    if (!dt_tape_wants(t, 1)) {
        return;
    }
    if (!row && ranks->b == 2 && A != NULL) { /* all matrices of a met the same b: one product */
        dt_tape_give_product(t, 1, as_rows(t, A), as_rows(t, G));
        return;
    }
    dt_value a = row ? dt_tape_unsqueeze(t, A, -1) : turned(t, A);
    dt_value b = dt_tape_matmul(t, a, g);
    if (column && b != NULL) {
        b = dt_tape_select(t, b, b->ndim - 1, 0);
    }
    dt_tape_give(t, 1, b);
}

static void
outer_gradient(dt_tape *t)
{
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, dt_tape_matmul(t, G, B));
    }
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, dt_tape_matmul(t, A, G));
    }
}

static dt_value
scaled(dt_tape *t, dt_value x, double factor)
{
    return factor == 1 ? x : MUL(x, N(factor));
}

/* beta * input + alpha * (B @ C) */
static void
addmm_gradient(dt_tape *t)
{
    const dt_addmm_record *r = t->params;
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, scaled(t, G, r->beta));
    }
    if (dt_tape_wants(t, 1)) {
        dt_tape_give(t, 1, scaled(t, dt_tape_matmul(t, G, turned(t, C)), r->alpha));
    }
    if (!dt_tape_wants(t, 2)) {
        return;
    }
    if (r->alpha == 1 && G->ndim == 2) {
        dt_tape_give_product(t, 2, B, G);
    } else {
        dt_tape_give(t, 2, scaled(t, dt_tape_matmul(t, turned(t, B), G), r->alpha));
    }
}

/* input (.., in), weight (out, in), bias (out) */
static void
linear_gradient(dt_tape *t)
{
    dt_value g = G;
    if (t->kept[15] != NULL) {
        g = t->create_graph ? HOLD(WHERE(LE(Y, N(0)), N(0), G)) : HOLD(dt_tape_fused(t, DT_BINARY_relu_grad, Y, NULL));
    }
    if (dt_tape_wants(t, 0)) {
        dt_tape_give(t, 0, dt_tape_matmul(t, g, B));
    }
    if (dt_tape_wants(t, 1) && g != NULL && A != NULL) {
        dt_tape_give_product(t, 1, as_rows(t, g), as_rows(t, A));
    }
    if (t->node->ninputs > 2) {
        dt_tape_give(t, 2, g);
    }
}

/* ---------------------------------------------------------------- tables */

#define DT_DERIVATIVE(id, op, name, gradient, keeps_a, keeps_b, keeps_c)                                               \
    [DT_GRAD_##id] = {op, name, gradient, {keeps_a, keeps_b, keeps_c}},
const dt_derivative dt_derivatives[DT_NDERIVATIVES] = {
#include "derivatives.def"
};
#undef DT_DERIVATIVE

_Static_assert(DT_NDERIVATIVES < 256, "a node has a byte for its derivative");

#define DT_UNARY_GRAD(op, ...) [DT_UNARY_##op] = DT_GRAD_##op,
#define DT_UNARY_ZERO(op, ...) [DT_UNARY_##op] = DT_GRAD_##op,
const uint8_t dt_unary_derivatives[DT_NUNARY] = {
#include "derivatives.def"
};

#define DT_BINARY_GRAD(op, ...) [DT_BINARY_##op] = DT_GRAD_##op,
#define DT_BINARY_ZERO(op, ...) [DT_BINARY_##op] = DT_GRAD_##op,
const uint8_t dt_binary_derivatives[DT_NBINARY] = {
#include "derivatives.def"
};

#define DT_TERNARY_GRAD(op, ...) [DT_TERNARY_##op] = DT_GRAD_##op,
const uint8_t dt_ternary_derivatives[DT_NTERNARY] = {
#include "derivatives.def"
};

#define DT_REDUCE_GRAD(op, ...) [DT_REDUCE_##op] = DT_GRAD_##op,
const uint8_t dt_reduce_derivatives[DT_NREDUCE] = {
#include "derivatives.def"
};

/* An op without a line fails the build. */
#define DT_UNARY_GRAD(...) +1
#define DT_UNARY_ZERO(...) +1
#define DT_UNARY_NONE(...) +1
_Static_assert(0
#include "derivatives.def"
                   == DT_NUNARY,
               "every unary op of elementwise.def has one line in derivatives.def");
#define DT_BINARY_GRAD(...) +1
#define DT_BINARY_ZERO(...) +1
#define DT_BINARY_NONE(...) +1
_Static_assert(0
#include "derivatives.def"
                   == DT_NBINARY,
               "every binary op of elementwise.def has one line in derivatives.def");
#define DT_TERNARY_GRAD(...) +1
_Static_assert(0
#include "derivatives.def"
                   == DT_NTERNARY,
               "every ternary op of elementwise.def has one line in derivatives.def");
#define DT_REDUCE_GRAD(...) +1
#define DT_REDUCE_NONE(...) +1
_Static_assert(0
#include "derivatives.def"
                   == DT_NREDUCE,
               "every reduction has one line in derivatives.def");
