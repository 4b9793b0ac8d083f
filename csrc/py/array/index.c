/* index.c: x[...], x[...] = y. */
#include "../../core/grad/index.h"
#include "../py.h"
#include "../as_torch.h"
#include "../subclass.h"

/* What is left of self after the basic entries of an index, and what the others select in it. */
typedef struct {
    PyObject *index; /* a new reference: lists in it have become arrays */
    dt_array view;   /* empty: all of self */
    int n;
    bool masked; /* there is a mask: its count is waited for */
    dt_selector selectors[DT_MAX_NDIM];
    dt_array flags[DT_MAX_NDIM]; /* masks of no dimension, as such of one */
} selection;

static void
selection_clear(selection *s)
{
    for (int k = 0; k < s->n; k++) {
        dt_array_clear(&s->flags[k]);
    }
    dt_array_clear(&s->view);
    Py_XDECREF(s->index);
}

/* ---------------------------------------------------------------- one entry */

/* How many dimensions of self an entry other than ... is for. */
static int
used_by(PyObject *item)
{
    if (item == Py_None || PyBool_Check(item)) {
        return 0;
    }
    return py_is_array(item) && py_array_of(item)->dtype == DT_BOOL ? py_array_of(item)->ndim : 1;
}

/* The number of dimensions that the entries of index use up; -1 with an exception. */
static int
count_used(PyObject *const *items, Py_ssize_t n, int ndim)
{
    int used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        used += items[i] == Py_Ellipsis ? 0 : used_by(items[i]);
        ellipses += items[i] == Py_Ellipsis;
    }
    if (ellipses > 1) {
        PyErr_SetString(PyExc_IndexError, "an index can only have a single ellipsis ('...')");
        return -1;
    }
    if (used > ndim) {
        PyErr_Format(PyExc_IndexError, "too many indices for array of dimension %d", ndim);
        return -1;
    }
    return used;
}

/* A mask of one element: flag, or value on the device of x. */
static dt_status
make_flag(const char *op, const dt_array *x, const dt_array *flag, bool value, dt_array *out, dt_error *err)
{
    static const int64_t one = 1;
    if (flag != NULL) {
        return dt_unsqueeze(op, flag, 0, out, err);
    }
    const dt_scalar scalar = dt_scalar_bool(value);
    DT_TRY(dt_empty(dt_array_device(x), DT_BOOL, 1, &one, out, err));
    dt_status rc = dt_fill(op, out, &scalar, err);
    if (rc != DT_OK) {
        dt_array_clear(out);
    }
    return rc;
}

/* Adds an array to the selectors, at dimension *dim of the view x, which becomes next. */
static dt_status
add_selector(selection *s, const char *op, const dt_array *x, PyObject *item, int position, int dimension, int *dim,
             dt_array *next, dt_error *err)
{
    const dt_array *array = py_is_array(item) ? py_array_of(item) : NULL;
    bool flag = array == NULL || (array->dtype == DT_BOOL && array->ndim == 0);
    int used = used_by(item);
    if (s->n == DT_MAX_NDIM) {
        return dt_fail(err, DT_EINDEX, "too-many-indices", op, "too many indices: at most %d arrays", DT_MAX_NDIM);
    }
    if (flag) { /* for a dimension of size 1 that is put in */
        DT_TRY(dt_unsqueeze(op, x, *dim, next, err));
        dt_status rc = make_flag(op, x, array, item == Py_True, &s->flags[s->n], err);
        if (rc != DT_OK) {
            dt_array_clear(next);
            return rc;
        }
        array = &s->flags[s->n];
        used = 1;
    } else {
        dt_array_share(x, next);
        s->flags[s->n] = DT_ARRAY_EMPTY;
    }
    s->masked = s->masked || array->dtype == DT_BOOL;
    s->selectors[s->n++] = (dt_selector){array, *dim, dimension, position};
    *dim += used;
    return DT_OK;
}

