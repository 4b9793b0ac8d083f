/* module.c: devtensor._C, its state and its initialisation. */
#include "py.h"

#include <structmember.h>

py_state *
py_state_of(PyObject *self)
{
    if (!py_is_array(self)) {
        return PyModule_Check(self) ? PyModule_GetState(self) : PyType_GetModuleState(Py_TYPE(self));
    }
    PyTypeObject *type = Py_TYPE(self);
    while (DT_UNLIKELY(type->tp_dealloc != py_array_dealloc)) { /* a class of the user's belongs to no module of ours */
        type = type->tp_base;
    }
    return PyType_GetModuleState(type);
}

static PyTypeObject *
pair_type(PyObject *module, const char *name, const char *doc)
{
    PyStructSequence_Field fields[] = {
        {"values", "DeviceArray: the elements."}, {"indices", "DeviceArray of int64: their positions."}, {NULL, NULL}};
    PyStructSequence_Desc desc = {name, doc, fields, 2};
    PyTypeObject *type = PyStructSequence_NewType(&desc);
    if (type != NULL && PyModule_AddObjectRef(module, strrchr(name, '.') + 1, (PyObject *)type) < 0) {
        Py_CLEAR(type);
    }
    return type;
}

static PyTypeObject *
plain_type(PyObject *module, PyType_Spec *spec)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
}

static int
add_types(PyObject *module, py_state *state)
{
    state->dtype_type = plain_type(module, &py_dtype_spec);
    state->device_type = plain_type(module, &py_device_spec);
    state->size_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &py_size_spec, (PyObject *)&PyTuple_Type);
    state->generator_type = plain_type(module, &py_generator_spec);
    state->stream_type = plain_type(module, &py_stream_spec);
    state->event_type = plain_type(module, &py_event_spec);
    state->node_type = plain_type(module, &py_node_spec);
    state->array_type = py_array_type_new(module);
