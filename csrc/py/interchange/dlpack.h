/* dlpack.h: the header of DLPack (dmlc.github.io/dlpack), and what its Python specification adds: names of capsules. */
#ifndef DT_PY_DLPACK_H
#define DT_PY_DLPACK_H

#include "vendor/dlpack.h"

/* A capsule gets the second name when its array is taken. */
#define DLPACK_OLD "dltensor"
#define DLPACK_OLD_USED "used_dltensor"
#define DLPACK_VERSIONED "dltensor_versioned"
#define DLPACK_VERSIONED_USED "used_dltensor_versioned"

#endif
