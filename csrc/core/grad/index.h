/* index.h: what the gradients of selections are made of (index.c). */
#ifndef DT_GRAD_INDEX_H
#define DT_GRAD_INDEX_H

#include "params.h"
#include "../ops/index.h"

/* What stands where in a selection, besides its arrays, which are operands 1 to n of the op. */
typedef struct {
    int n;
    int dims[DT_MAX_NDIM], dimensions[DT_MAX_NDIM], positions[DT_MAX_NDIM];
} dt_selection_record;

dt_selection_record dt_selection_numbers(int n, const dt_selector *selectors);

/* Along one dimension: see dt_gather and dt_take_along_dim. */
typedef struct {
    int dim;
    bool wraps;
    double alpha; /* of index_add */
} dt_along_record;

/* Part of input, seen as region, or what arrays (operands 2 to n + 1) select in that, was written. */
typedef struct {
    dt_region region;
    dt_selection_record selection;
} dt_setitem_record;

/* view, a view of whole, as a region of a dense array of the shape of whole, which must pass dt_check_regions. */
dt_region dt_region_of(const dt_array *whole, const dt_array *view);
/* Refuses an array of which two elements may be one, or whose dimensions lie within each other. */
dt_status dt_check_regions(const char *op, const dt_array *whole, dt_error *err) DT_MUST_CHECK;

/* Zeros of this shape, to which part is added along dim where index says. */
dt_status dt_embed_along(const dt_array *part, int dim, const dt_array *index, int ndim, const int64_t *shape,
                         dt_array *out, dt_error *err) DT_MUST_CHECK;
/* gather_along of index.c, of which this is the inside: x over index along dim. */
dt_status dt_gather_along(const char *op, const dt_array *x, int dim, int called, const dt_array *index, bool wraps,
                          dt_array *out, dt_error *err) DT_MUST_CHECK;

#endif
