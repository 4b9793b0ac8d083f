"""The largest singular values of a matrix, by random projections: Halko, Martinsson and Tropp (2009)."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int
from devtensor.linalg._decompositions import qr, svd
from devtensor.linalg._second_names import OldSVD


def svd_lowrank(A: DeviceArray, q: int | None = 6, niter: int | None = 2, M: DeviceArray | None = None) -> OldSVD:
    """(U, S, V) with U @ diag(S) @ V.mT near A - M for matrices (..., m, n): the q largest singular values.

    niter rounds make the subspace better. float32 and float64 on the cpu, as linalg.svd. Raises ValueError for q or
    niter below 0, or q above a size of A.
    """
    op = "svd_lowrank"
    whole = A if M is None else A - M
    q = 6 if q is None else _need_int(op, "q", q)
    niter = 2 if niter is None else _need_int(op, "niter", niter)
    least = min(whole.shape[-2:])
    if not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    tall = whole.shape[-2] >= whole.shape[-1]
    x = whole if tall else whole.mT
    basis = qr(x @ _C.randn(x.shape[-1], q, dtype=x.dtype, device=x.device)).Q
    for _ in range(niter):
        basis = qr(x @ qr(x.mT @ basis).Q).Q
    left, values, right = svd(basis.mT @ x, False)
    left = basis @ left
    return OldSVD(left, values, right.mT) if tall else OldSVD(right.mT, values, left)


def pca_lowrank(A: DeviceArray, q: int | None = None, center: bool = True, niter: int = 2) -> OldSVD:
    """svd_lowrank of A without the means of its columns: V has the principal directions. q: 6, or fewer."""
    q = min(6, *A.shape[-2:]) if q is None else q
    return svd_lowrank(A - A.mean(-2, keepdim=True) if _need_bool("pca_lowrank", "center", center) else A, q, niter)
