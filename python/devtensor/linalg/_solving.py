"""Inverses, solutions and determinants. The gradients are those of Giles, Collected matrix derivative results for
forward and reverse mode algorithmic differentiation (2008); of pinv that of Golub and Pereyra (1973).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number, _need_str
from devtensor._composed.arguments import misshapen
from devtensor._composed.matrices.products import broadcast_of
from devtensor._composed.written import takes_out
from devtensor.autograd.function import Function
from devtensor.linalg._decompositions import _SVD, symmetric, tolerances
from devtensor.linalg._lapack import Arrays, Names, check, check_square, computed, on_cpu


class Slogdet(NamedTuple):
    """What slogdet gives."""

    sign: DeviceArray
    logabsdet: DeviceArray


class Lstsq(NamedTuple):
    """What lstsq gives."""

    solution: DeviceArray
    residuals: DeviceArray
    rank: DeviceArray
    singular_values: DeviceArray


# ---------------------------------------------------------------- inverses


class _Inverse(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray) -> DeviceArray:
        text = "The inversion could not be completed because the input matrix is singular."
        result: DeviceArray = computed("inv", (A,), lambda np, a: np.linalg.inv(a), text)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> DeviceArray:
        (found,) = ctx.saved_tensors
        result: DeviceArray = -(found.mT @ gradient @ found.mT)
        return result


@takes_out
def inv(A: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The inverse of each square matrix.

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, LinAlgError for a singular
    matrix, NotImplementedError on a CUDA device.

    >>> dt.linalg.inv(dt.tensor([[2.0, 0.0], [0.0, 4.0]]))
    DeviceArray([[0.5000, 0.0000],
                 [0.0000, 0.2500]], device='cpu', dtype=float32)
    """
    return inverse_of("inv", "A", A)


def inverse_of(op: str, name: str, A: DeviceArray) -> DeviceArray:
    """inv of a parameter of that name."""
    check(op, (name,), (A,))
    check_square(op, (name,), (A,))
    on_cpu(op, (name,), (A,))
    result: DeviceArray = _Inverse.apply(A)
    return result


