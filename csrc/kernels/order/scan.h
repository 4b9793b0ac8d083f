/* scan.h: what some elements come to as a float, joined in any order as if one after another in double.
 *
 * One after another an overflow is not undone, nor an underflow to 0 of a product. Part of a row knows not what stands
 * before it, so it keeps how far it goes up and down: for a number before it that is too large or too small, the whole
 * ends there. Where no number before it would pass, those that go up and those that go down stay apart. */
#ifndef DT_KERNEL_SCAN_H
#define DT_KERNEL_SCAN_H

#include "../kernel.h"

DT_DEVICE int
k_is_finite(double v)
{
    return v - v == 0;
}

/* ---------------------------------------------------------------- products */

/* factor * 2**exponent, where the factor is at least 1 and less than 2, or 0, inf or NaN, after which nothing but such
 * factors and signs count. highest and lowest of the products on the way, from 1 on, by their size. */
typedef struct {
    double factor;
    int64_t highest, lowest;
    int64_t exponent;
} k_product;

/* A size is an exponent and 50 bits that follow the first: its order is that of integers. */
#define K_SIZE(exponent) ((int64_t)(exponent) * ((int64_t)1 << 50))
#define K_SIZE_TOO_LARGE K_SIZE(1024)
#define K_SIZE_TOO_SMALL K_SIZE(-1075)
#define K_SIZE_RANGE (K_SIZE_TOO_LARGE - K_SIZE_TOO_SMALL - 1)
#define K_MANTISSA (((uint64_t)1 << 52) - 1)
#define K_ONE_BITS ((uint64_t)1023 << 52)

