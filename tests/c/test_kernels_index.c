/* test_kernels_index.c: gather.cu, nonzero.cu, sort.cu and scatter_add.cu, with all threads of a block (emulate.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_EMULATED
#include "../../csrc/kernels/index/gather.cu"
#include "../../csrc/kernels/index/join.cu"
#include "../../csrc/kernels/index/nonzero.cu"
#include "../../csrc/kernels/index/scatter_add.cu"
#include "../../csrc/kernels/order/sort.cu"

#include "emulate.h"

/* ---------------------------------------------------------------- masks */

static void
test_nonzero(void)
{
    static const int64_t lengths[] = {1, 15, 16, 4095, 4096, 4097, 20000};
    for (int s = 0; s < 28; s++) {
        int64_t n = lengths[s / 4], chunks = (n - 1) / (K_TRUE_LANES * K_TRUE_EACH) + 1, count = 0;
        int share = s % 4, shift = s % 2;
        uint8_t *bytes = aligned_alloc(64, (size_t)(n + 127) / 64 * 64), *mask = bytes + shift;
        int64_t *before = calloc((size_t)chunks + 1, 8);
        for (int64_t i = 0; i < n; i++) {
            mask[i] = share == 3 || number() * 2 < share - 1;
            count += mask[i];
        }
        int64_t *places = calloc((size_t)count + 1, 8), *pairs = calloc((size_t)count * 2 + 1, 8);
        k_true_args a = {.mask = operand(mask),
                         .before = operand(before),
                         .numel = n,
                         .chunks = chunks,
                         .aligned = shift == 0,
                         .rows = count};
        const int64_t weights[1][3] = {{3}};
        a.index = index_of(1, &n, 1, weights);
        a.stage = K_TRUE_COUNT;
        run_all("k_nonzero_bool", &a, before, (size_t)(chunks + 1) * 8, "count of a mask");
        a.stage = K_TRUE_SUM;
        run_all("k_nonzero_bool", &a, before, (size_t)(chunks + 1) * 8, "sums over a mask");
        check(before[0] == 0 && before[chunks] == count, "number of True elements");
        a.stage = K_TRUE_FIND;
        a.out = operand(places);
        run_all("k_nonzero_bool", &a, places, (size_t)(count + 1) * 8, "places of a mask");
        int right = places[count] == 0;
        for (int64_t i = 0, row = 0; i < n; i++) {
            right = right && (!mask[i] || places[row++] == 3 * i);
        }
        check(right, "values of places");
        const int64_t shape[2] = {1, n};
        a.index = index_of(2, shape, 0, NULL);
        a.columns = 2;
        a.out = operand(pairs);
        run_all("k_nonzero_bool", &a, pairs, (size_t)(count * 2 + 1) * 8, "coordinates of a mask");
        for (int64_t i = 0; i < count; i++) {
            right = right && pairs[2 * i] == 0 && pairs[2 * i + 1] * 3 == places[i];
        }
        check(right && pairs[2 * count] == 0, "values of coordinates");
        if (count > 1) { /* a mask that changed since must not be written beyond the room there is */
            a.index = index_of(1, &n, 1, weights);
            a.columns = 0;
            a.rows = count - 1;
            a.out = operand(places);
            places[count - 1] = -7;
            run_all("k_nonzero_bool", &a, places, (size_t)(count + 1) * 8, "less room than places");
            check(places[count - 1] == -7, "nothing is written beyond the room");
        }
        free(bytes);
        free(before);
        free(places);
        free(pairs);
    }
}

/* Sums over more chunks than one round of a block takes. */
static void
test_many_chunks(void)
{
    int64_t chunks = 3 * K_TRUE_LANES * K_TRUE_EACH + 77, total = 0;
    int64_t *before = calloc((size_t)chunks + 1, 8), *want = calloc((size_t)chunks + 1, 8);
    for (int64_t i = 0; i < chunks; i++) {
        before[i] = i * 7 % 4097;
        want[i] = total;
        total += before[i];
    }
    want[chunks] = total;
    k_true_args a = {.before = operand(before), .chunks = chunks, .stage = K_TRUE_SUM};
    run_all("k_nonzero_bool", &a, before, (size_t)(chunks + 1) * 8, "many chunks");
    check(memcmp(before, want, (size_t)(chunks + 1) * 8) == 0, "values of many sums");
    free(before);
    free(want);
}

/* ---------------------------------------------------------------- join */

