/* result.c: where a result goes: a new array, the caller's out=, or a temporary that is copied into that. */
#include "result.h"
#include "layout.h"

/* Whether writing target while reading x could read what was already written. */
static bool
unsafe_alias(const dt_form *form, const dt_array *target, const dt_array *x)
{
    return x != NULL && dt_array_overlaps(target, x) &&
           !(form->fills == DT_OVER_OPERANDS && dt_array_is_same_view(target, x));
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

static dt_status
make(const dt_form *form, dt_array *out, dt_error *err)
{
    const dt_array *like = form->like;
    if (like != NULL && like->storage != NULL && dt_array_has_shape(like, form->ndim, form->shape)) {
        return dt_empty_like(like, form->device, form->dtype, out, err);
    }
    DT_TRY(dt_empty(form->device, form->dtype, form->ndim, form->shape, out, err));
    if (form->channels_last) {
        dt_set_channels_last(out);
    }
    return DT_OK;
}

dt_status
dt_result_open(dt_result *r, const dt_form *form, const dt_array *const *reads, int nreads, dt_array *out,
               dt_error *err)
{
    r->op = form->op;
    r->out = r->target = out;
    r->is_new = out->storage == NULL;
    if (!r->is_new) {
        if (may_fill(form, out, reads, nreads)) {
            return DT_OK;
        }
        r->target = &r->temporary;
    }
    return make(form, r->target, err);
}

dt_status
dt_result_close(dt_result *r, dt_status rc, dt_error *err)
{
    if (r->target == &r->temporary) {
        if (rc == DT_OK) {
            rc = dt_copy_into(r->op, r->out, r->target, false, false, err);
        }
        dt_array_clear(r->target);
        return rc;
    }
    return r->is_new ? dt_result_made(rc, r->out) : rc;
}
