"""Factors of matrices. The gradients are those of Giles, Collected matrix derivative results for forward and reverse
mode algorithmic differentiation (2008); of qr that of Walter and Lehmann, Algorithmic differentiation of linear algebra
functions (2018), for wide matrices as Roberts and Roberts (2020); of cholesky that of Murray (2016).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number, _need_str
from devtensor._composed.written import takes_out
from devtensor.autograd.function import Function
from devtensor.linalg._lapack import check, check_square, computed, finite, on_cpu


class QR(NamedTuple):
    """What qr gives."""

    Q: DeviceArray
    R: DeviceArray


class SVD(NamedTuple):
    """What svd gives."""

    U: DeviceArray
    S: DeviceArray
    Vh: DeviceArray


class Eigh(NamedTuple):
    """What eigh gives."""

    eigenvalues: DeviceArray
    eigenvectors: DeviceArray


_NOT_FINITE = "The algorithm failed to converge because the input matrix contained non-finite values."


# ---------------------------------------------------------------- Cholesky


class _Cholesky(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray) -> DeviceArray:
        text = "The factorization could not be completed because the input is not positive-definite."
        L: DeviceArray = computed("cholesky", (A,), lambda np, a: np.linalg.cholesky(finite(np, a)), text)
        ctx.save_for_backward(L)
        return L

    @staticmethod
    def backward(ctx: Any, gradient: DeviceArray) -> DeviceArray:
        from devtensor.linalg._solving import solved

        (L,) = ctx.saved_tensors
        inner = (L.mT @ gradient).tril()
        inner = inner - _diagonal_matrix(inner.diagonal(0, -2, -1)) * 0.5
        right = solved(L.mT, inner).mT  # inner.mT @ inverse of L
        found: DeviceArray = solved(L.mT, right)
        return (found + found.mT) * 0.5


def _diagonal_matrix(x: DeviceArray) -> DeviceArray:
    return x.unsqueeze(-1) * _C.eye(x.shape[-1], dtype=x.dtype, device=x.device)


@takes_out
def cholesky(A: DeviceArray, *, upper: bool = False, out: DeviceArray | None = None) -> DeviceArray:
    """The lower triangular L with L @ L.mT == A for each symmetric positive-definite matrix; upper: its transpose.

    float32 and float64 on the cpu, by LAPACK. Of A only that triangle is read. Raises DTypeMismatchError,
    ShapeMismatchError, LinAlgError for another matrix, NotImplementedError on a CUDA device.

    >>> dt.linalg.cholesky(dt.tensor([[4.0, 2.0], [2.0, 5.0]]))
    DeviceArray([[2., 0.],
                 [1., 2.]], device='cpu', dtype=float32)
    """
    return cholesky_of("A", A, upper)


def cholesky_of(name: str, A: DeviceArray, upper: bool) -> DeviceArray:
    """cholesky of a parameter of that name."""
    op = "cholesky"
    check(op, (name,), (A,))
    check_square(op, (name,), (A,))
    above = _need_bool(op, "upper", upper)
    on_cpu(op, (name,), (A,))
    result: DeviceArray = _Cholesky.apply(A.mT if above else A)
    return result.mT if above else result


# ---------------------------------------------------------------- QR


class _QR(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, mode: str) -> tuple[DeviceArray, DeviceArray]:
        Q, R = computed("qr", (A,), lambda np, a: tuple(np.linalg.qr(a, mode)), _NOT_FINITE)
        ctx.save_for_backward(A, Q, R)
        ctx.mode = mode
        return Q, R

    @staticmethod
    def backward(ctx: Any, gQ: DeviceArray, gR: DeviceArray) -> tuple[DeviceArray, None]:
        A, Q, R = ctx.saved_tensors
        rows, columns = A.shape[-2:]
        if ctx.mode == "complete" and rows > columns:
            raise RuntimeError(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols: use mode='reduced'"
            )
        if rows >= columns:
            return _qr_gradient(Q, R, gQ, gR), None
        # A = [X | Y] and R = [U | V]: X = Q U is square, and Y = Q V.
        Y = A.narrow(-1, rows, columns - rows)
        U, gU, gV = R.narrow(-1, 0, rows), gR.narrow(-1, 0, rows), gR.narrow(-1, rows, columns - rows)
        return _C.cat([_qr_gradient(Q, U, gQ + Y @ gV.mT, gU), Q @ gV], -1), None


def _qr_gradient(Q: DeviceArray, R: DeviceArray, gQ: DeviceArray, gR: DeviceArray) -> DeviceArray:
    from devtensor.linalg._solving import solved

    M = R @ gR.mT - gQ.mT @ Q
    inner = gQ + Q @ (M.tril() + M.tril(-1).mT)
    return solved(R, inner.mT).mT


@takes_out
def qr(A: DeviceArray, mode: str = "reduced", *, out: tuple[DeviceArray, DeviceArray] | None = None) -> QR:
    """(Q, R) with Q @ R == A, where Q has orthonormal columns and R is upper triangular, for each matrix.

    mode: "reduced", "complete" (Q is square), "r" (Q is empty, and no gradient flows). float32 and float64 on the cpu,
    by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, RuntimeError for another mode, NotImplementedError on a
    CUDA device.

    >>> dt.linalg.qr(dt.ones(3, 2)).R.shape
    (2, 2)
    """
    check("qr", ("A",), (A,))
    if _need_str("qr", "mode", mode) not in ("reduced", "complete", "r"):
        text = f"qr received unrecognized mode {_C._shown(mode)} but expected one of 'reduced' (default), 'r', or"
        raise RuntimeError(f"{text} 'complete'")
    return qr_of("A", A, mode)


def qr_of(name: str, A: DeviceArray, mode: str) -> QR:
    """qr of a parameter of that name."""
    check("qr", (name,), (A,))
    on_cpu("qr", (name,), (A,))
    if mode == "r":
        R = _QR.apply(A.detach(), "reduced")[1]
        return QR(_C.empty(0, dtype=A.dtype, device=A.device), R)
    return QR(*_QR.apply(A, mode))


# ---------------------------------------------------------------- singular values


class _SVD(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, full: bool) -> tuple[DeviceArray, ...]:
        U, S, Vh = computed("svd", (A,), lambda np, a: tuple(np.linalg.svd(finite(np, a), full)), _NOT_FINITE)
        ctx.save_for_backward(U, S, Vh)
        return U, S, Vh

    @staticmethod
    def backward(ctx: Any, gU: DeviceArray, gS: DeviceArray, gVh: DeviceArray) -> tuple[DeviceArray, None]:
        U, S, Vh = ctx.saved_tensors
        k = S.shape[-1]
        rows, columns = U.shape[-2], Vh.shape[-1]
        U, gU = U.narrow(-1, 0, k), gU.narrow(-1, 0, k)
        V, gV = Vh.narrow(-2, 0, k).mT, gVh.narrow(-2, 0, k).mT
        left, right = _antisymmetric(U, gU, S), _antisymmetric(V, gV, S)
        middle = left * S.unsqueeze(-2) + S.unsqueeze(-1) * right + _diagonal_matrix(gS)
        found = U @ middle @ V.mT
        if rows > k:
            rest = gU / S.unsqueeze(-2)
            found = found + (rest - U @ (U.mT @ rest)) @ V.mT
        if columns > k:
            rest = gV / S.unsqueeze(-2)
            found = found + U @ (rest - V @ (V.mT @ rest)).mT
        return found, None


def _antisymmetric(X: DeviceArray, gX: DeviceArray, S: DeviceArray) -> DeviceArray:
    """(X.mT @ gX - its transpose) / (S[j]^2 - S[i]^2), and 0 on the diagonal."""
    product = X.mT @ gX
    return (product - product.mT) * _over(S.square())


def _over(x: DeviceArray) -> DeviceArray:
    """1 / (x[j] - x[i]) in row i and column j, and 0 on the diagonal."""
    apart = x.unsqueeze(-2) - x.unsqueeze(-1)
    diagonal = _C.eye(x.shape[-1], dtype=_C.bool, device=x.device)
    return _C.where(diagonal, 0.0, 1 / _C.where(diagonal, 1.0, apart))


def _check_driver(op: str, driver: object) -> None:
    if driver is not None:
        _need_str(op, "driver", driver)
        raise RuntimeError(f"linalg.{op}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER")


@takes_out
def svd(
    A: DeviceArray,
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    out: tuple[DeviceArray, DeviceArray, DeviceArray] | None = None,
) -> SVD:
    """(U, S, Vh) with U @ diag(S) @ Vh == A for each matrix, singular values in descending order.

    full_matrices: U and Vh are square. float32 and float64 on the cpu, by LAPACK. The gradient of U and Vh is finite
    where the singular values differ, and depends on the signs of the vectors. Raises DTypeMismatchError,
    ShapeMismatchError, LinAlgError for numbers that are not finite, NotImplementedError on a CUDA device.

    >>> dt.linalg.svd(dt.tensor([[0.0, 2.0], [1.0, 0.0]])).S
    DeviceArray([2., 1.], device='cpu', dtype=float32)
    """
    check("svd", ("A",), (A,))
    full = _need_bool("svd", "full_matrices", full_matrices)
    _check_driver("svd", driver)
    return svd_of("A", A, full)


def svd_of(name: str, A: DeviceArray, full: bool) -> SVD:
    """svd of a parameter of that name."""
    check("svd", (name,), (A,))
    on_cpu("svd", (name,), (A,))
    return SVD(*_SVD.apply(A, full))


@takes_out
def svdvals(A: DeviceArray, *, driver: str | None = None, out: DeviceArray | None = None) -> DeviceArray:
    """The singular values of each matrix in descending order.

    float32 and float64 on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, LinAlgError for numbers
    that are not finite, NotImplementedError on a CUDA device.

    >>> dt.linalg.svdvals(dt.tensor([[0.0, 2.0], [1.0, 0.0]]))
    DeviceArray([2., 1.], device='cpu', dtype=float32)
    """
    check("svdvals", ("A",), (A,))
    _check_driver("svdvals", driver)
    on_cpu("svdvals", ("A",), (A,))
    return singular_values("svdvals", A)


def singular_values(op: str, A: DeviceArray) -> DeviceArray:
    """The singular values of checked matrices, with vectors only where the gradient needs them."""
    if A.requires_grad and _C.is_grad_enabled():
        found: DeviceArray = _SVD.apply(A, False)[1]
        return found
    values: DeviceArray = computed(op, (A,), lambda np, a: np.linalg.svd(finite(np, a), compute_uv=False), _NOT_FINITE)
    return values


@takes_out
def matrix_rank(
    A: DeviceArray,
    tol: float | None = None,
    hermitian: bool = False,
    *,
    atol: float | None = None,
    rtol: float | None = None,
    out: DeviceArray | None = None,
) -> DeviceArray:
    """How many singular values of each matrix are above max(atol, rtol * the largest), as int64.

    tol is atol. rtol is by default the larger side times the dtype's eps, or 0 where atol is given. float32 and float64
    on the cpu, by LAPACK. Raises DTypeMismatchError, ShapeMismatchError, NotImplementedError on a CUDA device.

    >>> dt.linalg.matrix_rank(dt.ones(2, 2))
    DeviceArray(1, device='cpu', dtype=int64)
    """
    op = "matrix_rank"
    check(op, ("A",), (A,))
    tol = None if tol is None else _need_number(op, "tol", tol)
    if _need_bool(op, "hermitian", hermitian):
        check_square(op, ("A",), (A,))
    least, most = tolerances(op, A, tol if atol is None else atol, rtol)
    on_cpu(op, ("A",), (A,))
    values = singular_values(op, symmetric(A.detach()) if hermitian else A.detach())
    if not values.shape[-1]:
        return _C.zeros(values.shape[:-1], dtype=_C.int64, device=values.device)
    return (values > (values.amax(-1, keepdim=True) * most).clamp(min=least)).sum(-1)


def symmetric(A: DeviceArray) -> DeviceArray:
    """The symmetric matrix of which A has the lower triangle."""
    return A.tril() + A.tril(-1).mT


def tolerances(op: str, A: DeviceArray, atol: float | None, rtol: float | None) -> tuple[float, float]:
    """atol and rtol, or what they are by default."""
    from devtensor._dtypes.info import finfo

    least = 0.0 if atol is None else _need_number(op, "atol", atol)
    if rtol is not None:
        return least, _need_number(op, "rtol", rtol)
    return least, 0.0 if least > 0 else finfo(A.dtype).eps * max(A.shape[-2:])


# ---------------------------------------------------------------- eigenvalues


class _Eigh(Function):
    @staticmethod
    def forward(ctx: Any, A: DeviceArray, lower: str) -> tuple[DeviceArray, DeviceArray]:
        L, V = computed("eigh", (A,), lambda np, a: tuple(np.linalg.eigh(finite(np, a), lower)), _NOT_FINITE)
        ctx.save_for_backward(L, V)
        return L, V

    @staticmethod
    def backward(ctx: Any, gL: DeviceArray, gV: DeviceArray) -> tuple[DeviceArray, None]:
        L, V = ctx.saved_tensors
        found = V @ (_diagonal_matrix(gL) + (V.mT @ gV) * _over(L)) @ V.mT
        return (found + found.mT) * 0.5, None  # a symmetric matrix stays one under an optimizer


def _check_symmetric(op: str, A: DeviceArray, UPLO: str) -> str:
    check(op, ("A",), (A,))
    check_square(op, ("A",), (A,))
    if _need_str(op, "UPLO", UPLO).upper() not in ("L", "U"):
        raise RuntimeError(f"linalg.{op}: Expected UPLO argument to be 'L' or 'U', but got {_C._shown(UPLO)}")
    on_cpu(op, ("A",), (A,))
    return UPLO.upper()


@takes_out
def eigh(A: DeviceArray, UPLO: str = "L", *, out: tuple[DeviceArray, DeviceArray] | None = None) -> Eigh:
    """(eigenvalues in ascending order, eigenvectors as columns) of each symmetric matrix.

    Of A only the lower triangle is read, or with UPLO "U" the upper one. float32 and float64 on the cpu, by LAPACK. The
    gradient of the vectors is finite where the eigenvalues differ. Raises DTypeMismatchError, ShapeMismatchError,
    RuntimeError for another UPLO, LinAlgError for numbers that are not finite, NotImplementedError on a CUDA device.

    >>> dt.linalg.eigh(dt.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    DeviceArray([1., 2.], device='cpu', dtype=float32)
    """
    return Eigh(*_Eigh.apply(A, _check_symmetric("eigh", A, UPLO)))


@takes_out
def eigvalsh(A: DeviceArray, UPLO: str = "L", *, out: DeviceArray | None = None) -> DeviceArray:
    """The eigenvalues of each symmetric matrix in ascending order: those of eigh, with its parameters and errors.

    >>> dt.linalg.eigvalsh(dt.tensor([[2.0, 0.0], [0.0, 1.0]]))
    DeviceArray([1., 2.], device='cpu', dtype=float32)
    """
    lower = _check_symmetric("eigvalsh", A, UPLO)
    if A.requires_grad and _C.is_grad_enabled():
        found: DeviceArray = _Eigh.apply(A, lower)[0]
        return found
    return computed("eigvalsh", (A,), lambda np, a: np.linalg.eigvalsh(finite(np, a), lower), _NOT_FINITE)  # type: ignore[no-any-return]
