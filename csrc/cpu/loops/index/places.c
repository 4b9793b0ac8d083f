/* places.c: indices become offsets, and are checked. */
#include "places.h"

#include "../../../core/check/check.h"

static const int64_t *
strides_of(const cpu_places *p, int k)
{
    return p->by->array[k].strides + p->first;
}

static const char *
index_address(const cpu_places *p, int k, int64_t position)
{
    const dt_array *array = &p->by->array[k];
    return (const char *)dt_array_data(array) +
           cpu_offset(p->ndim, p->shape, strides_of(p, k), position) * (int64_t)dt_itemsize((dt_dtype)array->dtype);
}

#define ADD_INDICES(type)                                                                                              \
    static int64_t add_##type(const dt_index *by, int k, const char *data, int64_t step, int64_t n, int64_t *offsets)  \
    {                                                                                                                  \
        const type *in = (const type *)(const void *)data;                                                             \
        const int64_t size = by->size[k], stride = by->stride[k], wrap = by->wraps ? size : 0;                         \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            int64_t at = in[i * step];                                                                                 \
            at += at < 0 ? wrap : 0;                                                                                   \
            if (DT_UNLIKELY((uint64_t)at >= (uint64_t)size)) {                                                         \
                return i;                                                                                              \
            }                                                                                                          \
            offsets[i] += at * stride;                                                                                 \
        }                                                                                                              \
        return n;                                                                                                      \
    }
ADD_INDICES(int32_t)
ADD_INDICES(int64_t)

int64_t
cpu_add_index(const dt_index *by, int k, const char *data, int64_t step, int64_t n, int64_t *offsets)
{
    return by->array[k].dtype == DT_INT32 ? add_int32_t(by, k, data, step, n, offsets)
                                          : add_int64_t(by, k, data, step, n, offsets);
}

void
cpu_note_bad(cpu_places *p, int64_t position)
{
    int64_t seen = atomic_load(&p->bad);
    while (position < seen && !atomic_compare_exchange_weak(&p->bad, &seen, position)) {
    }
}

bool
cpu_find_offsets(cpu_places *p, int64_t position, int64_t n, int64_t step, int64_t *offsets)
{
    int64_t good = n;
    for (int64_t i = 0; i < n; i++) {
        offsets[i] = i * step;
    }
    for (int k = 0; k < p->by->n; k++) {
        const char *data = index_address(p, k, position);
        int64_t stride = p->ndim > 0 ? strides_of(p, k)[p->ndim - 1] : 0;
        good = cpu_add_index(p->by, k, data, stride, good, offsets);
    }
    if (good == n) {
        return true;
    }
    cpu_note_bad(p, position + good);
    return false;
}

dt_status
cpu_check_range(const cpu_places *p, dt_error *err)
{
    const dt_index *by = p->by;
    int64_t bad = atomic_load(&p->bad);
    for (int k = 0; bad < INT64_MAX && k < by->n; k++) {
        int64_t index = dt_scalar_load((dt_dtype)by->array[k].dtype, index_address(p, k, bad)).i;
        if (index >= by->size[k] || index < (by->wraps ? -by->size[k] : 0)) {
            return dt_fail_index(by->op, index, by->dimension[k], by->size[k], err);
        }
    }
    return DT_OK;
}
