/* kernel.h: what is known about the parameters of a user's kernel, and the check of what it is called with. */
#ifndef DT_CORE_KERNEL_H
#define DT_CORE_KERNEL_H

#include "../devtensor.h"

#define DT_KERNEL_PARAMS 128
#define DT_KERNEL_PARAM_BYTES 4096

typedef enum { DT_PARAM_ARRAY, DT_PARAM_BOOL, DT_PARAM_INT, DT_PARAM_FLOAT } dt_param_kind;

/* One parameter. Of an array: dtype (-1: any) and lanes of the element, as 4 for float4 *, and whether the kernel may
 * write. Of a number: size in bytes, and for a float its dtype. */
typedef struct {
    const char *name;        /* "x" */
    const char *declaration; /* "const float *x" */
    dt_param_kind kind;
    int dtype;
    int size, lanes;
    bool is_signed, constant;
    size_t offset; /* in the block of arguments */
} dt_param;

typedef struct {
    const char *name;
    const dt_param *params;
    int nparams;
    size_t nbytes; /* of the block of arguments */
} dt_kernel;

/* One argument: an array, a number (i holds the sign and u the size of an integer; huge: it has more than 64 bits), or
 * something else, of which given names the type. */
typedef struct {
    const dt_array *array;
    const char *given;
    dt_category kind;
    double f;
    uint64_t u;
    bool negative, huge;
} dt_kernel_arg;

/* Finds offsets and nbytes. False where the parameters take more than DT_KERNEL_PARAM_BYTES. */
bool dt_kernel_lay_out(dt_param *params, int nparams, size_t *nbytes);

/* Checks the arguments, in the order of every op: count, type, device, dtype, layout, writability, ranges; then writes
 * them to block. device: where the arrays are; unchanged if there are none. */
dt_status dt_kernel_check(const dt_kernel *kernel, const dt_kernel_arg *args, int nargs, dt_device *device,
                          unsigned char block[DT_KERNEL_PARAM_BYTES], dt_error *err) DT_MUST_CHECK;

#endif
