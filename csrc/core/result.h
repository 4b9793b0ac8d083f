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

/* reads: what the slot will read; entries may be NULL or immediates. out: empty, or checked. */
dt_status dt_result_open(dt_result *r, const dt_form *form, const dt_array *const *reads, int nreads, dt_array *out,
                         dt_error *err) DT_MUST_CHECK;
/* rc: how the call ended. Hands the result over, or leaves an out that was empty empty. Returns how that ended. */
dt_status dt_result_close(dt_result *r, dt_status rc, dt_error *err) DT_MUST_CHECK;

/* rc: how the call ended that was to fill out, a new array. */
static inline dt_status
dt_result_made(dt_status rc, dt_array *out)
{
    if (DT_UNLIKELY(rc != DT_OK)) {
        dt_array_clear(out);
    }
    return rc;
}

#endif
