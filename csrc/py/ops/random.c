/* random.c: random arrays and the generators they draw from. */
#include "../array/format.h"

#include <unistd.h>

/* ---------------------------------------------------------------- Generator */

typedef struct {
    PyObject_HEAD dt_generator *generator; /* own, or the default one */
    dt_generator own;
    dt_device device;
} generator_object;

enum { STATE_BYTES = 16 }; /* seed and offset */

static PyObject *
generator_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"device", NULL};
    PyObject *object = NULL;
    dt_device device = {DT_CPU, 0};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|O:Generator", names, &object)) {
        return NULL;
    }
    if (py_given(object) && py_device(PyType_GetModuleState(type), "Generator", "device", object, &device) < 0) {
        return NULL;
    }
    generator_object *self = (generator_object *)type->tp_alloc(type, 0);
    if (self != NULL) {
        self->generator = &self->own;
        self->device = device;
        dt_seed(&self->own, 67280421310721); /* PyTorch's seed where none is chosen */
    }
    return (PyObject *)self;
}

static void
generator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

/* A seed of 64 bits; a negative one counts from the end, as in PyTorch. */
static int
parse_seed(PyObject *object, uint64_t *seed)
{
    if (!PyIndex_Check(object) || py_is_array(object)) {
        PyErr_Format(PyExc_TypeError, "manual_seed(): argument 'seed' must be int, not %s", Py_TYPE(object)->tp_name);
        return -1;
    }
    PyObject *index = PyNumber_Index(object);
    if (index == NULL) {
        return -1;
    }
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(index, &overflow);
    *seed = (uint64_t)value;
    if (overflow > 0) {
        *seed = PyLong_AsUnsignedLongLong(index);
    } else if (overflow < 0) {
        PyErr_SetString(PyExc_OverflowError, "manual_seed(): argument 'seed' does not fit in 64 bits");
    }
    Py_DECREF(index);
    return PyErr_Occurred() ? -1 : 0;
}

static int
fresh_seed(dt_generator *generator, uint64_t *seed)
{
    if (getentropy(seed, sizeof(*seed)) != 0) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    dt_seed(generator, *seed);
    return 0;
}

static PyObject *
generator_manual_seed(PyObject *self, PyObject *object)
{
    uint64_t seed;
    if (parse_seed(object, &seed) < 0) {
        return NULL;
    }
    dt_seed(((generator_object *)self)->generator, seed);
    return Py_NewRef(self);
}

static PyObject *
generator_seed(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    uint64_t seed;
    return fresh_seed(((generator_object *)self)->generator, &seed) < 0 ? NULL : PyLong_FromUnsignedLongLong(seed);
}

static PyObject *
generator_initial_seed(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return PyLong_FromUnsignedLongLong(((generator_object *)self)->generator->seed);
}

static PyObject *
generator_get_state(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const dt_generator *g = ((generator_object *)self)->generator;
    const int64_t size = STATE_BYTES;
    PyObject *result = py_array_new(py_state_of(self)->array_type, "get_state");
    dt_error err;
    const dt_status rc = result == NULL ? DT_OK : dt_empty(DT_HOST, DT_UINT8, 1, &size, py_array_of(result), &err);
    if (result != NULL && rc == DT_OK) {
        char *data = dt_array_data(py_array_of(result));
        memcpy(data, &g->seed, sizeof(g->seed));
        memcpy(data + sizeof(g->seed), &g->offset, sizeof(g->offset));
    }
    return result == NULL ? NULL : py_finish(result, rc, &err, NULL, 0);
}

