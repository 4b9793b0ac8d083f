/* as_torch.h: where PyTorch itself moves an operand, so does a program that runs --as-torch: as_torch.c. */
#ifndef DT_PY_AS_TORCH_H
#define DT_PY_AS_TORCH_H

#include "py.h"

/* Whether a program runs --as-torch: arrays of no dimension and indices on the cpu follow the others to their device,
 * dtypes are shown as PyTorch shows them. */
extern bool py_as_torch;

/* The array on the device of another where PyTorch would take it so: of no dimension, on the cpu, beside one that is on
 * a GPU. A new reference either way; NULL with an exception. */
PyObject *py_followed(PyObject *array, PyObject *other);
/* What is assigned to a part of self: PyTorch copies it over. whole: any array, not only one of no dimension. */
PyObject *py_followed_value(PyObject *self, PyObject *value, bool whole);
/* An index of self without arrays of the cpu where self is on a GPU, and without masks of uint8. Consumes index. */
PyObject *py_followed_index(PyObject *self, PyObject *index);
/* index, or the tuple that a list stands for; a new reference. */
PyObject *py_without_list(PyObject *index);
/* Whether op is one in which PyTorch takes an array of no dimension for a number. */
bool py_follows_in(const char *op);
/* Puts what followed in the place of the operands of an elementwise op; -1 with an exception. */
int py_follow(py_args *a, bool method);

#endif
