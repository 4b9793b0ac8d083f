/* elementwise.h: examples of ops that go element by element: see ../examples.h. */
#ifndef DEVTENSOR_EXAMPLES_ELEMENTWISE_H
#define DEVTENSOR_EXAMPLES_ELEMENTWISE_H

/* ---------------------------------------------------------------- unary */

#define EXAMPLE_neg                                                                                                    \
    EXAMPLE(">>> dt.neg(dt.tensor([1, -2]))\n"                                                                         \
            "DeviceArray([-1,  2], device='cpu', dtype=int64)")
#define EXAMPLE_abs                                                                                                    \
    EXAMPLE(">>> dt.abs(dt.tensor([1.5, -2.0]))\n"                                                                     \
            "DeviceArray([1.5000, 2.0000], device='cpu', dtype=float32)")
#define EXAMPLE_sign                                                                                                   \
    EXAMPLE(">>> dt.sign(dt.tensor([-3.0, 0.0, 2.0]))\n"                                                               \
            "DeviceArray([-1.,  0.,  1.], device='cpu', dtype=float32)")
#define EXAMPLE_square                                                                                                 \
    EXAMPLE(">>> dt.square(dt.tensor([2, -3]))\n"                                                                      \
            "DeviceArray([4, 9], device='cpu', dtype=int64)")
#define EXAMPLE_exp                                                                                                    \
    EXAMPLE(">>> dt.exp(dt.tensor([0.0, 1.0]))\n"                                                                      \
            "DeviceArray([1.0000, 2.7183], device='cpu', dtype=float32)")
#define EXAMPLE_expm1                                                                                                  \
    EXAMPLE(">>> dt.expm1(dt.tensor([0.0, 1.0]))\n"                                                                    \
            "DeviceArray([0.0000, 1.7183], device='cpu', dtype=float32)")
#define EXAMPLE_log                                                                                                    \
    EXAMPLE(">>> dt.log(dt.tensor([1.0, 10.0]))\n"                                                                     \
            "DeviceArray([0.0000, 2.3026], device='cpu', dtype=float32)")
#define EXAMPLE_log1p                                                                                                  \
    EXAMPLE(">>> dt.log1p(dt.tensor([0.0, 1.0]))\n"                                                                    \
            "DeviceArray([0.0000, 0.6931], device='cpu', dtype=float32)")
#define EXAMPLE_log2                                                                                                   \
    EXAMPLE(">>> dt.log2(dt.tensor([1.0, 8.0]))\n"                                                                     \
            "DeviceArray([0., 3.], device='cpu', dtype=float32)")
#define EXAMPLE_log10                                                                                                  \
    EXAMPLE(">>> dt.log10(dt.tensor([1.0, 100.0]))\n"                                                                  \
            "DeviceArray([0., 2.], device='cpu', dtype=float32)")
#define EXAMPLE_sqrt                                                                                                   \
    EXAMPLE(">>> dt.sqrt(dt.tensor([4.0, 9.0]))\n"                                                                     \
            "DeviceArray([2., 3.], device='cpu', dtype=float32)")
#define EXAMPLE_rsqrt                                                                                                  \
    EXAMPLE(">>> dt.rsqrt(dt.tensor([4.0, 16.0]))\n"                                                                   \
            "DeviceArray([0.5000, 0.2500], device='cpu', dtype=float32)")
#define EXAMPLE_reciprocal                                                                                             \
    EXAMPLE(">>> dt.reciprocal(dt.tensor([2.0, 4.0]))\n"                                                               \
            "DeviceArray([0.5000, 0.2500], device='cpu', dtype=float32)")
#define EXAMPLE_sin                                                                                                    \
    EXAMPLE(">>> dt.sin(dt.tensor([0.0, dt.pi / 2]))\n"                                                                \
            "DeviceArray([0., 1.], device='cpu', dtype=float32)")
#define EXAMPLE_cos                                                                                                    \
    EXAMPLE(">>> dt.cos(dt.tensor([0.0, dt.pi]))\n"                                                                    \
            "DeviceArray([ 1., -1.], device='cpu', dtype=float32)")
