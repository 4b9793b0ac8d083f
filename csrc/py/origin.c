/* origin.c: where an array was made and what it was made from. A step is recorded as code object and instruction, since
 * that costs nanoseconds; files and lines are worked out when somebody asks. Steps keep code objects alive, and no
 * frame, array or text; at most DEPTH of them hang on one array. */
#include "../core/grad/grad.h"
#include "frame.h"

#define DEPTH 8
#define FREE_LIST_SIZE 64
static py_step *free_list[FREE_LIST_SIZE]; /* the GIL guards them */
static size_t free_list_count;

#ifdef Py_GIL_DISABLED
#define RETAIN(step) __atomic_fetch_add(&(step)->refs, 1, __ATOMIC_RELAXED)
#define RELEASE(step) (__atomic_fetch_sub(&(step)->refs, 1, __ATOMIC_ACQ_REL) == 1)
#else
#define RETAIN(step) ((step)->refs++)
#define RELEASE(step) (--(step)->refs == 0)
#endif

static py_step *
block(void)
{
#ifndef Py_GIL_DISABLED
    if (free_list_count > 0) {
        return free_list[--free_list_count];
    }
#endif
    return PyMem_Malloc(sizeof(py_step));
}

py_step *
py_step_new(const char *action)
{
    py_step *step = block();
    if (step != NULL) {
        *step = (py_step){.action = action, .refs = 1};
        step->code = py_frame_user_call(&step->instruction, &step->called);
        step->unrecorded = dt_grad_off == DT_GRAD_OFF_BY_USER;
    }
    return step;
}

py_step *
py_step_retain(py_step *step)
{
    if (step != NULL) {
        RETAIN(step);
    }
    return step;
}

/* The end of a step that is the last to know a code object, or whose block is not kept. */
static DT_NOINLINE void
end_slowly(py_step *step)
{
    py_step *parent = step->parent;
    Py_XDECREF(step->code);
    Py_XDECREF(step->called);
    PyMem_Free(step);
    py_step_release(parent);
}

/* Whether giving up a reference to object ends nothing. */
static inline bool
is_kept_by_others(PyObject *object)
{
#ifdef Py_GIL_DISABLED
    (void)object;
    return false; /* nobody knows, and there is no free list */
#else
    return object == NULL || Py_REFCNT(object) > 1;
#endif
}

/* A reference to what others keep. Py_DECREF has a call for the last one, before which registers are saved. */
static inline void
give_up(PyObject *object)
{
    if (object != NULL) {
#ifdef Py_REF_DEBUG
        Py_DECREF(object); /* all references are counted */
#else
        Py_SET_REFCNT(object, Py_REFCNT(object) - 1);
#endif
    }
}

/* Every array ends here: as the usual way calls nothing, it saves no registers. */
void
py_step_release(py_step *step)
{
    while (step != NULL && RELEASE(step)) {
        bool kept = is_kept_by_others(step->code) && is_kept_by_others(step->called);
        if (DT_UNLIKELY(!kept || free_list_count == FREE_LIST_SIZE)) {
            end_slowly(step);
            return;
        }
        give_up(step->code);
        give_up(step->called);
        free_list[free_list_count++] = step;
        step = step->parent;
    }
}

void
py_step_clear_free_list(void)
{
    while (free_list_count > 0) {
        PyMem_Free(free_list[--free_list_count]);
    }
}

/* ---------------------------------------------------------------- chains */

/* The step from which on device, or dtype, stayed what it is. */
static py_step *
decided(py_step *step, bool device)
{
    for (py_step *p; (p = step->parent) != NULL; step = p) {
        if (device ? step->decides_device : step->decides_dtype) {
            break;
        }
        if (device ? !dt_device_equal(p->device, step->device) : p->dtype != step->dtype) {
            break;
        }
    }
    return step;
}

/* A step like this one that comes from parent, which is taken over. */
static py_step *
copy_onto(const py_step *step, py_step *parent)
{
    py_step *copy = step->parent == parent ? NULL : block();
    if (copy != NULL) {
        *copy = *step;
        copy->refs = 1;
        copy->parent = parent;
        copy->depth = (uint8_t)(parent == NULL ? 0 : parent->depth + 1);
        copy->elided = parent != NULL;
        Py_XINCREF(copy->code);
        Py_XINCREF(copy->called);
    }
    return copy;
}

/* In place of a chain that is too long: the two steps that decided its device and its dtype. */
static py_step *
shorten(py_step *chain)
{
    py_step *near = decided(chain, true), *far = decided(chain, false), *short_far, *result;
    bool device = near->depth > far->depth; /* that is what near decides, and far the dtype */
    if (!device) {
        py_step *swap = near;
        near = far;
        far = swap;
    }
    short_far = copy_onto(far, NULL);
    if (short_far == NULL) { /* a chain's first step already, or no memory */
        short_far = far->parent == NULL ? far : NULL;
        if (short_far != NULL) {
            RETAIN(short_far);
        }
    }
    if (near == far) {
        return short_far;
    }
    result = copy_onto(near, short_far);
    if (result != NULL) {
        result->decides_device = device;
        result->decides_dtype = !device;
    } else {
        py_step_release(short_far);
        if (near->parent == far && far->parent == NULL) {
            RETAIN(near);
            result = near;
        }
    }
    return result;
}

/* Makes parent, the step of x, that of step, where no chain grows too long by it. */
static inline bool
hang_on(py_step *step, py_step *parent, const dt_array *x)
{
    parent->device = dt_array_device(x);
    parent->dtype = x->dtype;
    if (parent->depth + 1 >= DEPTH) {
        return false;
    }
    RETAIN(parent);
    step->parent = parent;
    step->depth = (uint8_t)(parent->depth + 1);
    return true;
}

