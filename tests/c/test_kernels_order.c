/* test_kernels_order.c: what goes along rows: normalize.cu, scan.cu and sort_rows.cu, with all threads of a block
 * (emulate.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_EMULATED
#define DT_ONLY
#define DT_ONLY_float32
#define DT_ONLY_float64
#define DT_ONLY_uint8
#include "../../csrc/kernels/layers/normalize.cu"
#include "../../csrc/kernels/order/scan.cu"
#include "../../csrc/kernels/order/sort_rows.cu"

#include "emulate.h"

/* ---------------------------------------------------------------- normalisation */

static int
is_normalized(const k_normalize_args *a, const float *x, const float *weight, const float *bias, const float *out)
{
    for (int64_t r = 0; r < a->rows; r++) {
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < a->n; i++) {
            sum += x[r * a->n + i];
        }
        const double mean = a->centred ? sum / (double)a->n : 0;
        for (int64_t i = 0; i < a->n; i++) {
            squares += (x[r * a->n + i] - mean) * (x[r * a->n + i] - mean);
        }
        for (int64_t i = 0; i < a->n; i++) {
            const int64_t at = a->pixels ? r % a->groups * a->each + i / a->pixels : i;
            const double want =
                (x[r * a->n + i] - mean) / sqrt(squares / (double)a->n + a->eps) * weight[at] + bias[at];
            if (!(fabs(out[r * a->n + i] - want) <= 1e-5 * (fabs(want) + 1))) {
                return 0;
            }
        }
    }
    return 1;
}

static void
test_normalize(void)
{
    static const int64_t shapes[][4] = {/* rows, n, groups, pixels */
                                        {1, 1, 0, 0},    {5, 8, 0, 0},   {37, 100, 0, 0}, {3, 4096, 0, 0},
                                        {2, 9001, 0, 0}, {6, 36, 3, 12}, {4, 35, 2, 7},   {2, 9000, 2, 1500}};
    for (int s = 0; s < 8; s++) {
        for (int form = 0; form < 8; form++) {
            const int64_t rows = shapes[s][0], n = shapes[s][1], pixels = shapes[s][3];
            const int lanes = form / 2 == 0 ? 0 : form / 2 == 1 ? 3 : form / 2 == 2 ? 5 : 8;
            float *x = numbers(rows * n, 1), *weight = numbers(n + 64, 1), *bias = numbers(n + 64, 1);
            float *out = calloc((size_t)(rows * n), 4);
            const k_normalize_args a = {.x = operand(x),
                                        .weight = operand(weight),
                                        .bias = operand(bias),
                                        .out = operand(out),
                                        .rows = rows,
                                        .n = n,
                                        .groups = shapes[s][2],
                                        .each = pixels ? n / pixels : 0,
                                        .pixels = pixels,
                                        .eps = 1e-5,
                                        .lanes = lanes,
                                        .centred = form % 2,
                                        .kept = n <= (K_NORMALIZE_KEEP / 4) << lanes,
                                        .vector = n % 4 == 0,
                                        .narrow = form % 4 < 2};
            run_all("k_normalize_float32", &a, out, (size_t)(rows * n) * 4, "normalize");
            check(is_normalized(&a, x, weight, bias, out), "values of normalize");
            free(x);
            free(weight);
            free(bias);
            free(out);
        }
    }
}

