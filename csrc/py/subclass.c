/* subclass.c: classes of the user's that derive from DeviceArray, Parameter or Buffer, and ops whose operands are of
 * such a class: what its __torch_function__ makes of them. devtensor/_interchange/overrides.py has what is asked. */
#include "py.h"
#include "subclass.h"

bool py_overrides;
_Thread_local bool py_overrides_off __attribute__((tls_model("initial-exec")));

int
py_array_is_gc(PyObject *object)
{
    return (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HAVE_GC) != 0;
}

/* ---------------------------------------------------------------- objects of such a class */

PyObject *
py_array_of_type(PyTypeObject *type, const char *action)
{
    if (type->tp_base == &PyBaseObject_Type) {
        return py_array_new(type, action);
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (self != NULL) {
        ((py_array *)self)->persistent = true;
        ((py_array *)self)->step = py_step_new(action);
    }
    return self;
}

PyObject *
py_share(PyTypeObject *type, const char *action, PyObject *array)
{
    PyObject *self = py_array_of_type(type, action);
    if (self != NULL) {
        dt_array_copy_handle(py_array_of(array), py_array_of(self));
        py_step_link(self, &array, 1);
    }
    return self;
}

/* The class that object is: one of DeviceArray, or a TypeError. */
static PyTypeObject *
array_class(py_state *state, const char *op, PyObject *object)
{
    if (PyType_Check(object) && PyType_IsSubtype((PyTypeObject *)object, state->array_type)) {
        return (PyTypeObject *)object;
    }
    PyObject *shown = py_shown(object);
    if (shown != NULL) {
        PyErr_Format(PyExc_TypeError, "%s(): argument 'cls' must be a class derived from DeviceArray, not %U", op,
                     shown);
        Py_DECREF(shown);
    }
    return NULL;
}

/* A view of the whole array, of another class: gradients flow through it. */
static PyObject *
py_as_subclass(PY_PARAMS)
{
    PY_PARSE(as_subclass)
    PyTypeObject *type = array_class(a.state, a.op, a.v[1]);
    const dt_array *x = type == NULL ? NULL : py_arg_array(&a, 0);
    PY_RETURN(&a, x == NULL ? NULL : py_array_of_type(type, a.op), false,
              dt_expand(a.op, x, x->ndim, x->shape, out, &err));
}

static PyObject *
py__make_subclass(PY_PARAMS)
{
    PY_PARSE(_make_subclass)
    bool wanted = false;
    PyTypeObject *type = array_class(a.state, a.op, a.v[0]);
    if (type == NULL || py_arg_array(&a, 1) == NULL || py_arg_bool(&a, 2, &wanted) < 0) {
        return NULL;
    }
    PyObject *result = py_share(type, a.op, a.v[1]);
    return wanted ? py_want_grad(result) : result;
}

PyObject *
py_of_subclass(const char *function, PyObject *self, PyObject *memo)
{
    PyObject *module = PyImport_ImportModule("devtensor._interchange.overrides");
    PyObject *result =
        module == NULL ? NULL : PyObject_CallMethod(module, function, memo == NULL ? "O" : "OO", self, memo);
    Py_XDECREF(module);
    return result;
}

/* ---------------------------------------------------------------- who is asked */

static PyObject *hook_name;

/* Whether the class of object wants to be asked about ops. */
static bool
asks(const py_state *state, PyObject *object)
{
    if (!py_is_subclassed(object)) {
        return false;
    }
    PyObject *function = PyObject_GetAttr((PyObject *)Py_TYPE(object), hook_name);
    if (function == NULL) {
        PyErr_Clear();
        return false;
    }
    Py_DECREF(function);
    return function != state->no_override;
}

/* The same of object, or of one of the entries of a tuple or a list. */
static bool
one_asks(const py_state *state, PyObject *object)
{
    const bool is_list = PyList_CheckExact(object);
    if (!is_list && !PyTuple_CheckExact(object)) {
        return asks(state, object);
    }
    Py_ssize_t n = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < n; i++) {
        if (asks(state, PySequence_Fast_GET_ITEM(object, i))) {
            return true;
        }
    }
    return false;
}

/* Whether nobody is asked about an op: what is not public, and what chooses a class itself. */
static bool
is_not_asked(const char *name)
{
    return name[0] == '_' || strcmp(name, "as_subclass") == 0;
}

/* kind: what name is of. args and kwargs are given up. */
static PyObject *
ask(py_state *state, const char *kind, const char *name, PyObject *args, PyObject *kwargs)
{
    PyObject *hook = Py_NewRef(state->override_hook);
    PyObject *answer =
        args == NULL || kwargs == NULL ? NULL : PyObject_CallFunction(hook, "ssOO", kind, name, args, kwargs);
    Py_DECREF(hook);
    Py_XDECREF(args);
    Py_XDECREF(kwargs);
    return answer;
}

static PyObject *
keywords(PyObject *const *values, PyObject *kwnames)
{
    PyObject *named = PyDict_New();
    for (Py_ssize_t k = 0; named != NULL && kwnames != NULL && k < PyTuple_GET_SIZE(kwnames); k++) {
        if (PyDict_SetItem(named, PyTuple_GET_ITEM(kwnames, k), values[k]) < 0) {
            Py_CLEAR(named);
        }
    }
    return named;
}

