/* resample.h: sums of few neighbours along a dimension, each with a share of its own. */
#ifndef DT_RESAMPLE_H
#define DT_RESAMPLE_H

#include "../devtensor.h"

/* out, of size p->size in dimension p->dim: element i there is the sum of input[index[t][i]] * share[t][i], in the
 * order of t; a negative index counts for nothing. With p->back the other way: element i of input is added, times
 * share[t][i], to element index[t][i] of out. index int64, share like input: float32 or float64, on a device that has a
 * way of its own. */
dt_status dt_resample(const dt_array *input, const dt_array *index, const dt_array *share, const dt_resample_params *p,
                      dt_array *out, dt_error *err) DT_MUST_CHECK;

#endif
