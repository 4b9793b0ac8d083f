/* status.h: how a call ended, and the exception that Python raises for it. */
#ifndef DT_STATUS_H
#define DT_STATUS_H

#include "compiler.h"

typedef enum {
    DT_OK = 0,
    DT_EDEVICE,      /* DeviceMismatchError */
    DT_EDTYPE,       /* DTypeMismatchError */
    DT_ESHAPE,       /* ShapeMismatchError */
    DT_EVALUE,       /* RuntimeError: a parameter that no operand explains */
    DT_EARGUMENT,    /* ValueError: the same, where PyTorch raises this */
    DT_EINDEX,       /* IndexError */
    DT_ENODEVICE,    /* DeviceNotAvailableError */
    DT_EHOSTACCESS,  /* HostAccessError */
    DT_EFORBIDDEN,   /* TransferForbiddenError */
    DT_ENOMEM,       /* MemoryError: host memory */
    DT_EOUTOFMEMORY, /* OutOfMemoryError: device memory */
    DT_ECUDA,        /* CudaError */
    DT_ENOTIMPL,     /* NotImplementedError */
    DT_EKERNEL,      /* KernelArgumentError */
    DT_EGRAD,        /* GradientError */
    DT_EFRONT,       /* the front's own exception, which is pending: a callback of grad/grad.h raised it */
} dt_status;

#define DT_TRY(call)                                                                                                   \
    do {                                                                                                               \
        dt_status try_status_ = (call);                                                                                \
        if (DT_UNLIKELY(try_status_ != DT_OK))                                                                         \
            return try_status_;                                                                                        \
    } while (0)

#endif
