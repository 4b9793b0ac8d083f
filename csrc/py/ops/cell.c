/* cell.c: recurrent layers in Python. */
#include "../py.h"

#include "../../core/ops/cell.h"

static PyObject *
cell_step(const py_args *a, dt_cell cell)
{
    const dt_array *own = py_arg_array(a, 0), *x = py_arg_array(a, 1), *state = py_arg_array(a, 2);
    if (own == NULL || x == NULL || state == NULL) {
        return NULL;
    }
    PY_RETURN(a, py_array_new(a->type, a->op), py_is_large(x), dt_cell_step(cell, own, x, state, out, &err));
}

static PyObject *
py__lstm_cell(PY_PARAMS)
{
    PY_PARSE(_lstm_cell)
    return cell_step(&a, DT_CELL_LSTM);
}

static PyObject *
py__gru_cell(PY_PARAMS)
{
    PY_PARSE(_gru_cell)
    return cell_step(&a, DT_CELL_GRU);
}

/* Two results, NULL if there is no room. */
static int
new_pair(const py_args *a, PyObject *pair[2])
{
    pair[0] = py_array_new(a->type, a->op);
    pair[1] = pair[0] == NULL ? NULL : py_array_new(a->type, a->op);
    if (pair[1] == NULL) {
        Py_CLEAR(pair[0]);
        return -1;
    }
    return 0;
}

/* As a tuple; borrows the operands. */
static PyObject *
pair_done(const py_args *a, PyObject *pair[2], int operands, dt_status status, const dt_error *err)
{
    if (status != DT_OK) {
        Py_DECREF(pair[1]);
        return py_done(a, pair[0], status, err);
    }
    py_step_link(pair[0], a->v, operands);
    py_step_link(pair[1], a->v, operands);
    return Py_BuildValue("NN", pair[0], pair[1]);
}

static PyObject *
py__lstm_steps(PY_PARAMS)
{
    PY_PARSE(_lstm_steps)
    const dt_array *x[4];
    bool reverse = false;
    for (int i = 0; i < 4; i++) {
        if ((x[i] = py_arg_array(&a, i)) == NULL) {
            return NULL;
        }
    }
    if (py_arg_bool(&a, 4, &reverse) < 0) {
        return NULL;
    }
    PyObject *pair[2];
    if (new_pair(&a, pair) < 0) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL_ON(a.v, PY_MAX_ARGS, py_is_large(x[0]) || py_is_large(x[1]), status,
               dt_cell_steps(x[0], x[1], NULL, x[2], x[3], reverse, py_array_of(pair[0]), py_array_of(pair[1]), &err));
    return pair_done(&a, pair, 4, status, &err);
}

static PyObject *
py__gru_steps(PY_PARAMS)
{
    PY_PARSE(_gru_steps)
    bool reverse = false;
    const dt_array *product = py_arg_array(&a, 0), *weight = py_arg_array(&a, 1), *h = py_arg_array(&a, 2), *bias;
    if (product == NULL || weight == NULL || h == NULL || py_arg_optional_array(&a, 3, &bias) < 0 ||
        py_arg_bool(&a, 4, &reverse) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(product) || py_is_large(weight),
              dt_cell_steps(product, weight, bias, h, NULL, reverse, out, NULL, &err));
}

/* product, weight, h, and bias of a GRU or c of an LSTM */
static PyObject *
steps_kept(const py_args *a, dt_cell cell)
{
    const dt_array *product = py_arg_array(a, 0), *weight = py_arg_array(a, 1), *h = py_arg_array(a, 2), *fourth;
    bool reverse = false;
    PyObject *pair[2];
    if (product == NULL || weight == NULL || h == NULL || py_arg_optional_array(a, 3, &fourth) < 0 ||
        py_arg_bool(a, 4, &reverse) < 0 || new_pair(a, pair) < 0) {
        return NULL;
    }
    const dt_array *bias = cell == DT_CELL_GRU ? fourth : NULL, *c = cell == DT_CELL_LSTM ? fourth : NULL;
    dt_error err;
    dt_status status;
    PY_CALL_ON(
        a->v, PY_MAX_ARGS, py_is_large(product) || py_is_large(weight), status,
        dt_cell_steps_kept(product, weight, bias, h, c, reverse, py_array_of(pair[0]), py_array_of(pair[1]), &err));
    return pair_done(a, pair, 4, status, &err);
}

static PyObject *
py__lstm_steps_kept(PY_PARAMS)
{
    PY_PARSE(_lstm_steps_kept)
    return py_arg_array(&a, 3) == NULL ? NULL : steps_kept(&a, DT_CELL_LSTM);
}

static PyObject *
py__gru_steps_kept(PY_PARAMS)
{
    PY_PARSE(_gru_steps_kept)
    return steps_kept(&a, DT_CELL_GRU);
}

/* last, NULL of a GRU, is the sixth. */
static PyObject *
py__steps_grad(PY_PARAMS)
{
    PY_PARSE(_steps_grad)
    const dt_array *x[5], *last;
    bool reverse = false;
    PyObject *pair[2];
    for (int i = 0; i < 5; i++) {
        if ((x[i] = py_arg_array(&a, i)) == NULL) {
            return NULL;
        }
    }
    if (py_arg_optional_array(&a, 5, &last) < 0 || py_arg_bool(&a, 6, &reverse) < 0 || new_pair(&a, pair) < 0) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_CALL_ON(a.v, PY_MAX_ARGS, py_is_large(x[0]), status,
               dt_cell_steps_grad(x[0], x[1], x[2], x[3], x[4], last, reverse, py_array_of(pair[0]),
                                  py_array_of(pair[1]), &err));
    return pair_done(&a, pair, 6, status, &err);
}

PyMethodDef py_cell_functions[] = {
    PY_HIDDEN(_lstm_steps, "h of all steps, (steps, n, size), and c after the last, of the product with the input."),
    PY_HIDDEN(_gru_steps, "h of all steps, (steps, n, size), of the product with the input."),
    PY_HIDDEN(_lstm_cell, "The new h and c of a step on the cpu, (2, n, size), from both products and c."),
    PY_HIDDEN(_gru_cell, "The new h of a step on the cpu, (n, size), from both products and h."),
    PY_HIDDEN(_lstm_steps_kept, "The products with h and all h and c: see csrc/core/ops/cell.h."),
    PY_HIDDEN(_gru_steps_kept, "The products with h and all h: see csrc/core/ops/cell.h."),
    PY_HIDDEN(_steps_grad, "The gradients of both products and of the state before: see csrc/core/ops/cell.h."),
    PY_END,
};

PyMethodDef py_cell_methods[] = {
    PY_END,
};
