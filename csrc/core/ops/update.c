/* update.c: what an optimizer does to parameters: all are checked, then those of one device and dtype are one call. */
#include <stdlib.h>
#include <string.h>

#include "../check/check.h"
#include "../layout/layout.h"
#include "ops.h"
#include "../result.h"

const char *const dt_update_names[DT_NUPDATE] = {
#define DT_UPDATE0(rule, ...) #rule,
#define DT_UPDATE1(rule, a, ...) #rule,
#define DT_UPDATE2(rule, a, b, ...) #rule,
#define DT_UPDATE3(rule, a, b, c, ...) #rule,
#include "../updates.def"
};

const char *const dt_update_states[DT_NUPDATE][DT_UPDATE_STATES] = {
#define DT_UPDATE0(rule, ...) {NULL},
#define DT_UPDATE1(rule, a, ...) {#a},
#define DT_UPDATE2(rule, a, b, ...) {#a, #b},
#define DT_UPDATE3(rule, a, b, c, ...) {#a, #b, #c},
#include "../updates.def"
};

const char *const dt_number_names[DT_NNUMBERS] = {
#define DT_UPDATE_NUMBER(name) #name,
#include "../updates.def"
};

static int
state_count(dt_update_rule rule)
{
    int n = 0;
    while (n < DT_UPDATE_STATES && dt_update_states[rule][n] != NULL) {
        n++;
    }
    return n;
}

/* ---------------------------------------------------------------- checks */

/* States are as the parameter, or float32 where that is a half type. */
static dt_status
check_dtypes(const char *op, const dt_operand *in, int n, dt_error *err)
{
    const dt_dtype dtype = (dt_dtype)in[DT_UPDATE_PARAM].array->dtype;
    DT_TRY(dt_check_float(op, in, n, err));
    DT_TRY(dt_check_dtypes(op, in, n, 1u << DT_UPDATE_PARAM | 1u << DT_UPDATE_GRAD, DT_BY_NAME, err));
    if (n == DT_UPDATE_STATE) {
        return DT_OK;
    }
    const unsigned states = ~0u << DT_UPDATE_STATE;
    const bool wide = in[DT_UPDATE_STATE].array->dtype == dt_wide(dtype);
    return dt_check_dtypes(op, in, n, wide ? states : states | 1u << DT_UPDATE_PARAM, DT_BY_NAME, err);
}

static dt_status
check_apart(const char *op, const dt_operand *in, int n, dt_error *err)
{
    for (int a = 0; a < n; a++) {
        for (int b = a + 1; b < n; b++) {
            if (a != DT_UPDATE_GRAD && b != DT_UPDATE_GRAD && dt_array_overlaps(in[a].array, in[b].array)) {
                return dt_fail_shared(op, in, n, a, b, err);
            }
        }
    }
    return DT_OK;
}

static dt_status
check_entry(const char *op, dt_update_rule rule, int nstates, const dt_update_entry *entry, dt_error *err)
{
    const int n = DT_UPDATE_STATE + nstates;
    const dt_array *param = entry->array[DT_UPDATE_PARAM];
    dt_operand in[DT_UPDATE_ARRAYS];
    for (int k = 0; k < n; k++) {
        const char *name = k == DT_UPDATE_PARAM  ? "params"
                           : k == DT_UPDATE_GRAD ? "grads"
                                                 : dt_update_states[rule][k - DT_UPDATE_STATE];
        in[k] = (dt_operand){name, entry->array[k], entry->place};
    }
    DT_TRY(dt_check_same_device(op, in, n, err));
    DT_TRY(check_dtypes(op, in, n, err));
    for (int k = DT_UPDATE_GRAD; k < n; k++) {
        DT_TRY(dt_check_shape(op, in, n, k, param->ndim, param->shape, err));
    }
    for (int k = 0; k < n; k++) {
        if (dt_update_writes(k)) {
            DT_TRY(dt_check_writable(op, in[k].name, in[k].array, err));
        }
    }
    return check_apart(op, in, n, err);
}

/* ---------------------------------------------------------------- which go together */

/* Whether the elements of b lie as those of a, which is dense. */
static bool
lies_as(const dt_array *a, const dt_array *b)
{
    bool same = true;
    for (int d = 0; d < a->ndim && same; d++) {
        same = a->shape[d] == 1 || a->strides[d] == b->strides[d];
    }
    return same;
}

static bool
is_neat(const dt_update_entry *entry, int nstates)
{
    const dt_array *param = entry->array[DT_UPDATE_PARAM];
    bool neat = dt_array_is_dense(param);
    for (int k = DT_UPDATE_GRAD; neat && k < DT_UPDATE_STATE + nstates; k++) {
        neat = lies_as(param, entry->array[k]);
    }
    return neat;
}

static bool
is_alike(const dt_update_entry *a, const dt_update_entry *b, int nstates)
{
    return dt_device_equal(dt_array_device(a->array[0]), dt_array_device(b->array[0])) &&
           a->array[DT_UPDATE_PARAM]->dtype == b->array[DT_UPDATE_PARAM]->dtype &&
           (nstates == 0 || a->array[DT_UPDATE_STATE]->dtype == b->array[DT_UPDATE_STATE]->dtype);
}

