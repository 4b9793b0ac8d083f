"""Functions with a gradient of their own."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._errors import GradientError
from devtensor.autograd.grad_mode import no_grad


class FunctionCtx:
    """What forward leaves for backward: the first argument of both.

    Attributes
    ----------
    needs_input_grad : tuple of bool
        Of each argument of apply, whether a gradient is wanted.

    An attribute that holds an output of the function keeps the graph alive for ever: use save_for_backward for arrays.
    """

    def __init__(self, function: type[Function], args: tuple[Any, ...]) -> None:
        self.needs_input_grad: tuple[bool, ...] = tuple(isinstance(a, DeviceArray) and a.requires_grad for a in args)
        self._function = function
        self._saved: tuple[DeviceArray | None, ...] = ()
        self._kept: list[Any] = []  # of each saved array: its number, or itself
        self._constant: tuple[DeviceArray, ...] = ()
        self._dirty: tuple[DeviceArray, ...] = ()
        self._materialize = True
        self._handle: Any = None
        self._arrays: list[int] = []  # the places of the arrays among the arguments
        self._wanted: list[tuple[Any, ...] | None] = []  # what the gradient of each argument must look like
        self._outputs: list[Any] = []

    def save_for_backward(self, *tensors: DeviceArray | None) -> None:
        """Keep inputs, outputs or other arrays for backward: they are ctx.saved_tensors there.

        Writing to one of them in place before backward is an error, as it is for built-in ops.
        """
        for i, x in enumerate(tensors):
            if x is not None and not isinstance(x, DeviceArray):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type {type(x).__name__}"
                )
        self._saved = tensors

    def save_for_forward(self, *tensors: DeviceArray | None) -> None:
        """Taken for code written for PyTorch; there is no forward mode, so nothing is kept."""

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What save_for_backward kept. Raises GradientError after the graph was used up, or an array was written to."""
        if self._handle is None:
            return self._saved
        return tuple(_C._saved_of_function(self._handle, k) if isinstance(k, int) else k for k in self._kept)

    def mark_non_differentiable(self, *args: DeviceArray) -> None:
        """Say that no gradient flows to these outputs; to integers and bools none does anyway."""
        self._constant = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward gets zeros, its default, or None for outputs to which no gradient came."""
        self._materialize = value

    def mark_dirty(self, *args: DeviceArray) -> None:
        """Say that forward has written to these inputs, which it must return.

        A leaf that requires a gradient is refused, as by ops in place; so is memory that another array shares.
        """
        self._dirty = args

    def name(self) -> str:
        """The name of the node: that of the function, and Backward."""
        return f"{self._function.__name__}Backward"


class Function:
    """A function whose gradient you write: subclass it, and call apply.

    forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output), computes; nothing in it is recorded.
    backward(ctx, *gradients) gets a gradient for each output, and returns one for each argument: None for what is no
    array. Its ops are recorded with create_graph=True, so that the gradient has one too.

    >>> class Cube(dt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return gradient * 3 * x**2
    >>> x = dt.tensor([1.0, 2.0], requires_grad=True)
    >>> Cube.apply(x).sum().backward()
    >>> x.grad
    DeviceArray([ 3., 12.], device='cpu', dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        text = (
            f"{type(self).__name__} should not be instantiated. Methods on autograd functions are all static, so you "
            f"should invoke them on the class itself: {type(self).__name__}.apply(...)"
        )
        if not _C._as_torch():
            raise TypeError(text)
        warnings.warn(text, DeprecationWarning, stacklevel=2)

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute; a subclass defines it."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for backward, where forward has no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Give the gradients of the arguments of forward; a subclass defines it, or vjp, which means the same."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function."
        )

    vjp = backward

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and record it where an argument requires a gradient.

        Raises TypeError for arguments by name, unless there is a setup_context.
        """
        separate = cls.setup_context is not Function.setup_context
        if kwargs and not separate:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword arguments")
        if separate:
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            args = bound.args
        ctx = FunctionCtx(cls, args)
        recording = _C._set_grad_enabled(False)
        try:
            if separate:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
            else:
                result = cls.forward(ctx, *args)
        finally:
            _C._set_grad_enabled(recording)
        if not recording or not any(ctx.needs_input_grad):
            return result
        outputs = _record(ctx, args, result if isinstance(result, tuple) else (result,))
        return outputs if isinstance(result, tuple) else outputs[0]


def _is_among(x: object, others: Any) -> bool:
    return any(x is other for other in others)


def _record(ctx: FunctionCtx, args: tuple[Any, ...], outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outputs, of which floats are results of ctx's function now."""
    if not all(_is_among(x, outputs) for x in ctx._dirty):
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
            "modified inplace must all be outputs of the Function."
        )
    given: list[Any] = []
    recorded: list[DeviceArray] = []
    places: dict[int, int] = {}  # of what forward returned, among the recorded
    for x in outputs:
        part = -1
        if isinstance(x, DeviceArray):
            flows = x.dtype.is_floating_point and not _is_among(x, ctx._constant)
            if _is_among(x, ctx._dirty) and flows and not _is_among(x, recorded):
                original = x
            elif x.requires_grad or _is_among(x, args) or _is_among(x, recorded):
                original, x = x, x.detach()  # another array over the same memory, with a history of its own
            else:
                original = x
            if flows:
                part = places[id(original)] = len(recorded)
                recorded.append(x)
            ctx._outputs.append((part, x.shape, x.dtype, x.device))
        else:
            ctx._outputs.append(None)
        given.append(x)
    if not recorded:
        return tuple(given)
    ctx._arrays = [i for i, a in enumerate(args) if isinstance(a, DeviceArray)]
    ctx._wanted = [(a.shape, a.dtype, a.device) if w else None for a, w in zip(args, ctx.needs_input_grad, strict=True)]
    inputs = tuple(args[i] for i in ctx._arrays)
    kept: list[DeviceArray] = []
    for saved in ctx._saved:
        x = recorded[places[id(saved)]] if id(saved) in places and not _is_among(saved, inputs) else saved
        if x is None or (x.requires_grad and not _is_among(x, inputs)):
            ctx._kept.append(x)
        else:
            ctx._kept.append(len(kept))
            kept.append(x)
    ctx._saved = ()
    ctx._handle = _C._record_function(ctx, inputs, tuple(recorded), tuple(kept))
    return tuple(given)