bool
py_overridden(const py_spec *spec, bool in_place, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
              PyObject *kwnames, PyObject **answer)
{
    char name[64];
    const bool method = py_is_array(self);
    if (py_overrides_off || (!method && !PyModule_Check(self))) {
        return false;
    }
    const bool named = spec->function != NULL && strncmp(spec->function, "py_", 3) == 0;
    PyOS_snprintf(name, sizeof(name), "%s%s", named ? spec->function + 3 : spec->op, in_place && !named ? "_" : "");
    const Py_ssize_t n = nargs + (kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames));
    py_state *state = py_state_of(self);
    if (is_not_asked(name) || state->override_hook == NULL) {
        return false;
    }
    bool found = method && asks(state, self);
    for (Py_ssize_t i = 0; !found && i < n; i++) {
        found = one_asks(state, args[i]);
    }
    if (!found) {
        return false;
    }
    PyObject *all = PyTuple_New(nargs + method);
    for (Py_ssize_t i = 0; all != NULL && i < nargs + method; i++) {
        PyTuple_SET_ITEM(all, i, Py_NewRef(method && i == 0 ? self : args[i - method]));
    }
    *answer = ask(state, method ? "method" : "function", name, all, keywords(args + nargs, kwnames));
    return true;
}

bool
py_asks(PyObject *a, PyObject *b)
{
    if (py_overrides_off) {
        return false;
    }
    const py_state *state = py_state_of(py_is_array(a) ? a : b);
    return state->override_hook != NULL && (one_asks(state, a) || (b != NULL && one_asks(state, b)));
}

PyObject *
py_ask(const char *kind, const char *name, PyObject *a, PyObject *b)
{
    py_state *state = py_state_of(py_is_array(a) ? a : b);
    return ask(state, kind, name, b == NULL ? PyTuple_Pack(1, a) : PyTuple_Pack(2, a, b), PyDict_New());
}

PyObject *
py_ask_operator(const char *name, PyObject *a, PyObject *b)
{
    const bool reflected = !py_is_array(a);
    PyObject *answer = py_ask(reflected ? "reflected" : "method", name, reflected ? b : a, reflected ? a : b);
    if (answer == NULL && PyErr_ExceptionMatches(PyExc_TypeError)) { /* the other operand may know more */
        PyErr_Clear();
        Py_RETURN_NOTIMPLEMENTED;
    }
    return answer;
}

/* ---------------------------------------------------------------- the class is made */

/* __init_subclass__: from the first class on that wants to be asked, ops look at the types of their operands. */
static PyObject *
init_subclass(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    PyTypeObject *base = (PyTypeObject *)cls;
    while (base->tp_dealloc != py_array_dealloc) {
        base = base->tp_base;
    }
    py_state *state = PyType_GetModuleState(base);
    PyObject *above = PyObject_CallFunction((PyObject *)&PySuper_Type, "OO", state->array_type, cls);
    PyObject *next = above == NULL ? NULL : PyObject_GetAttrString(above, "__init_subclass__");
    PyObject *result = next == NULL ? NULL : PyObject_Call(next, args, kwargs);
    PyObject *function = result == NULL ? NULL : PyObject_GetAttr(cls, hook_name);
    if (function != NULL && function != state->no_override && !py_overrides) {
        py_overrides = true;
        PyObject *told = PyObject_CallFunction(state->override_hook, "ssOO", "first", "", Py_None, Py_None);
        Py_XDECREF(told);
        if (told == NULL) {
            Py_CLEAR(result);
        }
    } else if (result != NULL && function == NULL) {
        Py_CLEAR(result);
    }
    Py_XDECREF(function);
    Py_XDECREF(next);
    Py_XDECREF(above);
    return result;
}

static int
put(PyTypeObject *type, PyObject *function)
{
    if (PyDict_SetItem(type->tp_dict, hook_name, function) < 0) {
        return -1;
    }
    PyType_Modified(type);
    return 0;
}

static PyObject *
py__set_overrides(PY_PARAMS)
{
    PY_PARSE(_set_overrides)
    PyObject *types[] = {a.v[3], a.v[4]};
    if (hook_name == NULL && (hook_name = PyUnicode_InternFromString("__torch_function__")) == NULL) {
        return NULL;
    }
    Py_XSETREF(a.state->override_hook, Py_NewRef(a.v[0]));
    Py_XSETREF(a.state->no_override, Py_NewRef(a.v[2]));
    if (put(a.state->array_type, a.v[1]) < 0) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        PyTypeObject *type = array_class(a.state, a.op, types[i]);
        PyObject *function = type == NULL ? NULL : PyStaticMethod_New(a.v[2]); /* PyTorch asks the instance */
        int rc = function == NULL ? -1 : put(type, function);
        Py_XDECREF(function);
        if (rc < 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

static PyObject *
py__overrides_on(PY_PARAMS)
{
    PY_PARSE(_overrides_on)
    bool on = !py_overrides_off, before = on;
    py_none_is_default(&a, 0);
    if (py_arg_bool(&a, 0, &on) < 0) {
        return NULL;
    }
    py_overrides_off = !on;
    return PyBool_FromLong(before);
}

PyMethodDef py_subclass_functions[] = {
    PY_HIDDEN(_make_subclass, "data's elements as an instance of cls, without a history."),
    PY_HIDDEN(_set_overrides, "hook(kind, name, args, kwargs) is asked for ops on instances of classes that want it."),
    PY_HIDDEN(_overrides_on, "Whether classes of operands are asked in this thread; sets it where on is given."),
    PY_END,
};

PyMethodDef py_subclass_methods[] = {
    PY_METHOD(as_subclass,
              "The same elements as an instance of cls, which DeviceArray is a base of; its __init__ is not called.\n\n"
              "A view: gradients flow through it. Raises TypeError where cls is no such class."),
    {"__init_subclass__", PY_CAST(init_subclass), METH_VARARGS | METH_KEYWORDS | METH_CLASS, NULL},
    PY_END,
};
