/* selection.c: describing arrays of indices to a kernel. */
#include <string.h>

#include "../../core/layout/layout.h"
#include "selection.h"

void
cuda_layout_init(cuda_layout *l, const dt_array *a, const dt_array *b, const dt_index *index, int first, int last)
{
    const dt_array *arrays[CUDA_SELECTION_ARRAYS] = {a, b};
    for (int k = 0; k < index->n; k++) {
        arrays[2 + k] = &index->array[k];
    }
    *l = (cuda_layout){.narrays = 2 + index->n, .numel = 1};
    for (int d = first; d < last; d++) {
        int64_t size = a->shape[d], stride[CUDA_SELECTION_ARRAYS];
        for (int k = 0; k < l->narrays; k++) {
            stride[k] = arrays[k]->strides[d];
        }
        l->numel *= size;
        l->ndim = dt_add_dim(l->ndim, l->shape, l->narrays, l->strides, size, stride);
    }
}

void
cuda_describe_selection(cuda_layout *l, const dt_index *index, int64_t elements, k_selection *by)
{
    dt_walk walk = {.narrays = 3};
    for (int d = 0; d < l->ndim && elements > 1; d++) {
        bool last = d == l->ndim - 1;
        l->shape[d] /= last ? elements : 1;
        l->strides[0][d] /= last ? 1 : elements;
        l->strides[1][d] /= last ? 1 : elements;
    }
    walk.ndim = l->ndim;
    walk.numel = l->numel / elements;
    memcpy(walk.shape, l->shape, sizeof(walk.shape));
    memcpy(walk.strides, l->strides, 3 * sizeof(walk.strides[0]));
    cuda_index(&by->index, &walk);
    by->n = index->n;
    by->wraps = index->wraps;
    for (int k = 0; k < index->n; k++) {
        k_selector *s = &by->selector[k];
        s->array = cuda_operand(&index->array[k]);
        memcpy(s->strides, l->strides[2 + k], sizeof(s->strides));
        s->size = index->size[k];
        s->stride = index->stride[k] / elements;
        s->wide = index->array[k].dtype == DT_INT64;
    }
}

k_operand
cuda_whole_operand(const dt_array *x, const dt_index *index)
{
    k_operand operand = cuda_operand(x);
    for (int k = 0; k < index->n; k++) {
        operand.nbytes += (uint64_t)((index->size[k] - 1) * index->stride[k]) * dt_itemsize((dt_dtype)x->dtype);
    }
    return operand;
}

dt_status
cuda_vector_init(cuda_temporary *t, cuda_device *device, int64_t n, dt_error *err)
{
    const dt_array like = {.ndim = 1, .shape = {n}};
    return cuda_temporary_init(t, device, &like, DT_INT64, err);
}