static PyObject *
generator_set_state(PyObject *self, PyObject *object)
{
    dt_generator *g = ((generator_object *)self)->generator;
    const dt_array *x = py_is_array(object) ? py_array_of(object) : NULL;
    if (x == NULL || x->dtype != DT_UINT8 || x->ndim != 1 || x->shape[0] != STATE_BYTES || py_on_device(x) ||
        !dt_array_is_contiguous(x)) {
        PyErr_SetString(x == NULL ? PyExc_TypeError : PyExc_RuntimeError,
                        "set_state(): a state is an array of 16 uint8 on the cpu, as get_state() gives");
        return NULL;
    }
    dt_error err;
    if (dt_settle(x, DT_READ, &err) != DT_OK) {
        py_raise(py_state_of(self), &err, &object, 1);
        return NULL;
    }
    const char *data = dt_array_data(x);
    memcpy(&g->seed, data, sizeof(g->seed));
    memcpy(&g->offset, data + sizeof(g->seed), sizeof(g->offset));
    return Py_NewRef(self);
}

static PyObject *
generator_clone_state(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    const generator_object *from = (generator_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    generator_object *result = (generator_object *)type->tp_alloc(type, 0);
    if (result != NULL) {
        result->generator = &result->own;
        result->own = *from->generator;
        result->device = from->device;
    }
    return (PyObject *)result;
}

static PyObject *
generator_device(PyObject *self, void *Py_UNUSED(closure))
{
    return py_device_object(py_state_of(self), ((generator_object *)self)->device);
}

static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed(" PY_SELF_Generator_manual_seed ")\n--\n\nStarts the numbers that belong to seed; returns self."},
    {"seed", generator_seed, METH_NOARGS,
     "seed($self)\n--\n\nStarts at a seed from the operating system, and returns it."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "initial_seed($self)\n--\n\nThe seed in use."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self)\n--\n\nWhere the numbers are: an array of 16 uint8 on the cpu."},
    {"set_state", generator_set_state, METH_O,
     "set_state(" PY_SELF_Generator_set_state ")\n--\n\nGoes on where get_state() was called; returns self. Raises "
     "RuntimeError for what is no state."},
    {"clone_state", generator_clone_state, METH_NOARGS,
     "clone_state($self)\n--\n\nA generator of its own that goes on from here."},
    PY_END,
};

static PyGetSetDef generator_getset[] = {
    {"device", generator_device, NULL, "device: the one given; the numbers are the same on every device.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot generator_slots[] = {
    {Py_tp_new, generator_new},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_getset},
    {Py_tp_doc, "Generator(device='cpu')\n--\n\n"
                "A source of random numbers. The same seed gives the same numbers on every device." EXAMPLE_Generator},
    {0, NULL},
};

PyType_Spec py_generator_spec = {
    .name = "devtensor.Generator",
    .basicsize = sizeof(generator_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = generator_slots,
};

dt_generator *
py_to_generator(py_state *state, const char *op, PyObject *object)
{
    if (!py_given(object)) {
        return &dt_default_generator;
    }
    if (Py_TYPE(object) != state->generator_type) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'generator' must be Generator, not %s", op,
                     Py_TYPE(object)->tp_name);
        return NULL;
    }
    return ((generator_object *)object)->generator;
}

static PyObject *
default_generator(py_state *state)
{
    generator_object *result = (generator_object *)state->generator_type->tp_alloc(state->generator_type, 0);
    if (result != NULL) {
        result->generator = &dt_default_generator;
        result->device = DT_HOST;
    }
    return (PyObject *)result;
}

static PyObject *
py_manual_seed(PY_PARAMS)
{
    PY_PARSE(manual_seed)
    uint64_t seed;
    if (parse_seed(a.v[0], &seed) < 0) {
        return NULL;
    }
    dt_seed(&dt_default_generator, seed);
    return default_generator(a.state);
}

static PyObject *
py__default_generator(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    return default_generator(py_state_of(self));
}

static PyObject *
py_seed(PY_PARAMS)
{
    (void)self, (void)args, (void)kwnames;
    uint64_t seed;
    if (nargs > 0 || kwnames != NULL) {
        PyErr_SetString(PyExc_TypeError, "seed() takes no arguments");
        return NULL;
    }
    return fresh_seed(&dt_default_generator, &seed) < 0 ? NULL : PyLong_FromUnsignedLongLong(seed);
}

