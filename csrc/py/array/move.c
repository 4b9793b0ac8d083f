/* move.c: what changes device or dtype, or writes values: to, cuda, float, copy_, fill_. */
#include "format.h"
#include "../subclass.h"

/* Says, once a line, why a copy from or to this array of the host cannot be asynchronous. bus: the dtype that moves. */
static int
warn_synchronous(const dt_array *host, bool writes, dt_dtype bus, const char *action)
{
    if (dt_array_numel(host) == 0) {
        return 0;
    }
    const char *reason = NULL;
    if (!(host->storage->flags & DT_STORAGE_PINNED)) {
        reason = "the memory on the cpu is not page-locked; .pin_memory() makes a copy that is";
    } else if (writes && host->storage->exported) {
        reason = "the memory on the cpu is shared with another library, which would not wait for what arrives";
    } else if (!writes && host->dtype != bus) {
        reason = "it is cast to a narrower dtype on the cpu first; cast it before, or after on the device";
    } else if (!writes && !dt_array_is_dense(host)) {
        reason = "its elements do not lie side by side and are gathered on the cpu first; .contiguous().pin_memory() "
                 "makes a copy in which they do";
    }
    return reason == NULL ? 0 : py_warn_synchronous(action, reason);
}

static dt_dtype
narrower(dt_dtype a, dt_dtype b)
{
    return dt_itemsize(b) <= dt_itemsize(a) ? b : a;
}

/* self on another device and of dtype. */
static DT_NOINLINE PyObject *
move(PyObject *self, const char *action, dt_device device, dt_dtype dtype, bool non_blocking)
{
    const dt_array *x = py_operand(self);
    if (x == NULL) {
        return NULL;
    }
    if (non_blocking && !py_on_device(x) &&
        warn_synchronous(x, false, narrower((dt_dtype)x->dtype, dtype), action) < 0) {
        return NULL;
    }
    PyObject *result = py_array_new(Py_TYPE(self), action);
    if (result == NULL) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    PY_MOVE(action, self, true, status, dt_to(x, device, dtype, non_blocking, false, py_array_of(result), &err));
    return py_finish(result, status, &err, &self, 1);
}

/* self on its device and of dtype, copied. */
static PyObject *
cast(PyObject *self, const char *action, dt_dtype dtype)
{
    const dt_array *x = py_operand(self);
    if (x == NULL) {
        return NULL;
    }
    PY_RETURN_OF(self, py_array_new(Py_TYPE(self), action), py_is_large(x), dt_cast(x, dtype, out, &err));
}

/* self on device and of dtype: the same object when nothing changes. */
PyObject *
py_convert(PyObject *self, const char *action, dt_device device, dt_dtype dtype, bool non_blocking, bool copy)
{
    const dt_array *x = py_array_of(self);
    if (!dt_device_equal(dt_array_device(x), device)) {
        return move(self, action, device, dtype, non_blocking);
    }
    return copy || x->dtype != dtype ? cast(self, action, dtype) : Py_NewRef(self);
}

/* ---------------------------------------------------------------- to */

typedef struct {
    dt_device device;
    dt_dtype dtype;
    bool has_device, has_dtype;
} target;

/* object is a device: 1; nothing that is meant so: 0. A text that is no dtype is taken for a device. */
static int
parse_device(const py_args *a, PyObject *object, target *t)
{
    bool device = PyUnicode_Check(object) || PyLong_Check(object) || Py_TYPE(object) == a->state->device_type;
    if (!device) {
        return 0;
    }
    t->has_device = true;
    return py_device(a->state, a->op, "device", object, &t->device) < 0 ? -1 : 1;
}

