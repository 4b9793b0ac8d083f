/* measure_ulp.c: the largest error of the functions of csrc/cpu/functions.h, over every float32 there is, against the
 * double functions of the C library; takes a minute or two for each, all of them or those that it is asked for. With
 * -DSTEP=64 a sample: every 64th block of neighbours.
 *
 *   cc -std=c11 -O3 -ffp-contract=off -fno-math-errno -o /tmp/measure_ulp tools/measure_ulp.c -lm
 *   /tmp/measure_ulp [log sin ...]
 *
 * An error is in units in the last place of the nearest float. Infinities, NaN and the sign of zero must be right. */
#include <stdio.h>
#include <string.h>

#include "../csrc/cpu/functions.h"

#define BLOCK 65536
#ifndef STEP
#define STEP 1
#endif

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
        for (uint64_t first = 0; first < UINT64_C(1) << 32; first += BLOCK * STEP) {                                   \
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
#define FUNCTIONS(DO) DO(exp) DO(tanh) DO(erf) DO(expm1) DO(log) DO(log1p) DO(log2) DO(log10) DO(sin) DO(cos) DO(tan)
/* what the rows do with large arguments (elementwise.c) */
#define TURNS(x, near, wide, far) (fabsf(x) < CPU_TURNS_NEAR ? near : fabsf(x) < CPU_TURNS_WIDE ? wide : far)
#define cpu_sinf(x) TURNS(x, cpu_sinf(x), cpu_sin_wide(x, 0), sinf(x))
#define cpu_cosf(x) TURNS(x, cpu_cosf(x), cpu_sin_wide(x, 1), cosf(x))
#define cpu_tanf(x) TURNS(x, cpu_tanf(x), cpu_tanf(x), tanf(x))
#define DEFINE(name) MEASURE(name, cpu_##name##f, name)
FUNCTIONS(DEFINE)

static int
is_wanted(const char *name, int argc, char **argv)
{
    int wanted = argc < 2;
    for (int i = 1; i < argc; i++) {
        wanted = wanted || strcmp(argv[i], name) == 0;
    }
    return wanted;
}

int
main(int argc, char **argv)
{
#define RUN(name)                                                                                                      \
    if (is_wanted(#name, argc, argv)) {                                                                                \
        measure_##name();                                                                                              \
    }
    FUNCTIONS(RUN)
    return 0;
}
