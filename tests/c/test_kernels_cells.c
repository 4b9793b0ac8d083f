/* test_kernels_cells.c: all steps of an LSTM or GRU and their gradient, with all threads of a block (emulate.h),
 * against loops. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef OF_DOUBLE
#define REAL double
#define DT_ONLY_float64
#define KERNEL(name) name "_float64"
#else
#define REAL float
#define DT_ONLY_float32
#define KERNEL(name) name "_float32"
#endif
#define DT_EMULATED
#define DT_ONLY
#include "../../csrc/kernels/layers/cell.cu"

#include "emulate.h"

enum { LSTM, GRU };
static const int GATES[] = {4, 3};

typedef struct {
    int cell, steps, n, size, rows, reverse;
} layer;

static const layer LAYERS[] = {{LSTM, 5, 7, 8, 4, 0},  {LSTM, 4, 3, 12, 2, 1}, {LSTM, 6, 1, 20, 1, 0},
                               {GRU, 5, 7, 8, 4, 1},   {GRU, 4, 3, 12, 2, 0},  {GRU, 6, 1, 20, 1, 1},
                               {LSTM, 4, 5, 64, 4, 0}, {GRU, 4, 5, 64, 4, 0},  {LSTM, 2, 2, 144, 2, 0}};
enum { NLAYERS = sizeof(LAYERS) / sizeof(*LAYERS) };

static REAL *
reals(int64_t n)
{
    REAL *x = aligned_alloc(64, ((size_t)n * sizeof(REAL) + 63) / 64 * 64);
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)number();
    }
    return x;
}

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* What stands where: those of the product and of the weight as PyTorch has it. */
typedef struct {
    REAL *product, *weight, *turned, *bias, *h, *c;
} operands;

static operands
make(const layer *l)
{
    const int wide = GATES[l->cell] * l->size;
    operands o = {reals((int64_t)l->steps * l->n * wide), reals((int64_t)wide * l->size),
                  reals((int64_t)wide * l->size),         reals(wide),
                  reals((int64_t)l->n * l->size),         reals((int64_t)l->n * l->size)};
    for (int k = 0; k < wide * l->size; k++) {
        o.weight[k] *= 0.3f;
    }
    for (int g = 0; g < wide; g++) {
        for (int k = 0; k < l->size; k++) {
            o.turned[k * wide + g] = o.weight[g * l->size + k];
        }
    }
    return o;
}

static void
clear(operands *o)
{
    free(o->product);
    free(o->weight);
    free(o->turned);
    free(o->bias);
    free(o->h);
    free(o->c);
}

/* The product with the input of step t of row r. */
static const REAL *
given(const layer *l, const operands *o, int t, int r)
{
    const int at = l->reverse ? l->steps - 1 - t : t;
    return o->product + ((int64_t)at * l->n + r) * GATES[l->cell] * l->size;
}

/* Row r in double: own (steps, wide), h and c (steps + 1, size). */
static void
take_row(const layer *l, const operands *o, int r, double *own, double *h, double *c)
{
    const int size = l->size, wide = GATES[l->cell] * size;
    for (int j = 0; j < size; j++) {
        h[j] = o->h[r * size + j];
        c[j] = o->c[r * size + j];
    }
    for (int t = 0; t < l->steps; t++, own += wide, h += size, c += size) {
        const REAL *x = given(l, o, t, r);
        for (int g = 0; g < wide; g++) {
            own[g] = o->bias[g];
            for (int k = 0; k < size; k++) {
                own[g] += h[k] * o->weight[g * size + k];
            }
        }
        for (int j = 0; j < size; j++) {
            const double p[] = {own[j] + x[j], own[size + j] + x[size + j]};
            if (l->cell == LSTM) {
                const double fresh = tanh(own[2 * size + j] + x[2 * size + j]);
                c[size + j] = sigmoid(p[1]) * c[j] + sigmoid(p[0]) * fresh;
                h[size + j] = sigmoid(own[3 * size + j] + x[3 * size + j]) * tanh(c[size + j]);
            } else {
                const double fresh = tanh(x[2 * size + j] + sigmoid(p[0]) * own[2 * size + j]);
                h[size + j] = (1 - sigmoid(p[1])) * fresh + sigmoid(p[1]) * h[j];
            }
        }
    }
}

