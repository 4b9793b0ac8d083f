/* test_kernels.c: the kernels that share work within a block, with all threads of it (emulate.h), against slow
 * references. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_EMULATED
#define DT_ONLY
#define DT_ONLY_float32
#define DT_ONLY_float16
#define DT_ONLY_int64
#include "../../csrc/kernels/layers/attention.cu"
#include "../../csrc/kernels/elementwise/copy.cu"
#include "../../csrc/kernels/layers/depthwise.cu"
#include "../../csrc/kernels/reduce/dot.cu"
#include "../../csrc/kernels/reduce/reduce.cu"
#include "../../csrc/kernels/layers/skinny.cu"
#include "../../csrc/kernels/layers/softmax.cu"

#include "emulate.h"

/* ---------------------------------------------------------------- reductions */

static void
test_reduce(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 5000}, {3, 1000}, {70, 33}, {300, 7}, {40, 64}};
    for (int s = 0; s < 6; s++) {
        for (int form = 0; form < 12; form++) { /* across or along, vectors or not, 1 to 256 lanes */
            int64_t rows = shapes[s][0], n = shapes[s][1];
            int across = form % 2, vector = !across && form / 2 % 2 && n % 4 == 0, lanes = (form / 2 * 3) % 9;
            float *x = numbers(rows * n, 0), *sums = calloc((size_t)rows, 4);
            int64_t *places = calloc((size_t)rows, 8);
            k_reduce_args a = {.outer = line(rows, across ? 1 : n, 0),
                               .inner = line(n, across ? rows : 1, 0),
                               .x = operand(x),
                               .rows = {lanes, across, vector},
                               .splits = 1};
            a.out = operand(sums);
            run_all("k_sum_float32", &a, sums, (size_t)rows * 4, "sum");
            a.out = operand(places);
            run_all("k_argmax_float32", &a, places, (size_t)rows * 8, "argmax");
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0, size = 0;
                int64_t best = 0;
                for (int64_t i = 0; i < n; i++) {
                    float v = x[across ? i * rows + r : r * n + i];
                    sum += v;
                    size += fabs((double)v);
                    best = v > x[across ? best * rows + r : r * n + best] ? i : best;
                }
                right = right && fabs(sums[r] - sum) <= 1e-7 * size + 1e-12 && places[r] == best;
            }
            check(right, "values of sum and argmax");
            free(x);
            free(sums);
            free(places);
        }
    }
}

static void
test_split_reduce(void)
{
    int64_t n = 20000, splits = 9, chunk = 2304;
    float *x = numbers(n, 1), sum = 0;
    uint64_t *scratch = calloc((size_t)splits * 2, 8);
    k_reduce_args a = {.outer = line(1, 0, 0),
                       .inner = line(n, 1, 0),
                       .x = operand(x),
                       .out = operand(&sum),
                       .scratch = operand(scratch),
                       .rows = {8, 0, 1},
                       .stage = K_STAGE_PARTIAL,
                       .splits = splits,
                       .chunk = chunk};
    a.outer.ndim = 0;
    run_all("k_sum_float32", &a, scratch, (size_t)splits * 16, "parts of a sum");
    a.stage = K_STAGE_COMBINE;
    a.rows = (k_rows){4, 0, 0};
    run_all("k_sum_float32", &a, &sum, 4, "sum of parts");
    double want = 0;
    for (int64_t i = 0; i < n; i++) {
        want += x[i];
    }
    check(sum == (float)want, "value of a split sum");
    int64_t place = -1, best = 0;
    x[n - 5] = x[7777] = 99;
    a.stage = K_STAGE_PARTIAL;
    a.rows = (k_rows){8, 0, 1};
    a.out = operand(&place);
    launch("k_argmax_float32", 5, 256, FALLING, &a);
    a.stage = K_STAGE_COMBINE;
    launch("k_argmax_float32", 5, 64, 0, &a);
    for (int64_t i = 0; i < n; i++) {
        best = x[i] > x[best] ? i : best;
    }
    check(place == best && best == 7777, "place of a split argmax");
    free(x);
    free(scratch);
}

/* ---------------------------------------------------------------- softmax */

