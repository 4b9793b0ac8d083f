"""Backward hooks of modules: two functions without effect, before and after forward, through which gradients pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from devtensor._C import DeviceArray
from devtensor.autograd.function import Function

if TYPE_CHECKING:
    from devtensor.nn.module import Module

Gradients = tuple[DeviceArray | None, ...]


class _Entrance(Function):
    @staticmethod
    def forward(ctx: Any, passage: Passage, *arrays: DeviceArray) -> tuple[DeviceArray, ...]:
        ctx.passage = passage
        ctx.set_materialize_grads(False)
        return arrays

    @staticmethod
    def backward(ctx: Any, *gradients: DeviceArray | None) -> Any:
        return None, *ctx.passage.at_entrance(gradients)


class _Exit(_Entrance):
    @staticmethod
    def backward(ctx: Any, *gradients: DeviceArray | None) -> Any:
        return None, *ctx.passage.at_exit(gradients)


def _through(function: type[Function], passage: Passage, values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int]]:
    """values, whose arrays went through function, and their places."""
    places = [i for i, value in enumerate(values) if isinstance(value, DeviceArray)]
    arrays = function.apply(passage, *(values[i] for i in places))
    changed = list(values)
    for i, array in zip(places, arrays, strict=True):
        changed[i] = array
    return tuple(changed), places


def _spread(gradients: Gradients, places: list[int], n: int) -> Gradients:
    """A gradient, or None, for each of n values."""
    found: list[DeviceArray | None] = [None] * n
    for i, gradient in zip(places, gradients, strict=True):
        found[i] = gradient
    return tuple(found)


class Passage:
    """One call of a module: its gradients on their way back."""

    def __init__(self, module: Module, hooks: list[Any], pre_hooks: list[Any]) -> None:
        self._module, self._hooks, self._pre_hooks = module, hooks, pre_hooks
        self._wants = False
        self._inputs: tuple[list[int], int] = ([], 0)
        self._outputs: tuple[list[int], int] = ([], 0)
        self._grad_output: Gradients = ()

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments of forward."""
        self._wants = any(isinstance(a, DeviceArray) and a.requires_grad for a in args)
        args, places = _through(_Entrance, self, args)
        self._inputs = places, len(args)
        return args

    def leave(self, result: Any) -> Any:
        """What the call gives. Hooks see nothing of a result that is neither an array nor a tuple."""
        if not isinstance(result, DeviceArray | tuple):
            return result
        values, places = _through(_Exit, self, result if isinstance(result, tuple) else (result,))
        self._outputs = places, len(values)
        return values if isinstance(result, tuple) else values[0]

    def at_exit(self, gradients: Gradients) -> Gradients:
        places, n = self._outputs
        found = _spread(gradients, places, n)
        for hook in self._pre_hooks:
            answer = hook(self._module, found)
            if answer is not None:
                found = self._answered("pre hook", "grad_output", answer, n)
        self._grad_output = found
        if not self._wants:
            nothing: Gradients = (None,) * self._inputs[1]
            for hook in self._hooks:
                if hook(self._module, nothing, found) is not None:
                    raise RuntimeError(
                        "backward hook for Modules where no input requires gradient should always return None"
                    )
        return tuple(found[i] for i in places)

    def at_entrance(self, gradients: Gradients) -> Gradients:
        places, n = self._inputs
        found = _spread(gradients, places, n)
        for hook in self._hooks:
            answer = hook(self._module, found, self._grad_output)
            if answer is not None:
                found = self._answered("hook", "grad_input", answer, n)
        return tuple(found[i] for i in places)

    @staticmethod
    def _answered(what: str, name: str, answer: Any, n: int) -> Gradients:
        gradients = answer if isinstance(answer, tuple) else (answer,)
        if len(gradients) != n:
            raise RuntimeError(
                f"Backward {what} returned an invalid number of {name}, got {len(gradients)}, but expected {n}"
            )
        return gradients