#define PY_PAIR(name)                                                                                                  \
    state->pair_types[PY_PAIR_##name] =                                                                                \
        pair_type(module, "devtensor._C." #name "_result", "What " #name "() returns with indices.");
    PY_PAIRS(PY_PAIR)
#undef PY_PAIR
    for (int i = 0; i < PY_NPAIRS; i++) {
        if (state->pair_types[i] == NULL) {
            return -1;
        }
    }
    if (state->dtype_type == NULL || state->device_type == NULL || state->generator_type == NULL ||
        state->stream_type == NULL || state->event_type == NULL || state->array_type == NULL ||
        state->node_type == NULL || state->size_type == NULL) {
        return -1;
    }
    PyTypeObject *scope = plain_type(module, &py_scope_spec);
    int rc = scope == NULL ? -1 : PyModule_AddObjectRef(module, "_Scope", (PyObject *)scope);
    Py_XDECREF(scope);
    if (rc < 0 || PyModule_AddObjectRef(module, "dtype", (PyObject *)state->dtype_type) < 0 ||
        PyModule_AddObjectRef(module, "device", (PyObject *)state->device_type) < 0 ||
        PyModule_AddObjectRef(module, "Size", (PyObject *)state->size_type) < 0 ||
        PyModule_AddObjectRef(module, "Generator", (PyObject *)state->generator_type) < 0 ||
        PyModule_AddObjectRef(module, "Stream", (PyObject *)state->stream_type) < 0 ||
        PyModule_AddObjectRef(module, "Event", (PyObject *)state->event_type) < 0 ||
        PyModule_AddObjectRef(module, "Node", (PyObject *)state->node_type) < 0 ||
        PyModule_AddObjectRef(module, "DeviceArray", (PyObject *)state->array_type) < 0) {
        return -1;
    }
    return py_parameters_init(module, state) < 0 ? -1 : py_layer_init(module);
}

#define MAX_FUNCTIONS 100

/* The public functions of one family: those with a doc. */
static int
add_functions(PyObject *module, const PyMethodDef *table, PyMethodDef *kept)
{
    int n = 0;
    for (; table->ml_name != NULL && n < MAX_FUNCTIONS - 1; table++) {
        if (table->ml_doc == NULL || table->ml_doc[0] != '\0') {
            kept[n++] = *table;
        }
    }
    kept[n] = (PyMethodDef){NULL, NULL, 0, NULL};
    return PyModule_AddFunctions(module, kept);
}

/* The functions belong to module, whose state they use. */
static int
add_hooks(PyObject *test, PyObject *module, PyMethodDef *table)
{
    int rc = 0;
    for (; rc == 0 && table->ml_name != NULL; table++) {
        PyObject *name = PyModule_GetNameObject(test);
        PyObject *function = name == NULL ? NULL : PyCFunction_NewEx(table, module, name);
        rc = function == NULL ? -1 : PyModule_AddObjectRef(test, table->ml_name, function);
        Py_XDECREF(name);
        Py_XDECREF(function);
    }
    return rc;
}

/* What only tests, tools and benchmarks need. */
static int
add_test_module(PyObject *module)
{
    PyObject *test = PyModule_New("devtensor._C._test");
    int rc =
        test == NULL || add_hooks(test, module, py_test_hooks) < 0 || add_hooks(test, module, py_cuda_test_hooks) < 0
            ? -1
            : PyModule_AddObjectRef(module, "_test", test);
    Py_XDECREF(test);
    return rc;
}

static int
module_exec(PyObject *module)
{
    py_state *state = PyModule_GetState(module);
#define PY_FAMILY(name)                                                                                                \
    static PyMethodDef name[MAX_FUNCTIONS];                                                                            \
    if (add_functions(module, py_##name##_functions, name) < 0) {                                                      \
        return -1;                                                                                                     \
    }
    PY_FAMILIES(PY_FAMILY)
#undef PY_FAMILY
    py_backends_register();
    py_settle_init();
    py_transfers_init();
    py_grad_init(state);
    if (add_test_module(module) < 0 || add_types(module, state) < 0 || py_dtypes_init(module, state) < 0 ||
        py_devices_init(module, state) < 0) {
        return -1;
    }
    return 0;
}

static int
module_traverse(PyObject *module, visitproc visit, void *arg)
{
    py_state *state = PyModule_GetState(module);
    Py_VISIT(state->array_type);
    Py_VISIT(state->dtype_type);
    Py_VISIT(state->device_type);
    Py_VISIT(state->generator_type);
    Py_VISIT(state->stream_type);
    Py_VISIT(state->event_type);
    Py_VISIT(state->node_type);
    Py_VISIT(state->size_type);
    for (int i = 0; i < PY_NPAIRS; i++) {
        Py_VISIT(state->pair_types[i]);
    }
    Py_VISIT(state->errors);
    Py_VISIT(state->autocast_rules);
    Py_VISIT(state->autocast_hook);
    Py_VISIT(state->override_hook);
    Py_VISIT(state->no_override);
    Py_VISIT(state->cpu);
    for (int i = 0; i < DT_NDTYPES; i++) {
        Py_VISIT(state->dtypes[i]);
    }
    for (int i = 0; i < PY_CACHED_DEVICES; i++) {
        Py_VISIT(state->cuda[i]);
    }
    return 0;
}

static int
module_clear(PyObject *module)
{
    py_state *state = PyModule_GetState(module);
    Py_CLEAR(state->array_type);
    Py_CLEAR(state->dtype_type);
    Py_CLEAR(state->device_type);
    Py_CLEAR(state->generator_type);
    Py_CLEAR(state->stream_type);
    Py_CLEAR(state->event_type);
    Py_CLEAR(state->node_type);
    Py_CLEAR(state->size_type);
    for (int i = 0; i < PY_NPAIRS; i++) {
        Py_CLEAR(state->pair_types[i]);
    }
    Py_CLEAR(state->errors);
    Py_CLEAR(state->autocast_rules);
    Py_CLEAR(state->autocast_hook);
    Py_CLEAR(state->override_hook);
    Py_CLEAR(state->no_override);
    Py_CLEAR(state->cpu);
    for (int i = 0; i < DT_NDTYPES; i++) {
        Py_CLEAR(state->dtypes[i]);
    }
    for (int i = 0; i < PY_CACHED_DEVICES; i++) {
        Py_CLEAR(state->cuda[i]);
    }
    return 0;
}

static void
module_free(void *module)
{
    module_clear(module);
    py_array_clear_free_list();
}

/* What is process-wide here belongs to the main interpreter. From 3.12 on Python refuses others by the slot below, but
 * for interpreters that were made to take any extension. */
static PyObject *
module_create(PyObject *spec, PyModuleDef *Py_UNUSED(def))
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_ImportError, "module devtensor._C does not support loading in subinterpreters");
        return NULL;
    }
    PyObject *name = py_attribute(spec, "name"), *module = name == NULL ? NULL : PyModule_NewObject(name);
    Py_XDECREF(name);
    return module;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_create, module_create},
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

PyModuleDef py_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "devtensor._C",
    .m_doc = "The compiled part of devtensor; its public names are those of the package.",
    .m_size = sizeof(py_state),
    .m_slots = slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC
PyInit__C(void)
{
    return PyModuleDef_Init(&py_module);
}