# ---------------------------------------------------------------- the way back


def _place(method: Callable[..., Any]) -> str:
    """Where a method of the user's stands."""
    code = getattr(inspect.unwrap(method), "__code__", None)
    return "" if code is None else f" at {code.co_filename}:{code.co_firstlineno}"


def _refused(
    ctx: FunctionCtx, method: Callable[..., Any], text: str, gradient: DeviceArray | None = None
) -> GradientError:
    op = f"{ctx._function.__name__}.{method.__name__}"
    error = GradientError(f"{text} ({op}{_place(method)})")
    error.code, error.op = "grad-function", op
    if gradient is not None:
        _C._explained(op, ("gradient",), (gradient,), "grad-function", error, 0)
    return error


def _backward_of(cls: type[Function]) -> Callable[..., Any]:
    """backward, or vjp where only that is defined."""
    return cls.vjp if cls.backward is Function.backward and cls.vjp is not Function.vjp else cls.backward


def _differentiate(ctx: FunctionCtx, gradients: tuple[Any, ...], node: _C.Node) -> tuple[Any, ...]:
    """The gradients of the arrays among the arguments, by what the user wrote; the engine calls it."""
    method = _backward_of(ctx._function)
    try:
        found = method(ctx, *_given(ctx, gradients))
        return _checked(ctx, method, found)
    except Exception as error:
        origin = node.origin
        if origin is not None:
            error.add_note(f"In the gradient of {ctx._function.__name__}, applied at {origin.filename}:{origin.lineno}")
        raise


