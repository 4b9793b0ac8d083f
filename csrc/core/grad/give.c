/* give.c: what formulas give to the operands of their node is added up there. */
#include "task.h"
#include "../layout/layout.h"
#include "../ops/ops.h"

_Thread_local bool dt_grad_watched __attribute__((tls_model("initial-exec")));

void
dt_task_drop(dt_task *task)
{
    if (task->sum != NULL) {
        dt_array_clear(task->sum);
        dt_free(task->sum);
        task->sum = NULL;
    }
    if (task->rows != NULL) {
        dt_rows_free(task->rows);
        task->rows = NULL;
    }
    for (int i = 0; i < task->nparts; i++) {
        dt_array_clear(&task->parts[i]);
    }
    dt_free(task->parts);
    task->parts = NULL;
    task->nparts = 0;
}

bool
dt_tape_wants(const dt_tape *t, int i)
{
    return i < t->node->ninputs && t->node->inputs[i] != NULL && t->node->inputs[i]->task->needed;
}

/* Whether sum is memory that nobody else sees, so that it may be added to where it lies. */
static bool
is_own(const dt_tape *t, const dt_array *sum)
{
    return !t->create_graph && atomic_load_explicit(&sum->storage->refs, memory_order_relaxed) == 1 &&
           dt_array_is_dense(sum);
}

/* Takes gradient over where it is a value of t's own, else shares it. */
static void
take(dt_tape *t, dt_value gradient, dt_array *out)
{
    if (gradient >= t->values && gradient < t->values + t->n && t->fresh[gradient - t->values]) {
        dt_array *slot = &t->values[gradient - t->values];
        *out = *slot;
        slot->storage = NULL;
        slot->node = NULL;
    } else {
        dt_array_share(gradient, out);
    }
}

dt_status
dt_task_add(dt_tape *t, dt_task *task, dt_value gradient)
{
    if (task->sum == NULL) {
        task->sum = dt_malloc(sizeof(*task->sum));
        if (task->sum == NULL) {
            return dt_fail_nomem(t->err, sizeof(*task->sum));
        }
        take(t, gradient, task->sum);
        return DT_OK;
    }
    if (is_own(t, task->sum)) {
        return dt_binary(DT_BINARY_add, "backward", task->sum, gradient, NULL, NULL, true, task->sum, t->err);
    }
    dt_array sum = DT_ARRAY_EMPTY;
    DT_TRY(dt_binary(DT_BINARY_add, "backward", task->sum, gradient, NULL, NULL, false, &sum, t->err));
    dt_array_clear(task->sum);
    *task->sum = sum;
    return DT_OK;
}

/* Where the gradient of operand i is added up. */
static dt_task *
receiver(const dt_tape *t, int i)
{
    return t->caught != NULL ? &t->caught[i] : dt_tape_input(t, i)->task;
}

void
dt_tape_give(dt_tape *t, int i, dt_value gradient)
{
    if (t->rc != DT_OK || gradient == NULL || !dt_tape_wants(t, i)) {
        return;
    }
    if (DT_UNLIKELY(dt_grad_watched)) {
        t->rc = dt_front.watch((dt_node *)t->node, i, gradient, t->err);
    }
    gradient = t->rc == DT_OK ? dt_tape_fit(t, dt_tape_input(t, i), gradient) : NULL;
    if (gradient != NULL) {
        t->rc = dt_task_add(t, receiver(t, i), gradient);
    }
}

dt_status
dt_task_add_rows(dt_tape *t, dt_task *task)
{
    if (task->rows == NULL || task->rows->n == 0) {
        return DT_OK;
    }
    const int mark = t->n;
    dt_value product = dt_rows_product(t, task->rows);
    t->rc = product == NULL ? t->rc : dt_task_add(t, task, product);
    dt_tape_drop(t, mark);
    return t->rc;
}