DT_DEVICE int64_t
k_max_size(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

DT_DEVICE int64_t
k_min_size(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

DT_DEVICE int
k_is_factor(double factor)
{
    return factor != 0 && k_is_finite(factor);
}

DT_DEVICE int64_t
k_size(const k_product *p)
{
    return K_SIZE(p->exponent) + (int64_t)((dt_f64_bits(p->factor) & K_MANTISSA) >> 2);
}

DT_DEVICE int64_t
k_size_times(int64_t a, int64_t b)
{
    const int64_t rest = K_SIZE(1) - 1;
    const double x = dt_bits_f64((uint64_t)(a & rest) << 2 | K_ONE_BITS);
    const double y = dt_bits_f64((uint64_t)(b & rest) << 2 | K_ONE_BITS);
    return (a & ~rest) + (b & ~rest) + (int64_t)((dt_f64_bits(x * y) - K_ONE_BITS) >> 2);
}

DT_DEVICE k_product
k_no_product(void)
{
    const k_product one = {1, 0, 0, 0};
    return one;
}

/* `all` times factor * 2**exponent; whether sizes counted before. */
DT_DEVICE int
k_times(k_product *all, double factor, int64_t exponent)
{
    const int counts = k_is_factor(all->factor);
    all->factor *= factor;
    all->exponent += exponent;
    if (all->factor >= 2 || all->factor <= -2) {
        all->factor *= 0.5;
        all->exponent++;
    }
    if (!k_is_factor(all->factor)) {
        all->exponent = 0;
    }
    return counts;
}

/* above and below: how far it went since. */
DT_DEVICE void
k_product_reaches(k_product *all, int64_t above, int64_t below)
{
    const int64_t highest = k_min_size(k_max_size(all->highest, above), all->lowest + K_SIZE_RANGE);
    all->lowest = k_max_size(k_min_size(all->lowest, below), all->highest - K_SIZE_RANGE);
    all->highest = highest;
    if (all->highest - all->lowest >= K_SIZE_RANGE && k_is_factor(all->factor)) { /* no number before it passes */
        all->factor = all->factor < 0 ? -1 : 1;
        all->exponent = 0;
    }
}

DT_DEVICE void
k_join_product(k_product *all, const k_product *more)
{
    const int64_t size = k_size(all);
    const int64_t above = k_size_times(size, more->highest), below = k_size_times(size, more->lowest);
    if (k_times(all, more->factor, more->exponent)) {
        k_product_reaches(all, above, below);
    }
}

DT_DEVICE void
k_take_product(k_product *all, double v)
{
    uint64_t bits = dt_f64_bits(v), sign = bits & (uint64_t)1 << 63;
    int64_t exponent = 0;
    if (k_is_factor(v)) {
        if ((bits ^ sign) <= K_MANTISSA) { /* subnormal */
            bits = dt_f64_bits(v * 18014398509481984.0 /* 2**54 */);
            exponent = -54;
        }
        exponent += (int64_t)((bits ^ sign) >> 52) - 1023;
        v = dt_bits_f64((bits & K_MANTISSA) | sign | K_ONE_BITS);
        if (k_times(all, v, exponent)) {
            k_product_reaches(all, k_size(all), k_size(all));
        }
    } else {
        (void)k_times(all, v, 0);
    }
}

DT_DEVICE double
k_two_to(int64_t exponent)
{
    return dt_bits_f64((uint64_t)(exponent + 1023) << 52);
}

DT_DEVICE double
k_product_value(const k_product *all)
{
    if (all->highest >= K_SIZE_TOO_LARGE) {
        return all->factor * (double)dt_bits_f32(0x7f800000u);
    }
    if (all->lowest <= K_SIZE_TOO_SMALL) {
        return all->factor * 0.0;
    }
    return all->exponent < -1022 ? all->factor * k_two_to(all->exponent + 100) * k_two_to(-100)
                                 : all->factor * k_two_to(all->exponent);
}

DT_DEVICE void
k_product_step(double *run, double v)
{
    *run *= v;
}

/* ---------------------------------------------------------------- sums of float64 */

/* sum + rest, or their fourth once it went far; inf or NaN is what of such was added, after which nothing else counts.
 * highest and lowest: of the fourths of the sums on the way, from 0 on. */
typedef struct {
    double sum, rest, highest, lowest;
} k_sum;

#define K_SUM_MOST 0x1.fffffffffffffp1021 /* a fourth of the largest float64 */
#define K_SUM_FAR 0x1p1018

DT_DEVICE k_sum
k_no_sum(void)
{
    const k_sum zero = {0, 0, 0, 0};
    return zero;
}

DT_DEVICE int
k_is_far(const k_sum *sum)
{
    return sum->highest > K_SUM_FAR || sum->lowest < -K_SUM_FAR;
}

/* sum + rest + v + more, in two numbers that do not overlap: no bit is lost while both hold it. */
DT_DEVICE void
k_add(double *sum, double *rest, double v, double more)
{
    const double all = *sum + v, taken = all - *sum;
    const double lost = (*sum - (all - taken)) + (v - taken) + (*rest + more);
    *sum = all + lost;
    *rest = lost - (*sum - all);
}

DT_DEVICE void
k_join_sum(k_sum *all, const k_sum *more)
{
    if (!k_is_finite(all->sum)) {
        all->sum += k_is_finite(more->sum) ? 0 : more->sum;
        return;
    }
    const int far = k_is_far(all), more_far = k_is_far(more);
    const double size = far ? all->sum : all->sum * 0.25, range = 2 * K_SUM_MOST;
    double highest = size + more->highest, lowest = size + more->lowest;
    highest = highest > all->highest ? highest : all->highest;
    lowest = lowest < all->lowest ? lowest : all->lowest;
    highest = highest < all->lowest + range ? highest : all->lowest + range;
    lowest = lowest > all->highest - range ? lowest : all->highest - range;
    all->highest = highest;
    all->lowest = lowest;
    if (!k_is_finite(more->sum) || highest - lowest >= range) { /* that, or no number before it passes */
        all->sum = k_is_finite(more->sum) ? 0 : more->sum;
        all->rest = 0;
        return;
    }
    const int both_far = k_is_far(all);
    const double mine = both_far && !far ? 0.25 : 1, its = both_far && !more_far ? 0.25 : 1;
    all->sum *= mine;
    all->rest *= mine;
    k_add(&all->sum, &all->rest, more->sum * its, more->rest * its);
}

DT_DEVICE void
k_take_sum(k_sum *all, double v)
{
    const double size = v * 0.25;
    const k_sum one = {v, 0, k_is_finite(v) && v > 0 ? size : 0, k_is_finite(v) && v < 0 ? size : 0};
    if (k_is_far(&one)) {
        const k_sum fourth = {size, 0, one.highest, one.lowest};
        k_join_sum(all, &fourth);
    } else {
        k_join_sum(all, &one);
    }
}

/* A sum that goes on, element by element. */
typedef struct {
    double sum, rest;
} k_running;

DT_DEVICE k_running
k_sum_value(const k_sum *all)
{
    const double unit = k_is_far(all) ? 4 : 1, inf = dt_bits_f32(0x7f800000u);
    k_running run = {all->sum * unit, all->rest * unit};
    if (all->highest > K_SUM_MOST || all->lowest < -K_SUM_MOST) {
        run.sum = (all->highest > K_SUM_MOST ? inf : -inf) + (k_is_finite(all->sum) ? 0 : all->sum);
        run.rest = 0;
    }
    return run;
}

DT_DEVICE void
k_sum_step(k_running *run, double v)
{
    const double sum = run->sum + v;
    if (k_is_finite(sum)) {
        k_add(&run->sum, &run->rest, v, 0);
    } else {
        run->sum = sum;
        run->rest = 0;
    }
}

#endif
