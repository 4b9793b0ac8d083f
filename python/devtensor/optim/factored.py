"""Adafactor and Muon, which treat a matrix as a whole: made of ops, with nothing that waits for a device."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from devtensor._C import DeviceArray, _need_bool, _need_int, addmm, bfloat16, float32, float64, zeros_like
from devtensor._dtypes.info import finfo
from devtensor.optim._update import LearningRate, UpdateOptimizer, number, step_counter
from devtensor.optim.optimizer import Params

__all__ = ["Adafactor", "Muon"]


def _wide(x: DeviceArray) -> DeviceArray:
    return x if x.dtype in (float32, float64) else x.to(float32)


class _OfOps(UpdateOptimizer):
    """What changes a parameter by ops rather than by one loop."""

    def _step_group(self, group: Mapping[str, Any], first: int) -> None:
        for param in group["params"]:
            if param.grad is not None:
                self._step_one(group, param, param.grad)

    def _step_one(self, group: Mapping[str, Any], param: DeviceArray, grad: DeviceArray) -> None:
        raise NotImplementedError


class Adafactor(_OfOps):
    """Adafactor (Shazeer and Stern 2018): of a matrix it keeps the mean squares of rows and columns, not of elements.

    A step is at most lr, and lr / sqrt(number of the step) later on, times the root of the parameter's mean square,
    which counts eps[1] at least. The step is shortened where its root mean square is above d. eps[0] is by default the
    dtype's eps. beta2_decay is the power of the number of the step that fresh squares count. weight_decay shrinks the
    parameter; maximize climbs; foreach is accepted and changes nothing. Raises ValueError and TypeError for options
    that cannot be.

    >>> weight = nn.Parameter(dt.ones(2, 3))
    >>> optimizer = dt.optim.Adafactor([weight], lr=0.01)
    """

    _LIMITS = (("lr", "learning rate"), ("weight_decay", "weight_decay value"))

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        if not number("Adafactor", "beta2_decay", options["beta2_decay"]) <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {options['beta2_decay']}")
        eps = options["eps"]
        if not isinstance(eps, (tuple, list)) or len(eps) != 2:
            raise TypeError(f"Adafactor(): argument 'eps' must be two numbers, not {eps!r}")
        if eps[0] is not None and not number("Adafactor", "eps", eps[0]) >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not number("Adafactor", "eps", eps[1]) >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not number("Adafactor", "d", options["d"]) >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {options['d']}")

    def _new_state(self, group: Mapping[str, Any], param: DeviceArray) -> dict[str, Any]:
        if param.ndim < 2:
            return {"step": step_counter(), "variance": zeros_like(param)}
        *lead, rows, columns = param.shape
        return {
            "step": step_counter(),
            "row_var": param.new_zeros((*lead, rows, 1)),
            "col_var": param.new_zeros((*lead, 1, columns)),
        }

    def _step_one(self, group: Mapping[str, Any], param: DeviceArray, grad: DeviceArray) -> None:
        state = self.state.get(param) or self._new_state(group, param)
        self.state[param] = state
        state["step"] += 1
        step, lr = state["step"].item(), number("Adafactor", "lr", group["lr"])
        least, scale = group["eps"]
        least = finfo(param.dtype).eps if least is None else least
        grad = -grad if group["maximize"] else grad
        size = _wide(param).norm() / math.sqrt(max(param.numel(), 1))
        alpha = size.clamp(min=scale) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"]:
            param *= 1 - lr * group["weight_decay"]
        fresh = step ** group["beta2_decay"]
        if param.ndim > 1:
            row, column, square = state["row_var"], state["col_var"], grad.square()
            row.lerp_(square.mean(-1, keepdim=True), fresh)
            column.lerp_(square.mean(-2, keepdim=True), fresh)
            estimate = row @ column / row.mean(-2, keepdim=True).clamp(min=least)
        else:
            estimate = state["variance"].lerp_(grad.square(), fresh)
        update = estimate.clamp(min=least * least).rsqrt() * grad
        length = _wide(update).norm() / (math.sqrt(max(update.numel(), 1)) * group["d"])
        param -= (update * (alpha / length.clamp(min=1.0))).to(param.dtype)


_COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def _orthogonal(x: DeviceArray, coefficients: tuple[float, float, float], steps: int, eps: float) -> DeviceArray:
    """About the nearest orthogonal matrix, by Newton and Schulz's iteration of the fifth degree, in bfloat16."""
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    found = (x.T if tall else x).to(bfloat16)
    found = found / found.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.T
        found = addmm(found, addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.T if tall else found


class Muon(_OfOps):
    """Muon (Jordan 2024): momentum whose matrix is made orthogonal; for parameters of two dimensions alone.

    weight_decay shrinks the parameter by lr times it. adjust_lr_fn: "original" (the default) multiplies lr by the root
    of max(1, rows / columns), "match_rms_adamw" by 0.2 times the root of the larger. Raises ValueError and TypeError
    for options and parameters that cannot be.

    >>> weight = nn.Parameter(dt.ones(2, 3))
    >>> optimizer = dt.optim.Muon([weight], lr=0.02)
    """

    _LIMITS = (("lr", "learning rate"), ("momentum", "momentum value"), ("weight_decay", "weight_decay value"))

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_options(self, options: dict[str, Any]) -> None:
        super()._check_options(options)
        number("Muon", "eps", options["eps"])
        _need_bool("Muon", "nesterov", options["nesterov"])
        if _need_int("Muon", "ns_steps", options["ns_steps"]) >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        given = options["ns_coefficients"]
        if not isinstance(given, (tuple, list)) or len(given) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        for one in given:
            number("Muon", "ns_coefficients", one)
        if options["adjust_lr_fn"] not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {options['adjust_lr_fn']} is not supported")

    def _check_parameter(self, i: int, param: Any) -> None:
        super()._check_parameter(i, param)
        if param.ndim != 2:
            raise ValueError(
                f"Muon only supports 2D parameters whereas we found a parameter with size: {tuple(param.shape)}"
            )

    def _step_one(self, group: Mapping[str, Any], param: DeviceArray, grad: DeviceArray) -> None:
        state = self.state[param]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(param)
        momentum, lr = group["momentum"], number("Muon", "lr", group["lr"])
        buffer = state["momentum_buffer"].lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
        update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = param.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            ratio = 0.2 * math.sqrt(max(rows, columns))
        else:
            ratio = math.sqrt(max(1, rows / max(columns, 1)))
        param *= 1 - lr * group["weight_decay"]
        param -= (update * (lr * ratio)).to(param.dtype)
