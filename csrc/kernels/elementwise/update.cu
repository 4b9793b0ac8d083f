/* update.cu: what an optimizer does to parameters: a block takes chunks of them, whosever they are. */
#include "../index.h"

/* The entry that has a chunk. */
DT_DEVICE int
k_update_find(const k_update_args *a, int64_t chunk)
{
    int low = 0, high = a->n - 1;
    DT_ROLLED while (low < high)
    {
        const int middle = (low + high) / 2;
        if (a->entry[middle].chunks > chunk) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

#define DT_EACH "../kernels/elementwise/update.inc"
#include "../../core/each_dtype.inc"
#undef DT_EACH