static void
attach(py_array *result, py_array *operand)
{
    py_step *step = result->step, *parent = operand->step;
    const dt_array *x = &operand->array;
    if (step == NULL || parent == NULL || step->parent != NULL || hang_on(step, parent, x)) {
        return;
    }
    step->parent = shorten(parent);
    step->elided = true;
    step->depth = (uint8_t)(step->parent == NULL ? 0 : step->parent->depth + 1);
}

/* The operand that has dtype, else the first array. */
static PyObject *
source(uint8_t dtype, PyObject *const *operands, Py_ssize_t n)
{
    PyObject *first = NULL;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *object = operands[i];
        if (object == NULL) {
            continue;
        }
        if (PyTuple_CheckExact(object)) {
            object = source(dtype, ((PyTupleObject *)object)->ob_item, PyTuple_GET_SIZE(object));
        } else if (!py_is_array(object)) {
            continue;
        }
        if (object != NULL && py_array_of(object)->dtype == dtype) {
            return object;
        }
        first = first == NULL ? object : first;
    }
    return first;
}

static DT_NOINLINE PyObject *
link_slowly(PyObject *result, PyObject *const *operands, Py_ssize_t noperands)
{
    PyObject *operand = source(py_array_of(result)->dtype, operands, noperands);
    if (operand != NULL && operand != result) {
        attach((py_array *)result, (py_array *)operand);
    }
    return result;
}

void DT_NOINLINE
py_step_place(PyObject *result)
{
    dt_node *node = py_array_of(result)->node;
    if (node != NULL && node->place == NULL && !(node->flags & DT_NODE_LEAF)) {
        const bool in_place = Py_REFCNT(result) != 1;
        node->place =
            in_place ? py_step_new(dt_derivatives[node->derivative].op) : py_step_retain(((py_array *)result)->step);
    }
}

PyObject *
py_step_link(PyObject *result, PyObject *const *operands, Py_ssize_t noperands)
{
    if (DT_UNLIKELY(py_array_of(result)->node != NULL)) {
        py_step_place(result);
    }
    if (Py_REFCNT(result) != 1) { /* written in place */
        return result;
    }
    /* the usual cases once more, since every op passes here: the first operand is an array of the result's dtype, or
     * there is no other and it is on the result's device */
    PyObject *first = noperands > 0 ? operands[0] : NULL;
    if (first != NULL && py_is_array(first)) {
        const dt_array *x = py_array_of(first), *y = py_array_of(result);
        py_step *step = ((py_array *)result)->step, *parent = ((py_array *)first)->step;
        if ((x->dtype == y->dtype || (noperands == 1 && dt_device_equal(dt_array_device(x), dt_array_device(y)))) &&
            (step == NULL || parent == NULL || step->parent != NULL || hang_on(step, parent, x))) {
            return result;
        }
    }
    return link_slowly(result, operands, noperands);
}

void
py_step_begin(PyObject *array)
{
    py_step *step = ((py_array *)array)->step;
    if (step != NULL) {
        py_step_release(step->parent);
        step->parent = NULL;
        step->depth = 0;
    }
}

/* ---------------------------------------------------------------- for people */

static int
line(const py_step *step)
{
    return PyCode_Addr2Line((PyCodeObject *)step->code, step->instruction);
}

static bool
is_placed(const py_step *step)
{
    return step != NULL && step->code != NULL && PyCode_Check(step->code);
}

/* What the user called, as a str. A new reference. */
static PyObject *
action(py_state *state, const py_step *step)
{
    if (step->called == NULL) {
        return PyUnicode_FromString(step->action);
    }
    PyObject *choose = py_errors_get(state, "_action");
    PyObject *name = choose == NULL ? NULL : PyObject_CallFunction(choose, "sO", step->action, step->called);
    Py_XDECREF(choose);
    return name;
}

PyObject *
py_step_origin(py_state *state, PyObject *array)
{
    return py_origin_of_step(state, ((py_array *)array)->step);
}

PyObject *
py_origin_of_step(py_state *state, const py_step *step)
{
    if (!is_placed(step)) {
        Py_RETURN_NONE;
    }
    PyObject *type = py_errors_get(state, "Origin");
    if (type == NULL) {
        return NULL;
    }
    PyObject *result =
        PyObject_CallFunction(type, "NOi", action(state, step), ((PyCodeObject *)step->code)->co_filename, line(step));
    Py_DECREF(type);
    return result;
}

PyObject *
py_step_list(py_state *state, PyObject *array)
{
    const dt_array *x = py_array_of(array);
    py_step *head = ((py_array *)array)->step;
    PyObject *list = PyList_New(0);
    if (head != NULL && x->storage != NULL) {
        head->device = dt_array_device(x);
        head->dtype = x->dtype;
    }
    for (const py_step *step = head; list != NULL && step != NULL; step = step->parent) {
        PyObject *device = py_device_object(state, step->device);
        const char *decides = step->decides_device ? "device" : step->decides_dtype ? "dtype" : "";
        PyObject *entry =
            device == NULL ? NULL
            : is_placed(step)
                ? Py_BuildValue("NOiNNNs", action(state, step), ((PyCodeObject *)step->code)->co_filename, line(step),
                                device, py_dtype_object(state, (dt_dtype)step->dtype), PyBool_FromLong(step->elided),
                                decides)
                : Py_BuildValue("NOiNNNs", action(state, step), Py_None, 0, device,
                                py_dtype_object(state, (dt_dtype)step->dtype), PyBool_FromLong(step->elided), decides);
        if (entry == NULL || PyList_Append(list, entry) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(entry);
    }
    PyObject *steps = list == NULL ? NULL : PyList_AsTuple(list);
    Py_XDECREF(list);
    return steps;
}
