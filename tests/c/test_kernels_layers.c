/* test_kernels_layers.c: the kernels of variances, of normalised channels, of windows and of resampled images, with all
 * threads of a block (emulate.h), against slow references. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_EMULATED
#define DT_ONLY
#define DT_ONLY_float32
#include "../../csrc/kernels/layers/channels.cu"
#include "../../csrc/kernels/layers/pool2d.cu"
#include "../../csrc/kernels/reduce/reduce.cu"
#include "../../csrc/kernels/index/remap.cu"

#include "emulate.h"

/* ---------------------------------------------------------------- variances */

/* Two passes over n numbers, step apart. */
static double
variance_of(const float *x, int64_t n, int64_t step)
{
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        sum += x[i * step];
    }
    for (int64_t i = 0; i < n; i++) {
        const double far = x[i * step] - sum / (double)n;
        squares += far * far;
    }
    return squares / (double)n;
}

static void
test_variance(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 5000}, {3, 1000}, {70, 33}, {300, 7}};
    for (int s = 0; s < 5; s++) {
        for (int form = 0; form < 12; form++) { /* as in test_reduce */
            int64_t rows = shapes[s][0], n = shapes[s][1];
            int across = form % 2, vector = !across && form / 2 % 2 && n % 4 == 0, lanes = (form / 2 * 3) % 9;
            float *x = numbers(rows * n, 0), *out = calloc((size_t)rows, 4);
            for (int64_t i = 0; i < rows * n; i++) {
                x[i] += i % 3 == 0 ? 1000 : 1001; /* far from 0 */
            }
            k_reduce_args a = {.outer = line(rows, across ? 1 : n, 0),
                               .inner = line(n, across ? rows : 1, 0),
                               .x = operand(x),
                               .out = operand(out),
                               .rows = {lanes, across, vector},
                               .splits = 1,
                               .count = (double)n};
            run_all("k_variance_float32", &a, out, (size_t)rows * 4, "variance");
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                const double want = variance_of(x + (across ? r : r * n), n, across ? rows : 1);
                right = right && fabs(out[r] - want) <= 1e-7 * want;
            }
            check(right, "values of variance");
            free(x);
            free(out);
        }
    }
}

static void
test_split_variance(void)
{
    int64_t n = 20000, splits = 9, chunk = 2304;
    float *x = numbers(n, 1), out = 0;
    uint64_t *scratch = calloc((size_t)splits, K_REDUCE_PART_BYTES);
    k_reduce_args a = {.outer = line(1, 0, 0),
                       .inner = line(n, 1, 0),
                       .x = operand(x),
                       .out = operand(&out),
                       .scratch = operand(scratch),
                       .rows = {8, 0, 1},
                       .stage = K_STAGE_PARTIAL,
                       .splits = splits,
                       .chunk = chunk,
                       .count = (double)n,
                       .root = 1};
    a.outer.ndim = 0;
    x[0] = 1e6f; /* what others are compared with is far from them */
    run_all("k_variance_float32", &a, scratch, (size_t)splits * K_REDUCE_PART_BYTES, "parts of a variance");
    a.stage = K_STAGE_COMBINE;
    a.rows = (k_rows){4, 0, 0};
    run_all("k_variance_float32", &a, &out, 4, "variance of parts");
    const double want = sqrt(variance_of(x, n, 1));
    check(fabs(out - want) <= 1e-7 * want, "value of a split variance");
    free(x);
    free(scratch);
}

/* ---------------------------------------------------------------- windows */

/* As the host's cuda_divisor has it. */
static k_divisor
divisor(int64_t size)
{
    k_divisor by = {0};
    while ((INT64_C(1) << by.shift) < size) {
        by.shift++;
    }
    by.multiplier = (uint32_t)(((((uint64_t)1 << by.shift) - (uint64_t)size) << 32) / (uint64_t)size + 1);
    return by;
}

