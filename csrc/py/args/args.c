/* args.c: what stands in a call is matched to the names of the parameters. */
#include "../../core/check/check.h"
#include "../py.h"
#include "../as_torch.h"
#include "../subclass.h"

/* NumPy's spellings, and those of swapaxes. */
static const char *const aliases[][2] = {
    {"axis", "dim"},   {"keepdims", "keepdim"}, {"shape", "size"}, {"split_size", "split_size_or_sections"},
    {"axis0", "dim0"}, {"axis1", "dim1"},       {"axis2", "dim2"}};

static int
find_name(const py_spec *spec, const char *name)
{
    for (int i = 0; spec->names[i] != NULL; i++) {
        if (strcmp(spec->names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

bool
py_arg_renamed(const py_args *a, int i)
{
    return a->renamed >> i & 1;
}

/* The name that the caller used for parameter i. */
static const char *
name_given(const py_args *a, int i)
{
    const char *name = a->spec->names[i];
    for (size_t k = 0; py_arg_renamed(a, i) && k < Py_ARRAY_LENGTH(aliases); k++) {
        if (strcmp(aliases[k][1], name) == 0) {
            return aliases[k][0];
        }
    }
    return name;
}

/* The index of keyword, or -1. A method has its first parameter already and writes to no out=. */
static int
find_keyword(const py_spec *spec, PyObject *keyword, bool method, bool *renamed)
{
    const char *name = PyUnicode_AsUTF8(keyword);
    if (name == NULL) {
        PyErr_Clear(); /* lone surrogates name nothing */
        return -1;
    }
    int i = find_name(spec, name);
    *renamed = i < 0;
    for (size_t k = 0; i < 0 && k < Py_ARRAY_LENGTH(aliases); k++) {
        if (strcmp(aliases[k][0], name) == 0) {
            i = find_name(spec, aliases[k][1]);
        }
    }
    return method && (i == 0 || (i > 0 && strcmp(name, "out") == 0)) ? -1 : i;
}

static int
fail_too_many(const py_spec *spec, Py_ssize_t given, bool method)
{
    int most = spec->positional - method;
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s but %zd %s given", spec->op, most,
                 most == 1 ? "" : "s", given, given == 1 ? "was" : "were");
    return -1;
}

/* add(x, 2, y) for add(x, y, alpha=2), addmm(beta, x, alpha, a, b): PyTorch's deprecated form, which old optimizers
 * use; between arrays one without dimensions is a number too. 1: filled in; 0: it is something else; -1 with an
 * exception. */
static int
numbers_first(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, py_args *out)
{
    const int slots[] = {find_name(spec, "beta"), find_name(spec, "alpha")};
    PyObject *values[PY_MAX_ARGS] = {self};
    int arrays = self != NULL, next = 0;
    for (Py_ssize_t i = 0; i < nargs; i++) {
        if (py_is_array(args[i]) && (arrays == 0 || i == nargs - 1 || py_array_of(args[i])->ndim > 0)) {
            if (arrays == spec->positional) {
                return 0;
            }
            values[arrays++] = args[i];
            continue;
        }
        while (next < 2 && slots[next] < spec->positional) { /* -1: no such parameter */
            next++;
        }
        if (next == 2 || i == nargs - 1) {
            return 0;
        }
        values[slots[next++]] = args[i];
    }
    if (arrays != spec->positional) {
        return 0;
    }
    memcpy(out->v, values, sizeof(values));
    return PyErr_WarnFormat(
               PyExc_UserWarning, 1,
               "%s(): numbers before arrays are PyTorch's deprecated form: give them as alpha= and beta=", spec->op) < 0
               ? -1
               : 1;
}

static int
parse_keywords(PyObject *const *values, PyObject *kwnames, bool method, py_args *out)
{
    const py_spec *spec = out->spec;
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(kwnames); k++) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, k);
        bool renamed = false;
        int i = find_keyword(spec, keyword, method, &renamed);
        if (i < 0) {
            PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", spec->op, keyword);
            return -1;
        }
        if (out->v[i] != NULL || (i == spec->varargs && out->nrest > 0)) {
            PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument '%s'", spec->op, spec->names[i]);
            return -1;
        }
        out->renamed |= renamed ? 1u << i : 0;
        if (i == spec->varargs) {
            out->rest = &values[k];
            out->nrest = 1;
        } else {
            out->v[i] = values[k];
        }
    }
    return 0;
}