/* Applies one entry of an index of self to dimension *dim of the view, what the entries before it left. */
static int
apply(PyObject *self, const char *op, selection *s, PyObject *item, int position, int dimension, int *dim)
{
    dt_error err;
    dt_status status;
    const dt_array *x = s->view.storage != NULL ? &s->view : py_array_of(self);
    dt_array next;
    next.storage = NULL;
    if (item == Py_None) {
        status = dt_unsqueeze(op, x, (*dim)++, &next, &err);
    } else if (PySlice_Check(item)) {
        Py_ssize_t start, stop, step;
        if (PySlice_Unpack(item, &start, &stop, &step) < 0) {
            return -1;
        }
        if (step < 0) {
            PyErr_SetString(PyExc_ValueError, "step must be greater than zero");
            return -1;
        }
        Py_ssize_t length = PySlice_AdjustIndices((Py_ssize_t)x->shape[*dim], &start, &stop, step);
        status = dt_slice(op, x, *dim, start, step, length, &next, &err);
        (*dim)++;
    } else if (py_is_array(item) || PyBool_Check(item)) {
        status = add_selector(s, op, x, item, position, dimension, dim, &next, &err);
    } else if (!PyLong_CheckExact(item) && py_is_ndarray(item)) {
        py_refuse_numpy(py_state_of(self), op, "input", self, item);
        return -1;
    } else if (PyLong_CheckExact(item) ||
               (PyIndex_Check(item) && !PyObject_HasAttrString((PyObject *)Py_TYPE(item), "__dlpack__"))) {
        Py_ssize_t index = PyNumber_AsSsize_t(item, PyExc_IndexError);
        if (index == -1 && PyErr_Occurred()) {
            return -1;
        }
        status = dt_select(op, x, *dim, index, &next, &err);
    } else {
        PyErr_Format(PyExc_IndexError,
                     "only ints, slices (`:`), ellipsis (`...`), None, arrays and lists of ints or bools are valid "
                     "indices (got %s)",
                     Py_TYPE(item)->tp_name);
        return -1;
    }
    if (status != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    if (x == &s->view) {
        dt_array_clear(&s->view);
    }
    s->view = next;
    return 0;
}

/* The index in a program that runs as torch; a new reference, or NULL with an exception. */
DT_NOINLINE static PyObject *
index_as_torch(PyObject *self, const char *op, PyObject *index)
{
    PyObject *tuple = py_without_list(index), *plain = NULL;
    if (tuple != NULL) {
        plain = PyLong_CheckExact(tuple) ? Py_NewRef(tuple) : py_index_without_lists(self, op, tuple);
    }
    Py_XDECREF(tuple);
    return py_followed_index(self, plain);
}

/* Fills s from self[index]; to be cleared also after -1. */
static int
resolve(PyObject *self, const char *op, PyObject *index, selection *s)
{
    const dt_array *x = py_array_of(self);
    s->n = 0;
    s->masked = false;
    s->view.storage = NULL;
    s->index = DT_UNLIKELY(py_as_torch)   ? index_as_torch(self, op, index)
               : PyLong_CheckExact(index) ? Py_NewRef(index)
                                          : py_index_without_lists(self, op, index);
    if (s->index == NULL) {
        return -1;
    }
    bool is_tuple = PyTuple_Check(s->index);
    PyObject *const *items = is_tuple ? ((PyTupleObject *)s->index)->ob_item : &s->index;
    Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(s->index) : 1;
    int dim = 0, dimension = 0, used = count_used(items, n, x->ndim);
    if (used < 0) {
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        if (items[i] == Py_Ellipsis) {
            dim += x->ndim - used;
            dimension += x->ndim - used;
        } else if (apply(self, op, s, items[i], is_tuple ? (int)i : -1, dimension, &dim) < 0) {
            return -1;
        } else {
            dimension += used_by(items[i]);
        }
    }
    if (s->view.storage == NULL) { /* nothing but an ellipsis */
        dt_array_share(x, &s->view);
    }
    return 0;
}

/* ---------------------------------------------------------------- x[index], x[index] = value */

static PyObject *
get_selected(PyObject *self, const char *op, const selection *s)
{
    const dt_array *x = py_array_of(self);
    PyObject *result = py_array_new(Py_TYPE(self), op);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PyObject *operands[] = {self, s->index};
    bool release = py_is_large(&s->view) || py_is_large(s->selectors[0].array) || (s->masked && py_on_device(x));
    py_late_note(op, x);
    PY_MOVE(op, self, release, status, dt_index_get(op, x, &s->view, s->n, s->selectors, py_array_of(result), &err));
    return py_finish(result, status, &err, operands, 2);
}

/* Whether an index has arrays, or what becomes one: what it gives is a copy. */
static DT_NOINLINE bool
has_places(PyObject *self, PyObject *index)
{
    const Py_ssize_t n = PyTuple_Check(index) ? PyTuple_GET_SIZE(index) : 1;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PyTuple_Check(index) ? PyTuple_GET_ITEM(index, i) : index;
        if (py_is_array(item) || py_becomes_array(self, item)) {
            return true;
        }
    }
    return false;
}

