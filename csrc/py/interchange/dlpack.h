/* dlpack.h: the structs of DLPack 1.3 (dmlc.github.io/dlpack), which fix how libraries hand arrays to each other. */
#ifndef DT_PY_DLPACK_H
#define DT_PY_DLPACK_H

#include <stdint.h>

#define DLPACK_MAJOR 1
#define DLPACK_MINOR 3

enum { DLPACK_CPU = 1, DLPACK_CUDA = 2, DLPACK_CUDA_HOST = 3, DLPACK_EXTENSION = 12 };
enum { DLPACK_READONLY = 1, DLPACK_COPIED = 2 };

typedef struct {
    void *data;
    struct {
        int32_t type, index;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides; /* strides in elements; NULL before 1.2: contiguous */
    uint64_t byte_offset;
} dlpack_tensor;

/* Before 1.0; in a capsule named "dltensor". */
typedef struct dlpack_old {
    dlpack_tensor tensor;
    void *context;
    void (*deleter)(struct dlpack_old *self);
} dlpack_old;

/* In a capsule named "dltensor_versioned". */
typedef struct dlpack_versioned {
    struct {
        uint32_t major, minor;
    } version;
    void *context;
    void (*deleter)(struct dlpack_versioned *self);
    uint64_t flags;
    dlpack_tensor tensor;
} dlpack_versioned;

#define DLPACK_OLD "dltensor"
#define DLPACK_VERSIONED "dltensor_versioned"
#define DLPACK_OLD_USED "used_dltensor"
#define DLPACK_VERSIONED_USED "used_dltensor_versioned"

#endif
