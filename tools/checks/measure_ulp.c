/* measure_ulp.c: the largest error of the functions of csrc/cpu/loops/elementwise/functions.h, over every float32 there
 * is, against the double functions of the C library; takes a minute or two for each, all of them or those that it is
 * asked for. With -DSTEP=64 a sample: every 64th block of neighbours. Of pow of float32, and of functions of float64
 * (exp64 and the like, against those of long double, where that is longer), SAMPLES of random bits, and as many of
 * everyday size.
 *
 *   cc -std=c11 -O3 -ffp-contract=off -fno-math-errno -o /tmp/measure_ulp tools/checks/measure_ulp.c -lm
 *   /tmp/measure_ulp [log sin ...]
 *
 * An error is in units in the last place of the nearest float. Infinities, NaN and the sign of zero must be right. */
#include <stdio.h>
#include <string.h>

#include "../../csrc/cpu/loops/elementwise/functions.h"

#define BLOCK 65536
#ifndef STEP
#define STEP 1
#endif
#ifndef SAMPLES
#define SAMPLES 10000000
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

static uint64_t
random_bits(void)
{
    static uint64_t state = 88172645463325252; /* xorshift, Marsaglia 2003 */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* between -1 and 1, of any magnitude from 2 ** -32 on */
static double
random_number(void)
{
    const uint64_t bits = random_bits();
    return ldexp((double)(int64_t)bits * 0x1p-63, -(int)(random_bits() & 31));
}

static void
measure_pow(void)
{
    worst w = {0};
    for (long i = 0; i < SAMPLES; i++) {
        const uint64_t bits = random_bits();
        const float x = dt_bits_f32((uint32_t)bits), y = dt_bits_f32((uint32_t)(bits >> 32));
        const float base = fabsf(x), power = (float)(random_number() * 150 / log2((double)base));
        compare(x, cpu_powf(x, y), pow((double)x, (double)y), &w);
        compare(x, cpu_powf(base, power), pow((double)base, (double)power), &w);
        compare(x, cpu_powf(x, rintf(power)), pow((double)x, (double)rintf(power)), &w);
    }
    printf("%-6s %.4f at %a, %ld wrong\n", "pow", w.error, (double)w.at, w.wrong);
}

static void
compare64(double x, double got, long double want, double *error, double *at, long *wrong)
{
    const double nearest = (double)want;
    if (!isfinite(nearest) || !isfinite(got)) {
        *wrong += isnan(nearest) ? !isnan(got) : nearest != got;
        return;
    }
    *wrong += !signbit(nearest) != !signbit(got);
    const double unit = nextafter(fabs(nearest), (double)INFINITY) - fabs(nearest);
    const double off = (double)(fabsl((long double)got - want) / (long double)unit);
    if (off > *error) {
        *error = off;
        *at = x;
    }
}

#define MEASURE64(name)                                                                                                \
    static void measure_##name##64(void)                                                                               \
    {                                                                                                                  \
        double error = 0, at = 0;                                                                                      \
        long wrong = 0;                                                                                                \
        for (long i = 0; i < SAMPLES; i++) {                                                                           \
            const double x = dt_bits_f64(random_bits()), y = random_number() * 40, z = 1 + random_number();            \
            compare64(x, cpu_##name(x), name##l((long double)x), &error, &at, &wrong);                                 \
            compare64(y, cpu_##name(y), name##l((long double)y), &error, &at, &wrong);                                 \
            compare64(z, cpu_##name(z), name##l((long double)z), &error, &at, &wrong);                                 \
        }                                                                                                              \
        printf("%-6s %.4f at %a, %ld wrong\n", #name "64", error, at, wrong);                                          \
    }
/* what the rows do with large arguments */
#define NEAR_OR(x, near, far) (fabs(x) < CPU_TURNS_F64 ? near : far)
#define cpu_sin(x) NEAR_OR(x, cpu_sin(x), sin(x))
#define cpu_cos(x) NEAR_OR(x, cpu_cos(x), cos(x))
#define FUNCTIONS64(DO) DO(exp) DO(expm1) DO(log) DO(log1p) DO(tanh) DO(sin) DO(cos)
FUNCTIONS64(MEASURE64)

#define FUNCTIONS(DO)                                                                                                  \
    DO(exp)                                                                                                            \
    DO(tanh) DO(erf) DO(expm1) DO(log) DO(log1p) DO(log2) DO(log10) DO(sin) DO(cos) DO(tan) DO(asin) DO(acos) DO(atan)
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
#define RUN64(name) RUN(name##64)
    FUNCTIONS(RUN)
    RUN(pow)
    FUNCTIONS64(RUN64)
    return 0;
}
