/* result.c: results that go to a caller's out=: it is filled, or a temporary that is copied into it. */
#include "grad/grad.h"
#include "ops/ops.h"
#include "result.h"

/* Whether writing target while reading x could read what was already written. */
static bool
unsafe_alias(const dt_form *form, const dt_array *target, const dt_array *x)
{
    if (x == NULL || x->storage != target->storage ||
        (form->fills == DT_OVER_OPERANDS && dt_array_is_same_view(target, x))) {
        return false;
    }
    return dt_array_overlaps(target, x);
}

static bool
may_fill(const dt_form *form, const dt_array *out, const dt_array *const *reads, int nreads)
{
    if (form->fills == DT_NOWHERE || out->dtype != form->dtype ||
        (form->fills == DT_BLOCK && !dt_array_is_contiguous(out))) {
        return false;
    }
    for (int i = 0; i < nreads; i++) {
        if (unsafe_alias(form, out, reads[i])) {
            return false;
        }
    }
    return true;
}

dt_status
dt_result_open_given(dt_result *r, const dt_form *form, const dt_array *const *reads, int nreads, dt_error *err)
{
    DT_TRY(dt_grad_check_write(form->op, r->out, err));
    if (may_fill(form, r->out, reads, nreads)) {
        return DT_OK;
    }
    r->target = &r->temporary;
    return dt_result_new(form, r->target, err);
}

dt_status
dt_result_close_given(dt_result *r, dt_status rc, dt_error *err)
{
    if (r->target == &r->temporary) {
        if (rc == DT_OK) {
            rc = dt_copy_into(r->op, r->out, "src", r->target, false, false, err);
        }
        dt_array_clear(r->target);
    }
    return rc;
}