/* The loss of which gradients are taken: the sum of h * its weights over all steps, and of the last c. */
static double
loss_of_row(const layer *l, const operands *o, int r, const REAL *grad, const REAL *last)
{
    const int size = l->size, wide = GATES[l->cell] * size;
    double *own = malloc(sizeof(double) * (size_t)(l->steps * wide));
    double *h = malloc(sizeof(double) * (size_t)((l->steps + 1) * size));
    double *c = calloc((size_t)((l->steps + 1) * size), sizeof(double)), loss = 0;
    take_row(l, o, r, own, h, c);
    for (int t = 0; t < l->steps; t++) {
        for (int j = 0; j < size; j++) {
            loss += h[(t + 1) * size + j] * grad[((int64_t)t * l->n + r) * size + j];
        }
    }
    for (int j = 0; j < (l->cell == LSTM ? size : 0); j++) {
        loss += c[l->steps * size + j] * last[r * size + j];
    }
    free(own);
    free(h);
    free(c);
    return loss;
}

static int
is_near(double got, double want)
{
    return fabs(got - want) <= 1e-4 * (1 + fabs(want));
}

/* float64 has room for half as many. */
static int
rows_of(const layer *l)
{
    return sizeof(REAL) == 8 && l->rows > 2 ? 2 : l->rows;
}

/* All outputs of the steps in one block of memory: own, h and c of each. */
static REAL *
run_steps(const layer *l, const operands *o)
{
    const int size = l->size, wide = GATES[l->cell] * size, lstm = l->cell == LSTM;
    const int64_t states = (int64_t)l->n * size, products = (int64_t)l->steps * l->n * wide;
    const int64_t all = products + 2 * l->steps * states;
    REAL *out = calloc((size_t)all, sizeof(REAL));
    const int64_t step = (int64_t)l->n * wide;
    k_cell_steps_args a = {.product = operand(o->product),
                           .weight = operand(o->turned),
                           .bias = operand(o->bias),
                           .h = operand(o->h),
                           .state = operand(lstm ? o->c : NULL),
                           .own = operand(out),
                           .out = operand(out + products),
                           .cells = operand(lstm ? out + products + l->steps * states : NULL),
                           .steps = l->steps,
                           .n = l->n,
                           .size = size,
                           .product_first = l->reverse ? (l->steps - 1) * step : 0,
                           .product_step = l->reverse ? -step : step,
                           .product_row = wide,
                           .bias_stride = 1,
                           .h_row = size,
                           .h_column = 1,
                           .state_row = size,
                           .cells_step = states,
                           .out_step = states,
                           .rows = rows_of(l)};
    run_all(lstm ? KERNEL("k_lstm_steps") : KERNEL("k_gru_steps"), &a, out, (size_t)all * sizeof(REAL), "steps");
    return out;
}

static void
test_steps(const layer *l, const operands *o, const REAL *out)
{
    const int size = l->size, wide = GATES[l->cell] * size;
    double *own = malloc(sizeof(double) * (size_t)(l->steps * wide));
    double *h = malloc(sizeof(double) * (size_t)((l->steps + 1) * size));
    double *c = malloc(sizeof(double) * (size_t)((l->steps + 1) * size));
    const REAL *hs = out + (int64_t)l->steps * l->n * wide, *cs = hs + (int64_t)l->steps * l->n * size;
    int right = 1;
    for (int r = 0; r < l->n; r++) {
        take_row(l, o, r, own, h, c);
        for (int t = 0; t < l->steps; t++) {
            const int64_t row = (int64_t)t * l->n + r;
            for (int g = 0; g < wide; g++) {
                right = right && is_near(out[row * wide + g], own[t * wide + g]);
            }
            for (int j = 0; j < size; j++) {
                right = right && is_near(hs[row * size + j], h[(t + 1) * size + j]);
                right = right && (l->cell == GRU || is_near(cs[row * size + j], c[(t + 1) * size + j]));
            }
        }
    }
    check(right, "values of steps");
    free(own);
    free(h);
    free(c);
}

