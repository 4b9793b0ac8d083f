// half.hpp: __half and __nv_bfloat16 with their usual functions: rounded to nearest even, computed in float.

static inline unsigned dt_float_bits(float x) {
    unsigned bits;
    memcpy(&bits, &x, 4);
    return bits;
}
static inline float dt_bits_float(unsigned bits) {
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static inline unsigned short dt_to_half(double wide) {
    // To odd first, so that the two roundings are one.
    float x = (float)wide;
    unsigned bits = dt_float_bits(x);
    if ((double)x != wide && wide == wide) {
        if (fabs((double)x) > fabs(wide)) {
            bits--;
        }
        bits |= 1;
    }
    unsigned sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u) {
        return 0x7fff;
    }
    if (rest >= 0x47800000u) {
        return (unsigned short)(sign | 0x7c00u);
    }
    int shift = rest < 0x38800000u ? 126 - (int)(rest >> 23) : 13;
    if (shift > 25) {
        return (unsigned short)sign;
    }
    unsigned kept = rest < 0x38800000u ? (rest & 0x7fffffu) | 0x800000u : rest - 0x38000000u;
    unsigned low = kept & ((1u << shift) - 1), middle = 1u << (shift - 1), result = kept >> shift;
    result += low > middle || (low == middle && (result & 1));
    return (unsigned short)(sign | result);
}
static inline float dt_from_half(unsigned short h) {
    unsigned sign = (unsigned)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ffu;
    if (exponent == 0) {
        float x = (float)fraction * 0x1p-24f;
        return sign ? -x : x;
    }
    return dt_bits_float(sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13);
}
static inline unsigned short dt_to_bfloat16(double wide) {
    float x = (float)wide;
    unsigned bits = dt_float_bits(x);
    if ((double)x != wide && wide == wide) {
        if (fabs((double)x) > fabs(wide)) {
            bits--;
        }
        bits |= 1;
    }
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0x7fff;
    }
    return (unsigned short)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}
static inline float dt_from_bfloat16(unsigned short b) { return dt_bits_float((unsigned)b << 16); }

#define DT_HALF(name, to, from)                                                                                        \
    struct name {                                                                                                      \
        unsigned short bits;                                                                                           \
        name() = default;                                                                                              \
        name(float x) : bits(to(x)) {}                                                                                 \
        name(double x) : bits(to(x)) {}                                                                                \
        name(int x) : bits(to(x)) {}                                                                                   \
        name(unsigned x) : bits(to(x)) {}                                                                              \
        name(long long x) : bits(to((double)x)) {}                                                                     \
        name(unsigned long long x) : bits(to((double)x)) {}                                                            \
        operator float() const { return from(bits); }                                                                  \
        name &operator+=(name b) { return *this = name(from(bits) + from(b.bits)); }                                   \
        name &operator-=(name b) { return *this = name(from(bits) - from(b.bits)); }                                   \
        name &operator*=(name b) { return *this = name(from(bits) * from(b.bits)); }                                   \
        name &operator/=(name b) { return *this = name(from(bits) / from(b.bits)); }                                   \
    };                                                                                                                 \
    static inline name operator+(name a, name b) { return name(from(a.bits) + from(b.bits)); }                         \
    static inline name operator-(name a, name b) { return name(from(a.bits) - from(b.bits)); }                         \
    static inline name operator*(name a, name b) { return name(from(a.bits) * from(b.bits)); }                         \
    static inline name operator/(name a, name b) { return name(from(a.bits) / from(b.bits)); }                         \
    static inline name operator-(name a) { return name(-from(a.bits)); }                                               \
    static inline bool operator==(name a, name b) { return from(a.bits) == from(b.bits); }                             \
    static inline bool operator!=(name a, name b) { return from(a.bits) != from(b.bits); }                             \
    static inline bool operator<(name a, name b) { return from(a.bits) < from(b.bits); }                               \
    static inline bool operator<=(name a, name b) { return from(a.bits) <= from(b.bits); }                             \
    static inline bool operator>(name a, name b) { return from(a.bits) > from(b.bits); }                               \
    static inline bool operator>=(name a, name b) { return from(a.bits) >= from(b.bits); }                             \
    static inline name __hadd(name a, name b) { return a + b; }                                                        \
    static inline name __hsub(name a, name b) { return a - b; }                                                        \
    static inline name __hmul(name a, name b) { return a * b; }                                                        \
    static inline name __hdiv(name a, name b) { return a / b; }                                                        \
    static inline name __hneg(name a) { return -a; }                                                                   \
    static inline name __habs(name a) { return name(fabsf(from(a.bits))); }                                            \
    static inline name __hfma(name a, name b, name c) {                                                                \
        return name((double)from(a.bits) * (double)from(b.bits) + (double)from(c.bits));                               \
    }                                                                                                                  \
    static inline name __hmax(name a, name b) { return name(fmaxf(from(a.bits), from(b.bits))); }                      \
    static inline name __hmin(name a, name b) { return name(fminf(from(a.bits), from(b.bits))); }                      \
    static inline bool __heq(name a, name b) { return a == b; }                                                        \
    static inline bool __hlt(name a, name b) { return a < b; }                                                         \
    static inline bool __hgt(name a, name b) { return a > b; }                                                         \
    static inline bool __hle(name a, name b) { return a <= b; }                                                        \
    static inline bool __hge(name a, name b) { return a >= b; }                                                        \
    static inline bool __hisnan(name a) { return from(a.bits) != from(a.bits); }                                       \
    static inline name hexp(name a) { return name(expf(from(a.bits))); }                                               \
    static inline name hlog(name a) { return name(logf(from(a.bits))); }                                               \
    static inline name hsqrt(name a) { return name(sqrtf(from(a.bits))); }                                             \
    static inline name hrsqrt(name a) { return name(1.0 / sqrt((double)from(a.bits))); }                               \
    static inline name hrcp(name a) { return name(1.0f / from(a.bits)); }