static void
test_softmax(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 8}, {37, 100}, {9, 512}, {3, 4096}, {2, 9001}};
    for (int s = 0; s < 6; s++) {
        for (int form = 0; form < 8; form++) {
            int64_t rows = shapes[s][0], n = shapes[s][1];
            int across = form % 2, lanes = form / 2 == 0 ? 0 : form / 2 == 1 ? 3 : form / 2 == 2 ? 5 : 8;
            float *x = numbers(rows * n, 0), *out = calloc((size_t)(rows * n), 4);
            k_softmax_args a = {.n = n, .x = operand(x), .out = operand(out), .rows = {lanes, across, 0}};
            a.outer = line(rows, across ? 1 : n, across ? 1 : n);
            a.x_stride = a.out_stride = across ? rows : 1;
            a.rows.vector = !across && n % 4 == 0 && n > 1;
            a.kept = (((n - 1) / (4 << lanes)) + 1) * 16 <= K_SOFTMAX_KEEP;
            if (n > 100) {
                x[5] = 80; /* a largest element that comes late for some lanes */
            }
            run_all("k_softmax_float32", &a, out, (size_t)(rows * n) * 4, "softmax");
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0, top = -1e30;
                for (int64_t i = 0; i < n; i++) {
                    double v = x[across ? i * rows + r : r * n + i];
                    top = v > top ? v : top;
                }
                for (int64_t i = 0; i < n; i++) {
                    sum += exp(x[across ? i * rows + r : r * n + i] - top);
                }
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = across ? i * rows + r : r * n + i;
                    double want = exp(x[at] - top) / sum;
                    right = right && fabs(out[at] - want) <= 4e-7 * want + 1e-38;
                }
            }
            check(right, "values of softmax");
            run_all("k_log_softmax_float32", &a, out, (size_t)(rows * n) * 4, "log_softmax");
            free(x);
            free(out);
        }
    }
}

static void
test_softmax_grad(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 8}, {37, 100}, {9, 512}, {2, 9001}};
    for (int s = 0; s < 5; s++) {
        for (int form = 0; form < 16; form++) {
            int64_t rows = shapes[s][0], n = shapes[s][1];
            int across = form % 2, take_log = form / 2 % 2, lanes = (form / 4 * 3) % 9;
            float *grad = numbers(rows * n, 0), *result = numbers(rows * n, 0), *out = calloc((size_t)(rows * n), 4);
            const int64_t strides[3][3] = {{across ? 1 : n}, {across ? 1 : n}, {across ? 1 : n}};
            k_softmax_grad_args a = {.grad = operand(grad), .grad_stride = across ? rows : 1, .log = take_log};
            a.softmax = (k_softmax_args){.n = n, .x = operand(result), .out = operand(out), .rows = {lanes, across, 0}};
            a.softmax.outer = index_of(1, &rows, 3, strides);
            a.softmax.x_stride = a.softmax.out_stride = a.grad_stride;
            a.softmax.rows.vector = !across && n % 4 == 0;
            run_all("k_softmax_grad_float32", &a, out, (size_t)(rows * n) * 4, "gradient of softmax");
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0, size = 0;
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = across ? i * rows + r : r * n + i;
                    double term = take_log ? (double)grad[at] : (double)grad[at] * result[at];
                    sum += term;
                    size += fabs(term);
                }
                for (int64_t i = 0; i < n; i++) {
                    int64_t at = across ? i * rows + r : r * n + i;
                    double by = take_log ? exp(result[at]) : result[at], g = grad[at];
                    right =
                        right && fabs(out[at] - (take_log ? g - by * sum : by * (g - sum))) <= 4e-7 * (1 + size) * 3;
                }
            }
            check(right, "values of the gradient of softmax");
            free(grad);
            free(result);
            free(out);
        }
    }
}

/* ---------------------------------------------------------------- transposed copies */

static k_divisor
divisor(int64_t size)
{
    k_divisor by = {0};
    while ((INT64_C(1) << by.shift) < size) {
        by.shift++;
    }
    by.multiplier = (uint32_t)((((UINT64_C(1) << by.shift) - (uint64_t)size) << 32) / (uint64_t)size + 1);
    return by;
}