/* A view goes by what was written to its part alone, not by way of self, whose hooks do not see it. */
static PyObject *
subscript(PyObject *self, PyObject *index)
{
    if (dt_has_history(py_array_of(self)) && has_places(self, index) && py_operand(self) == NULL) {
        return NULL;
    }
    selection s;
    PyObject *result = NULL;
    if (resolve(self, "getitem", index, &s) == 0) {
        if (s.n > 0) {
            result = get_selected(self, "getitem", &s);
        } else if ((result = py_array_new(Py_TYPE(self), "getitem")) != NULL) {
            *py_array_of(result) = s.view;
            s.view.storage = NULL;
            py_step_link(result, &self, 1);
        }
    }
    selection_clear(&s);
    return result;
}

/* 1: value is a number, which is in scalar; 0: an array; -1 with an exception. */
static int
parse_value(PyObject *self, const char *op, PyObject *value, dt_scalar *scalar)
{
    if (value == NULL) {
        PyErr_SetString(PyExc_TypeError, "elements of a DeviceArray cannot be deleted");
        return -1;
    }
    if (py_is_array(value)) {
        return 0;
    }
    int rc = py_scalar(value, scalar);
    if (rc == 0 && py_is_ndarray(value)) {
        py_refuse_numpy(py_state_of(self), op, "input", self, value);
    } else if (rc == 0) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'value' must be DeviceArray or a number, not %s", op,
                     Py_TYPE(value)->tp_name);
    }
    return rc > 0 ? 1 : -1;
}

/* Which op writes, whether its negative indices count from the end, and whether leading sizes of 1 of a value count. */
typedef struct {
    const char *op;
    bool wraps, shortens;
} writer;

static dt_array *
part_of(PyObject *self, selection *s)
{
    if (s->view.storage == NULL) {
        return py_array_of(self);
    }
    dt_node *node = py_array_of(self)->node;
    if (DT_UNLIKELY(node != NULL) && (node->flags & DT_NODE_QUIET) && s->view.node == NULL) {
        s->view.node = dt_node_retain(node); /* by which the write is known as one through .data */
    }
    return &s->view;
}

static dt_status
assign(PyObject *self, const writer *w, selection *s, const dt_array *value, const dt_scalar *scalar, dt_error *err)
{
    dt_array *part = part_of(self, s);
    if (s->n > 0) {
        return dt_index_set(w->op, py_array_of(self), part, s->n, s->selectors, w->wraps, value, scalar, err);
    }
    return value != NULL ? dt_copy_into(w->op, part, "value", value, false, false, err)
                         : dt_fill(w->op, part, scalar, err);
}

/* Writes what is parsed; source NULL: scalar. */
static int
write_selection(PyObject *self, const writer *w, selection *s, PyObject *value, const dt_array *source,
                const dt_scalar *scalar)
{
    dt_error err;
    dt_status status;
    if (s->n > 0) {
        py_late_note(w->op, py_array_of(self));
    }
    const dt_array *part = part_of(self, s);
    bool release = py_is_large(part) || (s->masked && py_on_device(part));
    PY_MOVE(w->op, self, release, status, assign(self, w, s, source, scalar, &err));
    if (status == DT_OK) {
        return 0;
    }
    PyObject *operands[] = {self, value, s->index};
    py_raise(py_state_of(self), &err, operands, 3);
    return -1;
}

static bool
is_full(PyObject *item)
{
    const PySliceObject *slice = PySlice_Check(item) ? (PySliceObject *)item : NULL;
    return slice != NULL && slice->stop == Py_None && slice->step == Py_None &&
           (slice->start == Py_None || (PyLong_CheckExact(slice->start) && PyObject_IsTrue(slice->start) == 0));
}