/* Rows of parts of many lengths beside each other, counted in 32 bits and in 64. */
static void
test_join(void)
{
    static const int64_t lengths[] = {1, 3000, 2, 77, 1024};
    for (int form = 0; form < 8; form++) {
        const int n = form % 2 ? 5 : 1, wide = form / 2 % 2;
        const int64_t rows = form / 4 ? 7 : 1;
        int32_t *parts[5];
        k_join_args a = {.n = n, .wide = wide};
        for (int k = 0; k < n; k++) {
            k_join_part *part = &a.part[k];
            part->length = lengths[n == 1 ? 4 : k];
            part->numel = rows * part->length;
            part->offset = a.pitch;
            part->chunks = (k > 0 ? part[-1].chunks : 0) + (part->numel - 1) / K_JOIN_CHUNK + 1;
            while (1 << part->by_length.shift < part->length) {
                part->by_length.shift++;
            }
            const uint64_t power = (uint64_t)1 << part->by_length.shift;
            part->by_length.multiplier =
                (uint32_t)(((uint64_t)(power - (uint64_t)part->length) << 32) / (uint64_t)part->length + 1);
            a.pitch += part->length;
            parts[k] = malloc((size_t)part->numel * 4);
            part->address = (uint64_t)(uintptr_t)parts[k];
            for (int64_t i = 0; i < part->numel; i++) {
                parts[k][i] = (int32_t)(i * 5 + k);
            }
        }
        int32_t *out = calloc((size_t)(rows * a.pitch + 1), 4);
        a.out = operand(out);
        run_all("k_join_int32", &a, out, (size_t)(rows * a.pitch + 1) * 4, "parts beside each other");
        int right = out[rows * a.pitch] == 0;
        for (int k = 0; k < n; k++) {
            for (int64_t i = 0; i < a.part[k].numel; i++) {
                const int64_t row = i / a.part[k].length, column = i % a.part[k].length;
                right = right && out[row * a.pitch + a.part[k].offset + column] == parts[k][i];
            }
            free(parts[k]);
        }
        check(right, "values of parts beside each other");
        free(out);
    }
}

/* ---------------------------------------------------------------- gather, scatter */

static k_selector
selector(const int64_t *index, int64_t size, int64_t stride)
{
    k_selector s = {.array = operand(index), .strides = {1, 0}, .size = size, .stride = stride, .wide = 1};
    return s;
}

/* Rows of 3 floats at n indices, of which one is wrong. */
static void
test_gather(void)
{
    static k_reports reports;
    for (int put = 0; put < 2; put++) {
        int64_t n = 1500, rows = 2000, shape[2] = {n, 3}, *index = calloc((size_t)n, 8);
        float *x = numbers(rows * 3, 1), *y = numbers(n * 3, 1), *want = numbers((put ? rows : n) * 3, 1);
        const int64_t strides[3][3] = {{put ? 0 : 3, 1}, {put ? 3 : 0, 1}, {1, 0}};
        k_gather_args a = {.out = operand(put ? x : y), .x = operand(put ? y : x), .put = put};
        a.by.index = index_of(2, shape, 3, strides);
        a.by.n = 1;
        a.by.wraps = 1;
        a.by.reports = (uint64_t)(uintptr_t)&reports;
        a.by.launch = 5;
        a.by.selector[0] = selector(index, rows, 3);
        memcpy(want, put ? x : y, (size_t)(put ? rows : n) * 12);
        for (int64_t i = 0; i < n; i++) {
            index[i] = i == 700 ? rows + 3 : (i * 7 % rows) - (i % 2 ? rows : 0);
            for (int64_t c = 0; c < 3; c++) {
                if (put && i != 700) {
                    want[i * 7 % rows * 3 + c] = y[i * 3 + c];
                } else if (!put) {
                    want[i * 3 + c] = i == 700 ? 0 : x[i * 7 % rows * 3 + c];
                }
            }
        }
        memset(&reports, 0, sizeof(reports));
        run_all("k_gather_int32", &a, put ? x : y, (size_t)(put ? rows : n) * 12, "gather");
        check(memcmp(want, put ? x : y, (size_t)(put ? rows : n) * 12) == 0, "values of gather");
        check(reports.any == 1 && reports.entry[5].launch[0] == 5 && reports.entry[5].index[0] == rows + 3, "report");
        free(index);
        free(x);
        free(y);
        free(want);
    }
}