/* A few gradients against differences of the loss in double. */
static void
test_gradients(const layer *l, const operands *o, const REAL *out)
{
    const int size = l->size, wide = GATES[l->cell] * size, lstm = l->cell == LSTM;
    const int64_t states = (int64_t)l->n * size, step = (int64_t)l->n * wide, products = l->steps * step;
    const int64_t all = (lstm ? 1 : 2) * products + 2 * states;
    REAL *grad = reals(l->steps * states), *last = reals(states), *found = calloc((size_t)all, sizeof(REAL));
    REAL *begin = found + all - 2 * states, *before = malloc((size_t)(l->steps * states) * sizeof(REAL));
    const REAL *kept = out + products + (lstm ? l->steps * states : 0); /* the c of each step, or h */
    memcpy(before, lstm ? o->c : o->h, (size_t)states * sizeof(REAL));
    memcpy(before + states, kept, (size_t)((l->steps - 1) * states) * sizeof(REAL));
    if (lstm) {
        memcpy(begin + states, last, (size_t)states * sizeof(REAL));
    }
    k_cell_steps_grad_args a = {.own = operand(out),
                                .product = operand(o->product),
                                .weight = operand(o->weight),
                                .state = operand(before),
                                .grad = operand(grad),
                                .gates = operand(found),
                                .begin = operand(begin),
                                .steps = l->steps,
                                .n = l->n,
                                .size = size,
                                .product_first = l->reverse ? products - step : 0,
                                .product_step = l->reverse ? -step : step,
                                .product_row = wide,
                                .state_step = states,
                                .gates_first = l->reverse ? products - step : 0,
                                .gates_step = l->reverse ? -step : step,
                                .gates_next = lstm ? 0 : products,
                                .begin_next = lstm ? states : 0,
                                .rows = rows_of(l)};
    run_all(lstm ? KERNEL("k_lstm_steps_grad") : KERNEL("k_gru_steps_grad"), &a, found, (size_t)all * sizeof(REAL),
            "gradients");
    const REAL *of_product = found + (lstm ? 0 : products);
    struct {
        REAL *x;
        const REAL *gradient;
        int64_t count, row; /* of numbers, and of those of a row */
    } given[] = {
        {o->product, of_product, products, wide}, {o->h, begin, states, size}, {o->c, begin + states, states, size}};
    int right = 1;
    for (int k = 0; k < (lstm ? 3 : 2); k++) {
        for (int64_t i = 0; i < given[k].count; i += given[k].count / 40 + 1) {
            const int r = (int)(i / given[k].row % l->n);
            const REAL x = given[k].x[i], up = x + (REAL)1 / 1024, down = x - (REAL)1 / 1024;
            given[k].x[i] = up;
            const double above = loss_of_row(l, o, r, grad, last);
            given[k].x[i] = down;
            const double slope = (above - loss_of_row(l, o, r, grad, last)) / ((double)up - down);
            given[k].x[i] = x;
            right = right && is_near(given[k].gradient[i], slope);
        }
    }
    check(right, "values of gradients");
    /* the first two gates of a GRU have the same gradient in both products */
    right = 1;
    for (int64_t i = 0; i < products; i++) {
        right = right && (lstm || i % wide >= 2 * size || found[i] == of_product[i]);
    }
    check(right, "gradients in common");
    /* of the product with h: what a step gave its weight's bias, all of them together */
    double sum = 0, slope = 0;
    for (int64_t i = 0; i < products; i += wide) {
        sum += found[i + wide - 1];
    }
    for (int side = 0; side < 2; side++) {
        o->bias[wide - 1] += side == 0 ? 1.0f / 1024 : -2.0f / 1024;
        for (int r = 0; r < l->n; r++) {
            slope += (side == 0 ? 512 : -512) * loss_of_row(l, o, r, grad, last);
        }
    }
    check(fabs(sum - slope) <= 1e-3 * (1 + fabs(slope)), "gradient of the bias");
    free(grad);
    free(last);
    free(found);
    free(before);
}

int
main(void)
{
    emulation_open();
    for (int i = 0; i < NLAYERS; i++) {
        operands o = make(&LAYERS[i]);
        REAL *out = run_steps(&LAYERS[i], &o);
        test_steps(&LAYERS[i], &o, out);
        test_gradients(&LAYERS[i], &o, out);
        free(out);
        clear(&o);
    }
    return emulation_close();
}