int
py_parse_plain(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
               py_args *out)
{
    if (DT_UNLIKELY(py_overrides) && py_overridden(spec, false, self, args, nargs, kwnames, &out->answer)) {
        return -1;
    }
    bool method = py_is_array(self);
    memset(out->v, 0, sizeof(out->v));
    out->state = py_state_of(self);
    out->type = out->state->array_type;
    out->op = spec->op;
    out->spec = spec;
    out->rest = NULL;
    out->nrest = 0;
    out->renamed = 0;
    out->answer = NULL;
    if (method) {
        out->v[0] = self;
    }
    for (Py_ssize_t i = 0; i < nargs; i++) {
        Py_ssize_t slot = i + method;
        if (slot == spec->varargs) {
            out->rest = args + i;
            out->nrest = nargs - i;
            break;
        }
        if (slot >= spec->positional) {
            const int rc = numbers_first(spec, method ? self : NULL, args, nargs, out);
            if (rc != 1) {
                return rc < 0 ? -1 : fail_too_many(spec, nargs, method);
            }
            break;
        }
        out->v[slot] = args[i];
    }
    if (kwnames != NULL && parse_keywords(args + nargs, kwnames, method, out) < 0) {
        return -1;
    }
    for (int i = 0; i < spec->required; i++) {
        if (out->v[i] == NULL && (i != spec->varargs || out->nrest == 0)) {
            PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", spec->op, spec->names[i]);
            return -1;
        }
    }
    return DT_UNLIKELY(py_as_torch) ? py_follow(out, method) : 0;
}

int
py_parse(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, py_args *out)
{
    int rc = py_parse_plain(spec, self, args, nargs, kwnames, out);
    return DT_UNLIKELY(py_autocast_on) && rc == 0 ? py_autocast(out) : rc;
}

int
py_parse_in_place(const py_spec *spec, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                  py_args *out)
{
    if (DT_UNLIKELY(py_overrides) && py_overridden(spec, true, self, args, nargs, kwnames, &out->answer)) {
        return -1;
    }
    return py_parse_plain(spec, self, args, nargs, kwnames, out);
}

/* ---------------------------------------------------------------- one parameter */

int
py_arg_wrong(const py_args *a, int i, const char *wanted)
{
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", a->op, name_given(a, i), wanted,
                 a->v[i] == NULL ? "missing" : Py_TYPE(a->v[i])->tp_name);
    return py_explain_args(a, i);
}

const dt_array *
py_arg_array(const py_args *a, int i)
{
    PyObject *object = a->v[i];
    if (object != NULL && py_is_array(object)) {
        return py_operand(object);
    }
    py_arg_wrong(
        a, i, object != NULL && py_is_ndarray(object) ? "DeviceArray (devtensor.from_numpy makes one)" : "DeviceArray");
    return NULL;
}

int
py_arg_optional_array(const py_args *a, int i, const dt_array **out)
{
    *out = NULL;
    if (!py_given(a->v[i])) {
        return 0;
    }
    *out = py_arg_array(a, i);
    return *out == NULL ? -1 : 0;
}

int
py_arg_out(const py_args *a, int i, PyObject **out)
{
    *out = NULL;
    if (!py_given(a->v[i])) {
        return 0;
    }
    if (!py_is_array(a->v[i])) {
        return py_arg_wrong(a, i, "DeviceArray");
    }
    *out = a->v[i];
    return 0;
}

PyObject *
py_result(const py_args *a, int i)
{
    PyObject *out;
    if (py_arg_out(a, i, &out) < 0) {
        return NULL;
    }
    return out != NULL ? Py_NewRef(out) : py_array_new(a->type, a->op);
}

int
py_check_out(const py_args *a, int i)
{
    PyObject *out;
    dt_error err;
    if (py_arg_out(a, i, &out) < 0) {
        return -1;
    }
    if (out != NULL && dt_check_writable(a->op, "out", py_array_of(out), &err) != DT_OK) {
        py_raise(a->state, &err, &out, 1);
        return -1;
    }
    return 0;
}

int
py_begin_out(const py_args *a, int i, dt_dtype *dtype, dt_device *device)
{
    PyObject *out;
    if (py_check_out(a, i) < 0 || py_arg_out(a, i, &out) < 0) {
        return -1;
    }
    if (out != NULL) {
        *dtype = (dt_dtype)py_array_of(out)->dtype;
        *device = dt_array_device(py_array_of(out));
    }
    return 0;
}

int
py_check_out_dtype(const py_args *a, int i, dt_dtype dtype)
{
    PyObject *out = a->v[i];
    dt_error err;
    if (!py_given(out)) {
        return 0;
    }
    const dt_array *x = py_array_of(out);
    const dt_operand in[] = {DT_OUT(x)};
    if (dt_check_out(a->op, in, 1, dtype, x->ndim, x->shape, &err) == DT_OK) {
        return 0;
    }
    py_raise(a->state, &err, &out, 1);
    return -1;
}

/* Whether result was written into out. */
static int
write_out(const py_args *a, PyObject *out, PyObject *result)
{
    dt_error err;
    dt_status status;
    PyObject *objects[] = {out, result};
    PY_CALL_ON(objects, 2, py_is_large(py_array_of(out)), status,
               dt_write_out(a->op, py_array_of(out), py_array_of(result), &err));
    if (status != DT_OK) {
        py_raise(a->state, &err, objects, 2);
        return -1;
    }
    return 0;
}