/* dx by the formula, and what a column of weight and bias gets, in float64. */
static int
are_gradients(const k_normalize_args *a, const float *x, const float *weight, const float *grad, const float *dx,
              double *products, double *sums)
{
    for (int64_t r = 0; r < a->rows; r++) {
        const float *row = x + r * a->n, *came = grad + r * a->n;
        double sum = 0, squares = 0, level = 0, along = 0;
        for (int64_t i = 0; i < a->n; i++) {
            sum += row[i];
        }
        const double mean = a->centred ? sum / (double)a->n : 0;
        for (int64_t i = 0; i < a->n; i++) {
            squares += (row[i] - mean) * (row[i] - mean);
        }
        const double scale = 1 / sqrt(squares / (double)a->n + a->eps);
        for (int64_t i = 0; i < a->n; i++) {
            const double normal = (row[i] - mean) * scale;
            level += came[i] * weight[i];
            along += came[i] * weight[i] * normal;
            products[i] += came[i] * normal;
            sums[i] += came[i];
        }
        for (int64_t i = 0; i < a->n; i++) {
            const double normal = (row[i] - mean) * scale, off = a->centred ? level / (double)a->n : 0;
            const double want = (came[i] * weight[i] - off - normal * along / (double)a->n) * scale;
            if (!(fabs(dx[r * a->n + i] - want) <= 2e-5 * (fabs(want) + scale * 10))) {
                return 0;
            }
        }
    }
    return 1;
}

static void
test_normalize_grad(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 8}, {70, 100}, {33, 40}, {2, 4500}};
    for (int s = 0; s < 5; s++) {
        for (int form = 0; form < 6; form++) {
            const int64_t rows = shapes[s][0], n = shapes[s][1], chunk = form % 2 ? 32 : 7;
            const int64_t chunks = (rows - 1) / chunk + 1;
            const int lanes = form / 2 == 0 ? 0 : form / 2 == 1 ? 4 : 8;
            float *x = numbers(rows * n, 1), *weight = numbers(n, 1), *grad = numbers(rows * n, 0);
            float *dx = calloc((size_t)(rows * n), 4), *stats = calloc((size_t)(2 * rows), 4);
            double *parts = calloc((size_t)(2 * n * chunks), 8), *want = calloc((size_t)(2 * n), 8);
            k_normalize_grad_args a = {.grad = operand(grad), .stats = operand(stats)};
            a.normalize = (k_normalize_args){.x = operand(x),
                                             .weight = operand(weight),
                                             .out = operand(dx),
                                             .rows = rows,
                                             .n = n,
                                             .eps = 1e-3,
                                             .lanes = lanes,
                                             .centred = form % 3 > 0,
                                             .kept = n <= (K_NORMALIZE_KEEP / 4) << lanes,
                                             .vector = n % 4 == 0,
                                             .narrow = 1};
            run_all("k_normalize_grad_float32", &a, dx, (size_t)(rows * n) * 4, "normalize_grad");
            check(are_gradients(&a.normalize, x, weight, grad, dx, want, want + n), "values of normalize_grad");
            const k_normalize_sums_args b = {.x = operand(x),
                                             .grad = operand(grad),
                                             .stats = operand(stats),
                                             .out = operand(parts),
                                             .rows = rows,
                                             .n = n,
                                             .chunk = chunk};
            run_all("k_normalize_sums_float32", &b, parts, (size_t)(2 * n * chunks) * 8, "normalize_sums");
            int right = 1;
            for (int64_t i = 0; i < 2 * n; i++) {
                double sum = 0;
                for (int64_t c = 0; c < chunks; c++) {
                    sum += parts[2 * c * n + i];
                }
                right = right && fabs(sum - want[i]) <= 1e-4 * (fabs(want[i]) + 10);
            }
            check(right, "values of normalize_sums");
            free(x);
            free(weight);
            free(grad);
            free(dx);
            free(stats);
            free(parts);
            free(want);
        }
    }
}

/* ---------------------------------------------------------------- scans */

/* Whole rows, or with splits first what each part comes to. */
static void
run_scan(const char *name, k_scan_args *a, int64_t chunk, void *out, size_t nbytes)
{
    double *scratch = NULL;
    a->splits = chunk ? (a->n - 1) / chunk + 1 : 1;
    a->chunk = chunk ? chunk : a->n;
    if (a->splits > 1) {
        const size_t room = (size_t)(a->outer.numel * a->splits) * K_SCAN_PART_BYTES;
        scratch = calloc(room, 1);
        a->scratch = operand(scratch);
        a->stage = K_STAGE_PARTIAL;
        run_all(name, a, scratch, room, name);
    }
    a->stage = K_STAGE_WHOLE;
    run_all(name, a, out, nbytes, name);
    free(scratch);
}