#define EXAMPLE_tan                                                                                                    \
    EXAMPLE(">>> dt.tan(dt.tensor([0.0, 1.0]))\n"                                                                      \
            "DeviceArray([0.0000, 1.5574], device='cpu', dtype=float32)")
#define EXAMPLE_tanh                                                                                                   \
    EXAMPLE(">>> dt.tanh(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([0.0000, 0.7616], device='cpu', dtype=float32)")
#define EXAMPLE_sigmoid                                                                                                \
    EXAMPLE(">>> dt.sigmoid(dt.tensor([0.0, 2.0]))\n"                                                                  \
            "DeviceArray([0.5000, 0.8808], device='cpu', dtype=float32)")
#define EXAMPLE_asin                                                                                                   \
    EXAMPLE(">>> dt.asin(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([0.0000, 1.5708], device='cpu', dtype=float32)")
#define EXAMPLE_acos                                                                                                   \
    EXAMPLE(">>> dt.acos(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([1.5708, 0.0000], device='cpu', dtype=float32)")
#define EXAMPLE_atan                                                                                                   \
    EXAMPLE(">>> dt.atan(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([0.0000, 0.7854], device='cpu', dtype=float32)")
#define EXAMPLE_sinh                                                                                                   \
    EXAMPLE(">>> dt.sinh(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([0.0000, 1.1752], device='cpu', dtype=float32)")
#define EXAMPLE_cosh                                                                                                   \
    EXAMPLE(">>> dt.cosh(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([1.0000, 1.5431], device='cpu', dtype=float32)")
#define EXAMPLE_asinh                                                                                                  \
    EXAMPLE(">>> dt.asinh(dt.tensor([0.0, 1.0]))\n"                                                                    \
            "DeviceArray([0.0000, 0.8814], device='cpu', dtype=float32)")
#define EXAMPLE_acosh                                                                                                  \
    EXAMPLE(">>> dt.acosh(dt.tensor([1.0, 2.0]))\n"                                                                    \
            "DeviceArray([0.0000, 1.3170], device='cpu', dtype=float32)")
#define EXAMPLE_atanh                                                                                                  \
    EXAMPLE(">>> dt.atanh(dt.tensor([0.0, 0.5]))\n"                                                                    \
            "DeviceArray([0.0000, 0.5493], device='cpu', dtype=float32)")
#define EXAMPLE_erfc                                                                                                   \
    EXAMPLE(">>> dt.erfc(dt.tensor([0.0, 1.0]))\n"                                                                     \
            "DeviceArray([1.0000, 0.1573], device='cpu', dtype=float32)")
#define EXAMPLE_erfinv                                                                                                 \
    EXAMPLE(">>> dt.erfinv(dt.tensor([0.0, 0.5]))\n"                                                                   \
            "DeviceArray([0.0000, 0.4769], device='cpu', dtype=float32)")
#define EXAMPLE_fmod                                                                                                   \
    EXAMPLE(">>> dt.fmod(dt.tensor([5, -5]), 3)\n"                                                                     \
            "DeviceArray([ 2, -2], device='cpu', dtype=int64)")
#define EXAMPLE_atan2                                                                                                  \
    EXAMPLE(">>> dt.atan2(dt.tensor([1.0, -1.0]), dt.tensor([1.0, -1.0]))\n"                                           \
            "DeviceArray([ 0.7854, -2.3562], device='cpu', dtype=float32)")
#define EXAMPLE_hypot                                                                                                  \
    EXAMPLE(">>> dt.hypot(dt.tensor([3.0]), dt.tensor([4.0]))\n"                                                       \
            "DeviceArray([5.], device='cpu', dtype=float32)")
#define EXAMPLE_logaddexp                                                                                              \
    EXAMPLE(">>> dt.logaddexp(dt.tensor([0.0]), dt.tensor([0.0]))\n"                                                   \
            "DeviceArray([0.6931], device='cpu', dtype=float32)")
#define EXAMPLE_erf                                                                                                    \
    EXAMPLE(">>> dt.erf(dt.tensor([0.0, 1.0]))\n"                                                                      \
            "DeviceArray([0.0000, 0.8427], device='cpu', dtype=float32)")
