/* dtype.c: what each dtype is, how two promote, and how a Python number becomes an element. */
#include "devtensor.h"

#include <string.h>

const dt_dtype_info dt_dtypes[DT_NDTYPES] = {
#define DT_DTYPE(NAME, name, ctype, bits, dlpack, category) {#name, bits / 8, dlpack, category},
#include "dtypes.def"
#undef DT_DTYPE
};

static _Atomic dt_dtype default_dtype = DT_FLOAT32;

dt_dtype
dt_default_dtype(void)
{
    return default_dtype;
}

void
dt_set_default_dtype(dt_dtype dtype)
{
    default_dtype = dtype;
}

static atomic_bool allow_tf32;

bool
dt_allow_tf32(void)
{
    return atomic_load_explicit(&allow_tf32, memory_order_relaxed);
}

void
dt_set_allow_tf32(bool allow)
{
    atomic_store_explicit(&allow_tf32, allow, memory_order_relaxed);
}

int
dt_dtype_find(const char *name)
{
    for (int i = 0; i < DT_NDTYPES; i++) {
        if (strcmp(dt_dtypes[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* PyTorch's lattice (c10/core/ScalarType.cpp): a higher category wins; inside one, the smallest dtype that holds both.
 */
dt_dtype
dt_promote(dt_dtype a, dt_dtype b)
{
    dt_dtype low = a < b ? a : b, high = a < b ? b : a;
    if (low == DT_UINT8 && high == DT_INT8) {
        return DT_INT16;
    }
    if (low == DT_FLOAT16 && high == DT_BFLOAT16) {
        return DT_FLOAT32;
    }
    return high; /* dtypes.def is ordered so */
}

dt_dtype
dt_wide(dt_dtype dtype)
{
    return dt_promote(dtype, DT_FLOAT32);
}

int64_t
dt_saturate(dt_dtype dtype, int64_t i)
{
    if (dt_dtypes[dtype].category != DT_CATEGORY_INT || dtype == DT_INT64) {
        return i;
    }
    int64_t half = INT64_C(1) << (8 * dt_itemsize(dtype) - 1);
    int64_t low = dtype == DT_UINT8 ? 0 : -half, high = dtype == DT_UINT8 ? 2 * half - 1 : half - 1;
    return i < low ? low : i > high ? high : i;
}

dt_scalar
dt_scalar_int(int64_t i)
{
    return (dt_scalar){DT_CATEGORY_INT, (double)i, i};
}

dt_scalar
dt_scalar_float(double f)
{
    return (dt_scalar){DT_CATEGORY_FLOAT, f, dt_f64_to_i64(f)};
}

dt_scalar
dt_scalar_bool(bool b)
{
    return (dt_scalar){DT_CATEGORY_BOOL, b, b};
}

void
dt_scalar_store(const dt_scalar *value, dt_dtype dtype, void *out)
{
    bool from_float = value->kind == DT_CATEGORY_FLOAT;
    switch (dtype) {
#define DT_DTYPE(NAME, name, ctype, bits, dlpack, category)                                                            \
    case DT_##NAME: {                                                                                                  \
        ctype element = from_float ? dt_cast_float64_##name(value->f) : dt_cast_int64_##name(value->i);                \
        memcpy(out, &element, sizeof(element));                                                                        \
        break;                                                                                                         \
    }
#include "dtypes.def"
#undef DT_DTYPE
    default:
        break;
    }
}

dt_scalar
dt_scalar_load(dt_dtype dtype, const void *in)
{
    dt_scalar value = {0};
    switch (dtype) {
#define DT_DTYPE(NAME, name, ctype, bits, dlpack, category)                                                            \
    case DT_##NAME: {                                                                                                  \
        ctype element;                                                                                                 \
        memcpy(&element, in, sizeof(element));                                                                         \
        value = (dt_scalar){category, dt_cast_##name##_float64(element), dt_cast_##name##_int64(element)};             \
        break;                                                                                                         \
    }
#include "dtypes.def"
#undef DT_DTYPE
    default:
        break;
    }
    return value;
}
