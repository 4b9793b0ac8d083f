/* selection.h: indices become places, and are checked. */
#ifndef DT_KERNEL_SELECTION_H
#define DT_KERNEL_SELECTION_H

#include "../index.h"

/* Written without care for others who do the same: each of them would be right. */
DT_DEVICE void
k_report(const k_selection *by, int64_t index, int selector)
{
    k_reports *reports = DT_GLOBAL(k_reports, by->reports, sizeof(k_reports));
    const int entry = (int)(by->launch % K_REPORTS);
    reports->entry[entry].index[selector] = index;
    reports->entry[entry].launch[selector] = by->launch;
    DT_FENCE_SYSTEM(); /* the host may look at any moment */
    reports->any = 1;
}

/* Index number at of selector k. */
DT_DEVICE int64_t
k_load_index(const k_selection *by, int k, const void *array, int64_t at)
{
    return by->selector[k].wide ? ((const int64_t *)array)[at] : ((const int32_t *)array)[at];
}

#define K_OPEN_INDEX(by, k) DT_GLOBAL(const void, (by)->selector[k].array.address, (by)->selector[k].array.nbytes)

/* What index counts for, in elements; -1 where it is out of range. */
DT_DEVICE int64_t
k_place(const k_selection *by, int k, int64_t index)
{
    const int64_t size = by->selector[k].size, at = index + (index < 0 && by->wraps ? size : 0);
    if ((uint64_t)at < (uint64_t)size) {
        return at * by->selector[k].stride;
    }
    if (by->reports != 0) {
        k_report(by, index, k);
    }
    return -1;
}

/* Where entry i stands in an array of these strides. */
DT_DEVICE int64_t
k_locate_strides(const k_index *index, const int64_t *strides, int64_t i)
{
    int64_t at = 0;
    DT_ROLLED
    for (int d = index->ndim - 1; d >= 0; d--) {
        int64_t next = d == 0        ? 0
                       : index->wide ? i / index->shape[d]
                                     : (int64_t)k_divide((uint32_t)i, index->divisor[d]);
        at += (i - next * index->shape[d]) * strides[d];
        i = next;
    }
    return at;
}

/* The place of entry i, whose first index is given: the sum over all selectors, or -1. */
DT_DEVICE int64_t
k_place_all(const k_selection *by, int64_t i, int64_t first)
{
    int64_t place = k_place(by, 0, first);
    DT_ROLLED
    for (int k = 1; k < by->n && place >= 0; k++) {
        const int64_t at = k_locate_strides(&by->index, by->selector[k].strides, i);
        const int64_t more = k_place(by, k, k_load_index(by, k, K_OPEN_INDEX(by, k), at));
        place = more < 0 ? -1 : place + more;
    }
    return place;
}

#endif
