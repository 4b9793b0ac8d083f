/* stream.h: the kernel of an op that takes one element of each input and gives one of the result.
 *
 *   K_STREAM(name, D, V, ILP, INPUTS, ONE)
 *
 * D is the type of the result, INPUTS(X) calls X(number, type) for each input, ONE is a function of the arguments and
 * an element of each. Whole tiles of a flat range go first, ILP accesses of V elements in flight for each thread; what
 * is left goes by the index, whole vectors or single elements (the rest; strides; misaligned arrays). */
#ifndef DT_KERNEL_STREAM_H
#define DT_KERNEL_STREAM_H

#include "../index.h"

#define K_STREAM_OPEN(k, type) K_IN(type, in##k##_, value##k##_, a_.array[k]);
#define K_STREAM_TYPE(k, type) typedef K_PACK(type, width_) pack##k##_;
#define K_STREAM_FLAT(k, type) const type same##k##_ = a_.splat >> k & 1 && in##k##_ ? *in##k##_ : value##k##_;
#define K_STREAM_FLAT_FROM(k, type)                                                                                    \
    const type *from##k##_ = in##k##_ ? in##k##_ + first_ : 0;                                                         \
    pack##k##_ got##k##_[depth_];
#define K_STREAM_FLAT_LOAD(k, type)                                                                                    \
    if (a_.splat >> k & 1) {                                                                                           \
        DT_UNROLLED for (int j_ = 0; j_ < width_; j_++)                                                                \
        {                                                                                                              \
            got##k##_[u_].v[j_] = same##k##_;                                                                          \
        }                                                                                                              \
    } else {                                                                                                           \
        got##k##_[u_] = *(const pack##k##_ *)(const void *)(from##k##_ + u_ * DT_MAX_THREADS * width_);                \
    }
#define K_STREAM_FLAT_ITEM(k, type) , got##k##_[u_].v[j_]
#define K_STREAM_LOAD(k, type)                                                                                         \
    pack##k##_ got##k##_;                                                                                              \
    if (a_.splat >> k & 1) {                                                                                           \
        const type same_ = in##k##_ ? in##k##_[at_[k]] : value##k##_;                                                  \
        DT_UNROLLED for (int j_ = 0; j_ < width_; j_++)                                                                \
        {                                                                                                              \
            got##k##_.v[j_] = same_;                                                                                   \
        }                                                                                                              \
    } else {                                                                                                           \
        got##k##_ = *(const pack##k##_ *)(const void *)(in##k##_ + at_[k]);                                            \
    }
#define K_STREAM_ITEM(k, type) , got##k##_.v[j_]
#define K_STREAM_SINGLE(k, type) , in##k##_ ? in##k##_[at_[k]] : value##k##_
#define K_STREAM_COUNT(k, type) +1

#define K_STREAM(name, D, V, ILP, INPUTS, ONE)                                                                         \
    K_KERNEL(name, k_elementwise_args, a_)                                                                             \
    {                                                                                                                  \
        enum { width_ = (V), depth_ = (ILP), narrays_ = 1 INPUTS(K_STREAM_COUNT) };                                    \
        INPUTS(K_STREAM_TYPE)                                                                                          \
        typedef K_PACK(D, width_) pack0_;                                                                              \
        K_OUT(D, out_, a_.array[0]);                                                                                   \
        INPUTS(K_STREAM_OPEN)                                                                                          \
        if (a_.tiles > 0) {                                                                                            \
            INPUTS(K_STREAM_FLAT)                                                                                      \
            DT_ROLLED DT_FOR_BLOCKS(tile_, a_.tiles)                                                                   \
            {                                                                                                          \
                DT_ROLLED DT_FOR_THREADS(thread_, DT_MAX_THREADS)                                                      \
                {                                                                                                      \
                    const int64_t first_ = (tile_ * (depth_ * DT_MAX_THREADS) + thread_) * width_;                     \
                    D *to_ = out_ + first_;                                                                            \
                    INPUTS(K_STREAM_FLAT_FROM)                                                                         \
                    DT_UNROLLED for (int u_ = 0; u_ < depth_;                                                          \
                                     u_++){INPUTS(K_STREAM_FLAT_LOAD)} DT_UNROLLED for (int u_ = 0; u_ < depth_; u_++) \
                    {                                                                                                  \
                        pack0_ result_;                                                                                \
                        DT_UNROLLED for (int j_ = 0; j_ < width_; j_++)                                                \
                        {                                                                                              \
                            result_.v[j_] = ONE(&a_ INPUTS(K_STREAM_FLAT_ITEM));                                       \
                        }                                                                                              \
                        *(pack0_ *)(void *)(to_ + u_ * DT_MAX_THREADS * width_) = result_;                             \
                    }                                                                                                  \
                }                                                                                                      \
            }                                                                                                          \
        }                                                                                                              \
        const int64_t flat_ = a_.tiles * (depth_ * DT_MAX_THREADS * width_);                                           \
        DT_ROLLED for (int64_t i_ = flat_ + (DT_BLOCK * DT_THREADS + DT_THREAD) * a_.unit; i_ < a_.index.numel;        \
                       i_ += DT_BLOCKS * DT_THREADS * a_.unit)                                                         \
        {                                                                                                              \
            int64_t at_[narrays_];                                                                                     \
            k_locate_narrow(&a_.index, narrays_, i_, at_);                                                             \
            if (a_.unit == 1) {                                                                                        \
                out_[at_[0]] = ONE(&a_ INPUTS(K_STREAM_SINGLE));                                                       \
            } else {                                                                                                   \
                INPUTS(K_STREAM_LOAD)                                                                                  \
                pack0_ result_;                                                                                        \
                DT_UNROLLED for (int j_ = 0; j_ < width_; j_++)                                                        \
                {                                                                                                      \
                    result_.v[j_] = ONE(&a_ INPUTS(K_STREAM_ITEM));                                                    \
                }                                                                                                      \
                *(pack0_ *)(void *)(out_ + at_[0]) = result_;                                                          \
            }                                                                                                          \
        }                                                                                                              \
    }

#endif