/* The first positional value: a device, a dtype, another array or None. Returns the number of values used. */
static int
parse_first(const py_args *a, target *t)
{
    PyObject *first = a->rest[0];
    if (py_is_array(first)) {
        *t = (target){dt_array_device(py_array_of(first)), (dt_dtype)py_array_of(first)->dtype, true, true};
        return 1;
    }
    int rc = first == Py_None ? 0 : py_find_dtype(a->state, first, &t->dtype);
    if (rc != 0) {
        t->has_dtype = rc > 0;
        return rc;
    }
    if (first != Py_None && (rc = parse_device(a, first, t)) <= 0) {
        if (rc == 0) {
            PyObject *shown = py_shown(first);
            if (shown != NULL) {
                PyErr_Format(PyExc_TypeError, "to(): a device, a dtype or a DeviceArray is needed, not %U", shown);
                Py_DECREF(shown);
            }
        }
        return py_explain_args(a, -1);
    }
    if (a->nrest < 2 || PyBool_Check(a->rest[1])) {
        return 1;
    }
    if (a->rest[1] != Py_None) {
        t->has_dtype = true;
        return py_dtype(a->state, a->op, "dtype", a->rest[1], &t->dtype) < 0 ? py_explain_args(a, -1) : 2;
    }
    return 2;
}

static int
parse_flag(const py_args *a, Py_ssize_t position, int keyword, bool *out)
{
    py_args one = *a;
    if (position < a->nrest) {
        if (a->v[keyword] != NULL) {
            PyErr_Format(PyExc_TypeError, "to() got multiple values for argument '%s'", a->spec->names[keyword]);
            return -1;
        }
        one.v[keyword] = a->rest[position];
    }
    return py_arg_bool(&one, keyword, out);
}

enum { TO_DEVICE = 2, TO_DTYPE, TO_NON_BLOCKING, TO_COPY, TO_FORMAT };

static int
parse_to(const py_args *a, target *t, bool *non_blocking, bool *copy)
{
    int used = a->nrest > 0 ? parse_first(a, t) : 0;
    if (used < 0) {
        return -1;
    }
    if (a->nrest > used + 2) {
        PyErr_Format(PyExc_TypeError, "to() takes at most %d positional arguments but %zd were given", used + 2,
                     a->nrest);
        return -1;
    }
    if ((t->has_device && a->v[TO_DEVICE] != NULL) || (t->has_dtype && a->v[TO_DTYPE] != NULL)) {
        PyErr_Format(PyExc_TypeError, "to() got multiple values for argument '%s'",
                     t->has_device && a->v[TO_DEVICE] ? "device" : "dtype");
        return -1;
    }
    if (py_arg_device(a, TO_DEVICE, &t->device) < 0 || py_arg_dtype(a, TO_DTYPE, &t->dtype) < 0) {
        return -1;
    }
    return parse_flag(a, used, TO_NON_BLOCKING, non_blocking) < 0 || parse_flag(a, used + 1, TO_COPY, copy) < 0 ? -1
                                                                                                                : 0;
}

static bool
is_cpu(PyObject *object)
{
    return PyUnicode_Check(object) && PyUnicode_IS_COMPACT_ASCII(object) && PyUnicode_GET_LENGTH(object) == 3 &&
           memcmp(PyUnicode_1BYTE_DATA(object), "cpu", 3) == 0;
}

static PyObject *
py_to(PY_PARAMS)
{
    if (nargs == 1 && kwnames == NULL && py_is_array(self) &&
        !DT_UNLIKELY(py_overrides)) { /* the everyday calls, with nothing to match to names */
        int dtype = py_dtype_of(args[0]);
        if (dtype >= 0) {
            return py_convert(self, "to", dt_array_device(py_array_of(self)), (dt_dtype)dtype, false, false);
        }
        if (is_cpu(args[0])) {
            return py_convert(self, "to", (dt_device){DT_CPU, 0}, (dt_dtype)py_array_of(self)->dtype, false, false);
        }
    }
    PY_PARSE(to)
    const dt_array *x = py_array_of(self);
    target t = {dt_array_device(x), (dt_dtype)x->dtype, false, false};
    bool non_blocking = false, copy = false;
    py_format format = PY_PRESERVE;
    if (parse_to(&a, &t, &non_blocking, &copy) < 0 || py_arg_format(&a, TO_FORMAT, &format) < 0) {
        return NULL;
    }
    return py_to_format(self, py_convert(self, "to", t.device, t.dtype, non_blocking, copy), format);
}