/* Whether index is of slices that leave nothing out, and at most one ellipsis. */
static bool
selects_all(PyObject *self, PyObject *index)
{
    const bool is_tuple = PyTuple_Check(index);
    const Py_ssize_t n = is_tuple ? PyTuple_GET_SIZE(index) : 1;
    int slices = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = is_tuple ? PyTuple_GET_ITEM(index, i) : index;
        slices += is_full(item);
        ellipses += item == Py_Ellipsis;
    }
    return slices + ellipses == n && slices <= py_array_of(self)->ndim && ellipses <= 1;
}

/* x[:] = value on record is x.copy_(value): no view of x is made. */
static int
set_all(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source,
        const dt_scalar *scalar)
{
    selection s = {.index = Py_NewRef(index)};
    const int rc = write_selection(self, w, &s, value, source, scalar);
    selection_clear(&s);
    py_step_place(self);
    return rc;
}

static int
set_plainly(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source,
            const dt_scalar *scalar)
{
    selection s;
    int rc = resolve(self, w->op, index, &s);
    if (rc == 0) {
        rc = write_selection(self, w, &s, value, source, scalar);
    }
    selection_clear(&s);
    return rc;
}

/* The same on record, where other arrays see the memory: a view is written. 1: the index has arrays. */
static int
set_view(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source,
         const dt_scalar *scalar)
{
    selection s;
    int rc = resolve(self, w->op, index, &s);
    if (rc == 0) {
        rc = s.n > 0 ? 1 : write_selection(self, w, &s, value, source, scalar);
    }
    selection_clear(&s);
    return rc;
}

/* The same on record: what was written, and where, is what the gradient has to know. */
static int
set_recorded(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source,
             const dt_scalar *scalar)
{
    dt_array *x = py_array_of(self);
    const dt_array *inputs[DT_MAX_NDIM + 2] = {x, source};
    dt_setitem_record record;
    dt_recording r;
    dt_error err;
    dt_status status = dt_check_regions(w->op, x, &err);
    if (status == DT_OK) {
        status = dt_record_open_as(&r, w->op, DT_GRAD_setitem, inputs, 2, x, &err);
    }
    if (status != DT_OK) {
        PyObject *operands[] = {self, value};
        py_raise(py_state_of(self), &err, operands, 2);
        return -1;
    }
    selection s;
    int rc = resolve(self, w->op, index, &s);
    if (rc == 0) {
        rc = write_selection(self, w, &s, value, source, scalar);
    }
    if (rc == 0) {
        record.region = dt_region_of(x, &s.view);
        record.selection = dt_selection_numbers(s.n, s.selectors);
        for (int k = 0; k < s.n; k++) {
            inputs[k + 2] = s.selectors[k].array;
        }
        r.n = s.n + 2;
    }
    status = dt_record_close(&r, rc == 0 ? DT_OK : DT_EFRONT, &record, sizeof(record), x, &err);
    selection_clear(&s);
    if (rc == 0 && status != DT_OK) {
        py_raise(py_state_of(self), &err, &self, 1);
        return -1;
    }
    py_step_place(self);
    return rc;
}

/* source NULL: scalar */
static int
set_selected(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source,
             const dt_scalar *scalar)
{
    const bool tracked = dt_is_tracked(py_array_of(self)) || dt_is_tracked(source);
    if (!DT_UNLIKELY(tracked) || dt_grad_off) {
        return set_plainly(self, w, index, value, source, scalar);
    }
    if (selects_all(self, index)) {
        return set_all(self, w, index, value, source, scalar);
    }
    const bool seen = dt_is_shared(py_array_of(self)) && !dt_is_detached(py_array_of(self));
    const int rc = seen ? set_view(self, w, index, value, source, scalar) : 1;
    return rc <= 0 ? rc : set_recorded(self, w, index, value, source, scalar);
}

/* x[0] = ones(1, 4): a value may have more dimensions than what it is written to, each of size 1. */
static int
set_shortened(PyObject *self, const writer *w, PyObject *index, PyObject *value, const dt_array *source)
{
    int64_t dims[DT_MAX_NDIM];
    int n = 0;
    while (n < source->ndim && source->shape[n] == 1) {
        dims[n] = n;
        n++;
    }
    dt_error err;
    dt_array shorter = DT_ARRAY_EMPTY;
    if (dt_squeeze(w->op, source, n, dims, &shorter, &err) != DT_OK) {
        py_raise(py_state_of(self), &err, &value, 1);
        return -1;
    }
    const int rc = set_selected(self, w, index, value, &shorter, NULL);
    dt_array_clear(&shorter);
    return rc;
}

