/* broadcast.c: the shape that several operands broadcast to. */
#include "../check/check.h"
#include "../check/sentence.h"

dt_status
dt_broadcast_in_order(const char *op, const dt_operand *in, int n, const int *order, int *ndim, int64_t *shape,
                      dt_error *err)
{
    int present[DT_MAX_OPERANDS], npresent = 0;
    int source[DT_MAX_NDIM] = {0}; /* which operand decided a dimension */
    *ndim = 0;
    for (int i = 0; i < n; i++) {
        const int k = order != NULL ? order[i] : i;
        if (dt_operand_takes_part(&in[k])) {
            present[npresent++] = k;
            *ndim = in[k].array->ndim > *ndim ? in[k].array->ndim : *ndim;
        }
    }
    for (int d = 0; d < *ndim; d++) {
        shape[d] = 1;
        for (int i = 0; i < npresent; i++) {
            const int k = present[i];
            const dt_array *a = in[k].array;
            const int own = d - (*ndim - a->ndim);
            if (own < 0 || a->shape[own] == 1) {
                continue;
            }
            if (shape[d] == 1) {
                shape[d] = a->shape[own];
                source[d] = k;
            } else if (shape[d] != a->shape[own]) {
                return dt_fail_broadcast(op, in, n, source[d], k, d, err);
            }
        }
    }
    return DT_OK;
}

dt_status
dt_broadcast_shapes(const char *op, const dt_operand *in, int n, int *ndim, int64_t *shape, dt_error *err)
{
    return dt_broadcast_in_order(op, in, n, NULL, ndim, shape, err);
}
