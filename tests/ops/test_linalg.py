"""devtensor.linalg: values beside NumPy, gradients beside differences, and what is refused where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES

import devtensor as dt
from devtensor import linalg
from devtensor.autograd import gradcheck, gradgradcheck

GPU = CUDA_DEVICES[0]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def matrix(*shape: int, seed: int = 0) -> dt.DeviceArray:
    """Of float64; square ones are far from singular."""
    x = numbers(*shape, seed=seed)
    if shape[-1] == shape[-2]:
        x = x + 3 * np.eye(shape[-1])
    return dt.from_numpy(x)


def positive(x: dt.DeviceArray) -> dt.DeviceArray:
    return x @ x.mT + dt.eye(x.shape[-1], dtype=x.dtype)


def symmetric(x: dt.DeviceArray) -> dt.DeviceArray:
    return x + x.mT


def close(got: dt.DeviceArray, want: Any) -> None:
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-10, atol=1e-10)


# ---------------------------------------------------------------- values


def test_factors_make_the_matrix() -> None:
    for shape in ((4, 4), (5, 3), (3, 5), (2, 4, 3), (0, 3), (3, 0), (0, 2, 2)):
        A = matrix(*shape)
        for full in (True, False):
            U, S, Vh = linalg.svd(A, full)
            k = S.shape[-1]
            close(U[..., :k] * S.unsqueeze(-2) @ Vh[..., :k, :], A.numpy())
        Q, R = linalg.qr(A)
        close(Q @ R, A.numpy())
        Q, R = linalg.qr(A, "complete")
        close(Q @ R, A.numpy())
        close(linalg.qr(A, "r").R, linalg.qr(A).R.numpy())
        U, S, V = dt.svd(A)
        close(U * S.unsqueeze(-2) @ V.mT, A.numpy())
        close(linalg.svdvals(A), S.numpy())
        close(linalg.pinv(A), np.linalg.pinv(A.numpy()))


def test_square_matrices() -> None:
    for shape in ((4, 4), (2, 3, 3), (0, 0), (0, 2, 2), (1, 1)):
        A = matrix(*shape)
        P = positive(A)
        close(linalg.inv(A), np.linalg.inv(A.numpy()))
        close(A.inverse(), np.linalg.inv(A.numpy()))
        close(linalg.det(A), np.linalg.det(A.numpy()))
        close(A.slogdet().logabsdet, np.linalg.slogdet(A.numpy())[1])
        close(dt.logdet(P), np.log(np.linalg.det(P.numpy())))
        for upper in (True, False):
            L = linalg.cholesky(P, upper=upper)
            close(L.mT @ L if upper else L @ L.mT, P.numpy())
            close(P.cholesky(upper), L.numpy())
        for UPLO in ("L", "U"):
            values, vectors = linalg.eigh(P, UPLO)
            close(vectors * values.unsqueeze(-2) @ vectors.mT, P.numpy())
            close(linalg.eigvalsh(P, UPLO), values.numpy())


def test_one_triangle_is_read() -> None:
    A = dt.tensor([[4.0, 9.0], [2.0, 5.0]], dtype="float64")
    close(linalg.cholesky(A), [[2, 0], [1, 2]])
    close(linalg.cholesky(A.mT, upper=True), [[2, 1], [0, 2]])
    close(linalg.eigvalsh(A), np.linalg.eigvalsh(A.numpy()))
    close(linalg.eigvalsh(A.mT, "U"), np.linalg.eigvalsh(A.numpy()))
    assert linalg.matrix_rank(dt.tensor([[1.0, 7.0], [1.0, 1.0]]), hermitian=True).item() == 1


def test_equations() -> None:
    A, B, b = matrix(3, 3), matrix(3, 2), matrix(1, 3, seed=1)[0]
    close(linalg.solve(A, B), np.linalg.solve(A.numpy(), B.numpy()))
    close(linalg.solve(A, b), np.linalg.solve(A.numpy(), b.numpy()))
    close(linalg.solve(A, B.mT, left=False) @ A, B.mT.numpy())
    many = matrix(2, 3, 3)
    close(many @ linalg.solve(many, B), np.broadcast_to(B.numpy(), (2, 3, 2)))
    vectors = matrix(2, 3)  # one dimension less than A
    close((many @ linalg.solve(many, vectors).unsqueeze(-1)).squeeze(-1), vectors.numpy())
    for upper in (True, False):
        T = A.triu() if upper else A.tril()
        close(T @ linalg.solve_triangular(A, B, upper=upper), B.numpy())
        close(linalg.solve_triangular(A, B.mT, upper=upper, left=False) @ T, B.mT.numpy())
        T = T - dt.diag(T.diagonal()) + dt.eye(3, dtype=T.dtype)
        close(T @ linalg.solve_triangular(A, B, upper=upper, unitriangular=True), B.numpy())


def test_least_squares() -> None:
    for rows, columns in ((5, 3), (3, 5), (3, 3)):
        A, B = matrix(rows, columns), matrix(rows, 2, seed=2)
        want, residuals, rank, values = np.linalg.lstsq(A.numpy(), B.numpy())
        found = linalg.lstsq(A, B, driver="gelsd")
        close(found.solution, want)
        close(found.residuals, residuals)
        close(found.singular_values, values)
        assert found.rank.item() == rank
        close(linalg.lstsq(A, B[:, 0]).solution, want[:, 0])
    A[:, 1] = A[:, 0]
    assert linalg.lstsq(A, B).rank.item() == 2
    close(linalg.lstsq(A, B).solution, np.linalg.lstsq(A.numpy(), B.numpy())[0])


def test_products() -> None:
    chain = [matrix(*shape) for shape in ((2, 6), (6, 3), (3, 8), (8, 4))]
    close(linalg.multi_dot(chain), np.linalg.multi_dot([x.numpy() for x in chain]))
    ends = [chain[0][0], *chain[1:3], chain[3][:, 0]]
    close(linalg.multi_dot(ends), np.linalg.multi_dot([x.numpy() for x in ends]))
    A = matrix(2, 3, 3)
    for n in (-3, -1, 0, 1, 4):
        close(linalg.matrix_power(A, n), np.linalg.matrix_power(A.numpy(), n))
    close(linalg.cross(A, A[:1]), np.cross(A.numpy(), A[0].numpy()))
    close(linalg.vecdot(A, A[0]), (A.numpy() * A[0].numpy()).sum(-1))
    assert linalg.diagonal(A, offset=1).tolist() == A.diagonal(1, -2, -1).tolist()


def test_the_exponential() -> None:
    """Of matrices with eigenvalues that are known: small, large and of several sizes in one batch."""
    for scale in (1e-9, 0.1, 1.0, 30.0):
        values, vectors = np.linalg.eigh(symmetric(matrix(4, 3, 3)).numpy() * scale)
        A = (vectors * values[:, None]) @ vectors.swapaxes(1, 2)
        want = (vectors * np.exp(values)[:, None]) @ vectors.swapaxes(1, 2)
        got = linalg.matrix_exp(dt.from_numpy(A)).numpy()
        assert np.all(np.abs(got - want).max((1, 2)) <= 1e-12 * np.abs(want).max((1, 2)) * max(scale, 1))
    mixed = dt.stack([matrix(2, 2) * 100 - 600 * dt.eye(2, dtype="float64"), dt.zeros(2, 2, dtype="float64")])
    close(linalg.matrix_exp(mixed)[1], np.eye(2))
    turn = dt.tensor([[0.0, -1.0], [1.0, 0.0]], dtype="float64") * 20
    close(linalg.matrix_exp(turn), [[np.cos(20), -np.sin(20)], [np.sin(20), np.cos(20)]])
    for shape in ((0, 3, 3), (0, 0), (2, 0, 0)):
        assert linalg.matrix_exp(dt.zeros(shape)).shape == shape
    check(linalg.matrix_exp, matrix(2, 2) * 0.3)
    small, large = ((matrix(2, 2) * 0.3).requires_grad_() for _ in range(2))
    (linalg.matrix_exp(small) * 1e-3).sum().backward()
    (linalg.matrix_exp(large) * 1e30).sum().backward()
    assert small.grad is not None and large.grad is not None
    close(large.grad * 1e-33, small.grad.numpy())
    empty = dt.zeros(2, 0, 0, requires_grad=True)
    linalg.matrix_exp(empty).sum().backward()
    assert empty.grad is not None and empty.grad.shape == (2, 0, 0)


def test_norms(device: str) -> None:
    """Those that need no singular values run on every device."""
    A = numbers(4, 5).astype(np.float32)
    x = dt.from_numpy(A).to(device)
    for order in (None, "fro", 1, -1, np.inf, -np.inf):
        want = np.linalg.norm(A, order)
        np.testing.assert_allclose(linalg.norm(x, order).item(), want, rtol=1e-6)
        if order is not None:
            np.testing.assert_allclose(linalg.matrix_norm(x, order, keepdim=True).tolist(), [[want]], rtol=1e-6)
    for order in (0, 1, 2, 3, -1, 0.5, np.inf, -np.inf):
        want = np.linalg.norm(A, order, 1)
        np.testing.assert_allclose(linalg.norm(x, order, 1).tolist(), want, rtol=1e-5)
        np.testing.assert_allclose(linalg.vector_norm(x, order, 1, True)[:, 0].tolist(), want, rtol=1e-5)
    assert linalg.vector_norm(x, dtype=dt.float64).dtype == dt.float64


def test_norms_of_singular_values() -> None:
    A = matrix(2, 4, 5)
    values = np.linalg.svd(A.numpy(), compute_uv=False)
    for order, want in ((2, values.max(-1)), (-2, values.min(-1)), ("nuc", values.sum(-1))):
        close(linalg.matrix_norm(A, order), want)
        close(linalg.matrix_norm(A.permute(2, 0, 1), order, (1, 0)), np.linalg.norm(A.numpy(), order, (0, 2)))
        close(linalg.matrix_norm(A, order, keepdim=True), want[:, None, None])
    close(dt.norm(A[0], "nuc"), values[0].sum())
    close(A.norm("nuc", (1, 2)), values.sum(-1))
    close(linalg.matrix_rank(A), [4, 4])
    assert linalg.matrix_norm(dt.ones(3, 0), 2).item() == 0


# ---------------------------------------------------------------- gradients


def check(function: Callable[..., Any], *inputs: dt.DeviceArray) -> None:
    """The gradient, and the gradient of the gradient."""
    leaves = tuple(x.detach().clone().requires_grad_() for x in inputs)
    assert gradcheck(function, leaves)
    assert gradgradcheck(function, leaves)


def without_signs(factors: tuple[dt.DeviceArray, ...]) -> tuple[dt.DeviceArray, ...]:
    """What does not depend on the signs of the vectors."""
    U, S, Vh = factors
    k = S.shape[-1]
    return U[..., :k].square(), S, Vh[..., :k, :].square(), U[..., :k] @ Vh[..., :k, :]


GRADIENTS: dict[str, tuple[Callable[..., Any], tuple[dt.DeviceArray, ...]]] = {
    "inv": (linalg.inv, (matrix(2, 3, 3),)),
    "solve": (linalg.solve, (matrix(2, 3, 3), matrix(3, 2))),
    "solve of a vector": (linalg.solve, (matrix(3, 3), matrix(1, 3)[0])),
    "solve on the right": (lambda A, B: linalg.solve(A, B, left=False), (matrix(3, 3), matrix(2, 3))),
    "solve_triangular": (lambda A, B: linalg.solve_triangular(A, B, upper=True), (matrix(3, 3), matrix(3, 2))),
    "cholesky": (lambda A: linalg.cholesky(positive(A)), (matrix(2, 3, 3),)),
    "cholesky, upper": (lambda A: linalg.cholesky(positive(A), upper=True), (matrix(3, 3),)),
    "cholesky_ex": (lambda A: linalg.cholesky_ex(positive(A))[0], (matrix(3, 3),)),
    "cholesky_solve": (lambda B, A: dt.cholesky_solve(B, positive(A)), (matrix(3, 2), matrix(3, 3))),
    "cholesky_inverse": (lambda A: dt.cholesky_inverse(positive(A), True), (matrix(3, 3),)),
    "inv_ex": (lambda A: linalg.inv_ex(A)[0], (matrix(2, 3, 3),)),
    "solve_ex": (lambda A, B: linalg.solve_ex(A, B)[0], (matrix(3, 3), matrix(3, 2))),
    "cond": (linalg.cond, (matrix(3, 2),)),
    **{f"lu {shape}": (lambda A: linalg.lu(A)[1:], (matrix(*shape),)) for shape in ((2, 3, 3), (4, 2), (2, 4))},
    "lu_factor": (lambda A: linalg.lu_factor(A)[0], (matrix(3, 3),)),
    "lu without pivots": (lambda A: linalg.lu(A, pivot=False)[1:], (matrix(3, 3),)),
    **{
        f"lu_solve {left} {adjoint}": (
            lambda A, B, left=left, adjoint=adjoint: linalg.lu_solve(
                *linalg.lu_factor(A), B if left else B.mT, left=left, adjoint=adjoint
            ),
            (matrix(3, 3), matrix(2, 3, 2)),
        )
        for left in (True, False)
        for adjoint in (True, False)
    },
    "tensorinv": (lambda A: linalg.tensorinv(A.reshape(2, 2, 4)), (matrix(4, 4),)),
    "tensorsolve": (lambda A, B: linalg.tensorsolve(A.reshape(2, 2, 4), B), (matrix(4, 4), matrix(2, 2))),
    "linalg.vander": (lambda A: linalg.vander(A, N=4), (matrix(2, 3),)),
    "cond by a norm": (lambda A: linalg.cond(A, "fro"), (matrix(3, 3),)),
    "qr": (linalg.qr, (matrix(3, 3),)),
    "qr, tall": (linalg.qr, (matrix(4, 2),)),
    "qr, wide": (linalg.qr, (matrix(2, 4),)),
    "qr, wide and complete": (lambda A: linalg.qr(A, "complete"), (matrix(2, 4),)),
    "svd": (lambda A: without_signs(linalg.svd(A)), (matrix(3, 3),)),
    "svd, tall": (lambda A: without_signs(linalg.svd(A, False)), (matrix(4, 2),)),
    "svd, wide": (lambda A: without_signs(linalg.svd(A)), (matrix(2, 4),)),
    "svdvals": (linalg.svdvals, (matrix(3, 4),)),
    "eigh": (lambda A: (linalg.eigh(symmetric(A))[0], linalg.eigh(symmetric(A))[1].square()), (matrix(3, 3),)),
    "eigvalsh": (lambda A: linalg.eigvalsh(symmetric(A)), (matrix(3, 3),)),
    "det": (linalg.det, (matrix(2, 3, 3),)),
    "slogdet": (lambda A: linalg.slogdet(A)[1], (matrix(2, 3, 3),)),
    "logdet": (lambda A: dt.logdet(positive(A)), (matrix(3, 3),)),
    "pinv": (linalg.pinv, (matrix(4, 2),)),
    "pinv, wide": (linalg.pinv, (matrix(2, 4),)),
    "lstsq": (lambda A, B: linalg.lstsq(A, B)[0], (matrix(4, 2), matrix(4, 2, seed=1))),
    "lstsq, wide": (lambda A, B: linalg.lstsq(A, B)[0], (matrix(2, 4), matrix(2, 2, seed=1))),
    "nuclear norm": (lambda A: linalg.matrix_norm(A, "nuc"), (matrix(3, 2),)),
    "matrix_power": (lambda A: linalg.matrix_power(A, -2), (matrix(2, 2),)),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_a_gradient_is_the_limit_of_differences(name: str) -> None:
    function, inputs = GRADIENTS[name]
    check(function, *inputs)


def test_the_determinant_of_a_singular_matrix_has_a_gradient() -> None:
    for rows in ([[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 3.0]]):
        A = dt.tensor(rows, dtype="float64", requires_grad=True)
        linalg.det(A).backward()
        (a, b), (c, d) = rows
        assert A.grad is not None
        close(A.grad, [[d, -c], [-b, a]])


NAN, INF = np.nan, np.inf


@pytest.mark.parametrize("op", ["det", "logdet", "slogdet"])
@pytest.mark.parametrize("other", [[[NAN, 0.0], [0.0, 0.0]], [[1.0, NAN], [0.0, 1.0]], [[INF, 0.0], [NAN, 1.0]]])
def test_a_determinant_hides_no_nan(op: str, other: list[list[float]]) -> None:
    """And leaves the gradients of the other matrices of a batch theirs."""
    functions = {"det": linalg.det, "logdet": dt.logdet, "slogdet": lambda x: linalg.slogdet(x)[1]}
    A = dt.tensor([[[2.0, 0.0], [0.0, 1.0]], other], dtype="float64", requires_grad=True)
    found = functions[op](A)
    found.sum().backward()
    close(found, [2.0 if op == "det" else np.log(2.0), NAN])
    assert A.grad is not None
    close(A.grad, [[[1.0, 0.0], [0.0, 2.0]] if op == "det" else [[0.5, 0.0], [0.0, 1.0]], [[NAN] * 2] * 2])


def test_a_singular_matrix_of_a_batch_has_the_gradient_that_it_has_alone() -> None:
    A = dt.tensor([[[2.0, 0.0], [0.0, 0.0]], [[3.0, 1.0], [1.0, 1.0]]], dtype="float64", requires_grad=True)
    linalg.det(A).sum().backward()
    assert A.grad is not None
    close(A.grad, [[[0.0, 0.0], [0.0, 2.0]], [[1.0, -1.0], [-1.0, 3.0]]])


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize("pivots", [[0, 2], [1, 3], [-1, 1]])
def test_pivots_are_rows(pivots: list[int]) -> None:
    with pytest.raises(RuntimeError, match="Pivots must all be from 1 to 2"):
        linalg.lu_solve(dt.eye(2), dt.tensor(pivots, dtype=dt.int32), dt.ones(2, 1))


LAPACK: list[Callable[[dt.DeviceArray], Any]] = [
    linalg.inv,
    lambda A: linalg.solve(A, A),
    lambda A: linalg.solve_triangular(A, A, upper=True),
    lambda A: linalg.lstsq(A, A),
    linalg.cholesky,
    linalg.cholesky_ex,
    linalg.inv_ex,
    linalg.lu,
    linalg.lu_factor,
    linalg.lu_factor_ex,
    lambda A: linalg.lu_solve(A, A[0].int() + 1, A),
    lambda A: linalg.tensorinv(A, 1),
    linalg.cond,
    lambda A: linalg.solve_ex(A, A),
    lambda A: dt.cholesky_solve(A, A),
    dt.cholesky_inverse,
    linalg.qr,
    linalg.svd,
    linalg.svdvals,
    linalg.eigh,
    linalg.eigvalsh,
    linalg.det,
    linalg.slogdet,
    linalg.pinv,
    linalg.matrix_rank,
    linalg.matrix_exp,
    lambda A: linalg.matrix_norm(A, "nuc"),
    lambda A: linalg.norm(A, 2),
    lambda A: linalg.matrix_power(A, -1),
    dt.inverse,
    dt.pinverse,
    dt.logdet,
    dt.svd,
    dt.qr,
    dt.cholesky,
    lambda A: dt.norm(A, "nuc"),
]


def test_the_sign_of_a_determinant_gives_no_gradient() -> None:
    for numbers in ([[1.0, 1.0], [1.0, 1.0]], [[2.0, 1.0], [1.0, 2.0]]):
        A = dt.tensor(numbers, requires_grad=True)
        linalg.slogdet(A).sign.sum().backward()
        assert A.grad is None


def test_a_cuda_device_is_refused_with_the_way_out() -> None:
    with dt.forbid_transfers():
        for function in LAPACK:
            with pytest.raises(
                NotImplementedError, match=r"LAPACK computes it on the cpu alone: .*\.cpu\(\)"
            ) as caught:
                function(dt.eye(2, device=GPU))
            operands = getattr(caught.value, "operands", ())
            assert operands and str(operands[0].device) == GPU


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int64", "bool"])
def test_other_dtypes_are_refused_by_name(dtype: str, device: str) -> None:
    for function in LAPACK:
        with pytest.raises(dt.DTypeMismatchError, match=rf"not implemented for '{dtype}'"):
            function(dt.eye(2, dtype=dtype, device=device))


def test_errors_are_the_same_on_every_device(device: str) -> None:
    def of(*shape: int, dtype: str = "float32") -> dt.DeviceArray:
        return dt.ones(shape, dtype=dtype, device=device)

    for function in (linalg.inv, linalg.det, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.matrix_exp):
        with pytest.raises(dt.ShapeMismatchError, match="must be batches of square matrices, but they are 2 by 3"):
            function(of(2, 3))
        with pytest.raises(dt.ShapeMismatchError, match="Expected A to be at least 2D"):
            function(of(3))
    with pytest.raises(dt.DTypeMismatchError, match="A float32, B float64"):
        linalg.solve(of(2, 2), of(2, 2, dtype="float64"))
    with pytest.raises(dt.ShapeMismatchError, match=r"for the equation AX = B \(2x2 and 3x1\)"):
        linalg.solve(of(2, 2), of(3, 1))
    with pytest.raises(dt.ShapeMismatchError, match="leading dimensions"):
        linalg.solve(of(2, 2, 2), of(3, 2, 1))
    with pytest.raises(RuntimeError, match="driver"):
        linalg.lstsq(of(2, 2), of(2, 2), driver="gelsx")
    with pytest.raises(RuntimeError, match="UPLO"):
        linalg.eigh(of(2, 2), "X")
    with pytest.raises(RuntimeError, match="mode"):
        linalg.qr(of(2, 2), "x")
    with pytest.raises(RuntimeError, match="ord must be"):
        linalg.matrix_norm(of(2, 2), 3)
    with pytest.raises(dt.ShapeMismatchError, match="does not have an identity|not have an identity"):
        linalg.vector_norm(of(0), float("inf"))
    with pytest.raises(RuntimeError, match="at least 2 tensors"):
        linalg.multi_dot([of(2)])


def test_two_devices_are_refused() -> None:
    with pytest.raises(dt.DeviceMismatchError, match=rf"A on cpu, B on {GPU}"):
        linalg.solve(dt.eye(2), dt.eye(2, device=GPU))


def test_what_lapack_does_not_find() -> None:
    for function in (linalg.inv, lambda A: linalg.solve(A, A)):
        with pytest.raises(linalg.LinAlgError, match="singular"):
            function(dt.zeros(2, 2))
    with pytest.raises(linalg.LinAlgError, match="not positive-definite"):
        linalg.cholesky(-dt.eye(2))
    for function in (linalg.svd, linalg.eigh, linalg.svdvals):
        with pytest.raises(linalg.LinAlgError, match="non-finite"):
            function(dt.full((2, 2), float("nan")))
    sign, log = linalg.slogdet(dt.zeros(2, 2))
    assert sign.item() == 0 and log.item() == -float("inf")
    assert dt.logdet(-dt.eye(1)).isnan().item()


def test_the_matrix_is_left_as_it_is() -> None:
    A = matrix(3, 3)
    before = A.tolist()
    found = linalg.inv(A)
    linalg.svd(A), linalg.eigh(A), linalg.qr(A)
    found.zero_()
    assert A.tolist() == before


def test_info_says_where_a_matrix_fails() -> None:
    A = dt.tensor([[[4.0, 2.0], [2.0, 5.0]], [[1.0, 2.0], [2.0, 4.0]], [[-1.0, 0.0], [0.0, 1.0]]])
    L, info = linalg.cholesky_ex(A)
    assert info.tolist() == [0, 2, 1] and info.dtype == dt.int32
    close(L[0], [[2, 0], [1, 2]])
    assert L[1:].isnan().all() and linalg.cholesky_ex(A[0], upper=True).info.item() == 0
    inverse, info = linalg.inv_ex(A)
    assert info.tolist() == [0, 2, 0] and inverse[1].isnan().all()
    close(inverse[2], [[-1, 0], [0, 1]])
    for right in (dt.ones(3, 2), dt.ones(3, 2, 4), dt.ones(2, 2)):
        result, info = linalg.solve_ex(A, right)
        assert info.tolist() == [0, 2, 0] and result[1].isnan().all() and not result[::2].isnan().any()
    for call in (linalg.cholesky_ex, linalg.inv_ex, lambda A, **o: linalg.solve_ex(A, A, **o)):
        with pytest.raises(linalg.LinAlgError):
            call(A, check_errors=True)
    assert linalg.cond(A, "fro").tolist()[1:] == [float("inf"), pytest.approx(2)] and linalg.cond(A[2], -2).item() == 1
    assert linalg.cond(dt.zeros(2, 0, 0)).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="invalid norm type"):
        linalg.cond(A, 3)
    with pytest.raises(dt.DTypeMismatchError, match="cholesky_solve"):
        dt.cholesky_solve(dt.ones(2, 2), dt.eye(2, dtype=dt.float64))
    with pytest.raises(dt.ShapeMismatchError, match="as many rows"):
        dt.cholesky_solve(dt.ones(3, 2), dt.eye(2))