/* channels, height, width, kernel, stride, padding, dilation */
static const int64_t windows[][7] = {{3, 11, 13, 3, 2, 1, 1}, {2, 8, 8, 2, 2, 0, 1}, {1, 9, 7, 3, 1, 1, 2},
                                     {2, 5, 40, 3, 3, 0, 1},  {1, 6, 6, 1, 2, 0, 1}, {2, 7, 9, 2, 5, 1, 3}};
#define NWINDOWS ((int)(sizeof(windows) / sizeof(windows[0])))

static k_pool2d_args
pooled(const int64_t *w, const float *x, int64_t height, int64_t width)
{
    k_pool2d_args a = {.x = operand(x),
                       .numel = 2 * w[0] * height * width,
                       .sizes = {2, w[0], height, width},
                       .height = w[1],
                       .width = w[2],
                       .x_strides = {w[0] * w[1] * w[2], w[1] * w[2], w[2], 1},
                       .out_strides = {w[0] * height * width, height * width, width, 1}};
    for (int d = 0; d < 4; d++) {
        a.divisor[d] = divisor(a.sizes[d]);
        a.indices_strides[d] = a.out_strides[d];
    }
    for (int d = 0; d < 2; d++) {
        a.kernel[d] = w[3];
        a.stride[d] = w[4];
        a.padding[d] = w[5];
        a.dilation[d] = w[6];
    }
    return a;
}

/* Few entries at once, and blocks that share windows, against an entry after the other. */
static void
test_windows(void)
{
    for (int s = 0; s < NWINDOWS; s++) {
        const int64_t *w = windows[s], reach = (w[3] - 1) * w[6] + 1;
        const int64_t p = (w[1] + 2 * w[5] - reach) / w[4] + 1, q = (w[2] + 2 * w[5] - reach) / w[4] + 1;
        const int64_t n = 2 * w[0] * w[1] * w[2], m = 2 * w[0] * p * q;
        float *x = numbers(n, 1), *grad = numbers(m, 0);
        float *out[2] = {calloc((size_t)m, 4), calloc((size_t)m, 4)};
        float *slope[2] = {calloc((size_t)n, 4), calloc((size_t)n, 4)};
        int64_t *places[2] = {calloc((size_t)m, 8), calloc((size_t)m, 8)};
        x[n / 2] = NAN;
        for (int few = 0; few < 2; few++) {
            k_pool2d_args a = pooled(w, x, p, q);
            a.few = few;
            a.out = operand(out[few]);
            a.indices = operand(places[few]);
            run_all("k_max_pool2d_float32", &a, out[few], (size_t)m * 4, "largest of windows");
        }
        check(memcmp(out[0], out[1], (size_t)m * 4) == 0, "values of largest of windows");
        check(memcmp(places[0], places[1], (size_t)m * 8) == 0, "places of largest of windows");
        for (int padded = 0; padded < 2 && w[6] == 1; padded++) {
            for (int few = 0; few < 2; few++) {
                k_pool2d_args a = pooled(w, x, p, q);
                a.few = few;
                a.count_include_pad = padded;
                a.out = operand(out[few]);
                run_all("k_avg_pool2d_float32", &a, out[few], (size_t)m * 4, "means of windows");
            }
            check(memcmp(out[0], out[1], (size_t)m * 4) == 0, "values of means of windows");
        }
        k_max_pool2d_grad_args g = {.pool = pooled(w, x, w[1], w[2]),
                                    .grad = operand(grad),
                                    .results = {p, q},
                                    .grad_strides = {w[0] * p * q, p * q, q, 1},
                                    .by_columns = divisor(q),
                                    .by_stride = {divisor(w[4]), divisor(w[4])}};
        g.pool.out = operand(slope[0]);
        run_all("k_max_pool2d_grad_float32", &g, slope[0], (size_t)n * 4, "gradient of largest");
        for (g.rows = 1; g.rows < 12; g.rows += 3) {
            g.pool.out = operand(slope[1]);
            run_all("k_max_pool2d_grad_rows_float32", &g, slope[1], (size_t)n * 4, "gradient of largest, by rows");
            check(memcmp(slope[0], slope[1], (size_t)n * 4) == 0, "values of gradient of largest");
        }
        free(x);
        free(grad);
        for (int few = 0; few < 2; few++) {
            free(out[few]);
            free(slope[few]);
            free(places[few]);
        }
    }
}