static void
test_scans(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 8}, {37, 100}, {300, 7}, {2, 3001}, {3, 3000}};
    for (int s = 0; s < 6; s++) {
        for (int form = 0; form < 24; form++) { /* across or along, forwards or from the end, 1 to 256 lanes, splits */
            const int64_t rows = shapes[s][0], n = shapes[s][1], size = rows * n;
            const int across = form % 2, reverse = form / 2 % 2, lanes = form / 4 % 3 * 4, cut = form / 12;
            const int64_t step = across ? rows : 1, apart = across ? 1 : n, chunk = (int64_t)K_SCAN_EACH << lanes;
            float *x = numbers(size, 1), *sums = calloc((size_t)size, 4), *most = calloc((size_t)size, 4);
            float *logs = calloc((size_t)size, 4);
            int64_t *places = calloc((size_t)size, 8);
            k_scan_args a = {.outer = line(rows, apart, apart),
                             .n = n,
                             .x_stride = step,
                             .out_stride = step,
                             .indices_stride = step,
                             .x = operand(x),
                             .rows = {lanes, across, !across && !reverse && n % 4 == 0},
                             .reverse = reverse};
            a.outer.strides[2][0] = apart;
            x[size / 2] = n > 50 ? NAN : x[size / 2];
            a.out = operand(most);
            a.indices = operand(places);
            a.reverse = 0;
            a.rows.vector = !across && n % 4 == 0;
            run_scan("k_cummax_float32", &a, cut ? chunk : 0, places, (size_t)size * 8);
            x[size / 2] = n > 50 ? 3 : x[size / 2];
            a.reverse = reverse;
            a.rows.vector = a.rows.vector && !reverse;
            a.indices = operand(NULL);
            a.out = operand(sums);
            run_scan("k_cumsum_float32", &a, cut ? chunk : 0, sums, (size_t)size * 4);
            a.out = operand(logs);
            run_scan("k_logcumsumexp_float32", &a, cut ? chunk : 0, logs, (size_t)size * 4);
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                double sum = 0, exps = 0;
                int64_t best = -1;
                for (int64_t k = 0; k < n; k++) {
                    const int64_t i = reverse ? n - 1 - k : k, at = r * apart + i * step, first = r * apart + k * step;
                    sum += x[at];
                    exps += exp((double)x[at]);
                    right = right && sums[at] == (float)sum && fabs(logs[at] - log(exps)) < 1e-5;
                    const double v = n > 50 && first == size / 2 ? NAN : (double)x[first];
                    const double so_far = best < 0 ? 0 : n > 50 && best == size / 2 ? NAN : (double)x[best];
                    best = best < 0 || v != v || (v >= so_far && so_far == so_far) ? first : best;
                    right = right && places[first] == (best - r * apart) / step;
                }
            }
            check(right, "values of scans");
            free(x);
            free(sums);
            free(most);
            free(logs);
            free(places);
        }
    }
}