/* Brings the entries that are like the first to the front. Returns how many. */
static int
gather_alike(dt_update_entry *entries, int n, int nstates)
{
    int count = 1;
    for (int i = 1; i < n; i++) {
        if (is_alike(&entries[0], &entries[i], nstates)) {
            dt_update_entry other = entries[count];
            entries[count++] = entries[i];
            entries[i] = other;
        }
    }
    return count;
}

typedef struct {
    uintptr_t begin, end;
} range;

static int
compare_ranges(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Whether two entries write to the same bytes. */
static dt_status
share_memory(const dt_update_entry *entries, int n, int nstates, bool *shared, dt_error *err)
{
    const size_t room = (size_t)n * DT_UPDATE_ARRAYS * sizeof(range);
    range *written = dt_malloc(room);
    int count = 0;
    if (written == NULL) {
        return dt_fail_nomem(err, room);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < DT_UPDATE_STATE + nstates; k++) {
            const dt_array *a = entries[i].array[k];
            if (dt_update_writes(k)) {
                int64_t first, last;
                dt_array_extent(a, &first, &last);
                const uintptr_t data = (uintptr_t)a->storage->data;
                written[count++] = (range){data + (uintptr_t)first, data + (uintptr_t)last};
            }
        }
    }
    qsort(written, (size_t)count, sizeof(range), compare_ranges);
    *shared = false;
    for (int i = 1; i < count && !*shared; i++) {
        *shared = written[i].begin < written[i - 1].end;
    }
    dt_free(written);
    return DT_OK;
}

/* ---------------------------------------------------------------- the calls */

/* n entries that go together. */
static dt_status
call(dt_update *update, dt_update_entry *entries, int n, dt_error *err)
{
    int64_t end = 0;
    for (int i = 0; i < n; i++) {
        entries[i].end = end += dt_array_numel(entries[i].array[DT_UPDATE_PARAM]);
    }
    update->entry = entries;
    update->n = n;
    dt_array param = *entries[0].array[DT_UPDATE_PARAM];
    return dt_call_update(update, &param, err);
}

/* A copy of x, laid out as like. */
static dt_status
copy_as(const char *op, const dt_array *x, const dt_array *like, dt_array *out, dt_error *err)
{
    DT_TRY(dt_empty_beside(like, (dt_dtype)x->dtype, out, err));
    return dt_result_made(dt_copy_into(op, out, "input", x, false, false, err), out);
}

/* An entry whose arrays lie in different ways goes by copies. */
static dt_status
call_by_copies(const char *op, dt_update *update, const dt_update_entry *entry, dt_error *err)
{
    const int n = DT_UPDATE_STATE + update->nstates;
    dt_array copies[DT_UPDATE_ARRAYS] = {DT_ARRAY_EMPTY};
    dt_update_entry copied = *entry;
    dt_status rc = DT_OK;
    for (int k = 0; k < n && rc == DT_OK; k++) {
        rc = copy_as(op, entry->array[k], entry->array[DT_UPDATE_PARAM], &copies[k], err);
        copied.array[k] = &copies[k];
    }
    if (rc == DT_OK) {
        rc = call(update, &copied, 1, err);
        update->entry = NULL;
    }
    for (int k = 0; k < n && rc == DT_OK; k++) {
        if (dt_update_writes(k)) {
            dt_array target = *entry->array[k];
            rc = dt_copy_into(op, &target, "input", &copies[k], false, false, err);
        }
    }
    for (int k = 0; k < n; k++) {
        dt_array_clear(&copies[k]);
    }
    return rc;
}

/* Checks all, and takes those without elements out. */
static dt_status
check_all(const char *op, dt_update_rule rule, int nstates, int *n, dt_update_entry *entries, dt_error *err)
{
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        DT_TRY(check_entry(op, rule, nstates, &entries[i], err));
        if (dt_array_numel(entries[i].array[DT_UPDATE_PARAM]) > 0) {
            entries[kept++] = entries[i];
        }
    }
    *n = kept;
    return DT_OK;
}

dt_status
dt_update_params(const char *op, dt_update_rule rule, const double number[DT_NNUMBERS], int n, dt_update_entry *entries,
                 dt_error *err)
{
    dt_update update = {.rule = rule, .nstates = state_count(rule)};
    bool shared = false;
    memcpy(update.number, number, sizeof(update.number));
    DT_TRY(check_all(op, rule, update.nstates, &n, entries, err));
    if (n > 1) {
        DT_TRY(share_memory(entries, n, update.nstates, &shared, err));
    }
    for (int i = 0, count; i < n; i += count) {
        count = shared ? 1 : gather_alike(entries + i, n - i, update.nstates);
        int neat = 0;
        for (int k = 0; k < count; k++) {
            dt_update_entry *entry = &entries[i + k];
            if (!is_neat(entry, update.nstates)) {
                DT_TRY(call_by_copies(op, &update, entry, err));
            } else {
                dt_update_entry other = entries[i + neat];
                entries[i + neat++] = *entry;
                *entry = other;
            }
        }
        if (neat > 0) {
            DT_TRY(call(&update, entries + i, neat, err));
        }
    }
    return DT_OK;
}