static void
test_transpose(void)
{
    static const int64_t shapes[][3] = {{1, 16, 16}, {1, 33, 65}, {3, 100, 31}, {2, 1, 40}, {2, 70, 130}};
    for (int s = 0; s < 5; s++) {
        int64_t n = shapes[s][0], rows = shapes[s][1], columns = shapes[s][2], size = rows * columns;
        float *x = numbers(n * size, 0), *out = calloc((size_t)(n * size), 4);
        const int64_t across = (columns - 1) / K_TILE_COLUMNS + 1, tiles = ((rows - 1) / K_TILE_ROWS + 1) * across;
        k_transpose_args a = {.outer = line(n, size, size),
                              .x = operand(x),
                              .out = operand(out),
                              .rows = rows,
                              .columns = columns,
                              .x_stride = rows,
                              .out_stride = columns,
                              .tiles = tiles,
                              .across = across,
                              .by_tiles = divisor(tiles),
                              .by_across = divisor(across)};
        run_all("k_transpose_float32", &a, out, (size_t)(n * size) * 4, "transpose");
        int right = 1;
        for (int64_t i = 0; i < n * size; i++) {
            int64_t b = i / size, r = i % size / columns, c = i % columns;
            right = right && out[i] == x[b * size + c * rows + r];
        }
        check(right, "values of transpose");
        free(x);
        free(out);
    }
}

/* ---------------------------------------------------------------- attention */

static double
score(const k_attention_args *a, const float *x, const float *y, const uint8_t *seen, const float *added, int64_t q,
      int64_t k)
{
    double sum = 0;
    if ((a->causal && k > q) || (a->mask_kind == K_MASK_BOOL && !seen[q * a->keys + k])) {
        return -(double)INFINITY;
    }
    for (int64_t d = 0; d < a->depth; d++) {
        sum += (double)x[q * a->depth + d] * y[k * a->depth + d];
    }
    return sum * (double)a->scale + (a->mask_kind == K_MASK_NUMBERS ? (double)added[q * a->keys + k] : 0);
}

static void
test_attention(void)
{
    static const int64_t sizes[][4] = {{70, 150, 30, 32}, {33, 70, 64, 40}, {20, 40, 128, 100}, {17, 5, 3, 2}};
    for (int form = 0; form < 4 * 4; form++) { /* a size; no mask, two masks, causal */
        const int64_t *n = sizes[form % 4], queries = n[0], keys = n[1], depth = n[2], columns = n[3];
        float *x = numbers(queries * depth, 0), *y = numbers(keys * depth, 0), *values = numbers(keys * columns, 0);
        float *added = numbers(queries * keys, 0), *out = calloc((size_t)(queries * columns), 4);
        uint8_t *seen = calloc((size_t)(queries * keys), 1);
        for (int64_t i = 0; i < queries * keys; i++) {
            seen[i] = i / keys != 3 && i % 5 != 0;
        }
        k_attention_args a = {.heads = line(1, 0, 0),
                              .groups = line(1, 0, 0),
                              .query = operand(x),
                              .key = operand(y),
                              .value = operand(values),
                              .out = operand(out),
                              .queries = queries,
                              .keys = keys,
                              .depth = depth,
                              .columns = columns,
                              .group = 1,
                              .query_strides = {depth, 1},
                              .key_strides = {depth, 1},
                              .value_strides = {columns, 1},
                              .mask_strides = {keys, 1},
                              .out_strides = {columns, 1},
                              .scale = 0.25f,
                              .causal = form / 4 == 3,
                              .mask_kind = form / 4 % 3};
        a.mask = a.mask_kind == K_MASK_BOOL ? operand(seen) : operand(added);
        run_all("k_attention_float32", &a, out, (size_t)(queries * columns) * 4, "attention");
        int right = 1;
        for (int64_t i = 0; i < queries * columns; i++) {
            double total = 0, sum = 0;
            for (int64_t k = 0; k < keys; k++) {
                const double weight = exp(score(&a, x, y, seen, added, i / columns, k));
                total += weight;
                sum += weight * (double)values[k * columns + i % columns];
            }
            right = right && fabs((double)out[i] - (total > 0 ? sum / total : 0)) < 2e-5;
        }
        check(right, "values of attention");
        free(x);
        free(y);
        free(values);
        free(added);
        free(out);
        free(seen);
    }
}