/* Elements of a byte, whose vectors are longer than what a lane takes, into sums of 8 and into bytes. */
static void
test_narrow_scans(void)
{
    static const int64_t shapes[][2] = {{1, 16}, {9, 48}, {2, 4112}, {3, 700}};
    for (int s = 0; s < 4; s++) {
        for (int form = 0; form < 24; form++) {
            const int64_t rows = shapes[s][0], n = shapes[s][1], size = rows * n;
            const int lanes = 1 + form % 8, vector = form / 8 % 2 && n % 16 == 0, cut = form / 16;
            uint8_t *x = aligned_alloc(16, (size_t)(size + 15) / 16 * 16), *least = calloc((size_t)size, 1);
            int64_t *sums = calloc((size_t)size, 8), *places = calloc((size_t)size, 8);
            k_scan_args a = {.outer = line(rows, n, n),
                             .n = n,
                             .x_stride = 1,
                             .out_stride = 1,
                             .indices_stride = 1,
                             .x = operand(x),
                             .out = operand(sums),
                             .rows = {lanes, 0, vector}};
            a.outer.strides[2][0] = n;
            for (int64_t i = 0; i < size; i++) {
                x[i] = (uint8_t)(number() * 100 + 100);
            }
            const int64_t chunk = cut ? (int64_t)K_SCAN_EACH << lanes : 0;
            run_scan("k_cumsum_uint8", &a, chunk, sums, (size_t)size * 8);
            a.out = operand(least);
            a.indices = operand(places);
            run_scan("k_cummin_uint8", &a, chunk, least, (size_t)size);
            int right = 1;
            for (int64_t r = 0; r < rows; r++) {
                int64_t sum = 0, best = 0;
                for (int64_t i = 0; i < n; i++) {
                    sum += x[r * n + i];
                    best = x[r * n + i] <= x[r * n + best] ? i : best;
                    right = right && sums[r * n + i] == sum && least[r * n + i] == x[r * n + best];
                    right = right && (best != i || places[r * n + i] == i);
                }
            }
            check(right, "scans of bytes");
            free(x);
            free(least);
            free(sums);
            free(places);
        }
    }
}

/* Products that go far up and down and through 0, and sums that no float64 holds alone. */
static void
test_far_scans(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {5, 8}, {37, 100}, {2, 3001}, {2, 3002}};
    for (int s = 0; s < 5; s++) {
        for (int form = 0; form < 24; form++) {
            const int64_t rows = shapes[s][0], n = shapes[s][1], size = rows * n;
            const int across = form % 2, reverse = form / 2 % 2, lanes = form / 4 % 3 * 4, cut = form / 12;
            const int64_t step = across ? rows : 1, apart = across ? 1 : n, chunk = (int64_t)K_SCAN_EACH << lanes;
            double *x = calloc((size_t)size, 8), *out = calloc((size_t)size, 8);
            k_scan_args a = {.outer = line(rows, apart, apart),
                             .n = n,
                             .x_stride = step,
                             .out_stride = step,
                             .x = operand(x),
                             .out = operand(out),
                             .rows = {lanes, across, !across && !reverse && n % 2 == 0},
                             .reverse = reverse};
            for (int prod = 0; prod < 2; prod++) {
                for (int64_t r = 0; r < rows; r++) {
                    for (int64_t k = 0; k < n; k++) {
                        const int up = k / (17 + r) % 2;
                        const double big = k % 2 ? -1e308 : 1e308;
                        x[r * apart + k * step] = !prod ? (r % 3 ? big : k % 7 ? 0.1 : 1e-20) : up ? 0x1p60 : -0x1p-60;
                    }
                    if (prod && r % 3 == 2) {
                        x[r * apart + n / 2 * step] = 0;
                    }
                }
                run_scan(prod ? "k_cumprod_float64" : "k_cumsum_float64", &a, cut ? chunk : 0, out, (size_t)size * 8);
                int right = 1;
                for (int64_t r = 0; r < rows; r++) {
                    double all = prod, before = -1;
                    for (int64_t k = 0; k < n; k++) {
                        const int64_t at = r * apart + (reverse ? n - 1 - k : k) * step;
                        all = prod ? all * x[at] : all + x[at];
                        const double near = prod || r % 3 ? 0 : 1e-13 * all; /* powers of 2, and sums of two numbers */
                        right = right &&
                                (out[at] == all || (all != all && out[at] != out[at]) || fabs(out[at] - all) <= near);
                        right = right && (prod || r % 3 || out[at] >= before);
                        before = out[at];
                    }
                }
                check(right, prod ? "far products" : "far sums");
            }
            free(x);
            free(out);
        }
    }
}