/* The last of equal places is kept, whatever the order of the threads. */
static void
test_places(void)
{
    int64_t n = 3000, entries = 8192, *index = calloc((size_t)n, 8), *places = calloc((size_t)n, 8);
    int64_t *kept = calloc((size_t)n, 8), *last = calloc(4000, 8);
    uint64_t *table = calloc((size_t)entries, 8);
    const int64_t strides[3][3] = {{0}, {0}, {1}};
    static k_reports reports;
    k_places_args a = {
        .places = operand(places), .kept = operand(kept), .table = operand(table), .mask = (uint64_t)entries - 1};
    a.by.index = index_of(1, &n, 3, strides);
    a.by.n = 1;
    a.by.reports = (uint64_t)(uintptr_t)&reports;
    a.by.selector[0] = selector(index, 900, 4);
    for (int64_t i = 0; i < n; i++) {
        index[i] = i == 17 ? 900 : i * i % 900;
        last[i == 17 ? 901 : index[i]] = i;
    }
    for (int s = 0; s < NSHAPES; s++) {
        memset(table, 0, (size_t)entries * 8);
        for (a.stage = K_PLACES_FIND; a.stage <= K_PLACES_KEEP; a.stage++) {
            launch("k_places_int64", SHAPES[s].grid, SHAPES[s].threads, SHAPES[s].order, &a);
        }
        int right = 1;
        for (int64_t i = 0; i < n; i++) {
            right = right && kept[i] == (i != 17 && last[index[i]] == i ? 4 * index[i] : -1);
        }
        check(right, "the last of equal places");
    }
    free(index);
    free(places);
    free(kept);
    free(last);
    free(table);
}

/* ---------------------------------------------------------------- sums at places */

#define POSITION_BITS 14

/* A pass of places below `reach`, -1 among them: by their lowest digit, then by the second. */
static void
test_sort(void)
{
    static const int64_t lengths[] = {1, 15, 2047, 2048, 2049, 140000};
    for (int s = 0; s < 6; s++) {
        const int64_t n = lengths[s], tiles = (n - 1) / K_SORTED_TILE + 1, reach = 20000,
                      entries = K_RADIX_DIGITS * (tiles + 1);
        int64_t *places = calloc((size_t)n, 8), *counts = calloc((size_t)entries, 8);
        uint64_t *keys[2] = {calloc((size_t)n, 8), calloc((size_t)n, 8)};
        for (int64_t i = 0; i < n; i++) {
            places[i] = i % 17 == 3 ? -1 : i * 7919 % reach;
        }
        k_sort_args a = {
            .keys = operand(places), .counts = operand(counts), .numel = n, .nowhere = reach, .bits = 18, .first = 1};
        for (int pass = 0; pass < 2; pass++) {
            a.shift = 18 + pass * K_RADIX_BITS;
            a.sorted = operand(keys[pass]);
            a.stage = K_RADIX_COUNT;
            run_all("k_sort_int64", &a, counts, (size_t)entries * 8, "counts of digits");
            a.stage = K_RADIX_SUM;
            run_all("k_sort_int64", &a, counts, (size_t)entries * 8, "sums over digits");
            a.stage = K_RADIX_MOVE;
            run_all("k_sort_int64", &a, keys[pass], (size_t)n * 8, "keys of a pass");
            a.keys = a.sorted;
            a.first = 0;
        }
        int64_t counted = 0;
        for (int d = 0; d < K_RADIX_DIGITS; d++) {
            counted += counts[k_radix_at(0, tiles, d, tiles)];
        }
        int right = counted == n;
        for (int64_t i = 0; i < n; i++) {
            const int64_t position = (int64_t)(keys[1][i] & ((1 << 18) - 1));
            const int64_t place = places[position] < 0 ? reach : places[position];
            right = right && (int64_t)(keys[1][i] >> 18) == place && (i == 0 || keys[1][i - 1] < keys[1][i]);
        }
        check(right, "sorted places, equal ones by their positions");
        free(places);
        free(counts);
        free(keys[0]);
        free(keys[1]);
    }
}

/* Rows of 3 whole numbers, so that sums are exact, to 5 places, the last of which is nowhere; by sorted keys (some
 * places fill many chunks) and by columns. */