/* Heads of 3 queries, from query 5 on; the last row has no weight where there is a mask of bool. */
static void
test_weigh(void)
{
    static const int64_t sizes[] = {1, 130, 600, 4096, 5003};
    enum { HEADS = 3, QUERIES = 3, ROWS = HEADS * QUERIES, FIRST = 5 };
    for (int form = 0; form < 5 * 4; form++) { /* a size; no mask, two masks, causal */
        const int64_t keys = sizes[form % 5], pitch = (keys + 7) / 8 * 8;
        float *scores = numbers(ROWS * pitch, 0), *added = numbers(HEADS * keys, 0);
        float *weights = numbers(ROWS * pitch, 0);
        uint8_t *seen = calloc((size_t)(HEADS * keys), 1);
        for (int64_t i = 0; i < HEADS * keys; i++) {
            seen[i] = i / keys != HEADS - 1 && i % 5 != 0;
        }
        scores[pitch / 2] = 80; /* a largest score that comes late for some lanes */
        k_weigh_args a = {.heads = line(HEADS + 1, keys, 0),
                          .rows = ROWS,
                          .queries = QUERIES,
                          .keys = (int32_t)keys,
                          .pitch = pitch,
                          .head = 1,
                          .first = FIRST,
                          .by_queries = divisor(QUERIES),
                          .unit = 2,
                          .mask_strides = {0, 1},
                          .causal = form / 5 == 3,
                          .mask_kind = form / 5 % 3,
                          .lanes = keys <= 128   ? 3
                                   : keys <= 600 ? 6
                                                 : 8};
        a.kept = K_WEIGH_CHUNK << a.lanes >= keys;
        const char *mask = a.mask_kind == K_MASK_BOOL ? (const char *)(seen - keys) : (const char *)(added - keys);
        a.mask = operand(mask);
        memcpy(weights, scores, (size_t)(ROWS * pitch) * 4);
        a.scores = operand(weights);
        run_all("k_weigh_float32", &a, weights, (size_t)(ROWS * pitch) * 4, "weights");
        int right = 1;
        for (int64_t r = 0; r < ROWS; r++) {
            const int64_t head = r / QUERIES, last = a.causal ? FIRST + r % QUERIES : keys - 1;
            double total = 0, size = 0;
            for (int pass = 0; pass < 2; pass++, size = total) {
                for (int64_t k = 0; k < keys; k++) {
                    const int64_t at = head * keys + k;
                    const int hidden = k > last || (a.mask_kind == K_MASK_BOOL && !seen[at]);
                    const double more = a.mask_kind == K_MASK_NUMBERS ? (double)added[at] : 0;
                    const double weight = hidden ? 0 : exp((double)scores[r * pitch + k] + more);
                    const double want = size > 0 ? 2 * weight / size : 0;
                    total += pass == 0 ? weight : 0;
                    right = right && (pass == 0 || fabs((double)weights[r * pitch + k] - want) <= 2e-6 * want + 1e-38);
                }
            }
        }
        check(right, "values of weights");
        uint16_t *narrow = (uint16_t *)(void *)weights;
        float *wide = malloc((size_t)(ROWS * pitch) * 4);
        memcpy(wide, weights, (size_t)(ROWS * pitch) * 4);
        if (a.mask_kind != K_MASK_NUMBERS) {
            memcpy(weights, scores, (size_t)(ROWS * pitch) * 4);
            run_all("k_weigh_float16", &a, weights, (size_t)(ROWS * pitch) * 4, "weights of float16");
            for (int64_t i = 0; i < ROWS * keys; i++) {
                const int64_t r = i / keys, k = i % keys;
                right = right && narrow[r * pitch * 2 + k] == dt_f32_to_f16(wide[r * pitch + k]).bits;
            }
            check(right, "values of weights of float16");
        }
        free(wide);
        free(scores);
        free(added);
        free(weights);
        free(seen);
    }
}

/* ---------------------------------------------------------------- products */

static void
fill_product(k_skinny_args *a, int64_t m, int64_t n, int64_t k, const float *x, const float *y, float *out)
{
    memset(a, 0, sizeof(*a));
    a->batch = line(1, 0, 0);
    a->a = operand(x);
    a->b = operand(y);
    a->out = operand(out);
    a->m = m;
    a->n = n;
    a->k = k;
    a->a_strides[0] = k;
    a->a_strides[1] = 1;
    a->b_strides[0] = n;
    a->b_strides[1] = 1;
    a->out_strides[0] = n;
    a->out_strides[1] = 1;
    a->alpha = 1;
}

