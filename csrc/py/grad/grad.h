/* grad.h: what the front keeps of a node: gradients of leaves, hooks (grad.c, grad_hooks.c), and what Python sees of it
 * (grad_node.c). */
#ifndef DT_PY_GRAD_H
#define DT_PY_GRAD_H

#include "../../core/grad/grad.h"
#include "../py.h"

/* dt_node.owner */
typedef struct {
    PyObject *grad;           /* a DeviceArray; NULL: none */
    PyObject *hooks;          /* a dict of functions of the gradient, by when they came; NULL: none */
    PyObject *after;          /* the same, of a leaf, called when its gradient has been added to */
    PyObject *before, *later; /* dicts of functions of the node: of what its formula takes, and also of what it gives */
    PyObject *metadata;       /* a dict of the user's; NULL: not asked for */
    PyObject *array;          /* borrowed: the leaf's DeviceArray, which tells when it ends */
    PyObject *context, *handle; /* of a function of Python's: its ctx, and a capsule by which that finds the node */
    bool retains;               /* no leaf, but keeps its gradient */
    bool mixed;                 /* grad was added to after used */
    uint32_t version;           /* of used, when an optimizer had used it */
    dt_storage *used; /* that of grad, kept as nodes keep it, so that writes count; NULL: no step has used it */
} py_grad_state;

/* That of the node; NULL with an exception. */
py_grad_state *py_grad_state_of(dt_node *node);
/* The node of array, if there is one. */
static inline dt_node *
py_node_of(PyObject *array)
{
    return py_array_of(array)->storage == NULL ? NULL : py_array_of(array)->node;
}

/* Before the node of an array is asked for: takes up what was written through other arrays. -1 with an exception. */
int py_node_refresh(PyObject *array);
/* Until no op reads the array (data.c). */
void py_wait_for_readers(PyObject *array);
PyObject *py_grad_fn(PyObject *self, void *closure);
PyObject *py__become(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames); /* data.c */
/* A new DeviceArray that takes grad over, or NULL with an exception. */
PyObject *py_grad_array(py_state *state, dt_array *grad);
dt_status py_grad_accumulate(dt_node *leaf, dt_array *grad, bool create_graph, dt_error *err);
/* The post-accumulate hooks of a leaf. */
dt_status py_grad_after(py_grad_state *s);
/* The gradient of a result stays in its .grad, as that of a leaf does. -1 with an exception. */
int py_grad_retain(dt_node *node);
/* What the user keeps at a node, and its hooks (grad_hooks.c). */
PyObject *py_node_metadata(PyObject *self, void *closure);
PyObject *py_node_register_hook(PyObject *self, PyObject *hook);
PyObject *py_node_register_prehook(PyObject *self, PyObject *hook);
/* For the garbage collector, of an array that it knows: its hooks. */
int py_grad_traverse(PyObject *array, visitproc visit, void *arg);
void py_grad_clear(PyObject *array);
dt_status py_grad_before(dt_node *node, dt_array *gradients, int n, dt_error *err);
dt_status py_grad_later(dt_node *node, const dt_array *gradients, int n, dt_array *given, dt_error *err);
dt_status py_grad_run_hooks(dt_node *node, dt_array *grad, dt_error *err);
/* Around hooks and functions of the user's: other runs may work meanwhile. at: what pause gave. */
int py_engine_pause(void);
void py_engine_resume(int at);
dt_status py_grad_function(dt_node *node, const dt_array *gradients, int n, dt_array *found, dt_error *err);
dt_status py_grad_rerun(dt_rerun *rerun, dt_error *err);
/* Whether this thread has the engine; which backward it is in, 0: none. */
bool py_engine_is_ours(void);
unsigned long long py_backward_now(void);
/* saved_hooks.c: what functions of the user's make of what nodes keep */
dt_status py_grad_pack(dt_node *node, dt_error *err);
dt_status py_grad_unpack(dt_node *node, int k, dt_array *out, dt_error *err);
dt_status py_grad_watch(dt_node *node, int i, const dt_array *gradient, dt_error *err);
/* writes.c: lines that write to memory that nodes keep */
void py_write_note(const dt_storage *storage, uint32_t version);
void py_write_forget(const dt_storage *storage);
void py_writes_flush(void);
void py_writes_clear(void);
/* (code, instruction) of the write that gave storage this version, or None; a new reference. */
PyObject *py_write_line(const dt_storage *storage, uint32_t version);
/* The node that Python sees as object. */
dt_node *py_node_behind(PyObject *object);
/* Of a Node: what an explanation asks of it (grad_facts.c). */
PyObject *py_node_facts(PyObject *self, void *closure);
/* What Python sees of node, None of NULL. */
PyObject *py_node_object(py_state *state, dt_node *node);
/* report.c: whether a report is made, and of what */
extern bool py_training_watched;
void py_leaf_reached(const dt_node *leaf);
extern py_state *py_grad_state_module;
extern PyGetSetDef py_grad_getset[];

#endif
