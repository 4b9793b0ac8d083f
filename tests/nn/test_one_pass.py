"""Ops that the cpu computes in one pass: gradients, and gradients of gradients, beside PyTorch's, for any threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import devtensor as dt

torch = pytest.importorskip("torch")

Made = tuple[Callable[..., Any], Callable[..., Any], Sequence[tuple[int, ...]]]
F, T = dt.nn.functional, torch.nn.functional


def norms() -> dict[str, Made]:
    """Of both libraries, and the shapes of the operands."""
    found: dict[str, Made] = {}
    for lead, own in (((5,), (7,)), ((3, 4), (33,)), ((40,), (3, 5)), ((2,), (1000,)), ((9,), (1,))):
        both = (*lead, *own)
        found[f"layer_norm {both}"] = (
            lambda x, w, b, own=own: F.layer_norm(x, own, w, b, 1e-3),
            lambda x, w, b, own=own: T.layer_norm(x, own, w, b, 1e-3),
            (both, own, own),
        )
        found[f"layer_norm without weight {both}"] = (
            lambda x, own=own: F.layer_norm(x, own, eps=1e-3),
            lambda x, own=own: T.layer_norm(x, own, eps=1e-3),
            (both,),
        )
        found[f"rms_norm {both}"] = (
            lambda x, w, own=own: F.rms_norm(x, own, w, 1e-3),
            lambda x, w, own=own: T.rms_norm(x, own, w, 1e-3),
            (both, own),
        )
    for shape in ((3, 4, 5, 5), (4, 3, 40), (5, 6, 4), (2, 1, 1000), (6, 5)):  # also by the formula: few neighbours
        found[f"batch_norm {shape}"] = (
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True, eps=1e-3),
            lambda x, w, b: T.batch_norm(x, None, None, w, b, True, eps=1e-3),
            (shape, shape[1:2], shape[1:2]),
        )
        found[f"batch_norm without bias {shape}"] = (
            lambda x, w: F.batch_norm(x, None, None, w, None, True, eps=1e-3),
            lambda x, w: T.batch_norm(x, None, None, w, None, True, eps=1e-3),
            (shape, shape[1:2]),
        )
        found[f"batch_norm without weight {shape}"] = (
            lambda x: F.batch_norm(x, None, None, training=True, eps=1e-3),
            lambda x: T.batch_norm(x, None, None, training=True, eps=1e-3),
            (shape,),
        )
    found["batch_norm of channels last"] = (
        lambda x, w, b: F.batch_norm(x.permute(0, 3, 1, 2), None, None, w, b, True),
        lambda x, w, b: T.batch_norm(x.permute(0, 3, 1, 2), None, None, w, b, True),
        ((3, 5, 6, 4), (4,), (4,)),
    )
    found["layer_norm of columns"] = (
        lambda x, w: F.layer_norm(x.permute(0, 2, 1), (6,), w, w, 1e-3),
        lambda x, w: T.layer_norm(x.permute(0, 2, 1), (6,), w, w, 1e-3),
        ((4, 6, 5), (6,)),
    )
    for shape in ((4, 6, 5, 3), (3, 6, 40), (2, 12, 1000), (5, 6), (2, 6, 3)):  # also by other ops: few pixels
        c = shape[1]
        for groups in (1, 3, c):
            found[f"group_norm {shape} {groups}"] = (
                lambda x, w, b, groups=groups: F.group_norm(x, groups, w, b, 1e-3),
                lambda x, w, b, groups=groups: T.group_norm(x, groups, w, b, 1e-3),
                (shape, (c,), (c,)),
            )
        found[f"group_norm without weight {shape}"] = (
            lambda x: F.group_norm(x, 3, eps=1e-3),
            lambda x: T.group_norm(x, 3, eps=1e-3),
            (shape,),
        )
        found[f"group_norm without bias {shape}"] = (
            lambda x, w: F.group_norm(x, 2, w, eps=1e-3),
            lambda x, w: T.group_norm(x, 2, w, eps=1e-3),
            (shape, (c,)),
        )
    found["group_norm of columns"] = (
        lambda x, w, b: F.group_norm(x.permute(0, 3, 1, 2), 2, w, b),
        lambda x, w, b: T.group_norm(x.permute(0, 3, 1, 2), 2, w, b),
        ((3, 5, 6, 4), (4,), (4,)),
    )
    found["instance_norm"] = (
        lambda x, w, b: F.instance_norm(x, None, None, w, b, eps=1e-3),
        lambda x, w, b: T.instance_norm(x, None, None, w, b, eps=1e-3),
        ((3, 4, 5, 6), (4,), (4,)),
    )
    return found


def check(name: str, ours: Callable[[], Any], theirs: Callable[[], Any], a: list[Any], b: list[Any]) -> None:
    """The results, their gradients by a and b with and without a graph, and the gradients of those."""
    rng = np.random.default_rng(1)
    y, z = ours(), theirs()
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), 1e-9, 1e-9, err_msg=name)
    weight = rng.standard_normal(y.shape)
    for graph in (False, True):
        got = dt.autograd.grad(ours(), a, dt.from_numpy(weight), create_graph=graph)
        want = torch.autograd.grad(theirs(), b, torch.from_numpy(weight), create_graph=graph)
        for p, q in zip(got, want, strict=True):
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), 1e-8, 1e-8, err_msg=name)
    s, u = sum((g * g).sum() for g in got), sum((g * g).sum() for g in want)
    seconds = dt.autograd.grad(s, a, allow_unused=True), torch.autograd.grad(u, b, allow_unused=True)
    for p, q in zip(*seconds, strict=True):
        if q is not None:
            np.testing.assert_allclose(p.numpy(), q.numpy(), 1e-6, 1e-6, err_msg=name)


def test_norms_and_their_gradients_are_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    for name, (ours, theirs, shapes) in norms().items():
        values = [rng.standard_normal(shape) for shape in shapes]
        a = [dt.from_numpy(v.copy()).requires_grad_(True) for v in values]
        b = [torch.from_numpy(v.copy()).requires_grad_(True) for v in values]
        check(name, lambda f=ours, a=a: f(*a), lambda f=theirs, b=b: f(*b), a, b)


def test_recurrent_layers_and_their_gradients_are_those_of_torch() -> None:
    rng = np.random.default_rng(0)
    for name in ("LSTM", "GRU"):
        for options in ({}, {"batch_first": True}, {"bias": False, "bidirectional": True}):
            theirs = getattr(torch.nn, name)(6, 5, **options, dtype=torch.float64)
            ours = getattr(dt.nn, name)(6, 5, **options, dtype=dt.float64)
            ours.load_state_dict({k: dt.from_numpy(v.numpy().copy()) for k, v in theirs.state_dict().items()})
            x = rng.standard_normal((4, 3, 6))
            a, b = dt.from_numpy(x.copy()).requires_grad_(True), torch.from_numpy(x).requires_grad_(True)
            check(
                f"{name} {options}",
                lambda f=ours, x=a: f(x)[0],
                lambda f=theirs, x=b: f(x)[0],
                [a, *ours.parameters()],
                [b, *theirs.parameters()],
            )


def test_batch_norm_updates_its_running_numbers_as_torch() -> None:
    rng = np.random.default_rng(2)
    for dtype in ("float32", "float64"):
        x = (rng.standard_normal((5, 3, 6, 7)) * 3 + 100).astype(dtype)  # far from 0: squares alone would lose digits
        mean, var = np.zeros(3, dtype), np.ones(3, dtype)
        ours = [dt.from_numpy(a.copy()) for a in (x, mean, var)]
        theirs = [torch.from_numpy(a.copy()) for a in (x, mean, var)]
        got, want = F.batch_norm(*ours, training=True), T.batch_norm(*theirs, training=True)
        near = 2e-6 if dtype == "float32" else 1e-12
        for a, b in zip((got, *ours[1:]), (want, *theirs[1:]), strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 4 * near, 40 * near)


def test_batch_norm_of_nothing_is_as_torch() -> None:
    for shape in ((0, 2), (0, 2, 3, 3), (3, 2, 0)):
        found = []
        for library in (dt, torch):
            x = library.zeros(shape, requires_grad=True)
            layer = getattr(library.nn, f"BatchNorm{max(len(shape) - 2, 1)}d")(2)
            result = layer(x)
            result.sum().backward()
            state = [a.tolist() for a in layer.state_dict().values()]
            found.append((tuple(result.shape), tuple(x.grad.shape), layer.weight.grad.tolist(), state))
        assert found[0] == found[1], shape


def test_the_gradient_of_large_pools_is_that_of_torch() -> None:
    """Planes that are made in strips, equal entries and NaN among them, and gradients that lie otherwise than x."""
    rng = np.random.default_rng(3)
    for shape in ((2, 3, 112, 112), (1, 9, 70, 131), (1, 1, 700, 33), (1, 1, 37, 2000)):
        x = rng.integers(0, 50, shape).astype("float32")
        x[..., 5:9, 7] = np.nan
        for args in ((3, 2, 1), (3, 1, 1), (2, 2), (2, 3), (5, 2, 2, 3), ((9, 3), (4, 2), (4, 0))):
            for last in (False, True):
                a, b = dt.from_numpy(x.copy()), torch.from_numpy(x.copy())
                if last:
                    a, b = a.to(memory_format=dt.channels_last), b.to(memory_format=torch.channels_last)
                a.requires_grad_(), b.requires_grad_()
                y, z = F.max_pool2d(a, *args), T.max_pool2d(b, *args)
                g = rng.integers(-9, 9, tuple(y.shape)).astype("float32")
                got, want = dt.autograd.grad(y, a, dt.from_numpy(g)), torch.autograd.grad(z, b, torch.from_numpy(g))
                np.testing.assert_array_equal(got[0].numpy(), want[0].numpy(), f"{shape} {args} {last}")


def test_any_number_of_threads_gives_the_same_bits() -> None:
    generator = dt.Generator().manual_seed(1)
    x = dt.randn(900, 77, generator=generator).requires_grad_(True)
    w = dt.randn(77, generator=generator).requires_grad_(True)
    rows = dt.randn(10, 30011, generator=generator)
    places = dt.randint(0, 30011, (5000,), generator=generator)

    def results() -> list[bytes]:
        y = F.layer_norm(x, (77,), w, w)
        found = [y, *dt.autograd.grad(y.square().sum(), (x, w))]
        z = F.batch_norm(x.reshape(30, 30, 77), None, None, w[:30], w[30:60], True)
        found += [z, *dt.autograd.grad(z.square().sum(), (x, w)), rows.cumsum(1), rows.flip(1)]
        z = F.group_norm(x.reshape(30, 30, 77), 5, w[:30], w[30:60])
        found += [z, *dt.autograd.grad(z.square().sum(), (x, w))]
        found += [rows.index_select(1, places), rows.t().contiguous().index_select(0, places)]
        found += [dt.randn(70001, 3, generator=dt.Generator().manual_seed(2))]
        found += [dt.randperm(70001, generator=dt.Generator().manual_seed(2))]
        return [a.detach().numpy().tobytes() for a in found]

    before = dt.get_num_threads()
    try:
        dt.set_num_threads(1)
        one = results()
        for n in (2, 3):
            dt.set_num_threads(n)
            assert results() == one
    finally:
        dt.set_num_threads(before)


def test_stretches_of_indices_are_copied_as_they_are_written() -> None:
    """Rising, falling, repeated and mixed indices, of elements and of rows, into every layout."""
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64", "int8", "float16"):
        x = (rng.standard_normal((6, 40, 33)) * 50).astype(dtype)
        for d in range(3):
            n = x.shape[d]
            rising = np.arange(n)
            mixed = rng.integers(0, n, 70)
            for index in (rising, rising[::-1].copy(), np.repeat(rising, 9), np.tile(rising, 3), mixed):
                for layout in ("whole", "turned", "every other"):
                    seen = x if layout == "whole" else x.transpose(2, 1, 0) if layout == "turned" else x[..., ::2]
                    ours = dt.from_numpy(x)
                    ours = (
                        ours if layout == "whole" else ours.permute(2, 1, 0) if layout == "turned" else ours[..., ::2]
                    )
                    kept = index[index < seen.shape[d]]
                    got = ours.index_select(d, dt.from_numpy(kept))
                    np.testing.assert_array_equal(got.numpy(), np.take(seen, kept, d))
    bad = dt.zeros(2000, 70, dtype=dt.int64)
    bad[1500, 33] = 70
    with pytest.raises(IndexError, match="index 70 is out of bounds for dimension 1 with size 70"):
        dt.zeros(2000, 70).gather(1, bad)
    with pytest.raises(IndexError, match="index -1 is out of bounds"):
        dt.zeros(2000, 70).index_select(1, dt.tensor([1, -1]))