/* Rows that left and right can join; NULL: there are none, or they failed (t->rc). */
static dt_rows *
rows_for(dt_tape *t, dt_task *task, dt_value left, dt_value right)
{
    if (t->create_graph || t->caught != NULL || dt_grad_watched) {
        return NULL;
    }
    if (task->rows == NULL) {
        task->rows = dt_rows_new(t, task->node, task->pending, left, right);
    }
    return task->rows != NULL && dt_rows_suit(task->rows, left, right) ? task->rows : NULL;
}

void
dt_tape_give_product(dt_tape *t, int i, dt_value left, dt_value right)
{
    if (t->rc != DT_OK || left == NULL || right == NULL || !dt_tape_wants(t, i)) {
        return;
    }
    dt_task *task = dt_tape_input(t, i)->task;
    dt_rows *rows = rows_for(t, task, left, right);
    if (rows == NULL) {
        dt_tape_give(t, i, dt_tape_matmul(t, dt_tape_transpose(t, left, 0, 1), right));
        return;
    }
    if (left->shape[0] > rows->room - rows->n) {
        t->rc = dt_task_add_rows(t, task);
    }
    if (t->rc == DT_OK) {
        dt_rows_append(t, rows, left, right);
    }
}

void
dt_tape_give_part(dt_tape *t, int nparts, int i)
{
    dt_task *task = dt_tape_input(t, 0)->task;
    if (!task->needed) {
        return;
    }
    if (task->parts == NULL) {
        task->parts = dt_calloc((size_t)nparts, sizeof(*task->parts));
        if (task->parts == NULL) {
            t->rc = dt_fail_nomem(t->err, (size_t)nparts * sizeof(*task->parts));
            return;
        }
        task->nparts = nparts;
    }
    dt_array *part = &task->parts[i], sum = DT_ARRAY_EMPTY;
    if (part->storage == NULL) {
        dt_array_share(t->grad, part);
        return;
    }
    t->rc = dt_binary(DT_BINARY_add, "backward", part, t->grad, NULL, NULL, false, &sum, t->err);
    if (t->rc == DT_OK) {
        dt_array_clear(part);
        *part = sum;
    }
}

void
dt_tape_give_region(dt_tape *t, int i, const dt_region *region, dt_value gradient)
{
    if (t->rc != DT_OK || gradient == NULL || !dt_tape_wants(t, i)) {
        return;
    }
    const dt_node *input = dt_tape_input(t, i);
    dt_array *sum = receiver(t, i)->sum;
    if (sum != NULL && sum->dtype == gradient->dtype && is_own(t, sum) && dt_array_is_contiguous(sum)) {
        t->rc = dt_write_region(sum, region, gradient, true, t->err);
        return;
    }
    if (t->create_graph) {
        dt_array *slot = dt_tape_slot(t);
        if (slot != NULL) {
            dt_tape_give(t, i,
                         dt_tape_made(t, dt_embed(gradient, region, input->ndim, input->shape, slot, t->err), slot));
        }
        return;
    }
    dt_value whole = dt_tape_zeros(t, input->ndim, input->shape);
    if (whole != NULL) {
        t->rc = dt_write_region(whole, region, gradient, false, t->err);
        dt_tape_give(t, i, t->rc == DT_OK ? whole : NULL);
    }
}

void
dt_tape_give_rest(dt_tape *t, int i, const dt_region *region)
{
    if (t->rc != DT_OK || !dt_tape_wants(t, i)) {
        return;
    }
    dt_task *from = t->node->task, *to = dt_tape_input(t, i)->task;
    if (t->caught == NULL && from->sum == t->grad && to->sum == NULL && is_own(t, t->grad) &&
        dt_array_is_contiguous(t->grad) && dt_array_has_shape(t->grad, to->node->ndim, to->node->shape) &&
        t->grad->dtype == to->node->dtype) {
        t->rc = dt_clear_region(t->grad, region, t->err);
        to->sum = from->sum;
        from->sum = NULL;
        t->grad = NULL;
        return;
    }
    dt_array *slot = dt_tape_slot(t);
    dt_tape_give(t, i, slot == NULL ? NULL : dt_tape_made(t, dt_without_region(t->grad, region, slot, t->err), slot));
}