static int
ass_subscript(PyObject *self, const writer *w, PyObject *index, PyObject *value)
{
    dt_scalar scalar;
    int rc = parse_value(self, w->op, value, &scalar);
    if (rc < 0) {
        return -1;
    }
    const dt_array *source = rc == 0 ? py_operand(value) : NULL;
    if (DT_UNLIKELY(source == NULL && rc == 0)) {
        return -1;
    }
    return w->shortens && source != NULL && source->ndim > 0 && source->shape[0] == 1
               ? set_shortened(self, w, index, value, source)
               : set_selected(self, w, index, value, source, &scalar);
}

/* ---------------------------------------------------------------- what Python calls */

static PyObject *
getitem(PyObject *self, PyObject *index)
{
    PY_ASK("method", "__getitem__", self, index)
    PyObject *result = subscript(self, index);
    return result != NULL ? result : py_explain(self, "invalid-index", "getitem");
}

static int
setitem(PyObject *self, PyObject *index, PyObject *value)
{
    static const writer w = {"setitem", true, true};
    PyObject *follower = DT_UNLIKELY(py_as_torch && value != NULL)
                             ? py_followed_value(self, value, !has_places(self, index))
                             : Py_XNewRef(value);
    const int rc = follower == NULL && value != NULL ? -1 : ass_subscript(self, &w, index, follower);
    Py_XDECREF(follower);
    if (rc == 0) {
        return 0;
    }
    (void)py_explain(self, "invalid-index", "setitem");
    return -1;
}

PyType_Slot py_index_slots[] = {{Py_mp_subscript, getitem}, {Py_mp_ass_subscript, setitem}, {0, NULL}};

/* ---------------------------------------------------------------- what composed ops call */

/* op as text that lives on: what a device complains of later refers to it. NULL with an exception. */
static const char *
lasting_name(const char *op)
{
    static const char *const names[] = {"scatter", "index_copy", "index_fill", "index_put", "put", "masked_scatter"};
    for (size_t i = 0; op != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(op, names[i]) == 0) {
            return names[i];
        }
    }
    if (op != NULL) {
        PyErr_Format(PyExc_ValueError, "no op that writes selections: %s", op);
    }
    return NULL;
}

/* input[index] = value, in the name of op. */
static PyObject *
py__put_selected(PY_PARAMS)
{
    PY_PARSE(_put_selected)
    writer w = {NULL, true, false};
    if (!PyUnicode_Check(a.v[0])) {
        return py_arg_wrong(&a, 0, "str"), NULL;
    }
    if (py_arg_array(&a, 1) == NULL || py_arg_bool(&a, 4, &w.wraps) < 0 ||
        (w.op = lasting_name(PyUnicode_AsUTF8(a.v[0]))) == NULL) {
        return NULL;
    }
    if (ass_subscript(a.v[1], &w, a.v[2], a.v[3]) == 0) {
        return Py_NewRef(a.v[1]);
    }
    return py_explain(a.v[1], "invalid-index", w.op);
}

/* input[index], in the name of op. */
static PyObject *
py__get_selected(PY_PARAMS)
{
    PY_PARSE(_get_selected)
    selection s;
    PyObject *result = NULL;
    if (!PyUnicode_Check(a.v[0])) {
        return py_arg_wrong(&a, 0, "str"), NULL;
    }
    const char *op = py_arg_array(&a, 1) == NULL ? NULL : lasting_name(PyUnicode_AsUTF8(a.v[0]));
    if (op == NULL) {
        return NULL;
    }
    if (resolve(a.v[1], op, a.v[2], &s) == 0 && s.n > 0) {
        result = get_selected(a.v[1], op, &s);
    } else if (!PyErr_Occurred()) {
        PyErr_Format(PyExc_IndexError, "%s(): no array of indices", op);
    }
    selection_clear(&s);
    return result != NULL ? result : py_explain(a.v[1], "invalid-index", op);
}

PyMethodDef py_index_functions[] = {
    PY_HIDDEN(_put_selected, "input[index] = value, in the name of op; input."),
    PY_HIDDEN(_get_selected, "input[index], with arrays in index, in the name of op."),
    PY_END,
};

PyMethodDef py_index_methods[] = {PY_END};
