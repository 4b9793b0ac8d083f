/* test_kernels_update.c: update.cu, with all threads of a block (emulate.h). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DT_EMULATED
#include "../../csrc/kernels/elementwise/update.cu"

#include "emulate.h"

#define ARRAYS (2 + DT_UPDATE_STATES)

static const int64_t sizes[] = {1, 5, K_UPDATE_CHUNK - 1, K_UPDATE_CHUNK, 3 * K_UPDATE_CHUNK + 17, 2};
#define NSIZES ((int)(sizeof(sizes) / sizeof(sizes[0])))

/* Several parameters beside each other in memory, each with its gradient and its states behind it. */
static void
test_rule(int rule)
{
    int64_t total = 0;
    k_update_args a = {.rule = rule, .n = NSIZES};
    for (int i = 0; i < NSIZES; i++) {
        total += ARRAYS * sizes[i];
    }
    float *all = numbers(total, 0), *at = all;
    for (int64_t i = 0; i < total; i++) {
        all[i] = fabsf(all[i]) + 0.1f;
    }
    for (int i = 0; i < DT_NNUMBERS; i++) {
        a.number[i] = 0.25 + i;
    }
    a.number[DT_NUMBER_fresh] = 0.1;
    a.number[DT_NUMBER_square_fresh] = 0.01;
    a.number[DT_NUMBER_maximize] = 0; /* rprop stands still where a sign changes */
    float *before = calloc((size_t)total, sizeof(float));
    memcpy(before, all, (size_t)total * sizeof(float));
    for (int i = 0; i < NSIZES; i++) {
        for (int k = 0; k < ARRAYS; k++, at += sizes[i]) {
            a.entry[i].address[k] = (uint64_t)(uintptr_t)at;
        }
        a.entry[i].numel = sizes[i];
        a.entry[i].chunks = (i > 0 ? a.entry[i - 1].chunks : 0) + (sizes[i] - 1) / K_UPDATE_CHUNK + 1;
    }
    run_all("k_update_float32", &a, all, (size_t)total * sizeof(float), "an update");
    at = all;
    for (int i = 0; i < NSIZES; at += ARRAYS * sizes[i], i++) {
        int all_changed = 1;
        for (int64_t e = 0; e < sizes[i]; e++) {
            all_changed = all_changed && at[e] != before[at - all + e];
        }
        check(all_changed, "every element of a parameter changes");
        check(memcmp(at + sizes[i], before + (at - all) + sizes[i], (size_t)sizes[i] * sizeof(float)) == 0,
              "gradients stay");
    }
    free(before);
    free(all);
}

/* p - lr * g, by its definition. */
static void
test_values(void)
{
    float p[3] = {1, 2, 3};
    const float g[3] = {4, -8, 0};
    k_update_args a = {.rule = DT_UPDATE_sgd, .n = 1};
    a.number[DT_NUMBER_lr] = 0.5;
    a.number[DT_NUMBER_weight_decay] = 2;
    a.number[DT_NUMBER_maximize] = 1;
    a.entry[0] = (k_update_entry){{(uint64_t)(uintptr_t)p, (uint64_t)(uintptr_t)g}, 3, 1};
    launch("k_update_float32", 2, 64, 0, &a);
    check(p[0] == 1 - 0.5f * (-4 + 2) && p[1] == 2 - 0.5f * (8 + 4) && p[2] == 3 - 0.5f * 6, "values of sgd");
}

int
main(void)
{
    emulation_open();
    for (int rule = 0; rule < DT_NUPDATE; rule++) {
        test_rule(rule);
    }
    test_values();
    return emulation_close();
}