/* ---------------------------------------------------------------- sorts */

/* Whether a stands before b, of equal ones the first; NaN is the largest. */
static int
stands_before(double a, double b, int descending, int first)
{
    const int less = a < b || (b != b && a == a), more = b < a || (a != a && b == b);
    return less == more ? first : descending ? more : less;
}

#define TEST_SORT(T)                                                                                                   \
    static void test_sort_##T(const char *name, size_t words)                                                          \
    {                                                                                                                  \
        static const int64_t shapes[][4] = {{1, 1, 1},       {70, 5, 5},         {3, 100, 7},                          \
                                            {2, 2048, 2048}, {1, 5000, 5000},    {1, 4500, 100},                       \
                                            {3, 100, 1, 49}, {2, 5000, 1, 2499}, {1, 4500, 9, 4491}};                  \
        for (int form = 0; form < 2 * (int)(sizeof(shapes) / sizeof(*shapes)); form++) {                               \
            const int64_t rows = shapes[form / 2][0], n = shapes[form / 2][1], k = shapes[form / 2][2];                \
            const int64_t skipped = shapes[form / 2][3];                                                               \
            const int descending = form % 2;                                                                           \
            T *x = calloc((size_t)(rows * n), sizeof(T)), *out = calloc((size_t)(rows * k), sizeof(T));                \
            int64_t *indices = calloc((size_t)(rows * k), 8);                                                          \
            uint64_t *items[2] = {calloc((size_t)(rows * n) * words, 8), calloc((size_t)(rows * n) * words, 8)};       \
            for (int64_t i = 0; i < rows * n; i++) {                                                                   \
                const double v = floor(number() * 50 + 60);                                                            \
                x[i] = (T)(v == 60 && (T)0.5 != 0 ? NAN : v == 61 && (T)0.5 != 0 ? -0.0 : v);                          \
            }                                                                                                          \
            const int64_t strides[3][3] = {{n}, {k}, {k}};                                                             \
            k_sort_rows_args a = {.outer = index_of(1, &rows, 3, strides),                                             \
                                  .n = n,                                                                              \
                                  .first = skipped,                                                                    \
                                  .k = k,                                                                              \
                                  .x_stride = 1,                                                                       \
                                  .out_stride = 1,                                                                     \
                                  .indices_stride = 1,                                                                 \
                                  .x = operand(x),                                                                     \
                                  .out = operand(out),                                                                 \
                                  .indices = operand(indices),                                                         \
                                  .to = operand(items[0]),                                                             \
                                  .descending = descending,                                                            \
                                  .last = n <= K_SORTED_TILE};                                                         \
            while (n > INT64_C(1) << a.bits && 1 << a.bits < K_SORTED_TILE) {                                          \
                a.bits++;                                                                                              \
            }                                                                                                          \
            void *const filled = a.last ? (void *)indices : (void *)items[0];                                          \
            run_all(name, &a, filled, a.last ? (size_t)(rows * k) * 8 : (size_t)(rows * n) * words * 8, name);         \
            int now = 0;                                                                                               \
            a.stage = K_SORTED_MERGE;                                                                                  \
            for (a.run = K_SORTED_TILE; a.run < n; a.run *= 2) {                                                       \
                a.from = operand(items[now]);                                                                          \
                a.to = operand(items[1 - now]);                                                                        \
                a.last = 2 * a.run >= n;                                                                               \
                run_all(name, &a, a.last ? (void *)indices : (void *)items[1 - now],                                   \
                        a.last ? (size_t)(rows * k) * 8 : (size_t)(rows * n) * words * 8, name);                       \
                now = 1 - now;                                                                                         \
            }                                                                                                          \
            int right = 1;                                                                                             \
            for (int64_t r = 0; r < rows; r++) {                                                                       \
                for (int64_t i = 0; i < k; i++) {                                                                      \
                    const int64_t at = indices[r * k + i], next = i + 1 < k ? indices[r * k + i + 1] : -1;             \
                    right = right && at >= 0 && at < n && memcmp(&out[r * k + i], &x[r * n + at], sizeof(T)) == 0;     \
                    right = right && (next < 0 || stands_before((double)x[r * n + at], (double)x[r * n + next],        \
                                                                descending, at < next));                               \
                }                                                                                                      \
                for (int64_t i = 0, last = indices[r * k + k - 1], before = 0; i < n; i++) { /* of all, so many */     \
                    before += i != last &&                                                                             \
                              stands_before((double)x[r * n + i], (double)x[r * n + last], descending, i < last);      \
                    right = right && (i < n - 1 || before == skipped + k - 1);                                         \
                }                                                                                                      \
            }                                                                                                          \
            check(right, "values of sort");                                                                            \
            free(x);                                                                                                   \
            free(out);                                                                                                 \
            free(indices);                                                                                             \
            free(items[0]);                                                                                            \
            free(items[1]);                                                                                            \
        }                                                                                                              \
    }