/* ---------------------------------------------------------------- to one device or dtype */

static PyObject *
py_cuda(PY_PARAMS)
{
    PY_PARSE(cuda)
    dt_device device = {DT_CUDA, dt_current_device()};
    bool non_blocking = false;
    if (py_arg_device(&a, 1, &device) < 0 || py_arg_bool(&a, 2, &non_blocking) < 0) {
        return NULL;
    }
    if (device.type != DT_CUDA) {
        return py_refuse_args(&a, DT_EVALUE, "invalid-device", "cuda(): Invalid device, must be cuda device");
    }
    return py_convert(self, "cuda", device, (dt_dtype)py_array_of(self)->dtype, non_blocking, false);
}

static PyObject *
py_cpu(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PY_ASK("method", "cpu", self, NULL)
    return py_convert(self, "cpu", (dt_device){DT_CPU, 0}, (dt_dtype)py_array_of(self)->dtype, false, false);
}

#define CASTS(X)                                                                                                       \
    X(float, FLOAT32, "float32")                                                                                       \
    X(double, FLOAT64, "float64")                                                                                      \
    X(half, FLOAT16, "float16")                                                                                        \
    X(bfloat16, BFLOAT16, "bfloat16")                                                                                  \
    X(int, INT32, "int32")                                                                                             \
    X(long, INT64, "int64")                                                                                            \
    X(short, INT16, "int16")                                                                                           \
    X(char, INT8, "int8")                                                                                              \
    X(byte, UINT8, "uint8")                                                                                            \
    X(bool, BOOL, "bool")

