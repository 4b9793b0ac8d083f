// math.hpp: functions of CUDA that the C library does not have, and atomics.

#define DT_ORDER(type)                                                                                                 \
    static inline type min(type a, type b) { return b < a ? b : a; }                                                   \
    static inline type max(type a, type b) { return a < b ? b : a; }
DT_ORDER(int)
DT_ORDER(unsigned)
DT_ORDER(long)
DT_ORDER(unsigned long)
DT_ORDER(long long)
DT_ORDER(unsigned long long)
#undef DT_ORDER
static inline unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
static inline unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
static inline unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
static inline unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
static inline double min(float a, double b) { return fmin(a, b); }
static inline double min(double a, float b) { return fmin(a, b); }
static inline double max(float a, double b) { return fmax(a, b); }
static inline double max(double a, float b) { return fmax(a, b); }

static inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
static inline double rsqrt(double x) { return 1.0 / sqrt(x); }
static inline float rcbrtf(float x) { return (float)(1.0 / cbrt((double)x)); }
// The C library has these names for itself.
#define __expf(x) expf(x)
#define __exp10f(x) ((float)pow(10.0, (double)(x)))
#define __logf(x) logf(x)
#define __log2f(x) log2f(x)
#define __log10f(x) log10f(x)
#define __sinf(x) sinf(x)
#define __cosf(x) cosf(x)
#define __tanf(x) tanf(x)
#define __powf(x, y) powf(x, y)
#define exp10f(x) __exp10f(x)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __saturatef(float x) { return x != x ? 0.0f : fminf(fmaxf(x, 0.0f), 1.0f); }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fsub_rn(float x, float y) { return x - y; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fdiv_rn(float x, float y) { return x / y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline float __fsqrt_rn(float x) { return sqrtf(x); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline double __dadd_rn(double x, double y) { return x + y; }
static inline double __dmul_rn(double x, double y) { return x * y; }
static inline float sinpif(float x) { return (float)sin(3.141592653589793238 * (double)x); }
static inline float cospif(float x) { return (float)cos(3.141592653589793238 * (double)x); }
static inline float normcdff(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
static inline double normcdf(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }
static inline float norm3df(float x, float y, float z) { return sqrtf(x * x + y * y + z * z); }

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz((unsigned)x); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll((unsigned long long)x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned y = 0;
    for (int i = 0; i < 32; i++) {
        y = y << 1 | (x >> i & 1);
    }
    return y;
}
static inline int __mul24(int x, int y) { return (int)((unsigned)x * (unsigned)y); }
static inline int __mulhi(int x, int y) { return (int)(((long long)x * y) >> 32); }
static inline unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x * y) >> 32); }
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
    return (unsigned long long)(((unsigned __int128)x * y) >> 64);
}
static inline unsigned __umul24(unsigned x, unsigned y) { return x * y; }
static inline int __float_as_int(float x) { return (int)dt_float_bits(x); }
static inline unsigned __float_as_uint(float x) { return dt_float_bits(x); }
static inline float __int_as_float(int x) { return dt_bits_float((unsigned)x); }
static inline float __uint_as_float(unsigned x) { return dt_bits_float(x); }
static inline long long __double_as_longlong(double x) {
    long long bits;
    memcpy(&bits, &x, 8);
    return bits;
}
static inline double __longlong_as_double(long long bits) {
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

// Out of range saturates and NaN is 0, as in the hardware.
template <class I> static inline I dt_saturate(double x, I low, I high) {
    return x != x ? 0 : x <= (double)low ? low : x >= (double)high ? high : (I)x;
}
static inline int __float2int_rn(float x) { return dt_saturate<int>(nearbyint((double)x), INT_MIN, INT_MAX); }
static inline int __float2int_rz(float x) { return dt_saturate<int>(trunc((double)x), INT_MIN, INT_MAX); }
static inline int __float2int_rd(float x) { return dt_saturate<int>(floor((double)x), INT_MIN, INT_MAX); }
static inline int __float2int_ru(float x) { return dt_saturate<int>(ceil((double)x), INT_MIN, INT_MAX); }
static inline unsigned __float2uint_rn(float x) { return dt_saturate<unsigned>(nearbyint((double)x), 0, UINT_MAX); }
static inline unsigned __float2uint_rz(float x) { return dt_saturate<unsigned>(trunc((double)x), 0, UINT_MAX); }
static inline int __double2int_rn(double x) { return dt_saturate<int>(nearbyint(x), INT_MIN, INT_MAX); }
static inline int __double2int_rz(double x) { return dt_saturate<int>(trunc(x), INT_MIN, INT_MAX); }
static inline float __int2float_rn(int x) { return (float)x; }
static inline float __uint2float_rn(unsigned x) { return (float)x; }
static inline float __ll2float_rn(long long x) { return (float)x; }
static inline double __int2double_rn(int x) { return x; }
static inline float __double2float_rn(double x) { return (float)x; }

template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline T __ldcg(const T *p) { return *p; }

// ---------------------------------------------------------------- atomics

template <class T> struct dt_plain {
    typedef T type; // keeps a parameter out of the deduction of T
};

// f makes the new value of the old one, which is returned.
template <class T, class F> static inline T dt_atomic(T *p, F f) {
    static_assert(sizeof(T) >= 4 || sizeof(T) == 2, "there are no atomics of one byte");
    dt_atomic_step();
    T old = *p;
    *p = f(old);
    return old;
}
#define DT_ATOMIC(name, expression)                                                                                    \
    template <class T> static inline T name(T *p, typename dt_plain<T>::type v) {                                      \
        return dt_atomic(p, [v](T old) -> T { return expression; });                                                   \
    }                                                                                                                  \
    template <class T> static inline T name##_block(T *p, typename dt_plain<T>::type v) { return name(p, v); }         \
    template <class T> static inline T name##_system(T *p, typename dt_plain<T>::type v) { return name(p, v); }
DT_ATOMIC(atomicAdd, (T)(old + v))
DT_ATOMIC(atomicSub, (T)(old - v))
DT_ATOMIC(atomicExch, ((void)old, v))
DT_ATOMIC(atomicMin, v < old ? v : old)
DT_ATOMIC(atomicMax, old < v ? v : old)
DT_ATOMIC(atomicAnd, (T)(old & v))
DT_ATOMIC(atomicOr, (T)(old | v))
DT_ATOMIC(atomicXor, (T)(old ^ v))
DT_ATOMIC(atomicInc, old >= v ? 0 : old + 1)
DT_ATOMIC(atomicDec, old == 0 || old > v ? v : old - 1)
#undef DT_ATOMIC
template <class T>
static inline T atomicCAS(T *p, typename dt_plain<T>::type wanted, typename dt_plain<T>::type v) {
    return dt_atomic(p, [wanted, v](T old) -> T { return old == wanted ? v : old; });
}