DT_HALF(__half, dt_to_half, dt_from_half)
DT_HALF(__nv_bfloat16, dt_to_bfloat16, dt_from_bfloat16)
#undef DT_HALF

typedef __half half;
typedef __half __nv_half;
typedef __nv_bfloat16 nv_bfloat16;

struct __align__(4) __half2 {
    __half x, y;
};
struct __align__(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
typedef __half2 half2;
typedef __nv_bfloat162 nv_bfloat162;

static inline __half __float2half(float x) { return __half(x); }
static inline __half __float2half_rn(float x) { return __half(x); }
static inline __half __double2half(double x) { return __half(x); }
static inline __half __int2half_rn(int x) { return __half(x); }
static inline float __half2float(__half x) { return (float)x; }
static inline int __half2int_rn(__half x) { return (int)nearbyintf((float)x); }
static inline int __half2int_rz(__half x) { return (int)(float)x; }
static inline __half __ushort_as_half(unsigned short bits) {
    __half x;
    x.bits = bits;
    return x;
}
static inline unsigned short __half_as_ushort(__half x) { return x.bits; }
static inline __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
static inline __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
static inline float __bfloat162float(__nv_bfloat16 x) { return (float)x; }

#define DT_HALF2(pair, one)                                                                                            \
    static inline pair operator+(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }                                    \
    static inline pair operator-(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }                                    \
    static inline pair operator*(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }                                    \
    static inline pair __hadd2(pair a, pair b) { return a + b; }                                                       \
    static inline pair __hsub2(pair a, pair b) { return a - b; }                                                       \
    static inline pair __hmul2(pair a, pair b) { return a * b; }                                                       \
    static inline pair __hfma2(pair a, pair b, pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }      \
    static inline one __low2##one(pair a) { return a.x; }                                                              \
    static inline one __high2##one(pair a) { return a.y; }

static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half2 __half2half2(__half x) { return {x, x}; }
static inline __half2 __float2half2_rn(float x) { return {__half(x), __half(x)}; }
static inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
static inline float2 __half22float2(__half2 a) { return {(float)a.x, (float)a.y}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
static inline float2 __bfloat1622float2(__nv_bfloat162 a) { return {(float)a.x, (float)a.y}; }
DT_HALF2(__half2, half)
DT_HALF2(__nv_bfloat162, nv_bfloat16)
#undef DT_HALF2
