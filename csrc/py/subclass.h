/* subclass.h: what asks the classes of operands about an op: subclass.c. */
#ifndef DT_PY_SUBCLASS_H
#define DT_PY_SUBCLASS_H

#include "py.h"

/* Whether there are classes derived from DeviceArray that want to be asked about ops, and whether this thread asks
 * none: subclass.c. */
extern bool py_overrides;
extern _Thread_local bool py_overrides_off __attribute__((tls_model("initial-exec")));
/* Whether a class of an operand was asked; then *answer is what it said, NULL with an exception. */
bool py_overridden(const py_spec *spec, bool in_place, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                   PyObject *kwnames, PyObject **answer);
/* Whether the class of one of these, or of one of the entries of a tuple, is to be asked. b may be NULL. */
bool py_asks(PyObject *a, PyObject *b);
/* What it says. kind is "method", "reflected" or "attribute". */
PyObject *py_ask(const char *kind, const char *name, PyObject *a, PyObject *b);
PyObject *py_ask_operator(const char *name, PyObject *a, PyObject *b);

/* What devtensor._interchange.overrides does with an instance of such a class: function(self), function(self, memo). */
PyObject *py_of_subclass(const char *function, PyObject *self, PyObject *memo);

/* In front of what has no arguments to parse. */
#define PY_ASK(kind, name, a, b)                                                                                       \
    if (DT_UNLIKELY(py_overrides) && py_asks(a, b)) {                                                                  \
        return py_ask(kind, name, a, b);                                                                               \
    }
#define PY_ASK_OPERATOR(name, a, b)                                                                                    \
    if (DT_UNLIKELY(py_overrides) && py_asks(a, b)) {                                                                  \
        return py_ask_operator(name, a, b);                                                                            \
    }

#endif