static int
is_product(const k_skinny_args *a, int64_t batch, const float *x, const float *y, const float *bias, const float *out)
{
    int right = 1;
    for (int64_t g = 0; g < batch; g++) {
        for (int64_t i = 0; i < a->m; i++) {
            for (int64_t j = 0; j < a->n; j++) {
                double sum = bias ? bias[j] : 0;
                for (int64_t l = 0; l < a->k; l++) {
                    sum += (double)x[g * a->m * a->k + i * a->a_strides[0] + l * a->a_strides[1]] *
                           y[g * a->k * a->n + l * a->b_strides[0] + j * a->b_strides[1]];
                }
                sum = a->activation == K_ACTIVATION_RELU && sum <= 0 ? 0 : sum;
                right = right && out[g * a->m * a->n + i * a->n + j] == (float)sum;
            }
        }
    }
    return right;
}

static void
test_skinny(void)
{
    static const int64_t ms[] = {1, 3, 8}, ns[] = {4, 40, 132}, ks[] = {1, 63, 260};
    for (int form = 0; form < 27 * 6; form++) {
        int64_t m = ms[form % 3], n = ns[form / 3 % 3], k = ks[form / 9 % 3];
        int across = form / 27 % 2, lanes = 3 + form / 54 * 2;
        int64_t pitch = across ? n : (k + 3) / 4 * 4; /* rows of b are aligned */
        float *x = numbers(m * (pitch + k), 1), *y = numbers(across ? k * n : n * pitch, 1), *bias = numbers(n, 1);
        float *out = calloc((size_t)(m * n), 4);
        k_skinny_args a;
        fill_product(&a, m, n, k, x, y, out);
        if (!across) {
            a.b_strides[0] = 1;
            a.b_strides[1] = a.a_strides[0] = pitch;
            a.a_vector = form / 81 == 0;
        }
        a.lanes = lanes;
        a.across = across;
        a.bias = operand(bias);
        a.bias_strides[1] = 1;
        a.activation = form % 2 ? K_ACTIVATION_RELU : K_ACTIVATION_NONE;
        run_all("k_skinny_float32", &a, out, (size_t)(m * n) * 4, "skinny product");
        check(is_product(&a, 1, x, y, bias, out), "values of a skinny product");
        free(x);
        free(y);
        free(bias);
        free(out);
    }
}

static void
test_dot(void)
{
    static const int64_t lengths[] = {1, 1023, 5000, 9001};
    for (int form = 0; form < 4 * 3; form++) {
        int64_t k = lengths[form % 4], chunk = 2048, stride = form / 4 == 2 ? 3 : 1;
        float *x = numbers(k * stride, 1), *y = numbers(k, 1), sums[8];
        k_dot_args a = {.x = operand(x), .y = operand(y), .sums = operand(sums), .k = k, .chunk = chunk};
        a.splits = (k - 1) / chunk + 1;
        a.x_stride = stride;
        a.y_stride = 1;
        a.vector = form / 4 == 1;
        run_all("k_dot_float32", &a, sums, (size_t)a.splits * 4, "parts of a dot product");
        double got = 0, want = 0;
        for (int64_t i = 0; i < a.splits; i++) {
            got += sums[i];
        }
        for (int64_t i = 0; i < k; i++) {
            want += (double)x[i * stride] * y[i];
        }
        check(got == want, "value of a dot product");
        free(x);
        free(y);
    }
}

static void
test_small_products(void)
{
    static const int64_t shapes[][3] = {{1, 1, 1}, {4, 5, 6}, {32, 32, 32}, {7, 1, 31}};
    for (int s = 0; s < 4; s++) {
        int64_t m = shapes[s][0], n = shapes[s][1], k = shapes[s][2], batch = 21;
        float *x = numbers(batch * m * k, 1), *y = numbers(batch * k * n, 1), *out = calloc((size_t)(batch * m * n), 4);
        const int64_t strides[3][3] = {{m * n}, {m * k}, {k * n}};
        k_skinny_args a;
        fill_product(&a, m, n, k, x, y, out);
        a.batch = index_of(1, &batch, 3, strides);
        a.by_pair = divisor((m + n) * k);
        a.by_result = divisor(m * n);
        a.by_k = divisor(k);
        a.by_n = divisor(n);
        a.together = (int32_t)(K_SMALL_SHARED / ((m + n) * k * 4) < 16 ? K_SMALL_SHARED / ((m + n) * k * 4) : 16);
        run_all("k_small_matmul_float32", &a, out, (size_t)(batch * m * n) * 4, "small products");
        check(is_product(&a, batch, x, y, NULL, out), "values of small products");
        free(x);
        free(y);
        free(out);
    }
}