def _given(ctx: FunctionCtx, gradients: tuple[Any, ...]) -> list[Any]:
    """A gradient for each output, as backward takes them."""
    given: list[Any] = []
    for output in ctx._outputs:
        gradient = gradients[output[0]] if output is not None and output[0] >= 0 else None
        if gradient is None and output is not None and ctx._materialize:
            _, shape, dtype, device = output
            gradient = _C.zeros(shape, dtype=dtype, device=device)
        given.append(gradient)
    return given


def _checked(ctx: FunctionCtx, method: Callable[..., Any], found: Any) -> tuple[Any, ...]:
    gradients = found if isinstance(found, tuple) else tuple(found) if isinstance(found, list) else (found,)
    n, name = len(ctx._wanted), ctx.name()
    while len(gradients) > n and gradients[-1] is None:
        gradients = gradients[:-1]
    if len(gradients) != n:
        raise _refused(
            ctx,
            method,
            f"function {name} returned an incorrect number of gradients (expected {n}, got {len(gradients)})",
        )
    for i, (gradient, wanted) in enumerate(zip(gradients, ctx._wanted, strict=True)):
        if gradient is None:
            continue
        if not isinstance(gradient, DeviceArray):
            raise TypeError(
                f"function {name} returned a gradient that is no DeviceArray at index {i}: expected DeviceArray or "
                f"None, but got {type(gradient).__name__} ({ctx._function.__name__}.{method.__name__}{_place(method)})"
            )
        if i not in ctx._arrays:
            raise _refused(
                ctx,
                method,
                f"function {name} returned a gradient different from None at position {i}, but the corresponding "
                "forward input was not a Variable",
            )
        if wanted is not None and (problem := _misfit(gradient, *wanted)):
            text = f"Function {name} returned an invalid gradient at index {i} - {problem}"
            raise _refused(ctx, method, text, gradient)
    return tuple(gradients[i] if ctx._wanted[i] is not None else None for i in ctx._arrays)


def _misfit(gradient: DeviceArray, shape: tuple[int, ...], dtype: _C.dtype, device: _C.device) -> str:
    """What is wrong with a gradient; "" for nothing. What broadcasting would sum is right."""
    if gradient.device != device:
        return f"expected device {device} but got {gradient.device}"
    if gradient.dtype != dtype:
        return f"expected type {dtype.name} but got {gradient.dtype.name}"
    tail = gradient.shape[max(gradient.ndim - len(shape), 0) :]
    if gradient.ndim < len(shape) or any(n not in (m, 1) for n, m in zip(shape, tail, strict=True)):
        return f"got {gradient.shape} but expected shape compatible with {shape}"
    return ""


# ---------------------------------------------------------------- gradients without a gradient


class _Twice(Function):
    """Stands in front of gradients that cannot be differentiated again."""

    @staticmethod
    def forward(ctx: Any, count: int, *arrays: DeviceArray) -> tuple[DeviceArray, ...]:
        return arrays[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise GradientError("trying to differentiate twice a function that was marked with @once_differentiable")


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward whose ops shall not be recorded: its gradients have none.

    >>> class Sign(dt.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x.sign()
    ...     @staticmethod
    ...     @dt.autograd.function.once_differentiable
    ...     def backward(ctx, gradient):
    ...         return gradient
    >>> x = dt.tensor([-2.0, 3.0], requires_grad=True)
    >>> Sign.apply(x).sum().backward()
    >>> x.grad
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """

    @functools.wraps(fn)
    def backward(ctx: Any, *gradients: Any) -> Any:
        with no_grad():
            found = fn(ctx, *gradients)
        tracked = [g for g in gradients if isinstance(g, DeviceArray) and g.requires_grad]
        if not tracked or not _C.is_grad_enabled():
            return found
        results = found if isinstance(found, tuple) else (found,)
        arrays = [g for g in results if isinstance(g, DeviceArray)]
        guarded = iter(_Twice.apply(len(arrays), *arrays, *tracked))
        return tuple(next(guarded) if isinstance(g, DeviceArray) else g for g in results)

    return backward


__all__ = ["Function", "FunctionCtx", "once_differentiable"]


def __dir__() -> list[str]:
    return __all__
