"""autograd.functional beside PyTorch's: values, structures, recorded results, strict=, errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import devtensor as dt

Function = Callable[..., Any]
VECTORS = {
    "squares": (lambda x: x * x, ((2, 3),)),
    "one of a tuple": (lambda x: (x.exp(),), ((3,),)),
    "several": (lambda x, y: ((x * y).sum(1), x.sin() + 2, y.prod()), ((2, 3), (3,))),
    "unused": (lambda x, y: x * 3, ((2,), (3,))),
    "constant": (lambda x: x.detach() * 2, ((2,),)),
    "empty": (lambda x: x * 2, ((0, 2),)),
    "scalars": (lambda x: x**3, ((),)),
}
NUMBERS = {
    "cubes": (lambda x: (x**3).sum(), ((2, 3),)),
    "two": (lambda x, y: (x * y).sum() * x.prod(), ((3,), (3,))),
    "line": (lambda x: (x * 3).sum(), ((3,),)),
    "one of two": (lambda x, y: (x**3).sum(), ((2,), (3,))),
    "in a vector": (lambda x: (x**3).sum().reshape(1), ((2,),)),
    "one element": (lambda x: x**4, ((1,),)),
}


def made(library: Any, shapes: Any, device: str, seed: int = 0, **options: Any) -> Any:
    random = np.random.default_rng(seed)
    arrays = [library.tensor(random.normal(size=s).tolist(), dtype=library.float64, device=device) for s in shapes]
    arrays = [
        x.reshape(s).requires_grad_(options.get("requires_grad", False)) for x, s in zip(arrays, shapes, strict=True)
    ]
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


def structure(result: Any) -> Any:
    return tuple(map(structure, result)) if isinstance(result, tuple) else (tuple(result.shape), result.requires_grad)


def leaves(result: Any) -> list[Any]:
    return [leaf for part in result for leaf in leaves(part)] if isinstance(result, tuple) else [result]


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except (RuntimeError, TypeError) as error:
        return error


def same(ours: Any, theirs: Any, about: Any) -> None:
    if isinstance(theirs, Exception):
        assert type(ours) is type(theirs), (about, ours, theirs)
        return
    assert not isinstance(ours, Exception), (about, ours)
    assert structure(ours) == structure(theirs), about
    for a, b in zip(leaves(ours), leaves(theirs), strict=True):
        np.testing.assert_allclose(a.detach().cpu().numpy(), b.detach().numpy(), rtol=1e-12, err_msg=str(about))


OPTIONS = [{}, {"create_graph": True}, {"strict": True}, {"create_graph": True, "strict": True}]


def both(torch: Any, device: str, name: str, function: Function, shapes: Any, v: Any, options: Any) -> None:
    """v: the shapes of the vector, None for no such argument."""
    recorded = options.get("create_graph", False)
    results = []
    for library, where in ((dt, device), (torch, "cpu")):
        inputs = made(library, shapes, where, requires_grad=recorded)
        extra = () if v is None else (made(library, v, where, 1),)
        call = getattr(library.autograd.functional, name)
        results.append(outcome(lambda call=call, inputs=inputs, extra=extra: call(function, inputs, *extra, **options)))
    same(*results, (name, shapes, options))


def test_jacobians_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for key, (function, shapes) in VECTORS.items():
        for options in OPTIONS:
            if key != "empty":
                both(torch, device, "jacobian", function, shapes, None, options)
            both(torch, device, "jvp", function, shapes, shapes, options)
            outputs = function(*leaves(made(torch, shapes, "cpu")))
            both(torch, device, "vjp", function, shapes, [tuple(x.shape) for x in leaves(outputs)], options)
    function, shapes = VECTORS["several"]
    both(torch, device, "jacobian", function, shapes, None, {"vectorize": True})


def test_hessians_are_pytorchs(device: str) -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for function, shapes in NUMBERS.values():
        for options in OPTIONS:
            both(torch, device, "hessian", function, shapes, None, options)
            for name in ("vhp", "hvp"):
                both(torch, device, name, function, shapes, shapes, options)
    for name in ("vjp", "jvp", "vhp", "hvp"):
        both(torch, device, name, lambda x: x.sum() ** 3, ((1,),), None, {})
        both(torch, device, name, lambda x: x.sum() ** 3, ((1,),), ((1, 1),), {})
        both(torch, device, name, lambda x: x.sum() ** 3, ((1,),), ((1,), (1,)), {})
        both(torch, device, name, lambda x: x**3, ((2,),), None, {})


def test_a_recorded_jacobian_has_a_gradient(device: str) -> None:
    x = dt.tensor([1.0, 2.0], device=device, requires_grad=True)
    dt.autograd.functional.jacobian(lambda y: y**3, x, create_graph=True).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [6, 12]
    with dt.no_grad():
        assert dt.autograd.functional.hessian(lambda y: (y**3).sum(), x).tolist() == [[6, 0], [0, 12]]


def test_mistakes() -> None:
    f = dt.autograd.functional
    x = dt.ones(2)
    for name in f.__all__:
        with pytest.raises(TypeError, match="given"):
            getattr(f, name)(lambda y: y.sum(), [1.0])
        with pytest.raises(TypeError, match="func"):
            getattr(f, name)(3, x)
        with pytest.raises(TypeError, match="outputs of the user-provided function"):
            getattr(f, name)(lambda y: 3.0, x, *(() if name in ("jacobian", "hessian") else (x,)))
    for name in ("hessian", "vhp", "hvp"):
        with pytest.raises(RuntimeError, match="single"):
            getattr(f, name)(lambda y: y, x, *(() if name == "hessian" else (x,)))
        with pytest.raises(RuntimeError, match="single"):
            getattr(f, name)(lambda y: (y.sum(),), x, *(() if name == "hessian" else (x,)))
    with pytest.raises(NotImplementedError, match="forward mode"):
        f.jacobian(lambda y: y, x, strategy="forward-mode", vectorize=True)
    with pytest.raises(NotImplementedError, match="forward mode"):
        f.hessian(lambda y: y.sum(), x, outer_jacobian_strategy="forward-mode")
    with pytest.raises(AssertionError, match="strategy"):
        f.jacobian(lambda y: y, x, strategy="both")
    with pytest.raises(RuntimeError, match="not supported together"):
        f.jacobian(lambda y: y, x, strict=True, vectorize=True)