#define DEFINE(name, dtype, text)                                                                                      \
    static PyObject *cast_##dtype(PyObject *self, PyObject *Py_UNUSED(ignored))                                        \
    {                                                                                                                  \
        PY_ASK("method", #name, self, NULL)                                                                            \
        return py_convert(self, #name, dt_array_device(py_array_of(self)), DT_##dtype, false, false);                  \
    }
CASTS(DEFINE)
#undef DEFINE

static PyObject *
call_cast(const py_args *a)
{
    dt_dtype dtype = DT_FLOAT32;
    bool copy = false;
    if (!py_given(a->v[1])) {
        py_arg_wrong(a, 1, "a dtype");
        return NULL;
    }
    if (py_arg_dtype(a, 1, &dtype) < 0 || (a->spec->names[2] != NULL && py_arg_bool(a, 2, &copy) < 0)) {
        return NULL;
    }
    return py_convert(a->v[0], a->op, dt_array_device(py_array_of(a->v[0])), dtype, false, copy);
}

static PyObject *
py_astype(PY_PARAMS)
{
    PY_PARSE(astype)
    return call_cast(&a);
}

/* ---------------------------------------------------------------- memory */

static PyObject *
py_pin_memory(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PY_ASK("method", "pin_memory", self, NULL)
    const dt_array *x = py_array_of(self);
    if (x->storage->flags & DT_STORAGE_PINNED) {
        return Py_NewRef(self);
    }
    PY_RETURN_OF(self, py_array_new(Py_TYPE(self), "pin_memory"), true, dt_pin(x, out, &err));
}

static PyObject *
py_copy_(PY_PARAMS)
{
    PY_PARSE(copy_)
    bool non_blocking = false;
    dt_array *x = py_array_of(self);
    const dt_array *src = py_arg_array(&a, 1);
    if (src == NULL || py_arg_bool(&a, 2, &non_blocking) < 0) {
        return NULL;
    }
    dt_error err;
    dt_status status;
    bool moves = !dt_device_equal(dt_array_device(x), dt_array_device(src));
    const dt_array *host = py_on_device(x) ? src : x;
    dt_dtype bus = narrower((dt_dtype)src->dtype, (dt_dtype)x->dtype);
    if (non_blocking && moves && !py_on_device(host) && warn_synchronous(host, host == x, bus, "copy_") < 0) {
        return NULL;
    }
    PY_MOVE("copy_", a.v[1], moves || py_is_large(x), status,
            dt_copy_into("copy_", x, "src", src, true, non_blocking, &err));
    return py_done(&a, Py_NewRef(self), status, &err);
}

static PyObject *
py_fill_(PY_PARAMS)
{
    PY_PARSE(fill_)
    dt_array *x = py_array_of(self);
    dt_scalar value = {0};
    dt_error err;
    dt_status status;
    if (py_is_array(a.v[1]) && py_array_of(a.v[1])->ndim == 0) {
        const dt_array *number = py_operand(a.v[1]);
        if (number == NULL) {
            return NULL;
        }
        PY_CALL(py_is_large(x), status, dt_copy_into("fill_", x, "value", number, false, false, &err));
    } else if (!py_given(a.v[1])) {
        py_arg_wrong(&a, 1, "a number");
        return NULL;
    } else if (py_arg_scalar(&a, 1, &value) < 0) {
        return NULL;
    } else {
        PY_CALL(py_is_large(x), status, dt_fill("fill_", x, &value, &err));
    }
    return py_done(&a, Py_NewRef(self), status, &err);
}

static PyObject *
py_zero_(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    PY_ASK("method", "zero_", self, NULL)
    const dt_scalar zero = dt_scalar_int(0);
    dt_error err;
    dt_status status;
    PY_CALL(py_is_large(py_array_of(self)), status, dt_fill("zero_", py_array_of(self), &zero, &err));
    return py_finish(Py_NewRef(self), status, &err, &self, 1);
}

#define SAME "Returns self when nothing changes."
#define NO_DEVICE "Raises DeviceNotAvailableError if there is no such device, OutOfMemoryError if it is full."

PyMethodDef py_move_functions[] = {PY_END};

PyMethodDef py_move_methods[] = {
    {"to", PY_CAST(py_to), METH_FASTCALL | METH_KEYWORDS,
     "to(" PY_SELF_to ")\n--\n\n"
     "Moves and casts: to(device), to(dtype), to(device, dtype), to(other).\n\n" SAME
     " The strides of dense arrays stay, unless memory_format says otherwise; where nothing moves or is cast, "
     "contiguous_format changes channels_last alone. Casts round to nearest even; floats become integers by "
     "truncation, limited to the range.\n"
     "With non_blocking, a copy from page-locked memory or to the cpu may still run after the call; reading the "
     "result waits for it.\n"
     "From other memory it cannot, and a UserWarning says so once a line.\n" NO_DEVICE EXAMPLE_to},
    PY_METHOD(cuda, "Moves to a CUDA device, the current one by default.\n\n" SAME " " NO_DEVICE),
    PY_NOARGS(cpu, "Moves to the memory of the host.\n\n" SAME),
#define CAST(name, dtype, text)                                                                                        \
    {#name, cast_##dtype, METH_NOARGS,                                                                                 \
     #name "($self)\n--\n\nCasts to " text " on the same device.\n\n" SAME EXAMPLE_##name},
    CASTS(CAST)
#undef CAST
        PY_METHOD(astype, "Casts to dtype on the same device.\n\n" SAME " Raises TypeError for anything but a dtype."),
    PY_NOARGS(pin_memory,
              "A copy in page-locked memory, from which copies to a device can be asynchronous.\n\n" SAME
              " Raises DeviceNotAvailableError without CUDA, RuntimeError for an array that is not on the cpu."),
    PY_METHOD(
        copy_,
        "Writes src into self, whatever its device and dtype; src broadcasts to the shape of self.\n\n"
        "Returns self. Raises ShapeMismatchError where it does not broadcast, RuntimeError where self is read-only."),
    PY_METHOD(fill_, "Sets every element to a number, or to a 0-dimensional array on the same device.\n\n"
                     "Returns self. Raises RuntimeError where self is read-only or value does not fit."),
    PY_NOARGS(zero_, "Sets every element to 0.\n\nReturns self. Raises RuntimeError where self is read-only."),
    PY_END,
};
