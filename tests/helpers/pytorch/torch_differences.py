"""Where devtensor and PyTorch 2.13 differ, as data: test_torch_samples.py compares.

tools/docs/differences.py writes docs/differences.md from it.
"""

from __future__ import annotations

import re

from torch_seen import Difference, Lacking

VERSION = "2.13"


PAGE = """# Where devtensor and PyTorch differ

Ops have PyTorch's signatures and defaults. Their results have the dtype, shape and device that they have in PyTorch,
and the same values, up to the rounding of the dtype. This table lists every exception.
[Modules](nn.md#what-differs-from-pytorch) have a list of their own.

The tests run every op on PyTorch's own samples (`torch.testing`, version {version}): in all dtypes that both have, as
function, method and in-place form, on the cpu and on a simulated GPU, with edge cases and mistakes. A difference that
is not in the table fails the tests. So does a row that no longer differs.

| op | here | PyTorch | why |
|---|---|---|---|
{different}

Floats are compared with the tolerances of `torch.testing.assert_close`. If the two libraries differ by more,
devtensor's result must be the one nearer to the result in float64: it computes half types in float32, and `linspace`
in float64. Random numbers and uninitialised memory are compared by dtype and shape only.

What no sample shows: `x ** 0.5` and `x ** -0.5` are IEEE 754's also where `x` is minus infinity (infinity and 0.0) or
-0.0 (0.0 and infinity), whether the exponent is a number or an array. PyTorch takes the square root on the cpu where it
is a number, and gives NaN, -0.0 and minus infinity.

Arithmetic of a half type and a Python number takes the number as float32, for every op and on every device. PyTorch
does so on the cpu for `*`, and for `/` and `//` with a number on the right. `number / x` is the number times the
rounded reciprocal of `x` there. Elsewhere it rounds the number to the half type first, and `**` and `clamp` refuse one
that becomes infinite. A float32 array without dimensions beside a half array is rounded first here, for every op.

## Not there

These keywords and types of argument exist in PyTorch and not here. Using one raises an exception that names it.

| op | not there |
|---|---|
{lacking}

## Arrays themselves

- **Operands stay where they are.** PyTorch moves an index on the cpu, and takes an array without dimensions on the cpu
  for a number, beside an array on a GPU. Here both raise DeviceMismatchError. `python -m devtensor run --as-torch` does
  as PyTorch does, and reports each copy.
- **NumPy arrays** are not mixed with arrays in operators, nor used as indices of an array on a GPU. Nor are masks of
  uint8 indices, and LAPACK serves the cpu alone. `--as-torch` allows all of that, as PyTorch does: NumPy computes on
  the cpu, masks are warned of, and indices and matrices are copied, which is reported.
- **Losses of several dtypes** (`mse_loss(float32, float64)`) are refused, and `x[[i, j]]` of arrays is NumPy's index of
  one array. Under `--as-torch` such losses promote, and the list stands for `x[i, j]`, as in PyTorch.
- **Attributes** of your own may be set on parameters, buffers and classes derived from `Tensor`. A plain array refuses
  them, so that `x.require_grad = True` is an error. Under `--as-torch` it keeps them, and a misspelling is a warning.
- **Integers divided by 0** with `//` or `%` give 0, on every device. PyTorch raises on the cpu alone.
- **Writes through `.data`** count as changes of what was kept for a gradient: `backward()` then raises GradientError.
  PyTorch, and `--as-torch`, compute it with the new numbers. `w.data = y` leaves the gradient of the old ones.

This page is written by `tools/docs/differences.py` from `tests/helpers/pytorch/torch_differences.py`.
"""

INTEGERS = "bool uint8 int8 int16 int32 int64"
NO_INTEGERS = r"not implemented for '(bool|uint8|int\d+)'"
WANTS_TENSOR = r"must be Tensor, not int|received an invalid combination of arguments"
PRODUCTS = "addmm addmm/decomposed baddbmm vdot nn.functional.linear"
SUMS_OF_PRODUCTS = "addbmm addmv addr einsum inner linalg.matrix_power linalg.multi_dot tensordot"

