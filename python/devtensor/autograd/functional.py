"""Jacobians, Hessians and their products with vectors, by gradients: one call of autograd.grad for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor.autograd.grad_mode import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def __dir__() -> list[str]:
    return __all__


_Arrays = DeviceArray | tuple[DeviceArray, ...]
_Several = tuple[DeviceArray, ...]
_Gradients = tuple[DeviceArray | None, ...]
_OUTPUTS = "outputs of the user-provided function"
_NOT_STRICT = "This is not allowed in strict mode."


def _as_tuple(op: str, name: str, given: Any) -> tuple[bool, _Several]:
    """Whether given is a tuple, and its arrays. Raises TypeError."""
    several = isinstance(given, tuple)
    arrays = given if several else (given,)
    for i, array in enumerate(arrays):
        if not isinstance(array, DeviceArray):
            which = f"the value at index {i}" if several else f"the given {name}"
            text = (
                f"The {name} given to {op} must be either a DeviceArray or a tuple of DeviceArrays but {which} has type"
            )
            raise TypeError(f"{text} {type(array)}.")
    return several, arrays


def _begin(op: str, func: object, create_graph: object, strict: object) -> tuple[bool, bool]:
    if not callable(func):
        raise TypeError(f"{op}(): argument 'func' must be callable, not {type(func).__name__}")
    return _need_bool(op, "create_graph", create_graph), _need_bool(op, "strict", strict)


def _fresh(arrays: _Several, create_graph: bool, recorded: bool = True) -> _Several:
    """Other arrays of the same memory: func may use the arguments by itself, which does not count."""
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_(recorded) for x in arrays
    )


def _ended(result: Any, create_graph: bool) -> Any:
    """result without its history, where nobody has asked for that."""
    if create_graph:
        return result
    return result.detach() if isinstance(result, DeviceArray) else tuple(_ended(part, create_graph) for part in result)


def _as_given(result: tuple[Any, ...], several: bool) -> Any:
    return result if several else result[0]


def _need_recorded(outputs: _Several, strict: bool) -> None:
    for i, output in enumerate(outputs if strict else ()):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in "
                "a differentiable manner from the input when running in strict mode."
            )


def _need_dependent(gradients: _Gradients, strict: bool, text: str) -> None:
    """Raises RuntimeError for a gradient that does not depend on the inputs."""
    for i, gradient in enumerate(gradients if strict else ()):
        if gradient is None:
            raise RuntimeError(f"The output of the user-provided function is independent of input {i}. {_NOT_STRICT}")
        if not gradient.requires_grad:
            raise RuntimeError(text.format(i=i) + " " + _NOT_STRICT)


_CONSTANT_GRADIENT = (
    "The gradient with respect to input {i} is independent of the inputs of the user-provided function."
)
_CONSTANT_JACOBIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {i} is "
    "independent of the input."
)


def _grad(
    outputs: _Gradients,
    inputs: _Several,
    grad_outputs: _Gradients | None = None,
    create_graph: bool = False,
    retain_graph: bool = False,
) -> _Gradients:
    """autograd.grad of the outputs that have one; None for each input that none of them depends on."""
    given = (None,) * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(out, g) for out, g in zip(outputs, given, strict=True) if out is not None and out.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    roots, seeds = zip(*pairs, strict=True)
    found: _Gradients = _C._grad(roots, seeds, retain_graph or create_graph, create_graph, inputs)
    return found


def _filled(gradients: _Gradients, like: _Several, strict: bool, create_graph: bool, what: str, of: str) -> _Several:
    """Zeros where there is no gradient, which strict refuses. what does not depend on of, say errors."""
    for i, gradient in enumerate(gradients if strict else ()):
        if gradient is None:
            raise RuntimeError(f"The {what} of the user-provided function is independent of {of} {i}. {_NOT_STRICT}")
        if create_graph and not gradient.requires_grad:
            derivative = "jacobian" if what == "output" else "hessian"
            raise RuntimeError(
                f"The {derivative} of the user-provided function is independent of input {i}. This is not allowed in "
                "strict mode when create_graph=True."
            )
    return tuple(_C.zeros_like(x) if g is None else g for g, x in zip(gradients, like, strict=True))


def _vector(op: str, v: Any, like: _Several, several: bool, create_graph: bool, what: str) -> _Several | None:
    """v, which must have the shapes of like; it may be None for one element. what says of whom that is asked."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {what} a single DeviceArray with a single element.")
        return None
    vectors = _fresh(_as_tuple(op, "v", v)[1], create_graph, False)
    if len(vectors) != len(like):
        if several:
            raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}.")
        raise RuntimeError("The given v should contain a single DeviceArray.")
    for i, (vector, x) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != x.shape:
            which = f"Entry {i} in v" if several else "v"
            raise RuntimeError(f"{which} has invalid size: should be {tuple(x.shape)} but got {tuple(vector.shape)}.")
    return vectors


_OF_INPUT = "the input to the user-provided function is"
_OF_OUTPUT = "the user-provided function returns"


