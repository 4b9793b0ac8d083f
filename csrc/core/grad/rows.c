/* rows.c: the gradient of a weight that several products share. */
#include "rows.h"
#include "../ops/ops.h"

#define ENOUGH 512               /* rows that a product needs to run at its speed */
#define SMALL ((int64_t)1 << 20) /* bytes that rows may take whatever the weight does */

/* How many fit into the larger of what the weight takes and SMALL bytes. */
static int64_t
room_of(int64_t m, int64_t n, int64_t itemsize)
{
    const int64_t weight = m * n * itemsize, row = (m + n) * itemsize;
    const int64_t room = (weight > SMALL ? weight : SMALL) / (row > 0 ? row : 1);
    return room < ENOUGH ? room : ENOUGH;
}

static bool
is_alike(dt_value x, dt_device device, int dtype)
{
    return x->dtype == dtype && dt_device_equal(dt_array_device(x), device);
}

/* Whether leftᵀ @ right has the shape, dtype and device of weight. */
static bool
is_gradient_of(const dt_node *weight, dt_value left, dt_value right)
{
    return weight->ndim == 2 && weight->shape[0] == left->shape[1] && weight->shape[1] == right->shape[1] &&
           is_alike(left, weight->device, weight->dtype) && is_alike(right, weight->device, weight->dtype);
}

dt_rows *
dt_rows_new(dt_tape *t, const dt_node *weight, int64_t products, dt_value left, dt_value right)
{
    const int64_t k = left->shape[0], m = left->shape[1], n = right->shape[1];
    int64_t room = room_of(m, n, (int64_t)dt_itemsize((dt_dtype)left->dtype));
    if (products < 2 || k == 0 || 2 * k > room || !is_gradient_of(weight, left, right)) {
        return NULL;
    }
    room = products < room / k ? products * k : room;
    dt_rows *rows = dt_malloc(sizeof(*rows));
    if (rows == NULL) {
        t->rc = dt_fail_nomem(t->err, sizeof(*rows));
        return NULL;
    }
    *rows = (dt_rows){DT_ARRAY_EMPTY, DT_ARRAY_EMPTY, 0, room};
    const dt_device device = dt_array_device(left);
    const int64_t shapes[2][2] = {{room, m}, {room, n}};
    t->rc = dt_empty(device, (dt_dtype)left->dtype, 2, shapes[0], &rows->left, t->err);
    t->rc = t->rc == DT_OK ? dt_empty(device, (dt_dtype)left->dtype, 2, shapes[1], &rows->right, t->err) : t->rc;
    if (t->rc != DT_OK) {
        dt_rows_free(rows);
        return NULL;
    }
    return rows;
}

void
dt_rows_free(dt_rows *rows)
{
    dt_array_clear(&rows->left);
    dt_array_clear(&rows->right);
    dt_free(rows);
}

static bool
has_rows_like(const dt_array *all, dt_value rows)
{
    return all->shape[1] == rows->shape[1] && is_alike(rows, dt_array_device(all), all->dtype);
}

bool
dt_rows_suit(const dt_rows *rows, dt_value left, dt_value right)
{
    return left->shape[0] <= rows->room && has_rows_like(&rows->left, left) && has_rows_like(&rows->right, right);
}

static void
append(dt_tape *t, const dt_array *all, int64_t first, dt_value rows)
{
    dt_array part = DT_ARRAY_EMPTY;
    t->rc = t->rc == DT_OK ? dt_narrow("backward", all, 0, first, rows->shape[0], &part, t->err) : t->rc;
    t->rc = t->rc == DT_OK ? dt_copy_into("backward", &part, "src", rows, false, false, t->err) : t->rc;
    dt_array_clear(&part);
}

void
dt_rows_append(dt_tape *t, dt_rows *rows, dt_value left, dt_value right)
{
    append(t, &rows->left, rows->n, left);
    append(t, &rows->right, rows->n, right);
    rows->n += left->shape[0];
}

dt_value
dt_rows_product(dt_tape *t, dt_rows *rows)
{
    dt_value left = dt_tape_narrow(t, &rows->left, 0, 0, rows->n);
    dt_value right = dt_tape_narrow(t, &rows->right, 0, 0, rows->n);
    rows->n = 0;
    return dt_tape_matmul(t, dt_tape_transpose(t, left, 0, 1), right);
}
