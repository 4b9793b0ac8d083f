/* activation.h: what may follow a matrix product or a convolution before its result is stored. */
#ifndef DT_KERNEL_ACTIVATION_H
#define DT_KERNEL_ACTIVATION_H

#include "../args.h"
#include "../kernel.h"

#define K_ACTIVATE(F, suffix)                                                                                          \
    DT_DEVICE_RARE F k_gelu##suffix(F x, int activation)                                                               \
    {                                                                                                                  \
        if (activation == K_ACTIVATION_GELU) {                                                                         \
            return dt_gelu##suffix(x);                                                                                 \
        }                                                                                                              \
        return x / (1 + exp##suffix((F)-1.5957691216057307 * (x + (F)0.044715 * x * x * x)));                          \
    }                                                                                                                  \
    DT_DEVICE F k_activate##suffix(F x, int activation)                                                                \
    {                                                                                                                  \
        const F kept = activation == K_ACTIVATION_RELU && x <= 0 ? 0 : x; /* no branch for the common two */           \
        return activation <= K_ACTIVATION_RELU ? kept : k_gelu##suffix(x, activation);                                 \
    }
K_ACTIVATE(float, f)
K_ACTIVATE(double, )
#undef K_ACTIVATE

#endif
