"""Every function of devtensor.linalg, and its second names at the top."""

from __future__ import annotations

from typing import assert_type

import devtensor as dt
from devtensor import linalg

A, B, b = dt.rand(3, 3) + dt.eye(3) * 3, dt.rand(3, 2), dt.rand(3)
symmetric = A @ A.T

for result in (
    linalg.inv(A), linalg.solve(A, B), linalg.solve(A, b, left=True), linalg.solve_triangular(A, B, upper=True),
    linalg.cholesky(symmetric, upper=True), linalg.svdvals(A), linalg.eigvalsh(symmetric, "U"), linalg.det(A),
    linalg.pinv(B, rtol=1e-5), linalg.matrix_rank(B, hermitian=False), linalg.multi_dot([A, A, B]),
    linalg.matrix_power(A, -2), linalg.cross(A, A, dim=0), linalg.matrix_exp(A), linalg.vecdot(A, b),
    linalg.diagonal(A), linalg.norm(A, "nuc"), linalg.norm(b, 2, dim=0), linalg.vector_norm(b, ord=1, dtype="float64"),
    linalg.matrix_norm(A, -1, dim=(0, 1), keepdim=True), dt.det(A), dt.inverse(A), dt.logdet(symmetric),
    dt.pinverse(B, 1e-5), dt.matrix_exp(A), dt.cholesky(symmetric),
    linalg.cond(A, "fro"), dt.cholesky_solve(B, A), A.cholesky_inverse(upper=True), B.cholesky_solve(A),
    dt.cholesky_inverse(A), linalg.tensorinv(A, 1), linalg.tensorsolve(A, b, dims=None), linalg.vander(b, N=2),
    linalg.matmul(A, B), dt.lu_solve(B, *linalg.lu_factor(A)), B.lu_solve(*linalg.lu_factor(A)),
    linalg.lu_solve(*linalg.lu_factor(A, pivot=True), B, left=True, adjoint=False),
):  # fmt: skip
    assert_type(result, dt.DeviceArray)
factors = linalg.svd(B, full_matrices=False)
for part in (
    linalg.qr(B, mode="complete").Q, linalg.qr(B)[1], factors.U, factors.S, factors.Vh, dt.svd(B, some=True).V,
    linalg.eigh(symmetric).eigenvalues, linalg.eigh(symmetric).eigenvectors, linalg.slogdet(A).logabsdet,
    linalg.lstsq(A, B, driver="gelsd").solution, linalg.lstsq(A, B).residuals, linalg.lstsq(A, B).rank,
    linalg.lstsq(A, B).singular_values, linalg.cholesky_ex(A, upper=True).info,
    linalg.inv_ex(A, check_errors=True).inverse, linalg.solve_ex(A, B, left=True).result,
    dt.qr(B).R, dt.slogdet(A).sign, linalg.lu(B, pivot=False).L, linalg.lu_factor_ex(A, check_errors=False).info,
    linalg.lu_factor(A).pivots, dt.lu_unpack(*linalg.lu_factor(A), unpack_data=True).U, dt.lu(A, get_infos=True)[2],
    A.lu()[0],
):  # fmt: skip
    assert_type(part, dt.DeviceArray)
try:
    linalg.inv(dt.zeros(2, 2))
except linalg.LinAlgError as error:
    assert "singular" in str(error)