static PyObject *
py_initial_seed(PY_PARAMS)
{
    (void)self, (void)args, (void)kwnames;
    if (nargs > 0 || kwnames != NULL) {
        PyErr_SetString(PyExc_TypeError, "initial_seed() takes no arguments");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(dt_default_generator.seed);
}

/* ---------------------------------------------------------------- arrays */

/* generator, dtype, device, requires_grad, pin_memory, layout from parameter i on; py_created does what they ask for */
static PyObject *
draw(const py_args *a, int i, int n, const int64_t *shape, dt_dtype dtype, dt_device device,
     const dt_random_params *params)
{
    dt_generator *generator = py_to_generator(a->state, a->op, a->v[i]);
    if (generator == NULL || py_arg_dtype(a, i + 1, &dtype) < 0 || py_arg_device(a, i + 2, &device) < 0 ||
        py_arg_grad(a, i + 3) < 0) {
        return NULL;
    }
    int64_t largest = 0;
    for (int d = 0; d < n; d++) {
        largest = shape[d] > largest ? shape[d] : largest;
    }
    PY_RETURN(a, py_array_new(a->type, a->op), largest > 1000,
              dt_random(a->op, generator, device, dtype, n, shape, *params, out, &err));
}

/* Further out=, at i + 6, which decides what is not given. */
static PyObject *
draw_into(const py_args *a, int i, int n, const int64_t *shape, dt_dtype dtype, const dt_random_params *params)
{
    dt_device device = dt_default_device();
    if (py_begin_out(a, i + 6, &dtype, &device) < 0 || py_arg_dtype(a, i + 1, &dtype) < 0 ||
        py_check_out_dtype(a, i + 6, dtype) < 0) {
        return NULL;
    }
    return py_into_out(a, i + 6, py_created(a, i + 3, draw(a, i, n, shape, dtype, device, params)));
}

static PyObject *
call_sized(const py_args *a, const dt_random_params *params)
{
    int n;
    int64_t shape[DT_MAX_NDIM];
    if (py_arg_sizes(a, &n, shape) < 0) {
        return NULL;
    }
    return draw_into(a, 1, n, shape, dt_default_dtype(), params);
}

static PyObject *
call_like(const py_args *a, const dt_random_params *params)
{
    const dt_array *x = py_arg_array(a, 0);
    py_format format = PY_PRESERVE;
    if (x == NULL || py_arg_format(a, 7, &format) < 0 || py_check_format(a, x, format) < 0) {
        return NULL;
    }
    PyObject *drawn = draw(a, 1, x->ndim, x->shape, (dt_dtype)x->dtype, dt_array_device(x), params);
    return py_created(a, 4, py_in_order_of(a->op, drawn, x, format));
}

static const dt_random_params uniform = {.kind = DT_RANDOM_UNIFORM, .a = 0, .b = 1};
static const dt_random_params standard_normal = {.kind = DT_RANDOM_NORMAL, .a = 0, .b = 1};

static PyObject *
py_rand(PY_PARAMS)
{
    PY_PARSE(rand)
    return call_sized(&a, &uniform);
}

static PyObject *
py_randn(PY_PARAMS)
{
    PY_PARSE(randn)
    return call_sized(&a, &standard_normal);
}

static PyObject *
py_rand_like(PY_PARAMS)
{
    PY_PARSE(rand_like)
    return call_like(&a, &uniform);
}

static PyObject *
py_randn_like(PY_PARAMS)
{
    PY_PARSE(randn_like)
    return call_like(&a, &standard_normal);
}

static PyObject *
py_randint(PY_PARAMS)
{
    PY_PARSE(randint)
    int n;
    int64_t shape[DT_MAX_NDIM];
    dt_random_params params = {.kind = DT_RANDOM_INTEGERS};
    if (!py_given(a.v[2]) && py_given(a.v[1]) && !PyIndex_Check(a.v[1])) { /* randint(high, size) */
        a.v[2] = a.v[1];
        a.v[1] = NULL;
    }
    if (!py_given(a.v[1])) {
        a.v[1] = a.v[0];
        a.v[0] = NULL;
    }
    if (!py_given(a.v[1]) || !py_given(a.v[2])) {
        PyErr_Format(PyExc_TypeError, "randint() missing required argument: '%s'", py_given(a.v[1]) ? "size" : "high");
        return NULL;
    }
    if (py_arg_int(&a, 0, &params.low) < 0 || py_arg_int(&a, 1, &params.high) < 0 ||
        py_arg_dims(&a, 2, &n, shape) < 0) {
        return NULL;
    }
    return draw_into(&a, 3, n, shape, DT_INT64, &params);
}

static PyObject *
py_randperm(PY_PARAMS)
{
    PY_PARSE(randperm)
    int64_t n = 0;
    dt_random_params params = {.kind = DT_RANDOM_PERMUTATION};
    if (py_arg_int(&a, 0, &n) < 0) {
        return NULL;
    }
    return draw_into(&a, 1, 1, &n, DT_INT64, &params);
}

static PyObject *
py__normal(PY_PARAMS)
{
    PY_PARSE(_normal)
    int n;
    int64_t shape[DT_MAX_NDIM];
    dt_random_params params = standard_normal;
    if (!py_given(a.v[2])) {
        py_arg_wrong(&a, 2, "a sequence of ints");
        return NULL;
    }
    if (py_arg_float(&a, 0, &params.a) < 0 || py_arg_float(&a, 1, &params.b) < 0 || py_arg_dims(&a, 2, &n, shape) < 0) {
        return NULL;
    }
    return draw_into(&a, 3, n, shape, dt_default_dtype(), &params);
}

static PyObject *
py__dropout(PY_PARAMS)
{
    PY_PARSE(_dropout)
    double p = 0;
    const dt_array *x = py_arg_array(&a, 0);
    if (x == NULL || py_arg_float(&a, 1, &p) < 0) {
        return NULL;
    }
    PY_RETURN(&a, py_array_new(a.type, a.op), py_is_large(x), dt_dropout(a.op, &dt_default_generator, x, p, out, &err));
}

#define SAME                                                                                                           \
    "\n\nThe same seed gives the same numbers on every device. Raises DTypeMismatchError for a dtype that cannot "     \
    "hold them,\n"                                                                                                     \
    "ShapeMismatchError for a size below 0, DeviceNotAvailableError, MemoryError or OutOfMemoryError."
#define INTO                                                                                                           \
    " Written into out, which must have\nthe shape and decides dtype and device, where that is given: "                \
    "DeviceMismatchError where another is named."

PyMethodDef py_random_functions[] = {
    {"_default_generator", py__default_generator, METH_NOARGS,
     "_default_generator()\n--\n\nThe generator that is drawn from where none is given."},
    PY_OP(rand, "Numbers evenly distributed over [0, 1); floats." SAME),
    PY_OP(randn, "Numbers of the standard normal distribution; floats." SAME),
    PY_OP(rand_like, "Like rand, of the shape, dtype and device of input." SAME),
    PY_OP(randn_like, "Like randn, of the shape, dtype and device of input." SAME),
    PY_OP(randint,
          "Integers evenly distributed over [low, high), int64 by default; randint(high, size) starts at 0." SAME INTO),
    PY_OP(randperm, "The integers from 0 to n - 1 in random order, int64 by default.\n\nRaises RuntimeError where "
                    "dtype does not hold them all." SAME INTO),
    PY_HIDDEN(_normal, "normal of two numbers."),
    PY_HIDDEN(_dropout, "Each element over 1 - p, or 0 with probability p. The gradient draws the same numbers again."),
    PY_OP(manual_seed,
          "Starts the default generator at seed, for all devices; returns it.\n\nRaises OverflowError beyond 64 bits."),
    PY_OP(seed, "Starts the default generator at a seed from the operating system, and returns it."),
    PY_OP(initial_seed, "The seed of the default generator."),
    PY_END,
};

PyMethodDef py_random_methods[] = {PY_END};
