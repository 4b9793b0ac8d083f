/* moments.h: the mean and the variance of numbers that are met in parts. Distances from the first number of a part lose
 * no more than those from the mean would: their squares come to at most n + 1 times as much, and a sum of n numbers is
 * off by as many roundings. */
#ifndef DT_KERNEL_MOMENTS_H
#define DT_KERNEL_MOMENTS_H

#include "kernel.h"

/* Sums of n distances from middle and of their squares. Settled: sum is the distance of the mean from middle, which,
 * unlike the mean, is told exactly where numbers are far from 0; squares are of distances from the mean. */
typedef struct {
    double middle, sum, squares;
    int64_t n;
} k_moments;

/* Of a part that begins with x: distances from an infinity would tell nothing of the mean. */
DT_DEVICE double
k_moments_middle(double x)
{
    return x - x == 0 ? x : 0;
}

DT_DEVICE void
k_moments_take(k_moments *part, double x)
{
    const double far = x - part->middle;
    part->sum += far;
    part->squares += far * far;
    part->n++;
}

/* Where squares alone are infinite, they stay so. */
DT_DEVICE void
k_moments_settle(k_moments *part)
{
    if (part->n > 0) {
        const double mean = part->sum / (double)part->n;
        if (part->sum - part->sum != 0 || part->squares - part->squares == 0) {
            part->squares -= part->sum * mean;
        }
        part->squares = part->squares < 0 ? 0 : part->squares;
        part->sum = mean;
    }
}

/* Both settled. A mean that is infinite stays so. */
DT_DEVICE void
k_moments_join(k_moments *a, const k_moments *b)
{
    if (a->n == 0) {
        *a = *b;
    } else if (b->n > 0) {
        const double part = a->n == b->n ? 0.5 : (double)b->n / (double)(a->n + b->n);
        const double far = (b->middle - a->middle) + (b->sum - a->sum);
        a->sum += a->sum - a->sum == 0 && b->sum - b->sum == 0 ? far * part : b->sum;
        a->squares += b->squares + far * far * part * (double)a->n;
        a->n += b->n;
    }
}

#endif
