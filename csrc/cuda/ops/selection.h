/* selection.h: arrays of indices, as a kernel is given them: selection.c; and temporaries for work on them. */
#ifndef DT_CUDA_SELECTION_H
#define DT_CUDA_SELECTION_H

#include "../launch/launch.h"
#include "../memory/memory.h"

#define CUDA_SELECTION_ARRAYS (2 + DT_MAX_NDIM)

/* Dimensions [first, last) of two arrays and all indices, in their order, merged where all go on evenly. */
typedef struct {
    int narrays, ndim;
    int64_t numel, shape[DT_MAX_NDIM], strides[CUDA_SELECTION_ARRAYS][DT_MAX_NDIM];
} cuda_layout;

void cuda_layout_init(cuda_layout *l, const dt_array *a, const dt_array *b, const dt_index *index, int first, int last);
/* In units of some elements, of which rows have a whole number. */
void cuda_describe_selection(cuda_layout *l, const dt_index *index, int64_t elements, k_selection *by);
/* x and all that the indices may choose. */
k_operand cuda_whole_operand(const dt_array *x, const dt_index *index);
/* n elements of 8 bytes */
dt_status cuda_vector_init(cuda_temporary *t, cuda_device *device, int64_t n, dt_error *err) DT_MUST_CHECK;

#endif
