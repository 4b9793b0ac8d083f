"""What arranges and multiplies arrays, beside NumPy: forms that PyTorch's samples lack, and errors of lists."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from support import CUDA_DEVICES

import devtensor as dt

GPU = CUDA_DEVICES[0]


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


def same(got: Any, want: np.ndarray) -> None:
    assert got.shape == want.shape
    np.testing.assert_allclose(got.cpu().numpy(), want, rtol=1e-4, atol=1e-5)


EQUATIONS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((2, 3), (3, 4))),
    ("ij,jk", ((2, 3), (3, 4))),
    ("ij,jk->ki", ((2, 3), (3, 4))),
    ("ij,jk->", ((2, 3), (3, 4))),
    ("ij->ji", ((2, 3),)),
    ("ij->j", ((2, 3),)),
    ("ii->i", ((3, 3),)),
    ("ii", ((3, 3),)),
    ("aab->b", ((3, 3, 2),)),
    ("i,i", ((3,), (3,))),
    ("i,j->ji", ((3,), (4,))),
    ("ij,ij,ij->i", ((3, 4), (3, 4), (3, 4))),
    ("abc,acd,ade->abe", ((2, 3, 3), (2, 3, 3), (2, 3, 3))),
    ("bhqd,bhkd->bhqk", ((2, 3, 4, 5), (2, 3, 6, 5))),
    ("bqhd,bkhd->bhqk", ((2, 4, 3, 5), (2, 6, 3, 5))),
    ("bi,oi,bo->b", ((3, 4), (5, 4), (3, 5))),
    ("...ij,...jk", ((5, 2, 3), (6, 5, 3, 4))),
    ("...i,...i->...", ((2, 3, 4), (3, 4))),
    ("i...->...i", ((2, 3, 4),)),
    ("aij,bij->ab", ((2, 3, 4), (5, 3, 4))),
    (" i j , j -> i ", ((2, 3), (3,))),
    ("abcdefgh,h->abcdefg", ((2, 1, 2, 1, 2, 1, 2, 3), (3,))),
    ("abcdefgh,abcdefgh->abcdefg", ((2, 1, 2, 1, 2, 1, 2, 3),) * 2),
    ("ij,jk->ik", ((0, 3), (3, 4))),
    ("ij,jk->ik", ((2, 0), (0, 4))),
]


def test_einsum(device: str) -> None:
    for equation, shapes in EQUATIONS:
        arrays = [numbers(*shape) for shape in shapes]
        given = [dt.from_numpy(x).to(device) for x in arrays]
        want = np.einsum(equation, *arrays)
        same(dt.einsum(equation, *given), want)
        same(dt.einsum(equation, given), want)


def test_einsum_of_lists(device: str) -> None:
    x, y = numbers(2, 3), numbers(3, 4)
    a, b = dt.from_numpy(x).to(device), dt.from_numpy(y).to(device)
    same(dt.einsum(a, [0, 1], b, [1, 2]), x @ y)
    same(dt.einsum(a, [30, 1], b, (1, 2), [2, 30]), (x @ y).T)
    same(dt.einsum(a, [..., 0], [0, ...]), x.T)


def test_einsum_of_sizes_of_one(device: str) -> None:
    """A size of 1 broadcasts, as in PyTorch and not in NumPy."""
    x, y = numbers(2, 1), numbers(3, 4)
    got = dt.einsum("ij,jk->ik", dt.from_numpy(x).to(device), dt.from_numpy(y).to(device))
    same(got, x * y.sum(0))


def test_einsum_of_integers() -> None:
    x = dt.arange(6, dtype=dt.int32).reshape(2, 3)
    assert dt.einsum("ij->ji", x).dtype == dt.int32
    assert dt.einsum("ij->i", x).tolist() == [3, 12]
    with pytest.raises(dt.DTypeMismatchError, match=r"operands\[0\] int32, operands\[1\] int32"):
        dt.einsum("ij,ij->i", x, x)


REFUSED: list[tuple[type[Exception], str, Callable[[], Any]]] = [
    (dt.ShapeMismatchError, "subscript j has size 4 for operand 1", lambda: dt.einsum("ij,jk", ones(2, 3), ones(4, 4))),
    (dt.ShapeMismatchError, "subscript i is repeated for operand 0", lambda: dt.einsum("ii", ones(2, 3))),
    (dt.ShapeMismatchError, "number of subscripts in the equation", lambda: dt.einsum("ijk", ones(2, 3))),
    (dt.ShapeMismatchError, "more than the number of dimensions", lambda: dt.einsum("ijk...", ones(2, 3))),
    (RuntimeError, "fewer operands were provided", lambda: dt.einsum("ij,jk", ones(2, 3))),
    (RuntimeError, "more operands were provided", lambda: dt.einsum("ij", ones(2, 3), ones(2, 3))),
    (RuntimeError, "invalid subscript given at index 1", lambda: dt.einsum("i$", ones(2, 3))),
    (RuntimeError, "not part of any ellipsis", lambda: dt.einsum("i..", ones(2, 3))),
    (RuntimeError, "an ellipsis was already found", lambda: dt.einsum("......", ones(2, 3))),
    (RuntimeError, "output subscript k does not appear", lambda: dt.einsum("ij->k", ones(2, 3))),
    (RuntimeError, "output subscript i appears more than once", lambda: dt.einsum("ij->ii", ones(2, 3))),
    (ValueError, "must specify the equation string", lambda: dt.einsum("ij")),
    (ValueError, r"valid range \[0, 52\)", lambda: dt.einsum(ones(2), [52])),
    (TypeError, "argument 'operands' must hold DeviceArrays, but entry 1 is int", lambda: dt.einsum("i,i", ones(2), 3)),
    (dt.ShapeMismatchError, r"Expected \(2, 3\) but got \(1, 2\)", lambda: dt.vstack([ones(2, 3), ones(2)])),
    (RuntimeError, "hstack expects a non-empty TensorList", lambda: dt.hstack([])),
    (TypeError, "argument 'tensors' must hold DeviceArrays", lambda: dt.hstack([1])),  # type: ignore[list-item]
    (RuntimeError, "meshgrid expects a non-empty TensorList", lambda: dt.meshgrid()),
    (RuntimeError, 'indexing must be one of "xy" or "ij"', lambda: dt.meshgrid(ones(2), indexing="x")),
    (dt.ShapeMismatchError, r"Expected tensors\[1\] to be", lambda: dt.meshgrid(ones(2), ones(2, 2))),
    (dt.DTypeMismatchError, r"tensors\[0\] float32, tensors\[1\] int64", lambda: dt.meshgrid(ones(2), dt.arange(2))),
    (dt.DeviceMismatchError, r"tensors\[1\] on cuda", lambda: dt.meshgrid(ones(2), dt.ones(2, device=GPU))),
    (dt.DeviceMismatchError, r"tensors\[1\] on cuda", lambda: dt.block_diag(ones(2), dt.ones(2, device=GPU))),
    (dt.ShapeMismatchError, r"of tensors\[1\] does not broadcast", lambda: dt.broadcast_tensors(ones(2), ones(3))),
    (RuntimeError, "at index 1 does not broadcast", lambda: dt.broadcast_shapes((2,), (3,))),
    (ValueError, "negative length", lambda: dt.broadcast_shapes((-2,))),
    (dt.ShapeMismatchError, "batches of square matrices", lambda: dt.matrix_power(ones(2, 3), 2)),
    (dt.DeviceMismatchError, r"matrices\[1\] on cuda", lambda: dt.chain_matmul(ones(2, 2), dt.ones(2, 2, device=GPU))),
    (dt.ShapeMismatchError, r"Expected matrices\[1\]", lambda: dt.chain_matmul(ones(2, 3), ones(2, 2))),
]


def ones(*shape: int) -> dt.DeviceArray:
    return dt.ones(*shape)


def test_what_is_refused() -> None:
    for error, text, call in REFUSED:
        with pytest.raises(error, match=text):
            call()


def test_the_odd_one_of_a_list_is_named() -> None:
    for join, odd in itertools.product((dt.hstack, dt.vstack, dt.dstack, dt.column_stack), (0, 3, 20)):
        arrays = [dt.zeros(2, 3, 4)] * 25
        arrays[odd] = dt.zeros(9, 9, 4)
        with pytest.raises(dt.ShapeMismatchError) as caught:
            join(arrays)
        assert caught.value.culprit is not None and caught.value.culprit.name == f"tensors[{odd}]"
        arrays[odd] = dt.zeros(2, 3, 4, device=GPU)
        with pytest.raises(dt.DeviceMismatchError, match=rf"tensors\[{odd}\] on {GPU}"):
            join(arrays)


def test_triangles(device: str) -> None:
    for rows, columns, offset in [*itertools.product(range(4), range(4), range(-5, 6)), (300, 200, 7), (200, 300, -9)]:
        for ours, theirs in ((dt.tril_indices, np.tril_indices), (dt.triu_indices, np.triu_indices)):
            got = ours(rows, columns, offset, device=device)
            assert got.tolist() == np.stack(theirs(rows, offset, columns)).tolist(), (rows, columns, offset)


def test_powers(device: str) -> None:
    x, m = numbers(4), numbers(2, 3, 3)
    given, matrices = dt.from_numpy(x).to(device), dt.from_numpy(m).to(device)
    for count, rising in ((None, False), (2, True), (6, False), (0, False)):
        same(dt.vander(given, count, rising), np.vander(x, count, rising))
    for n in (0, 1, 2, 3, 8):
        same(dt.matrix_power(matrices, n), np.linalg.matrix_power(m, n))
    shapes = ((2, 6), (6, 3), (3, 8), (8, 4))
    chain = [numbers(*shape) for shape in shapes]
    same(dt.chain_matmul(*[dt.from_numpy(c).to(device) for c in chain]), np.linalg.multi_dot(chain))
    assert dt.chain_matmul(matrices[0]) is not matrices[0]


def test_windows(device: str) -> None:
    x = numbers(5, 6)
    given = dt.from_numpy(x).to(device)
    for dimension, size, step in ((0, 2, 1), (1, 3, 2), (-1, 6, 1), (0, 2, 3)):
        windows = np.lib.stride_tricks.sliding_window_view(x, size, dimension)
        same(
            given.unfold(dimension, size, step),
            windows[:: step if dimension == 0 else 1, :: 1 if dimension == 0 else step],
        )
    assert given.unfold(0, 0, 1).shape == (6, 6, 0)
    patches = given.unfold(0, 2, 2).unfold(1, 3, 3)
    assert patches.shape == (2, 2, 2, 3) and patches.data_ptr() == given.data_ptr()
    same(patches, x[:4].reshape(2, 2, 2, 3).swapaxes(1, 2))
    for arguments, text in (((0, 6, 1), "maximum size"), ((0, -1, 1), "size is -1"), ((0, 1, 0), "step is 0")):
        with pytest.raises(RuntimeError, match=text):
            given.unfold(*arguments)


def test_lists_of_arrays(device: str) -> None:
    x, y = dt.ones(2, device=device), dt.zeros(3, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grids = dt.meshgrid([x, y], indexing="xy")
    assert [grid.shape for grid in grids] == [(3, 2), (3, 2)]
    assert [one.shape for one in dt.atleast_2d([x, dt.tensor(1.0)])] == [(1, 2), (1, 1)]
    assert dt.atleast_1d() == ()
    assert dt.block_diag().shape == (1, 0)
    assert dt.block_diag(x, dt.arange(2, device=device)).tolist() == [[1, 1, 0, 0], [0, 0, 0, 1]]
    assert dt.combinations(dt.arange(4, device=device), 3).tolist() == [[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]]
    assert dt.broadcast_shapes() == ()


def test_a_part_shares_the_memory_of_the_whole(device: str) -> None:
    x = dt.zeros(4, 4, device=device)
    parts: Sequence[dt.DeviceArray] = (*dt.hsplit(x, 2), *dt.meshgrid(x[0], x[1]), dt.adjoint(x), dt.atleast_3d(x))
    for part in parts:
        part.detach()[0, 0] = 7
        assert x.sum().item() == 7
        x.zero_()


def test_triangles_in_place(device: str) -> None:
    x = numbers(3, 4)
    y = dt.from_numpy(x.copy()).to(device)
    assert y.tril_(1) is y
    same(y, np.tril(x, 1))
    same(y.triu_(), np.triu(np.tril(x, 1)))


# ---------------------------------------------------------------- another shape for an array object

EXCHANGED: list[tuple[tuple[int, ...], str, tuple[Any, ...], tuple[int, ...]]] = [
    ((1, 2, 1), "squeeze_", (), (2,)),
    ((1, 2, 1), "squeeze_", (0,), (2, 1)),
    ((1, 2, 1), "squeeze_", ((0, -1),), (2,)),
    ((1, 2, 1), "squeeze_", ((),), (1, 2, 1)),
    ((2, 3), "unsqueeze_", (1,), (2, 1, 3)),
    ((2, 3), "unsqueeze_", (-1,), (2, 3, 1)),
    ((2, 3, 4), "transpose_", (0, -1), (4, 3, 2)),
    ((2, 3), "swapaxes_", (0, 1), (3, 2)),
    ((2, 3), "swapdims_", (0, 1), (3, 2)),
    ((2, 3), "t_", (), (3, 2)),
    ((2, 3), "resize_", (3, 2), (3, 2)),
    ((2, 3), "resize_", ((2, 2),), (2, 2)),
    ((2, 3), "resize_", (0,), (0,)),
]


def test_an_array_object_gets_another_shape(device: str) -> None:
    for shape, name, arguments, wanted in EXCHANGED:
        x = dt.arange(int(np.prod(shape)), device=device).reshape(shape)
        other, place = x.detach(), x.data_ptr()
        with dt.forbid_transfers():
            assert getattr(x, name)(*arguments) is x
        assert x.shape == wanted and other.shape == shape, name
        assert not x.numel() or x.data_ptr() == place, name
        if name != "resize_":
            assert x.tolist() == getattr(other, name[:-1])(*arguments).tolist()
    assert dt.arange(6).resize_(2, 2).tolist() == [[0, 1], [2, 3]]


def test_gradients_flow_through_another_shape(device: str) -> None:
    for shape, name, arguments, wanted in EXCHANGED:
        if name == "resize_":
            continue
        leaf = dt.ones(shape, device=device, requires_grad=True)
        x = leaf * 2
        x.retain_grad()
        other, weights = x * 1, dt.arange(float(np.prod(shape)), device=device).reshape(wanted)
        assert getattr(x, name)(*arguments) is x and x.shape == wanted and not x.is_leaf, name
        (x * weights).sum().backward(retain_graph=True)
        back = dt.ones(shape, device=device).mul_(0)
        turned = back.detach()
        getattr(turned, name)(*arguments).copy_(weights)
        assert leaf.grad is not None and leaf.grad.tolist() == (back * 2).tolist(), name
        assert x.grad is not None and x.grad.tolist() == weights.tolist(), name
        leaf.grad = None
        other.sum().backward()  # what was made of it before
        assert leaf.grad.tolist() == dt.full(shape, 2.0).tolist(), name


def test_writes_after_another_shape(device: str) -> None:
    leaf = dt.ones(2, 3, device=device, requires_grad=True)
    x = leaf * 2
    row = x[0]
    x.transpose_(0, 1)
    x[0] *= 5  # a column of what row is the first row of
    row.unsqueeze_(0)
    assert row.shape == (1, 3) and row.tolist() == [[10.0, 2.0, 2.0]]
    (row.sum() + x.sum()).backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [[20.0, 4.0, 4.0], [10.0, 2.0, 2.0]]


def test_leaves_and_what_is_not_recorded_keep_their_shape() -> None:
    leaf = dt.ones(2, 3, requires_grad=True)
    for shape, name, arguments, _ in EXCHANGED:
        own = dt.ones(shape, requires_grad=True)
        for x, text in ((own, "a leaf Variable that"), (own.detach().requires_grad_()[:], "a view of a leaf")):
            words = text if name != "resize_" else "gradients flow to this array, so that it keeps its shape: use x ="
            with pytest.raises(dt.GradientError, match=words):
                getattr(x, name)(*arguments)
            assert x.shape == shape
    x = leaf * 2
    with dt.no_grad(), pytest.raises(dt.GradientError, match="so that it keeps its shape: use x = x.t"):
        x.t_()


def test_a_detached_array_gets_another_shape(device: str) -> None:
    leaf = dt.ones(2, 3, device=device, requires_grad=True)
    for x in (leaf.detach(), dt.ones(2, 3, device=device).detach()):
        x.data = dt.zeros(4, device=device)
        assert x.shape == (4,) and not x.requires_grad and x.unsqueeze_(0).shape == (1, 4)
        assert (x.requires_grad_() * 2).requires_grad


def test_more_elements_get_new_memory(device: str) -> None:
    x = dt.arange(6, device=device).reshape(2, 3)
    other = x.detach()
    assert x.resize_(3, 3) is x and x.shape == (3, 3) and x.flatten()[:6].tolist() == other.flatten().tolist()
    assert x.resize_as_(other).tolist() == other.tolist() and x.data_ptr() != other.data_ptr()
    for refused in (other.t(), other[:, 1:]):
        with pytest.raises(dt.ShapeMismatchError, match=r"resize_\(\): an array of shape .* use x.contiguous\(\)"):
            refused.resize_(2)


def test_orthogonal_weights() -> None:
    for shape in ((3, 5), (5, 3), (4, 2, 3, 3)):
        w = dt.nn.init.orthogonal_(dt.empty(shape, dtype=dt.float64), 2.0, generator=dt.Generator())
        m = w.reshape(shape[0], -1)
        product = m @ m.t() if m.shape[0] <= m.shape[1] else m.t() @ m
        same(product, 4 * np.eye(product.shape[0]))
    assert dt.nn.init.orthogonal_(dt.empty(0, 3)).shape == (0, 3)
    half = dt.nn.init.orthogonal_(dt.empty(4, 4, dtype=dt.float16))
    np.testing.assert_allclose((half.float() @ half.float().t()).numpy(), np.eye(4), atol=1e-2)
    with pytest.raises(ValueError, match="2 or more dimensions"):
        dt.nn.init.orthogonal_(dt.empty(3))
    with pytest.raises(NotImplementedError, match=r"orthogonal_\(\): LAPACK computes it on the cpu alone"):
        dt.nn.init.orthogonal_(dt.empty(3, 3, device=GPU))


def test_a_number_among_matrices_does_not_widen_them(device: str) -> None:
    """The dtype is that of result_type(), as in PyTorch, and not that of cat(), which looks at no dimensions."""
    number, matrix = dt.tensor(1.5, dtype="float64", device=device), dt.ones(1, 2, device=device)
    found = dt.block_diag(number, matrix)
    assert found.dtype == dt.result_type(number, matrix) == dt.float32
    assert found.tolist() == [[1.5, 0, 0], [0, 1, 1]]
    assert dt.block_diag(number, dt.ones(1, dtype="int64", device=device)).dtype == dt.float64


def test_a_number_after_numbers_and_a_matrix_does_not_widen_them(device: str) -> None:
    """The first two have one dtype, but the dimensions of the second count too when the third comes."""
    one = dt.tensor(1.5, device=device)
    found = dt.addcmul(one, dt.ones(1, 2, device=device), dt.tensor(2.0, dtype="float64", device=device))
    assert found.dtype == dt.float32 and found.tolist() == [[3.5, 3.5]]
    assert dt.addcmul(one, one, one.double()).dtype == dt.float64


LAYOUTS: dict[str, Callable[[np.ndarray, str], dt.DeviceArray]] = {
    "plain": lambda a, device: dt.from_numpy(a).to(device),
    "channels last": lambda a, device: dt.from_numpy(a).to(device).contiguous(memory_format=dt.channels_last),
    "turned": lambda a, device: dt.from_numpy(np.ascontiguousarray(a.T)).to(device).permute(3, 2, 1, 0),
    "every other": lambda a, device: dt.from_numpy(a.repeat(2, 3)).to(device)[..., ::2],
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "float16"])
@pytest.mark.parametrize(
    "layouts", [("plain",), ("channels last",), ("plain", "channels last", "turned", "every other")]
)
def test_parts_of_any_layout(layouts: Sequence[str], dtype: str, device: str) -> None:
    """Rows of a part around those that are copied whole, and of a block."""
    rng = np.random.default_rng(7)
    for channels, size in ((1, 1), (3, 5), (16, 4), (17, 8), (64, 3), (300, 2)):
        for dim in range(4):
            parts = []
            for i in range(4):
                shape = [2, channels, size, size + 1]
                shape[dim] += i % 3 * (i != 3)
                parts.append(rng.integers(-100, 100, shape).astype(dtype))
            arrays = [LAYOUTS[layouts[i % len(layouts)]](a, device) for i, a in enumerate(parts)]
            got = dt.cat(arrays, dim)
            assert got.cpu().numpy().tobytes() == np.concatenate(parts, dim).tobytes()
            equal = [a for a in arrays if a.shape == arrays[0].shape]
            want = np.stack([a for a in parts if a.shape == parts[0].shape], dim)
            assert dt.stack(equal, dim).cpu().numpy().tobytes() == want.tobytes()
