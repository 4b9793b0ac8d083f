"""What the optimizers share whose step is one expression for each element (csrc/core/updates.def)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import compress
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_number, zeros
from devtensor._C import float32 as _float32
from devtensor.autograd.grad_mode import enable_grad, no_grad
from devtensor.optim.optimizer import Optimizer, Params

LearningRate = float | DeviceArray


class Rule(NamedTuple):
    """An entry of updates.def, the keys of its states in their order, and the numbers that are not 0."""

    name: str
    states: tuple[str, ...]
    numbers: dict[str, float]


class UpdateOptimizer(Optimizer):
    """An optimizer that knows its options, and for a group and an age of states the rule to follow."""

    _scalars = frozenset({"step"})

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self._check_options(defaults)
        super().__init__(params, defaults)

    # ------------------------------------------------------------ what a subclass says

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        raise NotImplementedError

    def _rule(self, group: Mapping[str, Any], age: float) -> Rule:
        raise NotImplementedError

    def _states_of(self, group: Mapping[str, Any], params: list[DeviceArray]) -> tuple[list[dict[str, Any]], list[Any]]:
        """The state of each, and the number of the step to come. What has one age is changed by one call."""
        known = self.state
        states = [known.get(param) or self._new_state(group, param) for param in params]
        return states, [state["step"].item() + 1 for state in states]

    # ------------------------------------------------------------ a step

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters that have a gradient, in place. closure computes the loss anew, which is returned.

        Raises DeviceMismatchError, DTypeMismatchError and ShapeMismatchError where a parameter, its gradient and its
        state do not go together; none of its group is changed then.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            first = 0
            for group in self.param_groups:
                self._step_group(group, first)
                first += len(group["params"])
        return loss

    def _step_group(self, group: Mapping[str, Any], first: int) -> None:
        """first: the place of its first parameter among all, which errors tell."""
        places, params, grads = [], [], []
        for place, param in enumerate(group["params"], first):
            grad = param.grad
            if grad is not None:
                places.append(place)
                params.append(param)
                grads.append(grad)
        states, ages = self._states_of(group, params)
        for age in dict.fromkeys(ages):
            used, given, kept, at = params, grads, states, places
            if ages.count(age) < len(ages):
                chosen = [other == age for other in ages]
                used, given = list(compress(params, chosen)), list(compress(grads, chosen))
                kept, at = list(compress(states, chosen)), list(compress(places, chosen))
            rule = self._rule(group, age)
            arrays = tuple([tuple([state[key] for state in kept]) for key in rule.states])
            _C._update(rule.name, tuple(used), tuple(given), arrays, rule.numbers, tuple(at))
            self._keep(used, kept, age)

    def _keep(self, params: Iterable[DeviceArray], states: Iterable[dict[str, Any]], age: float) -> None:
        """After their step."""
        for param, state in zip(params, states, strict=True):
            state["step"].fill_(age)
            self.state[param] = state

    # ------------------------------------------------------------ options

    _LIMITS: tuple[tuple[str, str], ...] = ()  # options that are at least 0, and what messages call them

    def _check_options(self, options: dict[str, Any]) -> None:
        name = type(self).__name__
        for key, text in self._LIMITS:
            if not number(name, key, options[key]) >= 0:
                raise ValueError(f"Invalid {text}: {options[key]}")
        for key in ("maximize", "nesterov", "amsgrad", "centered"):
            if key in options:
                _need_bool(name, key, options[key])
        if options.get("differentiable"):
            raise NotImplementedError(f"{name}(): differentiable=True is not there: a step leaves no graph")
        if options.get("fused") and options.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def number(owner: str, key: str, value: Any) -> float:
    """An option as a float. It may be an array of one element, which is waited for where it is on a device."""
    if isinstance(value, DeviceArray):
        if value.numel() != 1:
            raise ValueError(f"Tensor {key} must be 1-element")
        return float(value.item())
    if isinstance(value, str):
        raise TypeError(f"{owner}(): argument '{key}' must be a number, not str: {value!r} (float({value!r}) is one)")
    return _need_number(owner, key, value)


def check_betas(owner: str, betas: Any) -> tuple[float, ...]:
    """Two numbers from 0 to below 1. Raises TypeError and ValueError for others."""
    if not isinstance(betas, tuple | list) or len(betas) != 2:
        raise TypeError(f"{owner}(): argument 'betas' must be two numbers, not {betas!r}")
    found = tuple(number(owner, "betas", beta) for beta in betas)
    for i, beta in enumerate(found):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
    return found


def step_counter() -> DeviceArray:
    """PyTorch's "step": float32, on the cpu whatever the default device is."""
    return zeros((), dtype=_float32, device="cpu")