class _PseudoInverse(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, least: float, most: float) -> DeviceArray:
        def pinv(np: Any, a: Any) -> Any:
            u, s, v = np.linalg.svd(a, full_matrices=False)
            bound = np.maximum(s.max(-1, keepdims=True, initial=0) * most, least)
            over = np.where(s > bound, 1 / np.where(s > bound, s, 1), 0).astype(a.dtype)
            return (v.swapaxes(-2, -1) * over[..., None, :]) @ u.swapaxes(-2, -1)

        result: DeviceArray = computed("pinv", (A,), pinv, "The singular values could not be computed.")
        ctx.save_for_backward(A, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> tuple[DeviceArray, None, None]:
        A, P = ctx.saved_tensors
        return _pinv_gradient(A, P, gradient), None, None


def _pinv_gradient(A: DeviceArray, P: DeviceArray, gradient: DeviceArray) -> DeviceArray:
    """What flows to A from its pseudoinverse P, where the rank stays."""
    turned = gradient.mT
    left = turned @ P  # (I - A P) G' P P'
    right = P @ turned  # P' P G' (I - P A)
    found = -(P.mT @ gradient @ P.mT)
    found = found + (left - A @ (P @ left)) @ P.mT
    return found + P.mT @ (right - (right @ P) @ A)


@takes_out
def pinv(
    A: DeviceArray,
    rcond: float | None = None,
    hermitian: bool = False,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The pseudoinverse of each matrix, without the singular values up to max(atol, rtol * the largest).

    rcond is rtol. rtol is by default the larger side times the dtype's eps, or 0 where atol is given. hermitian: the
    lower triangle is that of a symmetric matrix. float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError,
    ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> dt.linalg.pinv(dt.tensor([[2.0], [0.0]]))
    DeviceArray([[0.5000, 0.0000]], device='cpu', dtype=float32)
    """
    op = "pinv"
    check(op, ("A",), (A,))
    rcond = None if rcond is None else _need_number(op, "rcond", rcond)
    if _need_bool(op, "hermitian", hermitian):
        check_square(op, ("A",), (A,))
    least, most = tolerances(op, A, atol, rcond if rtol is None else rtol)
    return pseudoinverse_of(op, "A", A, hermitian, least, most)


def pseudoinverse_of(op: str, name: str, A: DeviceArray, hermitian: bool, least: float, most: float) -> DeviceArray:
    """pinv of a parameter of that name."""
    check(op, (name,), (A,))
    on_cpu(op, (name,), (A,))
    result: DeviceArray = _PseudoInverse.apply(symmetric(A) if hermitian else A, least, most)
    return result


# ---------------------------------------------------------------- equations


class _Solve(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, B: DeviceArray) -> DeviceArray:
        text = "The solver failed because the input matrix is singular."
        X: DeviceArray = computed("solve", (A, B), lambda np, a, b: np.linalg.solve(a, b), text, ("A", "B"))
        ctx.save_for_backward(A, X)
        return X

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        A, X = ctx.saved_tensors
        right = solved(A.mT, gradient)
        return -(right @ X.mT), right


def solved(A: DeviceArray, B: DeviceArray) -> DeviceArray:
    """The X with A @ X == B, for batches of one shape."""
    result: DeviceArray = _Solve.apply(A, B)
    return result


def _check_equation(op: str, A: DeviceArray, B: DeviceArray, names: Names, left: bool, square: bool) -> bool:
    """The checks of A @ X == B. Whether B holds vectors."""
    arrays: Arrays = (A, B)
    check(op, names, arrays)
    if square:
        check_square(op, names, arrays)
    _C._check_rank(op, names, arrays, 1, 1, 8)
    vectors = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    if not vectors and B.shape[-2 if left else -1] != A.shape[-2]:
        what = "AX = B" if left else "XA = B"
        text = f"linalg.{op}: Incompatible shapes of {names[0]} and {names[1]} for the equation {what} "
        sizes = "({}x{} and {}x{})".format(*A.shape[-2:], *B.shape[-2:])
        raise misshapen(op, names, arrays, text + sizes, 1)
    if vectors and B.shape[-1] != A.shape[-2]:
        _C._check_shape(op, names, arrays, 1, [*[-1] * (B.ndim - 1), A.shape[-2]])
    return vectors


def _spread(
    op: str, names: Names, A: DeviceArray, B: DeviceArray, other: DeviceArray
) -> tuple[DeviceArray, DeviceArray]:
    """A and B (other with vectors as columns) with one batch shape."""
    lead = broadcast_of(op, names, (A, B), A.shape[:-2], other.shape[:-2])
    return A.expand(*lead, *A.shape[-2:]), other.expand(*lead, *other.shape[-2:])


@takes_out
def solve(A: DeviceArray, B: DeviceArray, *, left: bool = True, out: DeviceArray | None = None) -> DeviceArray:
    """The X with A @ X == B for each square matrix A; left=False: X @ A == B.

    B holds matrices, or vectors: of one dimension, or one less than A. Batches broadcast. float32 and float64 on the
    cpu, by LAPACK. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, LinAlgError for a singular
    matrix, NotImplementedError on a CUDA device.

    >>> dt.linalg.solve(dt.tensor([[2.0, 0.0], [0.0, 4.0]]), dt.tensor([1.0, 1.0]))
    DeviceArray([0.5000, 0.2500], device='cpu', dtype=float32)
    """
    return solution_of("solve", A, B, left)


def solution_of(op: str, A: DeviceArray, B: DeviceArray, left: bool) -> DeviceArray:
    """solve of an op of that name."""
    names = ("A", "B")
    first = _need_bool(op, "left", left)
    vectors = _check_equation(op, A, B, names, first, True)
    if vectors and not first:
        raise misshapen(op, names, (A, B), f"linalg.{op}: B holds matrices where left is False", 1)
    matrices, right = _spread(op, names, A, B, B.unsqueeze(-1) if vectors else B)
    on_cpu(op, names, (A, B))
    if first:
        found = solved(matrices, right)
        return found.squeeze(-1) if vectors else found
    return solved(matrices.mT, right.mT).mT


@takes_out
def solve_triangular(
    A: DeviceArray,
    B: DeviceArray,
    *,
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """The X with A @ X == B for each triangular matrix A, of which only that triangle is read; left=False: X @ A == B.

    unitriangular: the diagonal counts as ones. float32 and float64 on the cpu, by LAPACK. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, LinAlgError for a singular matrix, NotImplementedError on a CUDA device.

    >>> dt.linalg.solve_triangular(dt.tensor([[2.0, 0.0], [2.0, 4.0]]), dt.tensor([[2.0], [6.0]]), upper=False)
    DeviceArray([[1.],
                 [1.]], device='cpu', dtype=float32)
    """
    op, names = "solve_triangular", ("A", "B")
    above, first = _need_bool(op, "upper", upper), _need_bool(op, "left", left)
    units = _need_bool(op, "unitriangular", unitriangular)
    check(op, names, (A, B))
    _C._check_rank(op, names, (A, B), 1, 2, 8)
    _check_equation(op, A, B, names, first, True)
    matrices, right = _spread(op, names, A, B, B)
    on_cpu(op, names, (A, B))
    triangle = matrices.triu(int(units)) if above else matrices.tril(-int(units))
    if units:
        triangle = triangle + _C.eye(A.shape[-1], dtype=A.dtype, device=A.device)
    return solved(triangle, right) if first else solved(triangle.mT, right.mT).mT


class _Lstsq(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, B: DeviceArray, rtol: float) -> DeviceArray:
        ctx.save_for_backward(A, B)
        ctx.rtol = rtol
        result: DeviceArray = _PseudoInverse.apply(A, 0.0, rtol) @ B
        return result

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> tuple[DeviceArray, DeviceArray, None]:
        A, B = ctx.saved_tensors
        P = _PseudoInverse.apply(A, 0.0, ctx.rtol)
        return _pinv_gradient(A, P, gradient @ B.mT), P.mT @ gradient, None


_DRIVERS = ("gelsy", "gelsd", "gelss", "gels")


def lstsq(A: DeviceArray, B: DeviceArray, rcond: float | None = None, *, driver: str | None = None) -> Lstsq:
    """(solution, residuals, rank, singular_values) of the least squares of A @ X - B for each matrix.

    Of several solutions the one of the least norm. rcond: singular values up to rcond * the largest count as 0, by
    default the larger side times the dtype's eps. What is filled beside the solution depends on driver, as in PyTorch:
    "gelsy" (the default), "gelsd", "gelss", "gels"; one algorithm serves all. float32 and float64 on the cpu, by
    LAPACK. Raises DeviceMismatchError, DTypeMismatchError, ShapeMismatchError, RuntimeError for another driver,
    NotImplementedError on a CUDA device.

    >>> dt.linalg.lstsq(dt.tensor([[2.0]]), dt.tensor([[4.0]])).solution
    DeviceArray([[2.]], device='cpu', dtype=float32)
    """
    op, names = "lstsq", ("A", "B")
    vectors = _check_equation(op, A, B, names, True, False)
    other = B.unsqueeze(-1) if vectors else B
    matrices, right = _spread(op, names, A, B, other)
    bound = None if rcond is None else _need_number(op, "rcond", rcond)
    if driver is not None and _need_str(op, "driver", driver) not in _DRIVERS:
        text = f"linalg.lstsq: parameter `driver` should be one of {_DRIVERS}, but got {_C._shown(driver)}"
        raise RuntimeError(text)
    chosen = driver or "gelsy"
    bound = tolerances(op, A, None, bound)[1]
    on_cpu(op, names, (A, B))
    rows, columns = A.shape[-2:]
    solution = _Lstsq.apply(matrices, right, 0.0 if chosen == "gels" else bound)
    none = _C.empty(0, dtype=A.dtype, device=A.device)
    values = _SVD.apply(A.detach(), False)[1]
    largest = values.narrow(-1, 0, min(1, values.shape[-1])).sum(-1, keepdim=True)
    rank = (values > largest * bound).sum(-1)
    residuals = none
    if rows > columns and chosen != "gelsy" and bool((rank == columns).all()):
        residuals = (matrices @ solution - right).square().sum(-2)
        residuals = residuals.squeeze(-1) if vectors else residuals
    return Lstsq(
        solution.squeeze(-1) if vectors else solution,
        residuals,
        _C.empty(0, dtype=_C.int64, device=A.device) if chosen == "gels" else rank,
        values if chosen in ("gelsd", "gelss") else none,
    )


# ---------------------------------------------------------------- determinants


def _hidden(np: Any, a: Any, singular: Any) -> Any:
    """Matrices whose determinant is no number, though LAPACK finds them singular or NumPy gives an infinity."""
    return np.isnan(a).any((-2, -1)) | (singular & ~np.isfinite(a).all((-2, -1)))


def _det(np: Any, a: Any) -> Any:
    found = np.linalg.det(a).astype(a.dtype)
    return np.where(_hidden(np, a, found == 0), a.dtype.type(math.nan), found)


def _slogdet(np: Any, a: Any) -> tuple[Any, Any]:
    sign, log = np.linalg.slogdet(a)
    hidden = _hidden(np, a, sign == 0)
    return np.where(hidden, a.dtype.type(0), sign), np.where(hidden, a.dtype.type(math.nan), log)


class _Determinant(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray) -> DeviceArray:
        result: DeviceArray = computed("det", (A,), _det, "")
        ctx.save_for_backward(A, result)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> DeviceArray:
        A, found = ctx.saved_tensors
        scale = gradient.unsqueeze(-1).unsqueeze(-1)
        size = found.detach().unsqueeze(-1).unsqueeze(-1)
        singular = size == 0
        apart = singular | size.isnan()  # they may have no inverse, and leave the others of a batch theirs
        result: DeviceArray = found.unsqueeze(-1).unsqueeze(-1) * _Inverse.apply(_unit_where(apart, A)).mT
        if bool(singular.any()):
            result = _C.where(singular, _cofactors(_unit_where(~singular, A)), result)
        return scale * result


def _unit_where(chosen: DeviceArray, A: DeviceArray) -> DeviceArray:
    """A with unit matrices in place of those that are chosen; A itself without any."""
    if not bool(chosen.any()):
        return A
    return _C.where(chosen, _C.eye(A.shape[-1], dtype=A.dtype, device=A.device), A)


def _cofactors(A: DeviceArray) -> DeviceArray:
    """det(A) * inverse(A).mT, for singular matrices too: U diag(products of the other singular values) Vh."""
    U, S, Vh = (cast(DeviceArray, x) for x in _SVD.apply(A, False))
    size = S.shape[-1]
    others = _C.where(_C.eye(size, dtype=_C.bool, device=S.device), 1.0, S.unsqueeze(-2).expand(*S.shape, size)).prod(
        -1
    )
    sign: DeviceArray = (_Determinant.apply(U) * _Determinant.apply(Vh)).detach().unsqueeze(-1).unsqueeze(-1)
    return sign * ((U * others.unsqueeze(-2)) @ Vh)


@takes_out
def det(A: DeviceArray, *, out: DeviceArray | None = None) -> DeviceArray:
    """The determinant of each square matrix.

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, NotImplementedError on a
    CUDA device.

    >>> dt.linalg.det(dt.tensor([[2.0, 0.0], [0.0, 4.0]]))
    DeviceArray(8., device='cpu', dtype=float32)
    """
    check("det", ("A",), (A,))
    check_square("det", ("A",), (A,))
    on_cpu("det", ("A",), (A,))
    result: DeviceArray = _Determinant.apply(A)
    return result


class _Slogdet(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        sign, log = computed("slogdet", (A,), _slogdet, "")
        ctx.save_for_backward(A, log)
        ctx.set_materialize_grads(False)
        return sign, log

    @staticmethod
    def backward(ctx: Any, _: DeviceArray | None, gradient: DeviceArray | None) -> DeviceArray | None:
        if gradient is None:
            return None
        A, log = ctx.saved_tensors
        size = log.detach().unsqueeze(-1).unsqueeze(-1)
        singular, lost = size == -math.inf, size.isnan()
        found: DeviceArray = _Inverse.apply(_unit_where(singular | lost, A)).mT
        if bool(singular.any()):  # there the inverse is that of a determinant of 0
            found = _C.where(singular, _cofactors(_unit_where(~singular, A.detach())) / 0.0, found)
        if bool(lost.any()):
            found = _C.where(lost, math.nan, found)
        return gradient.unsqueeze(-1).unsqueeze(-1) * found


@takes_out
def slogdet(A: DeviceArray, *, out: tuple[DeviceArray, DeviceArray] | None = None) -> Slogdet:
    """(sign, logabsdet) of each square matrix: the sign of its determinant, and the logarithm of its size.

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, NotImplementedError on a
    CUDA device. The gradient of a singular matrix is infinite.

    >>> dt.linalg.slogdet(dt.tensor([[0.0, 1.0], [1.0, 0.0]])).sign
    DeviceArray(-1., device='cpu', dtype=float32)
    """
    return slogdet_of("slogdet", "A", A)


def slogdet_of(op: str, name: str, A: DeviceArray) -> Slogdet:
    """slogdet of a parameter of that name."""
    check(op, (name,), (A,))
    check_square(op, (name,), (A,))
    on_cpu(op, (name,), (A,))
    return Slogdet(*_Slogdet.apply(A))


# ---------------------------------------------------------------- the exponential


# The Pade approximant of degree 13, right to the last digit of float64 for norms up to the bound (Higham 2005).
_PADE = (
    *(64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600),
    *(670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1),
)
_PADE_BOUND = 5.371920351148152


def _exponential(np: Any, a: Any) -> Any:
    """exp of matrices by scaling and squaring, in float64."""
    x = a.astype(np.float64)
    norm = np.abs(x).sum(-2).max(-1, initial=0.0)[..., None, None]
    halvings = np.where(norm > _PADE_BOUND, np.ceil(np.log2(np.maximum(norm, 1.0) / _PADE_BOUND)), 0).clip(0)
    halvings = np.where(np.isfinite(norm), halvings, 0).astype(np.int64)
    x = np.ldexp(x, -halvings)
    powers = [np.broadcast_to(np.eye(x.shape[-1]), x.shape), x @ x]
    for _ in range(5):
        powers.append(powers[-1] @ powers[1])
    odd = x @ sum(c * p for c, p in zip(_PADE[1::2], powers, strict=True))
    even = sum(c * p for c, p in zip(_PADE[::2], powers, strict=True))
    result = np.linalg.solve(even - odd, even + odd)
    for k in range(int(halvings.max(initial=0))):
        result = np.where(k < halvings, result @ result, result)
    return result.astype(a.dtype)


class _Exponential(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray) -> DeviceArray:
        result: DeviceArray = computed("matrix_exp", (A,), _exponential, "The sum could not be computed.")
        ctx.save_for_backward(A)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> DeviceArray:
        """A block of a larger exponential (Mathias 1996): exp([[B, G], [0, B]]) has the derivative beside exp(B).

        It is linear in G, which must be no larger than B: else B is lost where the whole is halved.
        """
        (A,) = ctx.saved_tensors
        if A.numel() == 0:
            return gradient
        B, size = A.mT, A.shape[-1]
        most = gradient.detach().abs().amax((-2, -1), keepdim=True).clamp(1.0)
        whole = _C.cat([_C.cat([B, gradient / most], -1), _C.cat([_C.zeros_like(B), B], -1)], -2)
        found: DeviceArray = _Exponential.apply(whole)
        return found.narrow(-2, 0, size).narrow(-1, size, size) * most


def matrix_exp(A: DeviceArray) -> DeviceArray:
    """The sum of A^k / k! over k from 0, for each square matrix.

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError,
    NotImplementedError on a CUDA device.

    >>> dt.linalg.matrix_exp(dt.zeros(2, 2))
    DeviceArray([[1., 0.],
                 [0., 1.]], device='cpu', dtype=float32)
    """
    check("matrix_exp", ("A",), (A,))
    check_square("matrix_exp", ("A",), (A,))
    on_cpu("matrix_exp", ("A",), (A,))
    result: DeviceArray = _Exponential.apply(A)
    return result
