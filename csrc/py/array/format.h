/* format.h: orders of elements in memory, memory_format= (memory_format.c). */
#ifndef DT_PY_FORMAT_H
#define DT_PY_FORMAT_H

#include "../py.h"

typedef enum { PY_PRESERVE, PY_ROW_MAJOR, PY_CHANNELS_LAST, PY_CHANNELS_LAST_3D } py_format;
int py_arg_format(const py_args *a, int i, py_format *out);
PyObject *py_in_format(PyObject *x, const char *op, py_format format);
/* Whether the operand x, parameter 0, has the dimensions of the format. -1 with an exception. */
int py_check_format(const py_args *a, const dt_array *x, py_format format);
/* A new array of the shape of x, of which no more than shape, strides and dimensions is looked at. */
dt_status py_empty_in(const char *op, const dt_array *x, py_format format, dt_device device, dt_dtype dtype,
                      dt_array *out, dt_error *err) DT_MUST_CHECK;
/* made, new and contiguous, of the shape of x and taken over, in the order that the format means beside x. */
PyObject *py_in_order_of(const char *op, PyObject *made, const dt_array *x, py_format format);
PyObject *py_to_format(PyObject *self, PyObject *x, py_format format);

#endif
