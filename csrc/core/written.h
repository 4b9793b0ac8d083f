/* written.h: what a slot has written, by the types of its arguments, so that no slot has to think of it. */
#ifndef DT_WRITTEN_H
#define DT_WRITTEN_H

#include "devtensor.h"

#define DT_TELL_WRITTEN(x) dt_written(_Generic((x), dt_array * : (x), default : NULL))
#define DT_ALL_WRITTEN(...) DT_ALL_WRITTEN_OF(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define DT_ALL_WRITTEN_OF(a, b, c, d, e, f, g, h, ...)                                                                 \
    (DT_TELL_WRITTEN(a), DT_TELL_WRITTEN(b), DT_TELL_WRITTEN(c), DT_TELL_WRITTEN(d), DT_TELL_WRITTEN(e),               \
     DT_TELL_WRITTEN(f), DT_TELL_WRITTEN(g), DT_TELL_WRITTEN(h))

#endif
