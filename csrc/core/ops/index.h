/* index.h: selection by arrays of indices and by masks: index.c, nonzero.c. An index that is out of range fails at once
 * on the host; a device says so when somebody waits for it next. */
#ifndef DT_INDEX_H
#define DT_INDEX_H

#include "../devtensor.h"

/* In place of a dimension: dt_fail_index. */
#define DT_CLASSES (-1)       /* indices are classes */
#define DT_PROBABILITIES (-2) /* indices say what is no probability: 0 nothing, 1 an input, 2 a target */

typedef struct {
    const dt_array *array; /* int32 or int64, in place of dimension dim; bool, of as many dimensions as it has */
    int dim;
    int dimension; /* the same in the array that the user indexes */
    int position;  /* in the user's index, or -1 when there is nothing else */
} dt_selector;

/* x is a view of input, whose dimensions selectors (in rising order) take the place of: beside each other, what they
 * choose stands where they stood, else in front. */
dt_status dt_index_get(const char *op, const dt_array *input, const dt_array *x, int n, const dt_selector *selectors,
                       dt_array *out, dt_error *err) DT_MUST_CHECK;
/* value, or NULL and scalar; of places that are meant twice the last one stays. wraps: negative indices count from the
 * end. */
dt_status dt_index_set(const char *op, const dt_array *input, const dt_array *x, int n, const dt_selector *selectors,
                       bool wraps, const dt_array *value, const dt_scalar *scalar, dt_error *err) DT_MUST_CHECK;
/* x[selectors] += value, which has the device and the dtype of x and memory of its own; negative indices count from the
 * end. What is meant twice is added twice, in the order of value, and sums of the half types are rounded once. */
dt_status dt_index_add_to(const char *op, const dt_array *x, int n, const dt_selector *selectors, const dt_array *value,
                          dt_error *err) DT_MUST_CHECK;
dt_status dt_index_select(const dt_array *input, int64_t dim, const dt_array *index, dt_array *out,
                          dt_error *err) DT_MUST_CHECK;
dt_status dt_gather(const dt_array *input, int64_t dim, const dt_array *index, dt_array *out,
                    dt_error *err) DT_MUST_CHECK;
/* gather for a loss, whose op it is: logs along dim at the classes in target. */
dt_status dt_pick_class(const char *op, const dt_array *logs, int64_t dim, const dt_array *target, dt_array *out,
                        dt_error *err) DT_MUST_CHECK;
/* Fails as an index does, on a device late, where the one element of what is not 0: see DT_PROBABILITIES. */
dt_status dt_check_probabilities(const char *op, const dt_array *what, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_take(const dt_array *input, const dt_array *index, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* dim NULL: of the flat array */
dt_status dt_take_along_dim(const dt_array *input, const dt_array *indices, const int64_t *dim, dt_array *out,
                            dt_error *err) DT_MUST_CHECK;
dt_status dt_embedding(const dt_array *input, const dt_array *weight, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* scatter_add.c: x[index[i]] += value[i] along dimension dim of x, as dt_index_add_to adds; index and value have one
 * shape and are nowhere larger than x elsewhere. */
dt_status dt_add_along(const char *op, const dt_array *x, int dim, const dt_array *index, bool wraps,
                       const dt_array *value, dt_error *err) DT_MUST_CHECK;
/* in_place: out is input, else empty. */
dt_status dt_scatter_add(const dt_array *input, int64_t dim, const dt_array *index, const dt_array *src, bool in_place,
                         dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_index_add(const dt_array *input, int64_t dim, const dt_array *index, const dt_array *source,
                       const dt_scalar *alpha, bool in_place, dt_array *out, dt_error *err) DT_MUST_CHECK;

/* One row of coordinates for each element that is not zero: int64 (count, ndim). */
dt_status dt_nonzero(const char *op, const dt_array *input, dt_array *out, dt_error *err) DT_MUST_CHECK;
dt_status dt_masked_select(const dt_array *input, const dt_array *mask, dt_array *out, dt_error *err) DT_MUST_CHECK;
/* What this thread's selections from now on are asked for by: dt_index.place, and dt_error.place when one fails. */
void dt_index_set_place(uint64_t place);
uint64_t dt_index_place(void);

/* Where sums are formed that go to x: x itself, or for the half types a copy in float32. */
typedef struct {
    const dt_array *x;
    dt_array sums, wide; /* sums is borrowed */
} dt_adding;

dt_status dt_adding_open(dt_adding *adding, const dt_array *x, dt_error *err) DT_MUST_CHECK;
/* rc: how the call ended that formed them. */
dt_status dt_adding_close(dt_adding *adding, const char *op, dt_status rc, dt_error *err) DT_MUST_CHECK;

/* The places of the True elements of mask, in order, as a vector: for each the sum of its coordinates times weights
 * (which are used up); or with weights NULL a row of its coordinates. Waits for the device to know how many there
 * are. */
dt_status dt_true_places(const char *op, const dt_array *mask, int64_t weights[DT_MAX_NDIM], dt_array *out,
                         dt_error *err) DT_MUST_CHECK;

#endif
