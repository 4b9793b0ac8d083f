/* measure_ulp.c: the largest error of the functions of csrc/cpu/functions.h, over every float32 there is, against the
 * double functions of the C library; takes some minutes.
 *
 *   cc -std=c11 -O3 -ffp-contract=off -fno-math-errno -o /tmp/measure_ulp tools/measure_ulp.c -lm && /tmp/measure_ulp
 *
 * An error is in units in the last place of the nearest float. Infinities, NaN and the sign of zero must be right. */
#include <stdio.h>

#include "../csrc/cpu/functions.h"

#define BLOCK 65536

typedef struct {
    double error;
    float at;
    long wrong;
} worst;

static void
compare(float x, float got, double want, worst *w)
{
    float nearest = (float)want;
    if (isnan(nearest) || isinf(nearest) || isnan(got) || isinf(got)) {
        int same = isnan(nearest) ? isnan(got) : nearest == got;
        /* a result just below the largest float may round either way */
        same = same || (fabs(want) > 0x1.fffffcp127 && fabs(want) < 0x1.000002p128 && fabsf(got) > 0x1.fffffcp127f);
        w->wrong += !same;
        return;
    }
    w->wrong += !signbit(nearest) != !signbit(got);
    double unit = (double)nextafterf(fabsf(nearest), INFINITY) - (double)fabsf(nearest);
    double error = fabs((double)got - want) / unit;
    if (error > w->error) {
        w->error = error;
        w->at = x;
    }
}

#define MEASURE(name, own, exact)                                                                                      \
    static void measure_##name(void)                                                                                   \
    {                                                                                                                  \
        static float x[BLOCK], got[BLOCK];                                                                             \
        worst w = {0};                                                                                                 \
        for (uint64_t first = 0; first < UINT64_C(1) << 32; first += BLOCK) {                                          \
            for (int i = 0; i < BLOCK; i++) {                                                                          \
                x[i] = dt_bits_f32((uint32_t)first + (uint32_t)i);                                                     \
            }                                                                                                          \
            for (int i = 0; i < BLOCK; i++) {                                                                          \
                got[i] = own(x[i]);                                                                                    \
            }                                                                                                          \
            for (int i = 0; i < BLOCK; i++) {                                                                          \
                compare(x[i], got[i], exact((double)x[i]), &w);                                                        \
            }                                                                                                          \
        }                                                                                                              \
        printf("%-6s %.4f at %a, %ld wrong\n", #name, w.error, (double)w.at, w.wrong);                                 \
        fflush(stdout);                                                                                                \
    }
MEASURE(exp, cpu_expf, exp)
MEASURE(expm1, cpu_expm1f, expm1)
MEASURE(log, cpu_logf, log)
MEASURE(log2, cpu_log2f, log2)
MEASURE(log10, cpu_log10f, log10)
MEASURE(log1p, cpu_log1pf, log1p)
MEASURE(tanh, cpu_tanhf, tanh)
MEASURE(erf, cpu_erff, erf)

int
main(void)
{
    measure_exp();
    measure_tanh();
    measure_erf();
    measure_expm1();
    measure_log();
    measure_log1p();
    measure_log2();
    measure_log10();
    return 0;
}