static void
test_scatter_add(void)
{
    static const int64_t lengths[] = {1, 127, 128, 129, 1000};
    static k_reports wrong;
    for (int s = 0; s < 5; s++) {
        const int64_t n = lengths[s], chunks = (n - 1) / K_ADD_CHUNK + 1, shape[2] = {n, 3}, across[2] = {3, n};
        float *value = numbers(n * 3, 1), *x = numbers(15, 1), *want = numbers(15, 1), sums[64 * 3];
        int64_t *index = calloc((size_t)n, 8);
        uint64_t *keys = calloc((size_t)n, 8);
        memcpy(want, x, 60);
        for (int64_t i = 0; i < n; i++) {
            index[i] = i % 100 == 1 ? 5 : i % 9 == 0 ? i % 4 : 2;
            for (int c = 0; c < 3 && index[i] < 5; c++) {
                want[index[i] * 3 + c] += value[i * 3 + c];
            }
        }
        for (int64_t j = 0, at = 0; j < 6 * n; j++) {
            if (index[j % n] == j / n) {
                keys[at++] = (uint64_t)(j / n) << POSITION_BITS | (uint64_t)(j % n);
            }
        }
        k_scatter_add_args a = {.x = operand(x),
                                .value = operand(value),
                                .keys = operand(keys),
                                .sums = operand(sums),
                                .ncolumns = 3,
                                .numel = n,
                                .unit = 3,
                                .nowhere = 5,
                                .bits = POSITION_BITS};
        float *before = numbers(15, 1);
        memcpy(before, x, 60);
        const int64_t positions[3][3] = {{0}, {3}, {1}}, columns[3][3] = {{0, 1}, {0, 1}, {1, 0}};
        a.by.index = index_of(1, &n, 3, positions);
        a.columns = index_of(2, shape, 3, columns);
        a.stage = K_ADD_CHUNKS;
        run_all("k_scatter_add_float32", &a, x, 60, "sums of chunks");
        check(chunks <= 64, "room for the sums");
        a.stage = K_ADD_REST;
        run_all("k_scatter_add_float32", &a, x, 60, "sums over chunks");
        check(memcmp(x, want, 60) == 0, "sums by sorted keys");

        const int64_t entries[3][3] = {{1, 0}, {1, 3}, {0, 1}};
        memcpy(x, before, 60);
        a.stage = K_ADD_COLUMNS;
        a.length = n;
        a.by.index = index_of(2, across, 3, entries);
        a.by.n = 1;
        a.by.reports = (uint64_t)(uintptr_t)&wrong;
        a.by.launch = 5;
        a.by.selector[0] = selector(index, 5, 3);
        wrong = (k_reports){0};
        run_all("k_scatter_add_float32", &a, x, 60, "sums of columns");
        check(memcmp(x, want, 60) == 0, "sums by columns");
        check(wrong.any == (n > 1) && wrong.entry[5].index[0] == (n > 1 ? 5 : 0), "what is nowhere is reported");

        for (int64_t i = 0; i < 3 * n; i++) { /* from here on the order of additions shows */
            value[i] = (float)number();
        }
        memcpy(want, before, 60);
        for (int64_t i = 0; i < n; i++) {
            for (int c = 0; c < 3 && index[i] < 5; c++) {
                want[index[i] * 3 + c] += value[i * 3 + c];
            }
        }
        a.width = s % 3 + 1; /* blocks hold so many columns, and some places of each */
        a.by_width = (k_divisor){a.width == 3 ? 1431655766 : 1, a.width == 3 ? 2 : a.width - 1};
        a.range = s % 2 ? 2 : 5;
        a.by.selector[0].stride = 1;
        memcpy(x, before, 60);
        wrong = (k_reports){0};
        run_all("k_add_together_float32", &a, x, 60, "sums by blocks");
        check(memcmp(x, want, 60) == 0, "sums by blocks that hold columns");
        check(wrong.any == (n > 1), "what is nowhere is reported by blocks");
        free(value);
        free(x);
        free(want);
        free(before);
        free(index);
        free(keys);
    }
}

/* ---------------------------------------------------------------- reports of wrong indices */

static k_reports reports;
static int nfences, nwhole;

/* What the host sees from here on. */
void
emulated_fence(void)
{
    nfences++;
    nwhole += reports.any == 0 && reports.entry[5].launch[1] == 5 && reports.entry[5].index[1] == 7;
}

static void
test_report(void)
{
    k_selection by = {.reports = (uint64_t)(uintptr_t)&reports, .launch = 5};
    by.selector[1].size = 3;
    nfences = nwhole = 0;
    check(k_place(&by, 1, 7) == -1 && reports.any == 1, "a wrong index is reported");
    check(nfences == 1 && nwhole == 1, "the mark that there is a report comes after the report");
}

int
main(void)
{
    emulation_open();
    test_nonzero();
    test_join();
    test_many_chunks();
    test_gather();
    test_places();
    test_sort();
    test_scatter_add();
    test_report();
    return emulation_close();
}
