/* device.h: a CUDA device that is about to be used. Another status than DT_OK comes with an exception. */
#ifndef DT_PY_DEVICE_H
#define DT_PY_DEVICE_H

#include "../../cuda/front.h"
#include "../py.h"

dt_status py_enter_device(py_state *state, int index, cuda_device **out);
/* object: an int, a text or a device object; the current device when not given. */
dt_status py_open_device(PyObject *self, const char *op, PyObject *object, cuda_device **out);

#endif