PyObject *
py_into_out(const py_args *a, int i, PyObject *result)
{
    PyObject *out;
    if (result == NULL || (py_arg_out(a, i, &out) == 0 && out == NULL)) {
        return result;
    }
    if (out == NULL || write_out(a, out, result) < 0) {
        Py_DECREF(result);
        return NULL;
    }
    Py_DECREF(result);
    return Py_NewRef(out);
}

PyObject *
py_into_pair(const py_args *a, int i, PyObject *result)
{
    PyObject *given = a->v[i];
    if (result == NULL || !py_given(given)) {
        return result;
    }
    const bool pair = PyTuple_Check(result) && PyTuple_GET_SIZE(result) == 2;
    if (!pair || !PyTuple_Check(given) || PyTuple_GET_SIZE(given) != 2 || !py_is_array(PyTuple_GET_ITEM(given, 0)) ||
        !py_is_array(PyTuple_GET_ITEM(given, 1))) {
        Py_DECREF(result);
        py_arg_wrong(a, i, pair ? "a tuple of two DeviceArrays" : "None where there is one result");
        return NULL;
    }
    for (int k = 0; k < 2; k++) { /* both can be written, or none is */
        dt_error err;
        PyObject *objects[] = {PyTuple_GET_ITEM(given, k), PyTuple_GET_ITEM(result, k)};
        if (dt_check_written(a->op, py_array_of(objects[0]), py_array_of(objects[1]), &err) != DT_OK) {
            py_raise(a->state, &err, objects, 2);
            Py_DECREF(result);
            return NULL;
        }
    }
    PyObject *both = PyStructSequence_New(Py_TYPE(result));
    for (int k = 0; both != NULL && k < 2; k++) {
        PyObject *out = PyTuple_GET_ITEM(given, k);
        if (write_out(a, out, PyTuple_GET_ITEM(result, k)) < 0) {
            Py_CLEAR(both);
        } else {
            PyStructSequence_SetItem(both, k, Py_NewRef(out));
        }
    }
    Py_DECREF(result);
    return both;
}

int
py_arg_int(const py_args *a, int i, int64_t *out)
{
    return a->v[i] == NULL || py_int(a->op, name_given(a, i), a->v[i], out) == 0 ? 0 : py_explain_args(a, i);
}

int
py_arg_pair(const py_args *a, int i, int64_t out[2])
{
    PyObject *object = a->v[i];
    if (object == NULL) {
        return 0;
    }
    if (PyIndex_Check(object) && !py_is_array(object)) {
        if (py_int(a->op, name_given(a, i), object, &out[0]) < 0) {
            return py_explain_args(a, i);
        }
        out[1] = out[0];
        return 0;
    }
    if (!PyTuple_Check(object) && !PyList_Check(object)) {
        return py_arg_wrong(a, i, "an int or a pair of ints");
    }
    PyObject *pair = py_tuple_of(object); /* a copy: __index__ may change a list */
    if (pair == NULL) {
        return -1;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(pair);
    bool read = n == 1 || n == 2;
    if (!read) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' must be an int or a pair of ints, not %zd", a->op,
                     name_given(a, i), n);
    }
    for (Py_ssize_t k = 0; read && k < 2; k++) { /* one is for both */
        read = py_int(a->op, name_given(a, i), PyTuple_GET_ITEM(pair, n == 1 ? 0 : k), &out[k]) == 0;
    }
    Py_DECREF(pair);
    return read ? 0 : py_explain_args(a, i);
}

/* py_scalar, which also takes an array without dimensions that needs no gradient: it is read, which is recorded where
 * that is a transfer. */
static int
scalar_of(const py_args *a, PyObject *object, dt_scalar *out)
{
    if (!py_is_array(object) || py_array_of(object)->ndim > 0 || py_array_of(object)->node != NULL) {
        return py_scalar(object, out);
    }
    PyObject *item = py_item_object(a->state, a->op, object);
    int rc = item == NULL ? -1 : py_scalar(item, out);
    Py_XDECREF(item);
    return rc;
}

int
py_arg_scalar(const py_args *a, int i, dt_scalar *out)
{
    if (a->v[i] == NULL) {
        return 0;
    }
    int rc = scalar_of(a, a->v[i], out);
    return rc == 0 ? py_arg_wrong(a, i, "a number") : rc < 0 ? py_explain_args(a, i) : 0;
}

int
py_arg_float(const py_args *a, int i, double *out)
{
    dt_scalar value = dt_scalar_float(*out);
    if (py_arg_scalar(a, i, &value) < 0) {
        return -1;
    }
    *out = value.f;
    return 0;
}