#define EXAMPLE_floor                                                                                                  \
    EXAMPLE(">>> dt.floor(dt.tensor([1.5, -1.5]))\n"                                                                   \
            "DeviceArray([ 1., -2.], device='cpu', dtype=float32)")
#define EXAMPLE_ceil                                                                                                   \
    EXAMPLE(">>> dt.ceil(dt.tensor([1.5, -1.5]))\n"                                                                    \
            "DeviceArray([ 2., -1.], device='cpu', dtype=float32)")
#define EXAMPLE_round                                                                                                  \
    EXAMPLE(">>> dt.round(dt.tensor([0.5, 1.5, 2.4]))\n"                                                               \
            "DeviceArray([0., 2., 2.], device='cpu', dtype=float32)")
#define EXAMPLE_trunc                                                                                                  \
    EXAMPLE(">>> dt.trunc(dt.tensor([1.5, -1.5]))\n"                                                                   \
            "DeviceArray([ 1., -1.], device='cpu', dtype=float32)")
#define EXAMPLE_isnan                                                                                                  \
    EXAMPLE(">>> dt.isnan(dt.tensor([1.0, dt.nan]))\n"                                                                 \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_isinf                                                                                                  \
    EXAMPLE(">>> dt.isinf(dt.tensor([1.0, -dt.inf]))\n"                                                                \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_isfinite                                                                                               \
    EXAMPLE(">>> dt.isfinite(dt.tensor([1.0, dt.inf, dt.nan]))\n"                                                      \
            "DeviceArray([ True, False, False], device='cpu', dtype=bool)")
#define EXAMPLE_logical_not                                                                                            \
    EXAMPLE(">>> dt.logical_not(dt.tensor([0.0, 2.0]))\n"                                                              \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_bitwise_not                                                                                            \
    EXAMPLE(">>> dt.bitwise_not(dt.tensor([0, 5]))\n"                                                                  \
            "DeviceArray([-1, -6], device='cpu', dtype=int64)")
#define EXAMPLE_relu                                                                                                   \
    EXAMPLE(">>> dt.relu(dt.tensor([-1.0, 2.0]))\n"                                                                    \
            "DeviceArray([0., 2.], device='cpu', dtype=float32)")
#define EXAMPLE_relu6                                                                                                  \
    EXAMPLE(">>> dt.relu6(dt.tensor([-1.0, 2.0, 9.0]))\n"                                                              \
            "DeviceArray([0., 2., 6.], device='cpu', dtype=float32)")
#define EXAMPLE_leaky_relu                                                                                             \
    EXAMPLE(">>> dt.leaky_relu(dt.tensor([-1.0, 2.0]))\n"                                                              \
            "DeviceArray([-0.0100,  2.0000], device='cpu', dtype=float32)")
#define EXAMPLE_elu                                                                                                    \
    EXAMPLE(">>> dt.elu(dt.tensor([-1.0, 2.0]))\n"                                                                     \
            "DeviceArray([-0.6321,  2.0000], device='cpu', dtype=float32)")
#define EXAMPLE_silu                                                                                                   \
    EXAMPLE(">>> dt.silu(dt.tensor([-1.0, 2.0]))\n"                                                                    \
            "DeviceArray([-0.2689,  1.7616], device='cpu', dtype=float32)")
#define EXAMPLE_hardswish                                                                                              \
    EXAMPLE(">>> dt.hardswish(dt.tensor([-4.0, 1.0, 4.0]))\n"                                                          \
            "DeviceArray([-0.0000,  0.6667,  4.0000], device='cpu', dtype=float32)")
#define EXAMPLE_softplus                                                                                               \
    EXAMPLE(">>> dt.softplus(dt.tensor([0.0, 30.0]))\n"                                                                \
            "DeviceArray([ 0.6931, 30.0000], device='cpu', dtype=float32)")
#define EXAMPLE_hardtanh                                                                                               \
    EXAMPLE(">>> dt.hardtanh(dt.tensor([-3.0, 0.5, 3.0]))\n"                                                           \
            "DeviceArray([-1.0000,  0.5000,  1.0000], device='cpu', dtype=float32)")
#define EXAMPLE_gelu                                                                                                   \
    EXAMPLE(">>> dt.gelu(dt.tensor([-1.0, 1.0]))\n"                                                                    \
            "DeviceArray([-0.1587,  0.8413], device='cpu', dtype=float32)")
#define EXAMPLE_clamp                                                                                                  \
    EXAMPLE(">>> dt.clamp(dt.tensor([-3.0, 0.5, 3.0]), 0.0, 1.0)\n"                                                    \
            "DeviceArray([0.0000, 0.5000, 1.0000], device='cpu', dtype=float32)")
#define EXAMPLE_clamp_                                                                                                 \
    EXAMPLE(">>> dt.tensor([-3.0, 0.5, 3.0]).clamp_(max=1.0)\n"                                                        \
            "DeviceArray([-3.0000,  0.5000,  1.0000], device='cpu', dtype=float32)")

/* ---------------------------------------------------------------- binary */

#define EXAMPLE_add                                                                                                    \
    EXAMPLE(">>> dt.add(dt.tensor([1.0, 2.0]), dt.tensor([10.0, 20.0]), alpha=0.5)\n"                                  \
            "DeviceArray([ 6., 12.], device='cpu', dtype=float32)")
#define EXAMPLE_sub                                                                                                    \
    EXAMPLE(">>> dt.sub(dt.tensor([1.0, 2.0]), 1)\n"                                                                   \
            "DeviceArray([0., 1.], device='cpu', dtype=float32)")
#define EXAMPLE_mul                                                                                                    \
    EXAMPLE(">>> dt.mul(dt.tensor([1.0, 2.0]), dt.tensor([3.0, 4.0]))\n"                                               \
            "DeviceArray([3., 8.], device='cpu', dtype=float32)")
#define EXAMPLE_div                                                                                                    \
    EXAMPLE(">>> dt.div(dt.tensor([7, -7]), 2, rounding_mode=\"floor\")\n"                                             \
            "DeviceArray([ 3, -4], device='cpu', dtype=int64)")
#define EXAMPLE_floor_divide                                                                                           \
    EXAMPLE(">>> dt.floor_divide(dt.tensor([7, -7]), 2)\n"                                                             \
            "DeviceArray([ 3, -4], device='cpu', dtype=int64)")
#define EXAMPLE_remainder                                                                                              \
    EXAMPLE(">>> dt.remainder(dt.tensor([7, -7]), 3)\n"                                                                \
            "DeviceArray([1, 2], device='cpu', dtype=int64)")
#define EXAMPLE_pow                                                                                                    \
    EXAMPLE(">>> dt.pow(dt.tensor([2.0, 3.0]), 2)\n"                                                                   \
            "DeviceArray([4., 9.], device='cpu', dtype=float32)")
#define EXAMPLE_maximum                                                                                                \
    EXAMPLE(">>> dt.maximum(dt.tensor([1, 5]), dt.tensor([4, 2]))\n"                                                   \
            "DeviceArray([4, 5], device='cpu', dtype=int64)")
#define EXAMPLE_minimum                                                                                                \
    EXAMPLE(">>> dt.minimum(dt.tensor([1, 5]), dt.tensor([4, 2]))\n"                                                   \
            "DeviceArray([1, 2], device='cpu', dtype=int64)")
#define EXAMPLE_eq                                                                                                     \
    EXAMPLE(">>> dt.eq(dt.tensor([1, 2]), 2)\n"                                                                        \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_ne                                                                                                     \
    EXAMPLE(">>> dt.ne(dt.tensor([1, 2]), 2)\n"                                                                        \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_lt                                                                                                     \
    EXAMPLE(">>> dt.lt(dt.tensor([1, 2]), 2)\n"                                                                        \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_le                                                                                                     \
    EXAMPLE(">>> dt.le(dt.tensor([1, 2]), 1)\n"                                                                        \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_gt                                                                                                     \
    EXAMPLE(">>> dt.gt(dt.tensor([1, 2]), 1)\n"                                                                        \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_ge                                                                                                     \
    EXAMPLE(">>> dt.ge(dt.tensor([1, 2]), 2)\n"                                                                        \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_logical_and                                                                                            \
    EXAMPLE(">>> dt.logical_and(dt.tensor([True, True]), dt.tensor([True, False]))\n"                                  \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_logical_or                                                                                             \
    EXAMPLE(">>> dt.logical_or(dt.tensor([True, False]), dt.tensor([False, False]))\n"                                 \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_logical_xor                                                                                            \
    EXAMPLE(">>> dt.logical_xor(dt.tensor([True, True]), dt.tensor([True, False]))\n"                                  \
            "DeviceArray([False,  True], device='cpu', dtype=bool)")
#define EXAMPLE_bitwise_and                                                                                            \
    EXAMPLE(">>> dt.bitwise_and(dt.tensor([6, 5]), 3)\n"                                                               \
            "DeviceArray([2, 1], device='cpu', dtype=int64)")
#define EXAMPLE_bitwise_or                                                                                             \
    EXAMPLE(">>> dt.bitwise_or(dt.tensor([6, 5]), 3)\n"                                                                \
            "DeviceArray([7, 7], device='cpu', dtype=int64)")
#define EXAMPLE_bitwise_xor                                                                                            \
    EXAMPLE(">>> dt.bitwise_xor(dt.tensor([6, 5]), 3)\n"                                                               \
            "DeviceArray([5, 6], device='cpu', dtype=int64)")
#define EXAMPLE_lerp                                                                                                   \
    EXAMPLE(">>> dt.lerp(dt.tensor([0.0, 10.0]), dt.tensor([1.0, 20.0]), 0.5)\n"                                       \
            "DeviceArray([ 0.5000, 15.0000], device='cpu', dtype=float32)")
#define EXAMPLE_where                                                                                                  \
    EXAMPLE(">>> dt.where(dt.tensor([True, False]), dt.tensor([1, 2]), dt.tensor([10, 20]))\n"                         \
            "DeviceArray([ 1, 20], device='cpu', dtype=int64)")
#define EXAMPLE_add_                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.0, 2.0]).add_(1)\n"                                                                      \
            "DeviceArray([2., 3.], device='cpu', dtype=float32)")
#define EXAMPLE_sub_                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.0, 2.0]).sub_(dt.tensor([1.0, 1.0]))\n"                                                  \
            "DeviceArray([0., 1.], device='cpu', dtype=float32)")
#define EXAMPLE_div_                                                                                                   \
    EXAMPLE(">>> dt.tensor([1.0, 2.0]).div_(2)\n"                                                                      \
            "DeviceArray([0.5000, 1.0000], device='cpu', dtype=float32)")
#define EXAMPLE_pow_                                                                                                   \
    EXAMPLE(">>> dt.tensor([2.0, 3.0]).pow_(2)\n"                                                                      \
            "DeviceArray([4., 9.], device='cpu', dtype=float32)")
#define EXAMPLE_lerp_                                                                                                  \
    EXAMPLE(">>> dt.tensor([0.0, 10.0]).lerp_(dt.tensor([1.0, 20.0]), 0.5)\n"                                          \
            "DeviceArray([ 0.5000, 15.0000], device='cpu', dtype=float32)")

/* ---------------------------------------------------------------- comparison */

#define EXAMPLE_isclose                                                                                                \
    EXAMPLE(">>> dt.isclose(dt.tensor([1.0, 2.0]), dt.tensor([1.0, 2.1]))\n"                                           \
            "DeviceArray([ True, False], device='cpu', dtype=bool)")
#define EXAMPLE_allclose                                                                                               \
    EXAMPLE(">>> dt.allclose(dt.tensor([1.0]), dt.tensor([1.0 + 1e-7]))\n"                                             \
            "True")
#define EXAMPLE_equal                                                                                                  \
    EXAMPLE(">>> dt.equal(dt.tensor([1, 2]), dt.tensor([1, 2]))\n"                                                     \
            "True")
#define EXAMPLE_array_equal                                                                                            \
    EXAMPLE(">>> dt.array_equal(dt.tensor([1, 2]), dt.tensor([1.0, 2.0]))\n"                                           \
            "True")

#endif