TEST_SORT(float)
TEST_SORT(double)
TEST_SORT(uint8_t)

/* The first k, or one from `first` on, are those of a stable order; by digits of few and of many values. */
#define TEST_SELECT(T)                                                                                                 \
    static void test_select_##T(const char *name, size_t words)                                                        \
    {                                                                                                                  \
        static const int64_t shapes[][5] = {                                                                           \
            /* rows, n, k, first, chunk */                                                                             \
            {3, 600, 7, 0, 600},      {2, 5000, 100, 0, 5000},  {2, 5000, 9, 0, 1700},   {1, 5000, 9, 0, 4993},        \
            {2, 5000, 1, 2499, 5000}, {1, 4500, 1, 4499, 4500}, {1, 9000, 2048, 0, 9000}};                             \
        for (int form = 0; form < 4 * (int)(sizeof(shapes) / sizeof(*shapes)); form++) {                               \
            const int64_t rows = shapes[form / 4][0], n = shapes[form / 4][1], k = shapes[form / 4][2];                \
            const int64_t skipped = shapes[form / 4][3], chunk = shapes[form / 4][4], splits = (n - 1) / chunk + 1;    \
            const int descending = form % 2, many = form / 2 % 2;                                                      \
            T *x = calloc((size_t)(rows * n), sizeof(T)), *out = calloc((size_t)(rows * k), sizeof(T));                \
            int64_t *indices = calloc((size_t)(rows * k), 8);                                                          \
            uint64_t *items = calloc((size_t)(rows * splits * k) * words, 8);                                          \
            for (int64_t i = 0; i < rows * n; i++) {                                                                   \
                const double v = floor(number() * (many ? 1e6 : 2)) / 4;                                               \
                x[i] = (T)((T)0.5 == 0 ? (double)((int64_t)v & 127) : i % 97 == 3 ? NAN : i % 89 == 4 ? -0.0 : v);     \
            }                                                                                                          \
            const int64_t strides[3][3] = {{n}, {k}, {k}};                                                             \
            k_sort_rows_args a = {.outer = index_of(1, &rows, 3, strides),                                             \
                                  .n = n,                                                                              \
                                  .first = skipped,                                                                    \
                                  .k = k,                                                                              \
                                  .x_stride = 1,                                                                       \
                                  .out_stride = 1,                                                                     \
                                  .indices_stride = 1,                                                                 \
                                  .x = operand(x),                                                                     \
                                  .out = operand(out),                                                                 \
                                  .indices = operand(indices),                                                         \
                                  .to = operand(items),                                                                \
                                  .splits = splits,                                                                    \
                                  .chunk = chunk,                                                                      \
                                  .bits = 14,                                                                          \
                                  .room = k > 16 ? K_SORTED_TILE : 32,                                                 \
                                  .descending = descending,                                                            \
                                  .last = splits == 1};                                                                \
            if (splits > 1) {                                                                                          \
                run_all(name, &a, items, (size_t)(rows * splits * k) * words * 8, name);                               \
                a.from = a.to;                                                                                         \
                a.n = a.chunk = splits * k;                                                                            \
                a.splits = a.last = 1;                                                                                 \
            }                                                                                                          \
            run_all(name, &a, indices, (size_t)(rows * k) * 8, name);                                                  \
            int right = 1;                                                                                             \
            for (int64_t r = 0; r < rows; r++) {                                                                       \
                for (int64_t j = 0; j < k; j++) {                                                                      \
                    const int64_t at = indices[r * k + j], next = j + 1 < k ? indices[r * k + j + 1] : -1;             \
                    right = right && at >= 0 && at < n && memcmp(&out[r * k + j], &x[r * n + at], sizeof(T)) == 0;     \
                    right = right && (next < 0 || stands_before((double)x[r * n + at], (double)x[r * n + next],        \
                                                                descending, at < next));                               \
                }                                                                                                      \
                int64_t before = 0;                                                                                    \
                for (int64_t i = 0, end = indices[r * k + k - 1]; i < n; i++) {                                        \
                    before +=                                                                                          \
                        i != end && stands_before((double)x[r * n + i], (double)x[r * n + end], descending, i < end);  \
                }                                                                                                      \
                right = right && before == skipped + k - 1;                                                            \
            }                                                                                                          \
            check(right, "values of a selection");                                                                     \
            free(x);                                                                                                   \
            free(out);                                                                                                 \
            free(indices);                                                                                             \
            free(items);                                                                                               \
        }                                                                                                              \
    }