def vjp(
    func: Callable[..., Any],
    inputs: _Arrays,
    v: _Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(*inputs), and the product of v with the Jacobian of func there, which has the shapes of inputs.

    inputs and what func gives are an array or a tuple of them; v has the shapes of what func gives, and defaults to 1
    if that is one element. create_graph records what is returned. strict raises RuntimeError where func does not depend
    on an input, instead of giving zeros. Raises TypeError for what is no array, RuntimeError for a v that does not fit.

    >>> dt.autograd.functional.vjp(lambda x: x * x, dt.tensor([1.0, 2.0]), dt.ones(2))[1]
    DeviceArray([2., 4.], device='cpu', dtype=float32)
    """
    op = "vjp"
    create_graph, strict = _begin(op, func, create_graph, strict)
    with enable_grad():
        several, given = _as_tuple(op, "inputs", inputs)
        given = _fresh(given, create_graph)
        many, outputs = _as_tuple(op, _OUTPUTS, func(*given))
        _need_recorded(outputs, strict)
        vectors = _vector(op, v, outputs, many, create_graph, _OF_OUTPUT)
        gradients = _grad(outputs, given, vectors, create_graph)
    products = _filled(gradients, given, strict, create_graph, "output", "input")
    return _as_given(_ended(outputs, create_graph), many), _as_given(_ended(products, create_graph), several)


def jvp(
    func: Callable[..., Any],
    inputs: _Arrays,
    v: _Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """func(*inputs), and the product of the Jacobian of func there with v, which has the shapes of what func gives.

    v has the shapes of inputs, and defaults to 1 if that is one element. It is computed by two backward passes.
    create_graph, strict and errors are as those of vjp.

    >>> dt.autograd.functional.jvp(lambda x: x * x, dt.tensor([1.0, 2.0]), dt.ones(2))[1]
    DeviceArray([2., 4.], device='cpu', dtype=float32)
    """
    op = "jvp"
    create_graph, strict = _begin(op, func, create_graph, strict)
    with enable_grad():
        several, given = _as_tuple(op, "inputs", inputs)
        given = _fresh(given, create_graph)
        vectors = _vector(op, v, given, several, create_graph, _OF_INPUT)
        many, outputs = _as_tuple(op, _OUTPUTS, func(*given))
        _need_recorded(outputs, strict)
        seeds = tuple(_C.zeros_like(x).requires_grad_() for x in outputs)  # the backward is linear in them
        gradients = _grad(outputs, given, seeds, True)
        _need_dependent(gradients, strict, _CONSTANT_GRADIENT)
        found = _grad(gradients, seeds, vectors, create_graph)
    products = _filled(found, outputs, strict, create_graph, "output", "entry")
    return _as_given(_ended(outputs, create_graph), many), _as_given(_ended(products, create_graph), many)


def jacobian(
    func: Callable[..., Any],
    inputs: _Arrays,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of func at inputs: d output / d input, of shape (*output.shape, *input.shape).

    A tuple with one of each output where func gives a tuple, of a tuple with one for each input where inputs are a
    tuple. There is one backward pass for each element of the outputs; vectorize=True gives the same. create_graph
    records the result; strict raises RuntimeError where an output does not depend on an input, instead of giving zeros.
    Raises TypeError for what is no array, NotImplementedError for strategy="forward-mode".

    >>> dt.autograd.functional.jacobian(lambda x: x * x, dt.tensor([1.0, 2.0]))
    DeviceArray([[2., 0.],
                 [0., 4.]], device='cpu', dtype=float32)
    """
    op = "jacobian"
    create_graph, strict = _begin(op, func, create_graph, strict)
    _need_way(op, strict, vectorize, "strategy", strategy)
    with enable_grad():
        several, given = _as_tuple(op, "inputs", inputs)
        given = _fresh(given, create_graph)
        many, outputs = _as_tuple(op, _OUTPUTS, func(*given))
        _need_recorded(outputs, strict)
        rows = tuple(_rows(i, output, given, create_graph, strict) for i, output in enumerate(outputs))
    parts = tuple(_as_given(row, several) for row in _ended(rows, create_graph))
    return _as_given(parts, many)


def _need_way(op: str, strict: bool, vectorize: object, name: str, strategy: object) -> None:
    vectorize = _need_bool(op, "vectorize", vectorize)
    if strategy == "forward-mode":
        raise NotImplementedError(f'{op}(): {name}="forward-mode" is not supported: there is no forward mode')
    if strategy != "reverse-mode":
        raise AssertionError(f'Expected {name} to be either "forward-mode" or "reverse-mode".')
    if vectorize and strict:
        raise RuntimeError(
            f"{op}: `strict=True` and `vectorize=True` are not supported together. Please set one of them to False."
        )


def _rows(i: int, output: DeviceArray, inputs: _Several, create_graph: bool, strict: bool) -> _Several:
    """The Jacobians of one output, one for each input."""
    rows: tuple[list[DeviceArray], ...] = tuple([] for _ in inputs)
    flat = output.reshape(-1)
    for j in range(flat.numel()):
        gradients = _grad((flat[j],), inputs, None, create_graph, True)
        for k, (row, gradient, x) in enumerate(zip(rows, gradients, inputs, strict=True)):
            if strict and gradient is None:
                raise RuntimeError(
                    f"Output {i} of the user-provided function is independent of input {k}. {_NOT_STRICT}"
                )
            if strict and create_graph and gradient is not None and not gradient.requires_grad:
                raise RuntimeError(
                    f"The jacobian of the user-provided function is independent of input {k}. This is not allowed in "
                    "strict mode when create_graph=True."
                )
            row.append(_C.zeros_like(x) if gradient is None else gradient)
    return tuple(
        _C.stack(row).view((*output.shape, *x.shape)) if row else x.new_zeros((*output.shape, *x.shape))
        for row, x in zip(rows, inputs, strict=True)
    )


def _one_number(op: str, output: Any, strict: bool) -> DeviceArray:
    """What func gives, which must be one array of one element."""
    several, outputs = _as_tuple(op, _OUTPUTS, output)
    _need_recorded(outputs, strict)
    if several:
        raise RuntimeError(f"The function given to {op} should return a single DeviceArray")
    if outputs[0].numel() != 1:
        raise RuntimeError(f"The DeviceArray returned by the function given to {op} should contain a single element")
    return outputs[0]


def hessian(
    func: Callable[..., Any],
    inputs: _Arrays,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of func, which gives one element: of shape (*input.shape, *input.shape).

    A tuple of tuples where inputs are a tuple: [i][j] has the shapes of input i and input j. The options are those of
    jacobian. Raises RuntimeError where func gives more than one element.

    >>> dt.autograd.functional.hessian(lambda x: (x * x * x).sum(), dt.tensor([1.0, 2.0]))
    DeviceArray([[ 6.,  0.],
                 [ 0., 12.]], device='cpu', dtype=float32)
    """
    op = "hessian"
    create_graph, strict = _begin(op, func, create_graph, strict)
    _need_way(op, strict, vectorize, "outer_jacobian_strategy", outer_jacobian_strategy)
    several, given = _as_tuple(op, "inputs", inputs)

    def slope(*arrays: DeviceArray) -> _Several:
        found: _Several = jacobian(lambda *x: _one_number(op, func(*x), strict).squeeze(), arrays, create_graph=True)
        _need_dependent(found, strict, _CONSTANT_JACOBIAN)
        return found

    rows = jacobian(slope, given, create_graph, strict)
    return rows if several else rows[0][0]


def _slope(
    op: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[bool, _Several, _Several | None, DeviceArray, _Gradients]:
    """Whether inputs are a tuple, fresh ones, the vectors, what func gives of them, and its recorded gradients."""
    several, given = _as_tuple(op, "inputs", inputs)
    given = _fresh(given, create_graph)
    vectors = _vector(op, v, given, several, create_graph, _OF_INPUT)
    output = _one_number(op, func(*given), strict)
    gradients = _grad((output,), given, None, True)
    _need_dependent(gradients, strict, _CONSTANT_JACOBIAN)
    return several, given, vectors, output, gradients


def vhp(
    func: Callable[..., Any],
    inputs: _Arrays,
    v: _Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[DeviceArray, Any]:
    """func(*inputs), one element, and the product of v with its Hessian there; both have the shapes of inputs.

    v defaults to 1 if inputs are one element. create_graph, strict and errors are as those of vjp.

    >>> dt.autograd.functional.vhp(lambda x: (x * x * x).sum(), dt.tensor([1.0, 2.0]), dt.ones(2))[1]
    DeviceArray([ 6., 12.], device='cpu', dtype=float32)
    """
    op = "vhp"
    create_graph, strict = _begin(op, func, create_graph, strict)
    with enable_grad():
        several, given, vectors, output, gradients = _slope(op, func, inputs, v, create_graph, strict)
        found = _grad(gradients, given, vectors, create_graph)
    products = _filled(found, given, strict, create_graph, "jacobian", "input")
    return _ended(output, create_graph), _as_given(_ended(products, create_graph), several)


def hvp(
    func: Callable[..., Any],
    inputs: _Arrays,
    v: _Arrays | None = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[DeviceArray, Any]:
    """func(*inputs), one element, and the product of its Hessian there with v; both have the shapes of inputs.

    Slower than vhp, which gives the same where the second derivatives are continuous: it takes one backward pass more.
    create_graph, strict and errors are as those of vjp.

    >>> dt.autograd.functional.hvp(lambda x: (x * x * x).sum(), dt.tensor([1.0, 2.0]), dt.ones(2))[1]
    DeviceArray([ 6., 12.], device='cpu', dtype=float32)
    """
    op = "hvp"
    create_graph, strict = _begin(op, func, create_graph, strict)
    with enable_grad():
        several, given, vectors, output, gradients = _slope(op, func, inputs, v, create_graph, strict)
        seeds = tuple(_C.zeros_like(x).requires_grad_() for x in given)
        twice = _grad(gradients, given, seeds, True)
        found = _grad(twice, seeds, vectors, create_graph)
    products = _filled(found, given, strict, create_graph, "hessian", "entry")
    return _ended(output, create_graph), _as_given(_ended(products, create_graph), several)