/* ---------------------------------------------------------------- channels */

static int
near(const float *got, const double *want, int64_t n, double most)
{
    int right = 1;
    for (int64_t i = 0; i < n; i++) {
        right = right && fabs(got[i] - want[i]) <= most * (1 + fabs(want[i]));
    }
    return right;
}

/* Channels in one chunk and in several, vectors or not, by two passes over each. */
static void
test_channels(void)
{
    static const int64_t shapes[][3] = {{3, 2, 64}, {2, 3, 49}, {1, 1, 5000}, {4, 2, 1}, {5, 2, 1024}};
    for (int s = 0; s < 15; s++) {
        const int64_t images = shapes[s % 5][0], channels = shapes[s % 5][1], pixels = shapes[s % 5][2];
        const int64_t n = images * pixels, all = n * channels, splits = s / 5 == 0 ? 1 : s / 5 == 1 ? 3 : 7;
        const int64_t chunk = ((n - 1) / splits / 4 + 1) * 4;
        float *x = numbers(all, 0), *grad = numbers(all, 0), *weight = numbers(channels, 0),
              *bias = numbers(channels, 0);
        float *out = calloc((size_t)all, 4), *slope = calloc((size_t)all, 4);
        float *stats = calloc((size_t)channels * 2, 4), *sums = calloc((size_t)channels * 2, 4);
        double *want = calloc((size_t)all, 8), *steep = calloc((size_t)all, 8);
        double *numbers_of = calloc((size_t)channels * 2, 8), *sums_of = calloc((size_t)channels * 2, 8);
        for (int64_t i = 0; i < all; i++) {
            x[i] += 3;
        }
        for (int64_t c = 0; c < channels; c++) {
            double sum = 0, squares = 0, total = 0, product = 0;
            for (int pass = 0; pass < 4; pass++) {
                const double mean = sum / (double)n, scale = 1 / sqrt(squares / (double)n + 1e-5);
                for (int64_t j = 0; j < n; j++) {
                    const int64_t at = (j / pixels * channels + c) * pixels + j % pixels;
                    const double normal = (x[at] - mean) * scale;
                    if (pass == 0) {
                        sum += x[at];
                    } else if (pass == 1) {
                        squares += (x[at] - mean) * (x[at] - mean);
                    } else if (pass == 2) {
                        want[at] = normal * weight[c] + bias[c];
                        total += grad[at];
                        product += grad[at] * normal;
                    } else {
                        steep[at] = scale * weight[c] * (grad[at] - (total + normal * product) / (double)n);
                    }
                }
            }
            numbers_of[c] = sum / (double)n;
            numbers_of[channels + c] = squares / (double)(n - 1);
            sums_of[c] = product;
            sums_of[channels + c] = total;
        }
        k_channels_grad_args g = {.channels = {.x = operand(x),
                                               .weight = operand(weight),
                                               .bias = operand(bias),
                                               .out = operand(out),
                                               .stats = operand(stats),
                                               .channels = channels,
                                               .pixels = pixels,
                                               .n = n,
                                               .splits = (n - 1) / chunk + 1,
                                               .chunk = chunk,
                                               .by_pixels = divisor(pixels),
                                               .eps = 1e-5,
                                               .stage = K_STAGE_WHOLE,
                                               .vector = pixels % 4 == 0,
                                               .narrow = s % 2},
                                  .grad = operand(grad)};
        k_channels_args *a = &g.channels;
        k_moments *parts = calloc((size_t)(channels * a->splits), sizeof(k_moments));
        double *products = calloc((size_t)(channels * a->splits), 2 * sizeof(double));
        const size_t nbytes = (size_t)all * 4, numbers_bytes = (size_t)channels * 8;
        if (a->splits > 1) {
            a->parts = operand(parts);
            g.products = operand(products);
            a->stage = K_STAGE_PARTIAL;
            run_all("k_channels_float32", a, parts, (size_t)(channels * a->splits) * sizeof(k_moments), "chunks");
            a->stage = K_STAGE_COMBINE;
        }
        run_all("k_channels_float32", a, out, nbytes, "channels");
        check(near(out, want, all, 4e-6) && near(stats, numbers_of, 2 * channels, 1e-6), "values of channels");
        a->stats = operand(sums);
        a->out = operand(slope);
        if (a->splits > 1) {
            a->stage = K_STAGE_PARTIAL;
            run_all("k_channels_grad_float32", &g, products, (size_t)(channels * a->splits) * 16,
                    "gradients of chunks");
            a->stage = K_STAGE_COMBINE;
        }
        run_all("k_channels_grad_float32", &g, slope, nbytes, "gradients of channels");
        check(near(slope, steep, all, 1e-5) && near(sums, sums_of, 2 * channels, 1e-5), "values of their gradients");
        run_all("k_channels_grad_float32", &g, sums, numbers_bytes, "gradients of weights");
        void *const made[] = {x,    grad, weight,     bias,    out,   slope, stats,
                              sums, want, numbers_of, sums_of, steep, parts, products};
        for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++) {
            free(made[i]);
        }
    }
}

