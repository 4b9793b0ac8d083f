/* norm.h: normalisation by numbers that are known. */
#ifndef DT_NORM_H
#define DT_NORM_H

#include "../devtensor.h"

/* norm.c: (input - mean) / sqrt(var + eps) * weight + bias for each channel of input (N, C, ...); weight and bias may
 * be NULL. */
dt_status dt_batch_norm(const dt_array *input, const dt_array *mean, const dt_array *var, const dt_array *weight,
                        const dt_array *bias, double eps, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* Layer norm over the dimensions from params->lead on; weight and bias, which may be NULL, have their shape. Or group
 * norm. All of float32 or all of float64, on a device that has a way of its own. */
dt_status dt_normalize(const char *op, const dt_array *input, const dt_array *weight, const dt_array *bias,
                       const dt_normalize_params *params, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* Batch norm over (N, C, ...) by the mean and the variance of the batch, which stats, of shape (2, C), gets: the
 * variance by n - 1. */
dt_status dt_normalize_channels(const dt_array *input, const dt_array *weight, const dt_array *bias,
                                const dt_normalize_params *params, dt_array *stats, dt_array *out,
                                dt_error *err) DT_MUST_CHECK;

#endif