int
py_arg_bool(const py_args *a, int i, bool *out)
{
    PyObject *object = a->v[i];
    if (object == NULL) {
        return 0;
    }
    dt_scalar value;
    int rc = py_scalar(object, &value);
    if (rc == 0 || (rc > 0 && value.kind == DT_CATEGORY_FLOAT)) {
        return py_arg_wrong(a, i, "bool");
    }
    if (rc > 0) {
        *out = value.i != 0;
    }
    return rc < 0 ? -1 : 0;
}

int
py_arg_dtype(const py_args *a, int i, dt_dtype *out)
{
    return !py_given(a->v[i]) || py_dtype(a->state, a->op, name_given(a, i), a->v[i], out) == 0 ? 0
                                                                                                : py_explain_args(a, i);
}

int
py_arg_device(const py_args *a, int i, dt_device *out)
{
    return !py_given(a->v[i]) || py_device(a->state, a->op, name_given(a, i), a->v[i], out) == 0
               ? 0
               : py_explain_args(a, i);
}

int
py_arg_grad(const py_args *a, int i)
{
    bool wanted;
    PyObject *pinned = a->v[i + 1], *layout = a->v[i + 2];
    if (py_arg_bool(a, i, &wanted) < 0 || (py_given(pinned) && py_arg_bool(a, i + 1, &wanted) < 0)) {
        return -1;
    }
    const bool strided =
        !py_given(layout) || (PyUnicode_Check(layout) && PyUnicode_CompareWithASCIIString(layout, "strided") == 0);
    return strided ? 0 : py_arg_wrong(a, i + 2, "devtensor.strided, the only layout");
}

/* ---------------------------------------------------------------- lists of ints */

static int
parse_ints(const py_args *a, const char *name, PyObject *const *items, Py_ssize_t count, int *n, int64_t *out)
{
    if (count > DT_MAX_NDIM) {
        py_refuse_args(a, DT_ESHAPE, "too-many-dimensions", "%s: arrays have at most %d dimensions, but got %zd", a->op,
                       DT_MAX_NDIM, count);
        return -1;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        if (py_int(a->op, name, items[k], &out[k]) < 0) {
            return py_explain_args(a, -1);
        }
    }
    *n = (int)count;
    return 0;
}

/* A new tuple of the entries: __index__ may change a list. */
static PyObject *
entries(const py_args *a, const char *name, PyObject *object)
{
    if (PyUnicode_Check(object) || py_is_array(object) || !PySequence_Check(object)) {
        PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be ints or a sequence of ints, not %s", a->op, name,
                     Py_TYPE(object)->tp_name);
        py_explain_args(a, -1);
        return NULL;
    }
    return py_tuple_of(object);
}

static int
parse_sequence(const py_args *a, const char *name, PyObject *object, int *n, int64_t *out)
{
    PyObject *items = entries(a, name, object);
    if (items == NULL) {
        return -1;
    }
    int rc = parse_ints(a, name, ((PyTupleObject *)items)->ob_item, PyTuple_GET_SIZE(items), n, out);
    Py_DECREF(items);
    return rc;
}

int
py_is_int(PyObject *object)
{
    if (PyLong_Check(object) || !PyIndex_Check(object) || !PySequence_Check(object)) {
        return PyIndex_Check(object);
    }
    if (PySequence_Size(object) >= 0) {
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
        return -1;
    }
    PyErr_Clear(); /* an array of NumPy without dimensions has no length */
    return 1;
}

int
py_arg_dims(const py_args *a, int i, int *n, int64_t dims[DT_MAX_NDIM])
{
    *n = -1;
    PyObject *object = a->v[i];
    if (!py_given(object)) {
        return 0;
    }
    const int single = py_is_int(object);
    if (single < 0) {
        return -1;
    }
    if (single) {
        *n = 1;
        return py_int(a->op, name_given(a, i), object, &dims[0]) == 0 ? 0 : py_explain_args(a, i);
    }
    return parse_sequence(a, name_given(a, i), object, n, dims);
}

PyObject *
py_arg_sequence(const py_args *a, int i)
{
    const int single = py_is_int(a->v[i]);
    if (single < 0) {
        return NULL;
    }
    return single && !py_is_array(a->v[i]) ? PyTuple_Pack(1, a->v[i]) : entries(a, name_given(a, i), a->v[i]);
}

int
py_arg_sizes(const py_args *a, int *n, int64_t sizes[DT_MAX_NDIM])
{
    const char *name = name_given(a, a->spec->varargs);
    const int single = a->nrest == 1 ? py_is_int(a->rest[0]) : 1;
    if (single < 0) {
        return -1;
    }
    return single ? parse_ints(a, name, a->rest, a->nrest, n, sizes) : parse_sequence(a, name, a->rest[0], n, sizes);
}
