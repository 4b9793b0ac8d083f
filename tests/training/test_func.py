"""devtensor.func: the same expressions in devtensor and in PyTorch, and the values that they must have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import devtensor as dt

# Each with x = [1, 2], rows = [[0, 1], [2, 3], [4, 5]], y of three rows, a layer with weight [[1, 1]] and bias [0.5].
VALUES = {
    "F.grad(lambda x: (x**3).sum())(x)": [3.0, 12.0],
    "F.grad(lambda x, y: (x * y).sum(), (0, 1))(x, 3 * x)": [[3.0, 6.0], [1.0, 2.0]],
    "F.grad(lambda x, y: (x * y).sum(), -1)(x, 3 * x)": [1.0, 2.0],
    "F.grad(lambda d: (d['a'] ** 2).sum())({'a': x, 'b': x})": {"a": [2.0, 4.0], "b": [0.0, 0.0]},
    "F.grad(lambda x: (x.sum(), {'aux': x * 2}), has_aux=True)(x)": [[1.0, 1.0], {"aux": [2.0, 4.0]}],
    "F.grad(lambda x: torch.ones_like(x).sum())(x)": [0.0, 0.0],
    "F.grad(F.grad(lambda x: x**3))(x[1])": 12.0,
    "F.grad(lambda x: F.grad(lambda y: (x * y**2).sum())(x).sum())(x)": [4.0, 8.0],
    "F.grad_and_value(lambda x: (x * x).sum())(x)": [[2.0, 4.0], 5.0],
    "F.grad_and_value(lambda x: ((x * x).sum(), x), has_aux=True)(x)": [[2.0, 4.0], [5.0, [1.0, 2.0]]],
    "F.vjp(lambda x, y: (x * y, x.sum()), x, 2 * x)[1]((x, x[0]))": [[3.0, 9.0], [1.0, 4.0]],
    "F.vjp(lambda x: (x * x, x + 1), x, has_aux=True)[2]": [2.0, 3.0],
    "F.jvp(lambda x, y: (x * y, {'sum': x.sum()}), (x, x), (x, 2 * x))": [
        [[1.0, 4.0], {"sum": 3.0}],
        [[3.0, 12.0], {"sum": 3.0}],
    ],
    "F.jvp(lambda x: x.logcumsumexp(0), (x,), (torch.ones_like(x),))[1]": [1.0, 1.0],
    "F.jvp(lambda x: tuple(x.max(0)), (x,), (x,))": [[2.0, 1], [2.0, 0]],
    "F.jacrev(lambda x: (x**2, {'sum': x.sum()}))(x)": [[[2.0, 0.0], [0.0, 4.0]], {"sum": [1.0, 1.0]}],
    "F.jacrev(lambda x, y: x * y, (0, 1))(x, 2 * x)": [[[2.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]]],
    "F.jacfwd(lambda x: x.outer(x))(x[:1])": [[[2.0]]],
    "F.hessian(lambda x: (x**3).sum())(x)": [[6.0, 0.0], [0.0, 12.0]],
    "F.hessian(lambda x, y: (x * x * y).sum(), (0, 1))(x, x)": [
        [[[2.0, 0.0], [0.0, 4.0]], [[2.0, 0.0], [0.0, 4.0]]],
        [[[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]],
    ],
    "F.vmap(lambda row, a: row * a.sum(), (0, None))(rows, x)": [[0.0, 3.0], [6.0, 9.0], [12.0, 15.0]],
    "F.vmap(lambda column: column[0], 1, 0)(rows)": [0.0, 1.0],
    "F.vmap(lambda column: column, -1, -1)(rows)": [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]],
    "F.vmap(lambda row: {'row': row, 'sum': row.sum()}, out_dims={'row': 1, 'sum': 0})(rows)": {
        "row": [[0.0, 2.0, 4.0], [1.0, 3.0, 5.0]],
        "sum": [1.0, 5.0, 9.0],
    },
    "F.vmap(lambda d: d['a'] + d['b'], ({'a': 0, 'b': None},))({'a': rows, 'b': x})": [
        [1.0, 3.0],
        [3.0, 5.0],
        [5.0, 7.0],
    ],
    "F.vmap(lambda row: (row.sum(), 2), out_dims=(0, None))(rows)": [[1.0, 5.0, 9.0], 2],
    "torch.vmap(F.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, x)": [[1.0, 2.0], [2.0, 4.0]],
    "F.vmap(F.jacrev(lambda row: row**2), chunk_size=2)(rows)[2]": [[8.0, 0.0], [0.0, 10.0]],
    "F.functional_call(layer, {'weight': 2 * layer.weight}, x)": [6.5],
    "F.functional_call(layer, ({'weight': rows[:1]}, {'bias': x[:1]}), (x,), {})": [3.0],
    "F.functional_call(layer, dict(layer.named_parameters()), (x,), strict=True)": [3.5],
    "F.functional_call(tied, {'0.weight': rows[:2]}, x)": [8.0, 28.0],
    "F.functional_call(tied, {'0.weight': rows[:2], '1.weight': rows[1:]}, x, tie_weights=False)": [28.0, 48.0],
    "F.vmap(F.grad(loss), (None, 0, 0))(own, rows, y)": {
        "weight": [[[0.0, 3.0]], [[18.0, 27.0]], [[60.0, 75.0]]],
        "bias": [[3.0], [9.0], [15.0]],
    },
    "F.grad(lambda p: loss({k: p[k] - 0.1 * g for k, g in F.grad(loss)(p, x, y[0]).items()}, x, y[0]))(own)": {
        "weight": [[0.28, 0.56]],
        "bias": [0.28],
    },
    "F.stack_module_state([layer, layer])[0]": {"weight": [[[1.0, 1.0]], [[1.0, 1.0]]], "bias": [[0.5], [0.5]]},
    "F.stack_module_state([norm, norm])[1]['running_var']": [[1.0, 1.0], [1.0, 1.0]],
    "updated(norm, rows)": [[0.2, 0.3], 1, [0.0, 0.0]],
}


def surroundings(torch: Any, func: Any, device: str) -> dict[str, Any]:
    x = torch.tensor([1.0, 2.0], device=device)
    layer = torch.nn.Linear(2, 1)
    layer.weight.data.fill_(1.0)
    layer.bias.data.fill_(0.5)
    first, second = torch.nn.Linear(2, 2, bias=False), torch.nn.Linear(2, 2, bias=False)
    second.weight = first.weight
    tied, norm = torch.nn.Sequential(first, second).to(device), torch.nn.BatchNorm1d(2).to(device)
    layer.to(device)

    def loss(parameters: Any, x: Any, y: Any) -> Any:
        return ((func.functional_call(layer, parameters, (x,)) - y) ** 2).mean()

    def updated(norm: Any, x: Any) -> Any:
        buffers = {key: buffer.clone() for key, buffer in norm.named_buffers()}
        func.functional_call(norm, (dict(norm.named_parameters()), buffers), (x,))
        return [buffers["running_mean"], buffers["num_batches_tracked"], norm.running_mean]

    return {
        "torch": torch,
        "F": func,
        "x": x,
        "rows": torch.arange(6.0, device=device).view(3, 2),
        "y": torch.arange(3.0, device=device).view(3, 1),
        "layer": layer,
        "tied": tied,
        "norm": norm,
        "loss": loss,
        "own": {key: parameter.detach() for key, parameter in layer.named_parameters()},
        "updated": updated,
    }


def plain(result: Any) -> Any:
    """Nested lists and dictionaries of rounded numbers, and whether arrays are recorded."""
    if isinstance(result, dict):
        return {key: plain(value) for key, value in result.items()}
    if isinstance(result, tuple | list):
        return [plain(value) for value in result]
    if hasattr(result, "tolist"):
        return plain(result.detach().cpu().tolist())
    return round(result, 3) if isinstance(result, float) else result


def recorded(result: Any) -> Any:
    if isinstance(result, dict | tuple | list):
        return [recorded(value) for value in (result.values() if isinstance(result, dict) else result)]
    return getattr(result, "requires_grad", None)


@pytest.mark.parametrize("code", VALUES)
def test_values(code: str, device: str) -> None:
    assert plain(eval(code, surroundings(dt, dt.func, device))) == plain(VALUES[code])


def test_values_are_those_of_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transforms = pytest.importorskip("torch.func")
    for code in VALUES:
        ours = eval(code, surroundings(dt, dt.func, "cpu"))
        theirs = eval(code, surroundings(torch, transforms, "cpu"))
        assert plain(ours) == plain(theirs), code
        assert recorded(ours) == recorded(theirs), code


def test_what_is_recorded_outside_stays_recorded() -> None:
    x, w = dt.ones(2), dt.ones(2, requires_grad=True)
    for function in (lambda x: (x**2 * w).sum(), lambda x: (x * w.exp()).sum()):
        slope = dt.func.grad(function)(x)
        assert slope.requires_grad and not dt.func.grad(lambda x: (x**2).sum())(x).requires_grad
        (second,) = dt.autograd.grad(slope.sum(), w)
        assert second.shape == (2,) and bool((second > 0).all())
    value, pull = dt.func.vjp(lambda x: x * w, x)
    value.sum().backward(retain_graph=True)
    assert w.grad is not None and pull(x)[0].requires_grad
    with dt.no_grad():
        assert dt.func.grad(lambda x: (x**2).sum())(x).tolist() == [2.0, 2.0]


REFUSED: dict[str, tuple[type[Exception], str]] = {
    "F.grad(lambda x: x)(x)": (RuntimeError, "return a scalar array, got one with 1 dims"),
    "F.grad(lambda x: 3)(x)": (RuntimeError, "return a DeviceArray, got <class 'int'>"),
    "F.grad(lambda x: x.sum(), 1)(x)": (RuntimeError, "Got argnum=1, but only 1 positional inputs"),
    "F.grad(lambda x: x.sum(), (0, -1))(x)": (RuntimeError, "argnums elements must be unique"),
    "F.grad(lambda x: x.sum(), 1.5)(x)": (RuntimeError, "argnum must be int"),
    "F.grad(lambda x: x.sum())(3)": (ValueError, "must be DeviceArray, got <class 'int'>"),
    "F.grad(lambda x: x.sum(), has_aux=True)(x)": (RuntimeError, "if has_aux is True"),
    "F.grad(lambda x: x.sum())(x.int())": (RuntimeError, "floating point"),
    "F.vjp(lambda x: 3, x)": (RuntimeError, "only arrays, got unsupported type <class 'int'>"),
    "F.vjp(lambda x: (x, x), x)[1](x)": (RuntimeError, "which gave 2 arrays; cotangents have 1"),
    "F.jvp(lambda x: x, x, x)": (RuntimeError, "Expected primals to be a tuple"),
    "F.jvp(lambda x: x, (x,), (x, x))": (RuntimeError, "the same python structure"),
    "F.jvp(lambda x: x, (x,), (rows,))": (RuntimeError, r"its primal, \[2\], not \[3, 2\]"),
    "F.jvp(lambda x: torch.ones(2), (x,), (x,), strict=True)": (RuntimeError, "does not depend on primals"),
    "F.jacrev(lambda x: x, chunk_size=0)": (ValueError, "greater than 0"),
    "F.jacfwd(lambda x: x, randomness='none')": (RuntimeError, "Got none"),
    "F.vmap(3)": (TypeError, "must be callable"),
    "F.vmap(lambda x: x, randomness='none')": (RuntimeError, "Got none"),
    "F.vmap(lambda x: x, chunk_size=0)": (ValueError, "chunk_size"),
    "F.vmap(lambda: 3)()": (ValueError, "got no inputs"),
    "F.vmap(lambda x: x)(x[:0])": (ValueError, "the mapped dimension has no entries"),
    "F.vmap(lambda x: x)(3)": (ValueError, "of type <class 'int'>"),
    "F.vmap(lambda x: x, None)(x)": (ValueError, "expected `in_dims` to be int"),
    "F.vmap(lambda x: x, (None,))(x)": (ValueError, "all in_dims are None"),
    "F.vmap(lambda x: x, 1)(x)": (ValueError, r"-1 <= in_dim < 1"),
    "F.vmap(lambda x: x, (0, 0))(x)": (ValueError, "in_dims is not compatible"),
    "F.vmap(lambda x, y: x)(x, rows)": (ValueError, r"got sizes \[2, 3\]"),
    "F.vmap(lambda x: None)(x)": (ValueError, "must only return arrays, got type <class 'NoneType'>"),
    "F.vmap(lambda x: (x, x), out_dims=(0, 0, 0))(x)": (ValueError, "out_dims is not compatible"),
    "F.vmap(lambda x: x if x > 1 else (x,))(x)": (ValueError, "results of different forms"),
    "F.functional_call(3, {})": (TypeError, "must be a Module"),
    "F.functional_call(layer, 3)": (ValueError, "to be a dict, or a list/tuple of dicts"),
    "F.functional_call(layer, [3])": (ValueError, "to be dictionaries"),
    "F.functional_call(layer, ({'bias': x}, {'bias': x}))": (ValueError, r"\['bias'\] appeared in multiple"),
    "F.functional_call(layer, {'bias': 3}, x)": (TypeError, "3 is not an instance of DeviceArray"),
    "F.functional_call(layer, {'a.b': x}, x)": (AttributeError, "Linear has no attribute `a`"),
    "F.functional_call(layer, {'bias.b': x}, x)": (TypeError, "submodule bias: .* is not an instance of Module"),
    "F.functional_call(layer, {'b': x}, x, strict=True)": (
        RuntimeError,
        r"(?s)Unexpected key\(s\): 'b'.*'bias', 'weight'",
    ),
    "F.functional_call(tied, {'0.weight': x, '1.weight': rows}, x)": (ValueError, "multiple values for keys"),
    "F.stack_module_state([])": (RuntimeError, "at least one model"),
    "F.stack_module_state([layer, tied])": (RuntimeError, "of the same class"),
    "F.stack_module_state([torch.nn.ReLU(), torch.nn.ReLU().eval()])": (RuntimeError, "training/eval mode"),
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_is_refused(code: str) -> None:
    names = surroundings(dt, dt.func, "cpu")
    kind, text = REFUSED[code]
    before = {key: id(array) for key, array in names["layer"].state_dict(keep_vars=True).items()}
    with pytest.raises(kind, match=text):
        eval(code, names)
    after = {key: id(array) for key, array in names["layer"].state_dict(keep_vars=True).items()}
    assert after == before


def test_a_module_has_its_own_again_after_a_call_that_fails() -> None:
    layer = dt.nn.Linear(2, 1)
    own = layer.weight
    with pytest.raises(RuntimeError):
        dt.func.functional_call(layer, {"weight": dt.ones(1, 3), "extra": dt.ones(1)}, dt.ones(2))
    assert layer.weight is own and not hasattr(layer, "extra")


def test_random_numbers_of_the_calls() -> None:
    mapped: Callable[..., Any] = dt.vmap(lambda row: row + dt.rand(()), randomness="same")
    assert len(set(mapped(dt.zeros(4)).tolist())) == 1
    assert len(set(dt.vmap(lambda row: row + dt.rand(()))(dt.zeros(4)).tolist())) == 4


CAPTURED = {
    "F.grad(lambda x: (c.add_(1) * x).sum())(x)",
    "F.grad(lambda x: (c.detach().zero_() + x).sum())(x)",
    "F.grad(lambda x: written(c, 1.0).sum() + x.sum())(x)",
    "F.grad(lambda x: (c.normal_() * x).sum())(x)",
    "F.vjp(lambda x: c.mul_(2) * x, x)",
    "F.jvp(lambda x: c.mul_(2) * x, (x,), (x,))",
    "F.jacrev(lambda x: c.copy_(x) * x)(x)",
    "F.jacfwd(lambda x: c.add_(1) * x)(x)",
    "F.vmap(lambda row: c.add_(row))(rows)",
    "F.vmap(lambda row, whole: whole.add_(row), (0, None))(rows, c)",
    "F.vmap(lambda row: torch.add(row, row, out=c))(rows)",
    "F.vmap(lambda row: F.grad(lambda y: (c.add_(1) * y).sum())(row))(rows)",
    "F.grad(lambda x: F.grad(lambda y: (c.add_(1) * y).sum())(x).sum())(x)",
    "F.grad(lambda x: F.grad(lambda y, z: (z.add_(1) * y).sum())(x, c).sum())(x)",
}
OWN = {
    "F.grad(lambda x: torch.zeros(2, device=x.device).add_(x).sum())(x)",
    "F.grad(lambda x: x.clone().mul_(2).sum())(x)",
    "F.grad(lambda x, c: (c.add_(1) * x).sum())(x, c)",
    "F.grad(lambda x, c: (c.add_(1) * x).sum())(x, c=c)",
    "F.vmap(lambda row: row.add_(1))(rows)",
    "F.vmap(lambda row: torch.zeros_like(row).add_(row))(rows)",
    "F.vmap(F.grad(lambda row: row.clone().mul_(row).sum()))(rows)",
    "F.grad(lambda x: F.vmap(lambda a: a.clone().mul_(a))(x).sum())(x)",
}


def captured(torch: Any, func: Any, device: str) -> dict[str, Any]:
    def written(array: Any, value: float) -> Any:
        array[0] = value
        return array

    return surroundings(torch, func, device) | {"c": torch.tensor([1.0, 2.0], device=device), "written": written}


def test_a_write_to_what_was_there_before_is_refused(device: str) -> None:
    for code in CAPTURED:
        names = captured(dt, dt.func, device)
        with pytest.raises(dt.GradientError) as raised:
            eval(code, names)
        assert raised.value.code == "grad-captured" and names["c"].tolist() == [1.0, 2.0], code
        names["c"].add_(1)  # outside of it is as ever
    for code in OWN:
        eval(code, captured(dt, dt.func, device))


def test_pytorch_refuses_the_same_writes() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    for code in CAPTURED:
        with pytest.raises(RuntimeError):
            eval(code, captured(torch, torch.func, "cpu"))
    for code in OWN:
        theirs = eval(code, captured(torch, torch.func, "cpu"))
        assert plain(theirs) == plain(eval(code, captured(dt, dt.func, "cpu"))), code


INSIDE = {
    "F.grad(lambda x: backward((x * x).sum()))(x)",
    "F.vjp(lambda x: backward((w * x).sum()), x)",
    "F.vmap(lambda row: backward((w * row).sum()))(rows)",
    "F.vmap(F.grad(lambda row: backward((w * row).sum())))(rows)",
}


@pytest.mark.parametrize("frame", ["devtensor", "torch"])
def test_backward_in_a_transform_is_refused(frame: str) -> None:
    torch = dt if frame == "devtensor" else pytest.importorskip("torch", reason="PyTorch is not installed")

    def backward(result: Any) -> Any:
        result.backward()
        return result

    w = torch.ones(2, requires_grad=True)
    for code in INSIDE:
        names = surroundings(torch, torch.func, "cpu") | {"w": w, "backward": backward}
        with pytest.raises(RuntimeError, match="backward\\(\\) called inside") as raised:
            eval(code, names)
        assert frame == "torch" or raised.value.code == "grad-transform"
        assert w.grad is None, code
    (w * 2).sum().backward()  # outside of it is as ever
    assert w.grad.tolist() == [2, 2]


def test_results_of_nested_transforms_are_recorded_as_in_pytorch() -> None:
    """Of an inner vjp or jvp too: nothing leads back to what the outer one had made its own."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    inner = {
        "F.vjp(lambda y: y * y, x)[1](x)[0]",
        "F.vjp(lambda y: y * x, x)[1](x)[0]",
        "F.vjp(lambda y: y * x, x)[0]",
        "F.jvp(lambda y: y * y, (x,), (x,))[1]",
        "F.jvp(lambda y: y * x, (x,), (x,))[0]",
    }
    for code in inner:
        for outer in (
            f"F.grad(lambda x: ({code}).sum())(x)",
            f"F.jacrev(lambda x: {code})(x)",
            f"F.jvp(lambda x: {code}, (x,), (x,))",
        ):
            ours, theirs = (eval(outer, surroundings(lib, lib.func, "cpu")) for lib in (dt, torch))
            assert plain(ours) == plain(theirs) and recorded(ours) == recorded(theirs), outer