DIFFERENT: list[Difference] = [
    # ------------------------------------------------ refused here
    Difference(
        f"{PRODUCTS} {SUMS_OF_PRODUCTS} nn.functional.conv1d nn.functional.conv2d "
        "nn.functional.conv3d nn.functional.conv_transpose1d nn.functional.conv_transpose2d "
        "nn.functional.conv_transpose3d nn.functional.bilinear",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError",
        "the sum of products, which wraps",
        "int8 times int8 overflows int8: PyTorch wraps silently. Convert to a float dtype first.",
        INTEGERS,
    ),
    Difference(
        "bmm dot matmul mm mv __rmatmul__",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError on a GPU, and for bools",
        "the sum of products, which wraps",
        "PyTorch has none of integers on a GPU either.",
        INTEGERS,
    ),
    Difference(
        "addbmm",
        "refused",
        "doesn't match the broadcast shape",
        "ShapeMismatchError in place, where the array has another shape than the result",
        "an array that changes its shape",
        "What an op writes in place keeps its shape.",
    ),
    Difference(
        "add",
        "refused",
        "not implemented for 'bool'",
        "DTypeMismatchError, which names `|` and `^`",
        "a logical or",
        "The sum of two masks is meant as a count or as an or: the code says which.",
        "bool",
    ),
    Difference(
        "clamp clamp_min clamp_max",
        "refused",
        "not implemented for 'bool'",
        "DTypeMismatchError",
        "the limited mask, where the bounds are arrays",
        "Arithmetic takes numbers.",
        "bool",
    ),
    Difference(
        "sign sgn square",
        "refused",
        "not implemented for 'bool'",
        "DTypeMismatchError",
        "the mask; its square in int64",
        "Arithmetic takes numbers.",
        "bool",
    ),
    Difference(
        "pow",
        "refused",
        "not implemented for 'bool'",
        "DTypeMismatchError",
        "the mask, where the exponent is a bool too",
        "Arithmetic takes numbers.",
        "bool",
        rare=True,
    ),
    Difference(
        "logsumexp nn.functional.l1_loss nn.functional.cosine_embedding_loss nn.functional.margin_ranking_loss "
        "nn.functional.pairwise_distance nn.functional.poisson_nll_loss nn.functional.triplet_margin_loss "
        "nn.functional.local_response_norm nn.functional.triplet_margin_with_distance_loss",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError",
        "a float32, or the integers",
        "Ops of floats do not convert integers silently, except where each element maps to one (`exp`, `sqrt`, ...).",
        INTEGERS,
    ),
    Difference(
        "nn.functional.dropout nn.functional.dropout2d nn.functional.dropout3d nn.functional.alpha_dropout "
        "nn.functional.feature_alpha_dropout/with_train",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError",
        "zeros, where p is 1",
        "Dropout scales: it takes floats, whatever p is.",
        INTEGERS,
    ),
    Difference(
        "nn.functional.avg_pool1d nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.max_pool1d "
        "nn.functional.max_pool2d nn.functional.max_pool3d",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError",
        "the pooled integers, of int64 alone where they are averaged",
        "Pooling takes floats.",
        INTEGERS,
    ),
    Difference(
        "softmax log_softmax nn.functional.softmin rand_like randn_like bernoulli nn.functional.batch_norm "
        "nn.functional.batch_norm/without_cudnn",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError, also of nothing",
        "an empty array",
        "A dtype is checked before the shape, so that an empty batch raises what a full one does.",
        INTEGERS,
    ),
    Difference(
        "nn.functional.batch_norm nn.functional.batch_norm/without_cudnn",
        "refused",
        "at least 2D, but got 1D",
        "ShapeMismatchError, also of nothing",
        "an empty array",
        "A shape is checked as if it held elements.",
    ),
    Difference(
        "gather",
        "refused",
        "tensors used as indices must be int32 or int64",
        "DTypeMismatchError, also of nothing",
        "an empty array",
        "A dtype is checked before the shape.",
    ),
    Difference(
        "nn.functional.multi_margin_loss",
        "refused",
        "Expected (input to be at least 1D|target to have shape)",
        "ShapeMismatchError",
        "one number as one score; a class in a row of its own",
        "Scores (C) have a class (), scores (N, C) have classes (N).",
    ),
    Difference(
        "cholesky linalg.cholesky linalg.cholesky_ex linalg.det linalg.svd linalg.svdvals matrix_exp svd",
        "refused",
        "it takes float32 and float64",
        "DTypeMismatchError",
        "an empty array of nothing; of `matrix_exp` a result that is computed in the half type",
        "LAPACK has no half types, and a dtype is checked before the shape.",
        "float16 bfloat16",
    ),
    Difference(
        "full_like scalar_tensor",
        "refused",
        "without overflow",
        "RuntimeError",
        "-9 as uint8 is 247",
        "A number that the dtype does not hold is refused in `full`, `fill_`, `linspace` and in assignments.",
        "uint8",
    ),
    Difference(
        "cat gather take masked_select kthvalue",
        "refused",
        "output with shape .* doesn't match",
        "ShapeMismatchError",
        "out is given another shape, with a warning where it had elements",
        "The memory of out and its shape are its owner's.",
    ),
    # ------------------------------------------------ accepted here
    Difference(
        "aminmax gather multinomial",
        "accepted",
        "Expected out tensor to have dtype|expects Long tensor out",
        "out of any dtype that the result can be cast to",
        "RuntimeError",
        "As of most of PyTorch's ops.",
    ),
    Difference(
        "cov",
        "accepted",
        "aweights cannot be negative",
        "on a CUDA device a number that means nothing; RuntimeError on the cpu",
        "RuntimeError",
        "Looking at the weights would wait for the device.",
    ),
    Difference(
        "cdist nn.functional.pdist",
        "accepted",
        "not implemented for '(Half|BFloat16)'",
        "the distances, computed in float32",
        "NotImplementedError",
        "As of the losses of distances.",
        "float16 bfloat16",
    ),
    Difference(
        "multinomial",
        "accepted",
        "probability tensor contains|invalid multinomial distribution",
        "on a CUDA device places that mean nothing; RuntimeError on the cpu",
        "RuntimeError; on a CUDA device a failed assertion, after which it is lost",
        "Looking at the numbers would wait for the device.",
    ),
    Difference(
        "nn.functional.adaptive_avg_pool1d nn.functional.unfold",
        "refused",
        NO_INTEGERS,
        "DTypeMismatchError",
        "an empty array, where the batch is empty; else NotImplementedError",
        "Dtypes are checked for empty arrays too.",
        INTEGERS,
    ),
    Difference(
        "nn.functional.interpolate/bilinear nn.functional.interpolate/bicubic nn.functional.upsample_bilinear",
        "refused",
        "not implemented for 'uint8'",
        "DTypeMismatchError",
        "rounded means of uint8",
        "Convert to a float dtype, and decide how to round.",
        "uint8",
    ),
    Difference(
        "nn.functional.avg_pool3d",
        "accepted",
        "not implemented for '(Half|BFloat16)'",
        "the means, computed in float32",
        "NotImplementedError on a CPU",
        "Pools take the half types.",
        "float16 bfloat16",
    ),
    Difference(
        "nn.functional.max_pool1d nn.functional.max_pool3d",
        "accepted",
        "Expected 2D or 3D|Expected input's non-batch dimen",
        "an empty array without channels",
        "RuntimeError",
        "As of max_pool2d with an empty batch.",
        "float32",
    ),
    Difference(
        "nn.functional.multi_margin_loss nn.functional.multilabel_margin_loss nn.functional.ctc_loss",
        "accepted",
        "not implemented for '(Half|BFloat16)'",
        "the loss, computed in float32",
        "NotImplementedError",
        "Losses take the half types.",
        "float16 bfloat16",
    ),
    Difference(
        "nn.functional.rrelu",
        "accepted",
        "not implemented for 'Half'",
        "the result, computed in float32",
        "NotImplementedError in training",
        "Activations take the half types.",
        "float16",
    ),
    Difference(
        "eq ne lt le gt ge atan2 hypot logaddexp fmod maximum minimum max/binary min/binary logical_and logical_or "
        "logical_xor rsub",
        "accepted",
        WANTS_TENSOR,
        "a number on either side",
        "TypeError",
        "As in NumPy, and as in PyTorch's `add`.",
    ),
    Difference(
        "ceil floor round trunc nn.functional.pad/reflect nn.functional.pad/replicate "
        "nn.functional.pad/replicate_negative linspace logspace linspace/tensor_overload logspace/tensor_overload "
        "argmax argmin",
        "accepted",
        "not implemented for 'Bool'|does not support bool",
        "bools are 0 and 1",
        "NotImplementedError",
        "Nothing is ambiguous.",
        "bool",
    ),
    Difference(
        "round/decimals_0",
        "accepted",
        "not implemented for",
        "integers are their own result, as of `round`",
        "NotImplementedError",
        "No decimals are no decimals, named or not.",
        INTEGERS,
    ),
    Difference(
        "nn.functional.leaky_relu nn.functional.elu nn.functional.gelu nn.functional.silu nn.functional.silu/complex "
        "nn.functional.softplus nn.functional.hardswish hypot logaddexp",
        "accepted",
        "not implemented for",
        "a float32, as of `exp`",
        "NotImplementedError",
        "The same rule for every function of floats.",
        INTEGERS,
    ),
    Difference(
        "nn.functional.hardtanh",
        "accepted",
        "unsigned type with negative limits",
        "limits between -1 and 1 by default",
        "RuntimeError",
        "Numbers below 0 are below every element.",
        "uint8",
    ),
    Difference(
        "roll",
        "accepted",
        "Dimension specified as 0 but tensor has no dimensions",
        "a copy",
        "IndexError",
        "Dimension 0 of one element, as in the reductions of both.",
    ),
    # ------------------------------------------------ other results
    Difference(
        "nn.functional.conv3d nn.functional.conv_transpose3d",
        "values",
        "",
        "sums in another order: the last digits of a small sum of large numbers",
        "likewise",
        "Neither order is the right one.",
        "float32",
    ),
    Difference(
        "nn.functional.conv_transpose1d",
        "values",
        "",
        "rounded to bfloat16, then the bias is added",
        "the bias is added in float32",
        "The bias is a pass of its own.",
        "bfloat16",
    ),
    Difference(
        "linalg.eigh linalg.svd svd",
        "values",
        "",
        "vectors with the signs that this LAPACK gives",
        "those of another",
        "Either sign is right.",
    ),
    Difference(
        "svd_lowrank pca_lowrank",
        "values",
        "",
        "vectors with the signs that this LAPACK and these random numbers give",
        "those of others",
        "Either sign is right.",
    ),
    Difference(
        "index_reduce/prod index_reduce/amin index_reduce/amax",
        "accepted",
        "not implemented for 'Bool'",
        "bool is a number of 0 or 1",
        "NotImplementedError",
        "As in `scatter_reduce`.",
        "bool",
    ),
    Difference(
        "nn.functional.multi_head_attention_forward",
        "refused",
        "Expected bias_k to be 3D",
        "ShapeMismatchError for a `bias_k` that is a vector",
        "a vector is repeated as if it had shape (1, 1, E)",
        "PyTorch's module has (1, 1, E).",
    ),
    Difference(
        "cdist",
        "values",
        "",
        "other last digits of a small distance, where squares come from a product",
        "the same",
        "The difference of large squares: both round.",
        "float32",
    ),
    Difference(
        "trapezoid trapz cumulative_trapezoid",
        "values",
        "",
        "the area, whose places and heights become floats first",
        "differences and sums that wrap",
        "5 - 9 as uint8 is 252.",
        "uint8 int8",
    ),
    Difference(
        "linspace/tensor_overload logspace/tensor_overload",
        "refused",
        "Expected all tensors to be on the same device",
        "DeviceMismatchError for a bound on another device than the result",
        "the bound is read, and the device waited for",
        "Nothing moves between devices unless the program says so.",
    ),
    *(
        Difference(
            "as_strided/partial_views",
            kind,
            seen,
            "the memory of an array that another library lends begins with the array",
            "the memory of a part begins with the whole",
            "DLPack does not say what lies in front.",
        )
        for kind, seen in (("refused", "out of bounds for the memory"), ("values", ""))
    ),
    Difference(
        " ".join(f"polygamma/polygamma_n_{n}" for n in range(5)),
        "values",
        "inf, not",
        "infinity at -1, -2, ...",
        "a large number there, where the sine of pi times it is not 0",
        "The function has poles there.",
        "int8 int16",
    ),
    Difference(
        "linalg.lu linalg.lu_factor_ex",
        "refused",
        "it takes float32 and float64",
        "DTypeMismatchError",
        "an empty array of nothing",
        "LAPACK has no such types, and a dtype is checked before the shape.",
        f"{INTEGERS} float16 bfloat16",
    ),
    Difference(
        "linalg.vander",
        "accepted",
        "but got (Half|BFloat16)",
        "the powers",
        "RuntimeError",
        "As of `vander`.",
        "float16 bfloat16",
    ),
    Difference(
        "histogram",
        "refused",
        "not implemented for 'b?float16'",
        "DTypeMismatchError, also of nothing",
        "an empty array",
        "A dtype is checked before the shape.",
        "float16 bfloat16",
    ),
    Difference(
        "byte char short int long",
        "values",
        "",
        "the nearest number of the dtype; 0 for NaN",
        "whatever the processor gives",
        "The same on every device, and no surprise.",
        rare=True,
    ),
    Difference(
        "bucketize cumprod cumsum isin kthvalue median nanmedian searchsorted topk",
        "accepted",
        "not implemented for 'Bool'|not support bool|input type encountered for isin\\(\\): Bool",
        "bool is a number of 0 or 1, as in `sort`",
        "NotImplementedError or RuntimeError",
        "An order, a search and a sum of bools need no other code.",
        "bool",
    ),
    Difference(
        "nn.functional.interpolate",
        "values",
        "",
        "a dimension whose size stays is a copy, where inf stays inf",
        "neighbours times 0 are added, so that inf gives NaN",
        "A copy of a number is that number.",
        rare=True,
    ),
    Difference(
        "nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d",
        "values",
        "",
        "an inf or NaN in the weight may give NaN where it is multiplied with nothing",
        "on the CPU only where it is multiplied",
        "It is a convolution of the input with zeros around and between its elements.",
        rare=True,
    ),
    Difference(
        "nn.functional.conv_transpose1d nn.functional.conv_transpose2d nn.functional.conv_transpose3d",
        "accepted",
        "Output size is too small",
        "an empty array, where the padding leaves a result of size 0",
        "RuntimeError, or an empty array, as the code that does it has it",
        "A size of 0 is a size.",
        rare=True,
    ),
    Difference(
        "sort argsort topk kthvalue mode",
        "values",
        "",
        "equal elements stay in their order: `indices` name the first of them, those of `mode` the last",
        "`indices` name any of equal elements, unless `stable=True`",
        "Every sort is stable, so that the same input gives the same indices on every device.",
    ),
]