TEST_SELECT(float)
TEST_SELECT(double)
TEST_SELECT(uint8_t)

/* Passes over rows of one and of many tiles leave the only order there is. */
#define TEST_RADIX(T)                                                                                                  \
    static void test_radix_##T(const char *name, int words)                                                            \
    {                                                                                                                  \
        static const int64_t shapes[][4] = {/* rows, n, k, first */                                                    \
                                            {1, 1, 1, 0},                                                              \
                                            {2, 300, 300, 0},                                                          \
                                            {1, 2049, 2049, 0},                                                        \
                                            {2, 5000, 4000, 700}};                                                     \
        for (int form = 0; form < 2 * (int)(sizeof(shapes) / sizeof(*shapes)); form++) {                               \
            const int64_t rows = shapes[form / 2][0], n = shapes[form / 2][1], k = shapes[form / 2][2];                \
            const int64_t entries = rows * 256 * ((n - 1) / K_SORTED_TILE + 2);                                        \
            const int descending = form % 2;                                                                           \
            uint64_t varies[16] = {0};                                                                                 \
            int done = 0;                                                                                              \
            T *x = calloc((size_t)(rows * n), sizeof(T)), *out = calloc((size_t)(rows * k), sizeof(T));                \
            int64_t *indices = calloc((size_t)(rows * k), 8), *counts = calloc((size_t)entries, 8);                    \
            const size_t nbytes = (size_t)(rows * n * words) * 8;                                                      \
            uint64_t *items[2] = {calloc(1, nbytes), calloc(1, nbytes)};                                               \
            for (int64_t i = 0; i < rows * n; i++) {                                                                   \
                const double v = floor(number() * (i % 2 ? 1e6 : 3)) / (form < 4 ? 4 : 1);                             \
                x[i] = (T)((T)0.5 == 0 ? (double)((int64_t)v & 127) : i % 97 == 3 ? NAN : i % 89 == 4 ? -0.0 : v);     \
            }                                                                                                          \
            const int64_t strides[3][3] = {{n}, {k}, {k}};                                                             \
            k_sort_rows_args a = {.outer = index_of(1, &rows, 3, strides),                                             \
                                  .n = n,                                                                              \
                                  .first = shapes[form / 2][3],                                                        \
                                  .k = k,                                                                              \
                                  .x_stride = 1,                                                                       \
                                  .out_stride = 1,                                                                     \
                                  .indices_stride = 1,                                                                 \
                                  .x = operand(x),                                                                     \
                                  .out = operand(out),                                                                 \
                                  .indices = operand(indices),                                                         \
                                  .counts = operand(counts),                                                           \
                                  .from = operand(items[0]),                                                           \
                                  .to = operand(items[1]),                                                             \
                                  .varies = operand(form / 2 % 2 || sizeof(T) == 8 ? varies : NULL),                   \
                                  .descending = descending};                                                           \
            if (a.varies.address) {                                                                                    \
                a.stage = K_RADIX_VARIES;                                                                              \
                run_all(name, &a, varies, sizeof(varies), "which digits vary");                                        \
            }                                                                                                          \
            for (int pass = 0; pass < (int)sizeof(T); pass++) {                                                        \
                a.bits = 8 * pass;                                                                                     \
                a.last = pass == (int)sizeof(T) - 1;                                                                   \
                a.stage = K_RADIX_COUNT;                                                                               \
                run_all(name, &a, counts, (size_t)entries * 8, "counts of digits");                                    \
                a.stage = K_RADIX_SUM;                                                                                 \
                run_all(name, &a, counts, (size_t)entries * 8, "sums over tiles");                                     \
                a.stage = K_RADIX_MOVE;                                                                                \
                done += a.varies.address == 0 || varies[pass] || varies[8 + pass];                                     \
                run_all(name, &a, a.last ? (void *)indices : (void *)items[(done + 1) % 2],                            \
                        a.last ? (size_t)(rows * k) * 8 : nbytes, name);                                               \
            }                                                                                                          \
            int right = 1;                                                                                             \
            for (int64_t r = 0; r < rows; r++) {                                                                       \
                int64_t before = 0;                                                                                    \
                for (int64_t j = 0, end = indices[r * k]; j < n; j++) {                                                \
                    const int64_t at = j < k ? indices[r * k + j] : 0, next = j + 1 < k ? indices[r * k + j + 1] : -1; \
                    right = right && at >= 0 && at < n;                                                                \
                    right = right && (j >= k || memcmp(&out[r * k + j], &x[r * n + at], sizeof(T)) == 0);              \
                    right = right && (next < 0 || stands_before((double)x[r * n + at], (double)x[r * n + next],        \
                                                                descending, at < next));                               \
                    before +=                                                                                          \
                        j != end && stands_before((double)x[r * n + j], (double)x[r * n + end], descending, j < end);  \
                }                                                                                                      \
                right = right && before == a.first;                                                                    \
            }                                                                                                          \
            check(right, "values of a sort by digits");                                                                \
            free(x);                                                                                                   \
            free(out);                                                                                                 \
            free(indices);                                                                                             \
            free(counts);                                                                                              \
            free(items[0]);                                                                                            \
            free(items[1]);                                                                                            \
        }                                                                                                              \
    }
TEST_RADIX(float)
TEST_RADIX(double)
TEST_RADIX(uint8_t)

int
main(void)
{
    emulation_open();
    test_normalize();
    test_normalize_grad();
    test_scans();
    test_narrow_scans();
    test_far_scans();
    test_sort_float("k_sort_rows_float32", 1);
    test_sort_double("k_sort_rows_float64", 2);
    test_sort_uint8_t("k_sort_rows_uint8", 1);
    test_select_float("k_select_rows_float32", 1);
    test_select_double("k_select_rows_float64", 2);
    test_select_uint8_t("k_select_rows_uint8", 1);
    test_radix_float("k_radix_rows_float32", 1);
    test_radix_double("k_radix_rows_float64", 2);
    test_radix_uint8_t("k_radix_rows_uint8", 1);
    return emulation_close();
}