def test_no_grad_inside_stops_forward_derivatives(device: str) -> None:
    """Not in PyTorch, whose forward mode does not look at it; docs/autograd.md says so."""

    def f(x: Any) -> Any:
        with dt.no_grad():
            y = x * x
        return (y * x).sum()

    x = dt.tensor([1.0, 2.0], device=device)
    assert dt.func.jvp(f, (x,), (x,))[1].item() == 9.0 and dt.func.jacfwd(f)(x).tolist() == [1.0, 4.0]
    assert dt.func.hessian(f)(x).tolist() == [[0.0, 0.0], [0.0, 0.0]] and dt.func.jacrev(f)(x).tolist() == [1.0, 4.0]


def test_modules_may_write_to_what_only_they_see(device: str) -> None:
    x = dt.ones(2, 3, device=device)
    for norm in (dt.nn.utils.spectral_norm, dt.nn.utils.parametrizations.spectral_norm):
        layer = norm(dt.nn.Linear(3, 3)).to(device)
        assert dt.func.grad(lambda x, layer=layer: layer(x).sum())(x).shape == (2, 3)
        assert dt.func.vmap(layer)(x).shape == (2, 3)
        assert dt.func.vmap(dt.func.grad(lambda x, layer=layer: layer(x).sum()))(x).shape == (2, 3)
        with pytest.raises(dt.GradientError):  # the transform goes on
            dt.func.grad(lambda y, layer=layer: (layer(y) * x.mul_(2)).sum())(x)
