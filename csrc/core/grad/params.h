/* params.h: what formulas read besides arrays: an op writes it down where it records. */
#ifndef DT_GRAD_PARAMS_H
#define DT_GRAD_PARAMS_H

#include "grad.h"

/* A part of an array: offset and strides, in elements, over a dense one. */
typedef struct {
    int64_t offset;
    int ndim;
    int64_t shape[DT_MAX_NDIM], strides[DT_MAX_NDIM];
} dt_region;

/* Whether two elements may lie in one place. */
bool dt_region_overlaps(const dt_region *region);

/* What shows other elements of the memory of its operand: where both lie in the n elements of that. */
typedef struct {
    dt_region part, own;
    int64_t n;
} dt_strided_record;

typedef struct {
    dt_params params;
    dt_scalar number; /* in place of an operand that is a number */
    bool first, second;
} dt_binary_record;

static inline dt_binary_record
dt_binary_numbers(const dt_array *a, const dt_array *b, const dt_scalar *scalar, const dt_params *params)
{
    dt_binary_record r = {.first = a == NULL, .second = b == NULL};
    if (params != NULL) {
        r.params = *params;
    }
    if (scalar != NULL) {
        r.number = *scalar;
    }
    return r;
}

typedef struct {
    uint32_t reduced; /* a bit for each dimension */
    bool nan_counts;  /* NaN is equal to NaN: max and min of all, unlike amax and amin */
} dt_reduce_record;

typedef struct {
    int64_t a, b; /* two dimensions, or numbers */
} dt_pair_record;

typedef struct {
    int n;
    int64_t dims[DT_MAX_NDIM];
} dt_dims_record;

typedef struct {
    double beta, alpha;
} dt_addmm_record;

#endif
