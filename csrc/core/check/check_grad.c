/* check_grad.c: the sentences about gradients: what may not be written, what is gone, what is missing. */
#include "check.h"
#include "../layout/layout.h"
#include "sentence.h"

/* A failure that one array explains. */
static dt_status
fail_about(const char *code, const char *op, const char *name, const dt_array *x, const char *sentence, dt_error *err)
{
    const dt_operand in[] = {{name, x, -1}};
    dt_sentence_begin(err, DT_EGRAD, code, op, in, 1);
    dt_sentence_add(err, "%s", sentence);
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    err->culprit = 0;
    return DT_EGRAD;
}

dt_status
dt_fail_grad_leaf(const char *op, const dt_array *x, dt_error *err)
{
    return fail_about("grad-leaf-in-place", op, "input", x,
                      "a leaf Variable that requires grad is being used in an in-place operation.", err);
}

dt_status
dt_fail_grad_leaf_view(const char *op, const dt_array *x, dt_error *err)
{
    return fail_about("grad-leaf-view-in-place", op, "input", x,
                      "a view of a leaf Variable that requires grad is being used in an in-place operation.", err);
}

dt_status
dt_fail_captured(const char *op, const char *name, const dt_array *x, bool maps, dt_error *err)
{
    return fail_about("grad-captured", op, name, x,
                      maps ? "vmap: the function would write to an array from outside once for each entry: give it as "
                             "an argument with a dimension in in_dims, or write to a copy."
                           : "During a grad (vjp, jvp, grad, etc) transform, the function would write to an array from "
                             "outside: give it as an argument, or write to a copy.",
                      err);
}

dt_status
dt_fail_grad_out(const char *op, const dt_array *x, dt_error *err)
{
    return fail_about("grad-out", op, "out", x,
                      "functions with out=... arguments don't support automatic differentiation, but one of the "
                      "arguments requires grad.",
                      err);
}

dt_status
dt_fail_grad_view(const char *op, const dt_array *x, dt_error *err)
{
    return fail_about("grad-view-in-place", op, "input", x,
                      "A view was created in no_grad mode, or of a detached array, and is being modified inplace with "
                      "grad mode enabled.",
                      err);
}

dt_status
dt_fail_grad_shared(const char *op, const dt_array *x, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}};
    dt_sentence_begin(err, DT_ENOTIMPL, "grad-shared", op, in, 1);
    dt_sentence_add(err,
                    "gradients through a write in place to memory that another array shares in another way are not "
                    "supported: write to a copy (clone)");
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    return DT_ENOTIMPL;
}

dt_status
dt_fail_grad_freed(const char *op, dt_error *err)
{
    return dt_fail(err, DT_EGRAD, "grad-freed", op,
                   "Trying to backward through the graph a second time (or directly access saved tensors after they "
                   "have already been freed). Saved intermediate values of the graph are freed when you call "
                   ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
                   "graph a second time or if you need to access saved tensors after calling backward. (%s)",
                   op);
}

dt_status
dt_fail_grad_rerun(const char *op, unsigned recorded, unsigned again, dt_error *err)
{
    return dt_fail(err, DT_EGRAD, "grad-checkpoint", op,
                   "checkpoint: a different number of tensors was saved during the original forward and "
                   "recomputation, or they have different metadata (%s): %u ops were recorded, then %u. The function "
                   "must do the same each time",
                   op, recorded, again);
}

dt_status
dt_fail_grad_modified(const char *op, const dt_array *x, uint32_t version, uint32_t expected, dt_error *err)
{
    const dt_operand in[] = {{"kept", x, -1}};
    dt_sentence_begin(err, DT_EGRAD, "grad-modified", op, in, 1);
    dt_sentence_add(err,
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    "kept by %s at version %u, now at version %u",
                    op, (unsigned)expected, (unsigned)version);
    dt_sentence_operands(err, DT_SHOW_SHAPE);
    err->culprit = 0;
    return DT_EGRAD;
}

dt_status
dt_fail_grad_moved(const char *op, const dt_array *gradient, dt_device device, dt_error *err)
{
    char was[DT_DEVICE_TEXT], is[DT_DEVICE_TEXT];
    return dt_fail(err, DT_EDEVICE, "grad-moved", op,
                   "the gradient of %s is on %s, but its operand is on %s now: it was moved between forward and "
                   "backward",
                   op, dt_device_text(dt_array_device(gradient), was), dt_device_text(device, is));
}

dt_status
dt_fail_grad_cast(const char *op, const dt_array *gradient, dt_dtype dtype, dt_error *err)
{
    return dt_fail(err, DT_EDTYPE, "grad-moved", op,
                   "the gradient of %s is %s, but its operand is %s now: it was cast between forward and backward", op,
                   dt_dtypes[gradient->dtype].name, dt_dtypes[dtype].name);
}

dt_status
dt_check_grad(const char *op, const dt_array *x, const dt_array *grad, dt_error *err)
{
    const dt_operand in[] = {{"input", x, -1}, {"grad", grad, -1}};
    DT_TRY(dt_check_same_device(op, in, 2, err));
    DT_TRY(dt_check_same_dtype(op, in, 2, err));
    return dt_array_has_shape(grad, x->ndim, x->shape)
               ? DT_OK
               : dt_sentence_shapes("grad-assign", op, in, 2, &in[1], err,
                                    "a gradient must have the shape of its array");
}
