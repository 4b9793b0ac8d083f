/* frame.h: the frames of the interpreter, as far as devtensor looks at them. */
#ifndef DT_PY_FRAME_H
#define DT_PY_FRAME_H

#include "py.h"

/* The code that runs now and its instruction: of the nearest frame outside devtensor's own files, or of the nearest of
 * all. A new reference; NULL without an exception where nothing runs. */
PyObject *py_frame_user_code(int *instruction);
/* The same; where that frame called a public function of ours which is written in Python, also its name, into called: a
 * new reference. Else called stays as it is. */
PyObject *py_frame_user_call(int *instruction, PyObject **called);
/* Gives such a reference back (NULL: nothing) where this thread may hold locks: nothing of the user's runs. */
void py_frame_drop_code(PyObject *code);

/* Whether a file belongs to devtensor itself; its programs (digits) are users of it. */
bool py_is_own_file(PyObject *filename);

#endif
