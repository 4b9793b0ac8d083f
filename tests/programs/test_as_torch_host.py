"""What the host computes in a program that runs --as-torch, and else not: LAPACK for a GPU, NumPy's operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import devtensor as dt


@pytest.fixture(autouse=True)
def as_torch() -> Iterator[None]:
    dt._C._as_torch(True)
    yield
    dt._C._as_torch(False)


# Each with A (2, 4, 4), B (2, 4, 3), S (2, 4, 4) positive-definite, R (5, 3), E (2, 3, 6), on one device.
SMOOTH = """linalg.inv(A) linalg.pinv(R) linalg.solve(A,B) linalg.lstsq(R,R[:,:2]+1).solution linalg.det(A)
linalg.slogdet(A).logabsdet linalg.matrix_exp(A) linalg.cholesky(S) linalg.cholesky_ex(S).L linalg.inv_ex(A).inverse
linalg.solve_ex(A,B).result cholesky_solve(B,linalg.cholesky(S)) cholesky_inverse(linalg.cholesky(S[0])) linalg.cond(A)
linalg.cond(A,1) linalg.qr(A).R linalg.svd(R,full_matrices=False).S linalg.svdvals(R) linalg.eigh(S).eigenvalues
linalg.eigvalsh(S) linalg.lu(A).L linalg.lu(A,pivot=False).U linalg.lu_factor(A).LU linalg.matrix_norm(A,'nuc')
linalg.matrix_norm(A,2) linalg.lu_solve(*linalg.lu_factor(A),B) linalg.solve_triangular(A,B,upper=True)
linalg.tensorinv(E) linalg.tensorsolve(E,E[:,:,0]) linalg.matrix_power(A,-2) logdet(S) norm(R,'nuc') pinverse(R)
svd(R).S""".split()
OTHERS = """linalg.matrix_rank(R) linalg.lu(A).P linalg.lu(A,pivot=False).P linalg.lu_factor_ex(A).info
lu_unpack(*linalg.lu_factor(A))[0] linalg.cholesky_ex(-S).info linalg.inv_ex(0*A).info
nn.init.orthogonal_(empty(3,4,device=R.device)).abs().sum()*0""".split()


def value(text: str, device: str, wants: bool) -> tuple[dt.DeviceArray, list[Any]]:
    generator = np.random.default_rng(0)
    a, r = generator.normal(size=(2, 4, 4)) + 4 * np.eye(4), generator.normal(size=(5, 3))
    numbers = {"A": a, "B": generator.normal(size=(2, 4, 3)), "S": a @ a.transpose(0, 2, 1), "R": r,
               "E": np.eye(6).reshape(2, 3, 6) + 0.1}  # fmt: skip
    given = {k: dt.from_numpy(v.astype("float32")).to(device).requires_grad_(wants) for k, v in numbers.items()}
    names = {name: getattr(dt, name) for name in dt.__all__} | {"linalg": dt.linalg, "nn": dt.nn}
    found = eval(text, names, given)
    if wants:
        (found * found).sum().backward()
    return found.detach(), [x.grad for x in given.values() if x.grad is not None]


@pytest.mark.parametrize("text", [*SMOOTH, *OTHERS])
def test_lapack_of_a_gpu_is_that_of_the_cpu(text: str, cuda: str) -> None:
    wants = text in SMOOTH
    (found, gradients), (wanted, right) = value(text, cuda, wants), value(text, "cpu", wants)
    assert str(found.device) == cuda and found.dtype is wanted.dtype and found.shape == wanted.shape
    assert dt.allclose(found.cpu(), wanted, rtol=1e-3, atol=1e-4) or wanted.numel() == 0
    assert len(gradients) == len(right) and (gradients or not wants)
    for one, other in zip(gradients, right, strict=True):
        assert str(one.device) == cuda and dt.allclose(
            one.cpu(), other, rtol=1e-2, atol=1e-2 * float(other.abs().amax())
        )


def test_its_copies_are_reported(cuda: str) -> None:
    x = dt.eye(3, device=cuda)
    with dt.record_transfers() as log:
        dt.linalg.inv(x)
    assert [(str(move.source), str(move.target), move.nbytes) for move in log] == [(cuda, "cpu", 36), ("cpu", cuda, 36)]


t, i = dt.tensor([1.0, 2.0, 3.0]), dt.tensor([1, 2, 3])
n, k, m = np.array([1.0, 2.0, 4.0]), np.array([1, 2, 4]), np.eye(3)
# What PyTorch 2.13 gives with NumPy 2: the dtype that NumPy promotes to.
MIXED = {
    "t + n": "float64", "t * n.astype('float32')": "float32", "t - n": "float64", "i + n": "float64", "i & k": "int64",
    "t == n": "bool", "t @ m": "float64", "t ** n": "float64", "t / n": "float64", "n / t": "float64",
    "t * np.array(2.0)": "float64", "np.exp(t)": "float32", "np.maximum(t, n)": "float64", "np.sqrt(t)": "float32",
    "np.float64(2) * t": "float32", "np.float64(2) < t": "bool", "np.float64(2) ** t": "float32",
}  # fmt: skip
NAMES = {"t": t, "i": i, "n": n, "k": k, "m": m, "np": np}


@pytest.mark.parametrize("text", MIXED)
def test_numpy_beside_arrays(text: str) -> None:
    found = eval(text, NAMES)
    wanted = eval(text, {**NAMES, "t": t.numpy(), "i": i.numpy()})
    assert isinstance(found, dt.DeviceArray) and found.dtype.name == MIXED[text]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)


def test_numpy_beside_arrays_is_what_pytorch_does() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    names = {**NAMES, "t": torch.from_numpy(t.numpy()), "i": torch.from_numpy(i.numpy())}
    for text, dtype in MIXED.items():
        assert str(eval(text, names).dtype) == f"torch.{dtype}", text


def test_in_place_the_variable_gets_the_result() -> None:
    x = y = t.clone()
    x += n
    assert x.dtype is dt.float64 and x.tolist() == [2, 4, 7] and y.tolist() == [1, 2, 3]


def test_arrays_of_a_gpu_and_with_gradients_stay_refused(cuda: str) -> None:
    with pytest.raises(dt.HostAccessError, match=f"can't convert {cuda} device type tensor to numpy"):
        t.to(cuda) + n
    with pytest.raises(dt.GradientError, match=r"Can't call numpy\(\) on Tensor that requires grad"):
        t.clone().requires_grad_() * n


def test_numpys_functions_that_write() -> None:
    a, x = np.zeros(3), dt.tensor([1.0, 2.0, 3.0])
    assert np.add.at(a, dt.tensor([0, 0]), 1.0) is None and a.tolist() == [2, 0, 0]
    assert np.multiply(a, x, where=x < 2, out=np.ones(3)).tolist() == [2, 1, 1]
    assert np.sum(np.ones(3), where=x > 1) == 2
    writes = (lambda: np.add(a, a, out=x), lambda: np.add(a, x, out=(x,)), lambda: np.add.at(x, [0], 1.0))
    for write in writes:
        with pytest.raises(TypeError, match="return arrays must be of ArrayType"):
            write()
    assert x.tolist() == [1, 2, 3]