/* By numbers that are known: channels outside and inside. */
static void
test_batch_norm(void)
{
    static const int64_t shapes[][2] = {{3, 64}, {5, 7}, {8, 1}, {3, 1}};
    for (int s = 0; s < 8; s++) {
        const int64_t channels = shapes[s / 2][0], inner = shapes[s / 2][1], n = 2 * channels * inner;
        float *x = numbers(n, 0), *many = numbers(4 * channels, 0), *out = calloc((size_t)n, 4), root[8];
        k_batch_norm_args a = {.x = operand(x),
                               .mean = operand(many),
                               .var = operand(root),
                               .weight = operand(many + channels),
                               .bias = operand(many + 2 * channels),
                               .out = operand(out),
                               .numel = n,
                               .channels = channels,
                               .inner = inner,
                               .by_inner = divisor(inner),
                               .by_channels = divisor(channels),
                               .eps = 1e-5,
                               .vector = n % 4 == 0,
                               .narrow = s % 2};
        for (int64_t c = 0; c < channels; c++) {
            root[c] = fabsf(many[3 * channels + c]);
        }
        run_all("k_batch_norm_float32", &a, out, (size_t)n * 4, "batch norm in use");
        int right = 1;
        for (int64_t i = 0; i < n; i++) {
            const int64_t c = i / inner % channels;
            const float scale = 1 / sqrtf(root[c] + 1e-5f) * many[channels + c];
            const float product = many[c] * scale, shift = many[2 * channels + c] - product, scaled = x[i] * scale;
            right = right && out[i] == scaled + shift;
        }
        check(right, "values of batch norm in use");
        free(x);
        free(many);
        free(out);
    }
}

/* ---------------------------------------------------------------- places */

static int64_t
shown(const k_remap_dim *m, int64_t i)
{
    const int64_t k = i - m->before, n = m->n, near = (int64_t)floorf(((float)i + m->shift) * (float)m->step);
    switch (m->kind) {
    case K_REMAP_FLIP:
        return n - 1 - i;
    case K_REMAP_REFLECT:
        return n - 1 - llabs(n - 1 - llabs(k));
    case K_REMAP_REPLICATE:
        return k < 0 ? 0 : k >= n ? n - 1 : k;
    case K_REMAP_CIRCULAR:
        return ((k - m->first) % m->period + m->period) % m->period + m->first;
    case K_REMAP_NEAREST:
        return near < n ? near : n - 1;
    default:
        return i;
    }
}