/* ---------------------------------------------------------------- depthwise convolution */

static void
test_depthwise(void)
{
    for (int form = 0; form < 16; form++) {
        int last = form % 2, taps = form / 2 % 2 ? 5 : 3, stride = form / 4 % 2 + 1, dilation = form / 8 + 1;
        int64_t n = 2, c = 12, h = 11, w = 9, pad = taps / 2,
                p = (h + 2 * pad - dilation * (taps - 1) - 1) / stride + 1,
                q = (w + 2 * pad - dilation * (taps - 1) - 1) / stride + 1;
        float *x = numbers(n * c * h * w, 1), *weight = numbers(c * taps * taps, 1), *bias = numbers(c, 1);
        float *out = calloc((size_t)(n * c * p * q), 4);
        k_depthwise_args a = {.x = operand(x),
                              .weight = operand(weight),
                              .bias = operand(bias),
                              .out = operand(out),
                              .channels = c,
                              .shape = {n, p, q},
                              .height = h,
                              .width = w,
                              .rows = (p - 1) / K_STRIP + 1,
                              .x_strides = {c * h * w, last ? 1 : h * w, last ? w * c : w, last ? c : 1},
                              .out_strides = {c * p * q, last ? 1 : p * q, last ? q * c : q, last ? c : 1},
                              .weight_strides = {taps * taps, taps, 1},
                              .bias_stride = 1,
                              .kernel = {taps, taps},
                              .stride = {stride, stride},
                              .padding = {pad, pad},
                              .dilation = {dilation, dilation},
                              .lanes = form % 4,
                              .wide = 1,
                              .activation = K_ACTIVATION_RELU};
        a.strips = n * a.rows * q;
        a.share = 20;
        a.form = dilation > 1               ? K_DEPTHWISE_ANY
                 : taps == 3                ? (stride == 1 ? K_DEPTHWISE_3X3 : K_DEPTHWISE_3X3_STEP_2)
                 : taps == 5 && stride == 1 ? K_DEPTHWISE_5X5
                                            : K_DEPTHWISE_ANY;
        run_all(last ? "k_depthwise_float32" : "k_depthwise_planes_float32", &a, out, (size_t)(n * c * p * q) * 4,
                "depthwise");
        int right = 1;
        for (int64_t i = 0; i < n * c * p * q; i++) {
            int64_t b = i / (c * p * q), ch = i / (p * q) % c, y = i / q % p, z = i % q;
            float sum = bias[ch];
            for (int64_t r = 0; r < taps; r++) {
                for (int64_t s = 0; s < taps; s++) {
                    int64_t hh = y * stride - pad + r * dilation, ww = z * stride - pad + s * dilation;
                    if (hh >= 0 && hh < h && ww >= 0 && ww < w) {
                        sum += weight[(ch * taps + r) * taps + s] *
                               x[b * a.x_strides[0] + ch * a.x_strides[1] + hh * a.x_strides[2] + ww * a.x_strides[3]];
                    }
                }
            }
            right = right &&
                    out[b * a.out_strides[0] + ch * a.out_strides[1] + y * a.out_strides[2] + z * a.out_strides[3]] ==
                        (sum <= 0 ? 0 : sum);
        }
        check(right, "values of depthwise");
        free(x);
        free(weight);
        free(bias);
        free(out);
    }
}

int
main(void)
{
    emulation_open();
    test_reduce();
    test_split_reduce();
    test_softmax();
    test_softmax_grad();
    test_attention();
    test_weigh();
    test_transpose();
    test_skinny();
    test_small_products();
    test_dot();
    test_depthwise();
    return emulation_close();
}
