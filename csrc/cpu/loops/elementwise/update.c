/* update.c: what an optimizer does to parameters: all elements of all parameters are one range, cut between the
 * threads. The half types go through a block of float32. */
#include "../loops.h"

#define BLOCK 1024 /* elements of each array that are cast at a time */

/* n elements of an entry, from `first` on, where its arrays are computed with as they lie. */
static void
update_direct(const dt_update *update, const dt_update_entry *entry, int64_t first, int64_t n)
{
    const dt_dtype dtype = (dt_dtype)entry->array[DT_UPDATE_PARAM]->dtype;
    char *data[DT_UPDATE_ARRAYS];
    for (int k = 0; k < DT_UPDATE_STATE + update->nstates; k++) {
        data[k] = (char *)dt_array_data(entry->array[k]) + first * (int64_t)dt_itemsize(dtype);
    }
    cpu_loops_here()->updates[dtype == DT_FLOAT64][update->rule](data, n, update->number);
}

/* The same by way of float32, at most BLOCK of them. */
static void
update_cast(const dt_update *update, const dt_update_entry *entry, int64_t first, int64_t n)
{
    static const int64_t beside[] = {1, 1};
    const int count = DT_UPDATE_STATE + update->nstates;
    float blocks[DT_UPDATE_ARRAYS][BLOCK];
    char *place[DT_UPDATE_ARRAYS], *data[DT_UPDATE_ARRAYS];
    dt_dtype dtype[DT_UPDATE_ARRAYS];
    for (int k = 0; k < count; k++) {
        const dt_array *a = entry->array[k];
        dtype[k] = (dt_dtype)a->dtype;
        place[k] = (char *)dt_array_data(a) + first * (int64_t)dt_itemsize(dtype[k]);
        data[k] = (char *)blocks[k];
        cpu_cast_row(dtype[k], DT_FLOAT32)((char *[]){data[k], place[k]}, beside, n, NULL);
    }
    cpu_loops_here()->updates[0][update->rule](data, n, update->number);
    for (int k = 0; k < count; k++) {
        if (k != DT_UPDATE_GRAD) {
            cpu_cast_row(DT_FLOAT32, dtype[k])((char *[]){place[k], data[k]}, beside, n, NULL);
        }
    }
}

/* The entry that has element i of all. */
static int
find_entry(const dt_update *update, int64_t i)
{
    int low = 0, high = update->n - 1;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (update->entry[middle].end > i) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static void
update_part(void *ctx, int64_t begin, int64_t end)
{
    const dt_update *update = ctx;
    const dt_dtype dtype = (dt_dtype)update->entry[0].array[DT_UPDATE_PARAM]->dtype;
    const bool direct = cpu_computed(dtype) == dtype;
    for (int e = find_entry(update, begin); begin < end; e++) {
        const dt_update_entry *entry = &update->entry[e];
        const int64_t start = e > 0 ? update->entry[e - 1].end : 0, stop = CPU_MIN(entry->end, end);
        while (begin < stop) {
            const int64_t n = direct ? stop - begin : CPU_MIN(BLOCK, stop - begin);
            (direct ? update_direct : update_cast)(update, entry, begin - start, n);
            begin += n;
        }
    }
}

dt_status
cpu_update(const dt_update *update, dt_array *param, dt_error *err)
{
    (void)param;
    (void)err;
    cpu_parallel(update->entry[update->n - 1].end, CPU_GRAIN, update_part, (void *)(uintptr_t)update);
    return DT_OK;
}
