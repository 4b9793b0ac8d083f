/* result.h: the one path of a result. An op checks, makes its operands ready, opens its result, calls a slot
 * (call.h) that fills target, and closes:
 *
 *     dt_result r;
 *     DT_TRY(dt_result_open(&r, &form, reads, nreads, out, err));
 *     return dt_result_close(&r, dt_call_unary(op, params, x, r.target, err), err);
 *
 * An op whose result is always new fills out itself, and ends with dt_result_made. */
#ifndef DT_RESULT_H
#define DT_RESULT_H

#include "call.h"
#include "layout/layout.h"

/* Which out= a slot may fill at once. Others get a copy of what it filled. */
typedef enum {
    DT_OVER_OPERANDS,   /* even an operand that is seen the same way: an element is written after it was read */
    DT_BESIDE_OPERANDS, /* one that shares no bytes with an operand */
    DT_BLOCK,           /* the same, contiguous */
    DT_NOWHERE          /* none: it is filled more than once, and stays as it was when that fails */
} dt_fills;

/* What a result is. */
typedef struct {
    const char *op;
    dt_device device;
    dt_dtype dtype;
    int ndim;
    const int64_t *shape;
    const dt_array *like; /* a new one takes its layout, if it has the shape; NULL: contiguous */
    bool channels_last;   /* a new one does */
    dt_fills fills;
} dt_form;

typedef struct {
    dt_array *target; /* to be filled: of this form, or an out= of its shape and dtype */
    dt_array *out;
    const char *op;
    bool is_new; /* target is out, which was empty */
    dt_array temporary;
} dt_result;

/* rc: how the call ended that was to fill out, a new array. */
static inline dt_status
dt_result_made(dt_status rc, dt_array *out)
{
    if (DT_UNLIKELY(rc != DT_OK)) {
        dt_array_clear(out);
    }
    return rc;
}

/* The same, of an op of which a device may have no way of its own: made is false then. */
static inline dt_status
dt_made_here(dt_status rc, bool made, const char *op, dt_error *err)
{
    return DT_UNLIKELY(rc == DT_OK && !made)
               ? dt_fail(err, DT_ENOTIMPL, "not-implemented", op, "%s has no kernel for this device", op)
               : rc;
}

static inline dt_status
dt_result_made_here(dt_status rc, bool made, const char *op, dt_array *out, dt_error *err)
{
    return dt_result_made(dt_made_here(rc, made, op, err), out);
}

static inline dt_status
dt_result_new(const dt_form *form, dt_array *out, dt_error *err)
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

dt_status dt_result_open_given(dt_result *r, const dt_form *form, const dt_array *const *reads, int nreads,
                               dt_error *err) DT_MUST_CHECK;
dt_status dt_result_close_given(dt_result *r, dt_status rc, dt_error *err) DT_MUST_CHECK;

/* reads: what the slot will read; entries may be NULL or immediates. out: empty, or checked. */
static inline dt_status
dt_result_open(dt_result *r, const dt_form *form, const dt_array *const *reads, int nreads, dt_array *out,
               dt_error *err)
{
    r->op = form->op;
    r->out = r->target = out;
    r->is_new = out->storage == NULL;
    return r->is_new ? dt_result_new(form, out, err) : dt_result_open_given(r, form, reads, nreads, err);
}

/* rc: how the call ended. Hands the result over, or leaves an out that was empty empty. Returns how that ended. */
static inline dt_status
dt_result_close(dt_result *r, dt_status rc, dt_error *err)
{
    return r->is_new ? dt_result_made(rc, r->out) : dt_result_close_given(r, rc, err);
}

#endif