static float
mean_of(const k_remap_dim *m, int64_t i, const float *x, int64_t step)
{
    float place = ((float)i + m->shift) * (float)m->step - m->shift;
    place = place < 0 ? 0 : place;
    const int64_t first = (int64_t)place < m->n ? (int64_t)place : m->n - 1;
    const int64_t second = first + 1 < m->n ? first + 1 : first;
    const float share = fminf(place - (float)first, 1);
    return x[first * step] * (1 - share) + x[second * step] * share;
}

static void
test_remap(void)
{
    static const k_remap_dim dims[] = {{.kind = K_REMAP_SAME, .n = 6},
                                       {.kind = K_REMAP_FLIP, .n = 6},
                                       {.kind = K_REMAP_REFLECT, .n = 6, .before = 5},
                                       {.kind = K_REMAP_REPLICATE, .n = 6, .before = 2},
                                       {.kind = K_REMAP_CIRCULAR, .n = 6, .before = -1, .first = 1, .period = 5},
                                       {.kind = K_REMAP_NEAREST, .n = 6, .shift = 0.5F, .step = 0.6},
                                       {.kind = K_REMAP_LINEAR, .n = 6, .shift = 0.5F, .step = 0.6}};
    static const int64_t sizes[] = {6, 6, 15, 9, 7, 10, 10};
    for (int s = 0; s < 7 * 7 * 2; s++) {
        const int first = s / 2 / 7, second = s / 2 % 7, linear = first == 6 || second == 6;
        const int64_t inner = s % 2 ? 3 : 1, n = 2 * 6 * 6 * inner, m = 2 * sizes[first] * sizes[second] * inner;
        if (linear && (first % 6 != 0 || second % 6 != 0)) {
            continue; /* means go with dimensions that stay */
        }
        float *x = numbers(n, 0), *out = calloc((size_t)m, 4);
        for (int turned = 0; turned <= linear; turned++) {
            k_remap_args a = {.x = operand(x),
                              .out = operand(out),
                              .numel = m,
                              .sizes = {2, sizes[first], sizes[second], inner},
                              .dim = {dims[first], dims[second]},
                              .columns_first = turned,
                              .wide = s % 3 == 0,
                              .vector = m % 4 == 0};
            for (int d = 0; d < 4; d++) {
                a.divisor[d] = divisor(a.sizes[d]);
            }
            run_all(linear ? "k_remap_linear_float32" : "k_remap_float32", &a, out, (size_t)m * 4, "places");
            int right = 1;
            for (int64_t i = 0; i < m; i++) {
                const int64_t c = i % inner, q = i / inner % sizes[second],
                              p = i / inner / sizes[second] % sizes[first];
                const float *plane = x + i / inner / sizes[second] / sizes[first] * 36 * inner + c;
                float want = 0, lines[6];
                if (!linear) {
                    want = plane[(shown(&dims[first], p) * 6 + shown(&dims[second], q)) * inner];
                } else if (first != 6) {
                    want = mean_of(&dims[6], q, plane + p * 6 * inner, inner);
                } else if (second != 6) {
                    want = mean_of(&dims[6], p, plane + q * inner, 6 * inner);
                } else {
                    for (int k = 0; k < 6; k++) {
                        lines[k] = turned ? mean_of(&dims[6], q, plane + k * 6 * inner, inner)
                                          : mean_of(&dims[6], p, plane + k * inner, 6 * inner);
                    }
                    want = mean_of(&dims[6], turned ? p : q, lines, 1);
                }
                right = right && out[i] == want;
            }
            check(right, "values of places");
        }
        free(x);
        free(out);
    }
}

int
main(void)
{
    emulation_open();
    test_variance();
    test_split_variance();
    test_windows();
    test_channels();
    test_batch_norm();
    test_remap();
    return emulation_close();
}