NUMBERS = "add sub mul div/no_rounding_mode div/trunc_rounding div/floor_rounding floor_divide"

NOT_THERE: list[Lacking] = [
    Lacking("tensor_split", "must be ints", "an array of places"),
    Lacking(
        "bool byte char short int long half bfloat16 float double", "memory_format|takes no keyword", "`memory_format=`"
    ),
    Lacking(
        "cholesky cholesky_inverse cholesky_solve linalg.cholesky linalg.cholesky_ex linalg.cond linalg.inv_ex "
        "linalg.solve_ex linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.lstsq "
        "linalg.lstsq/grad_oriented linalg.lu linalg.lu_factor linalg.lu_factor_ex linalg.lu_solve "
        "linalg.matrix_norm linalg.matrix_power linalg.matrix_rank "
        "linalg.matrix_rank/hermitian linalg.pinv linalg.pinv/hermitian linalg.pinv/singular linalg.qr "
        "linalg.slogdet linalg.solve linalg.solve_triangular linalg.svd linalg.svdvals linalg.tensorinv "
        "linalg.tensorsolve logdet lu lu_solve lu_unpack matrix_exp norm/nuc pca_lowrank "
        "pinverse qr svd svd_lowrank triangular_solve",
        "LAPACK computes",
        "a CUDA device, where LAPACK is needed: `.cpu()` is the way",
    ),
    Lacking("linalg.matrix_rank", "'[ar]tol' must be a number", "arrays of tolerances"),
    Lacking(
        "nn.functional.triplet_margin_with_distance_loss",
        "takes no DeviceArray",
        "a distance that is a module of PyTorch's",
    ),
    Lacking(NUMBERS, "'input' must be DeviceArray, not (bool|int|float)", "a function of two numbers", rare=True),
    Lacking("where", "complex", "complex numbers", rare=True),
    Lacking("clone contiguous", "more than 8 dimensions", "more than 8 dimensions", rare=True),
]


def page() -> str:
    """docs/differences.md."""
    different = list(dict.fromkeys(f"| {names_of(d)} | {d.ours} | {d.theirs} | {d.why} |" for d in DIFFERENT))
    lacking = [f"| {names_of(d)} | {d.what} |" for d in NOT_THERE]
    return PAGE.format(version=VERSION, different="\n".join(different), lacking="\n".join(lacking))


def names_of(row: Difference | Lacking) -> str:
    """The ops as a reader knows them, without the parts of PyTorch's test suite, and their dtypes."""
    names = dict.fromkeys(re.sub(r"^nn\.functional\.|/.*$", "", op) for op in row.ops.split())
    dtypes = {"": "", INTEGERS: " of integers and bools"}.get(row.dtypes, f" of {row.dtypes}")
    return " ".join(f"`{name}`" for name in names) + dtypes
