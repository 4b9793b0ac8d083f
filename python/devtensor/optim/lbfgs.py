"""L-BFGS, with the line search of Wolfe's strong conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor.autograd.grad_mode import enable_grad, no_grad
from devtensor.optim._update import LearningRate, number
from devtensor.optim.optimizer import Optimizer, Params

__all__ = ["LBFGS"]


class _Point:
    """A step along the direction: the loss there, its gradient, and the slope."""

    def __init__(self, t: float, loss: float, gradient: DeviceArray, slope: float) -> None:
        self.t = t
        self.loss = loss
        self.gradient = gradient
        self.slope = slope


def _between(a: _Point, b: _Point, low: float, high: float) -> float:
    """The least point of the cubic through both with their slopes, within low and high; else the middle."""
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    if (a.slope - b.slope if a.t > b.t else b.slope - a.slope) + 2 * d2 == 0:  # a straight line has no least point
        return (low + high) / 2
    if a.t <= b.t:
        least = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        least = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(least, low), high)


def _line_search(
    evaluate: Callable[[float], _Point], start: _Point, t: float, longest: float, tolerance: float, most: int
) -> tuple[_Point, int]:
    """A point that meets Wolfe's strong conditions, or the best found, and how many were looked at.

    longest: the largest element of the direction.
    """
    armijo, curvature = 1e-4, 0.9
    new, before, looked, bracket = evaluate(t), start, 1, []
    tries = 0
    while tries < most:
        if new.loss > start.loss + armijo * new.t * start.slope or (tries > 1 and new.loss >= before.loss):
            bracket = [before, new]
            break
        if abs(new.slope) <= -curvature * start.slope:
            return new, looked
        if new.slope >= 0:
            bracket = [before, new]
            break
        t = _between(before, new, new.t + 0.01 * (new.t - before.t), new.t * 10)
        before, new = new, evaluate(t)
        looked += 1
        tries += 1
    if tries == most:
        bracket = [start, new]
    stuck, low = False, 0 if bracket[0].loss <= bracket[1].loss else 1
    while tries < most:
        ends = [point.t for point in bracket]
        if abs(ends[1] - ends[0]) * longest < tolerance:
            break
        t = _between(bracket[0], bracket[1], min(ends), max(ends))
        margin = 0.1 * (max(ends) - min(ends))
        if min(max(ends) - t, t - min(ends)) < margin:  # too near to an end, twice: a tenth of the way from it
            if stuck or t >= max(ends) or t <= min(ends):
                t = max(ends) - margin if abs(t - max(ends)) < abs(t - min(ends)) else min(ends) + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = evaluate(t)
        looked += 1
        tries += 1
        if new.loss > start.loss + armijo * new.t * start.slope or new.loss >= bracket[low].loss:
            bracket[1 - low] = new
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if abs(new.slope) <= -curvature * start.slope:
            return new, looked
        if new.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = new
    return bracket[low], looked


class LBFGS(Optimizer):
    """L-BFGS (Nocedal 1980): steps by an approximation of the inverse of the second derivatives, from past gradients.

    step(closure) calls closure, which computes the loss and its gradients, up to max_eval times (1.25 * max_iter by
    default) in up to max_iter iterations. history_size: how many past steps it knows. It ends where no gradient is
    above tolerance_grad, or where a step changes less than tolerance_change. line_search_fn is None, for steps of lr,
    or "strong_wolfe". Numbers of the device decide: each iteration waits for it. All parameters are of one device and
    dtype, in one group. Raises ValueError for several groups, RuntimeError for another line search.

    >>> x = nn.Parameter(dt.tensor([3.0, -2.0]))
    >>> optimizer = dt.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (x - 1).square().sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), bool((x - 1).abs().max() < 1e-4)
    (13.0, True)
    """

    def __init__(
        self,
        params: Params,
        lr: LearningRate = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if not number("LBFGS", "lr", lr) >= 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        max_iter = _need_int("LBFGS", "max_iter", max_iter)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else _need_int("LBFGS", "max_eval", max_eval),
            "tolerance_grad": number("LBFGS", "tolerance_grad", tolerance_grad),
            "tolerance_change": number("LBFGS", "tolerance_change", tolerance_change),
            "history_size": _need_int("LBFGS", "history_size", history_size),
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[DeviceArray]:
        params: list[DeviceArray] = self.param_groups[0]["params"]
        return params

    def _gradient(self) -> DeviceArray:
        """All gradients as one vector."""
        return _C.cat(
            [_C.zeros_like(p).reshape(-1) if p.grad is None else p.grad.detach().reshape(-1) for p in self._params]
        )

    def _move(self, t: float, direction: DeviceArray) -> None:
        first = 0
        for p in self._params:
            p += direction[first : first + p.numel()].reshape(p.shape) * t
            first += p.numel()

    def _along(self, closure: Callable[[], Any], direction: DeviceArray) -> Callable[[float], _Point]:
        start = [p.clone() for p in self._params]

        def evaluate(t: float) -> _Point:
            self._move(t, direction)
            loss = float(closure())
            gradient = self._gradient()
            for p, was in zip(self._params, start, strict=True):
                p.copy_(was)
            return _Point(t, loss, gradient, float(_C.dot(gradient, direction)))

        return evaluate

    def _direction(self, state: dict[str, Any], gradient: DeviceArray, history_size: int) -> DeviceArray:
        """Minus the inverse of the second derivatives, as far as past steps tell, times the gradient."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return -gradient
        y, s = gradient - state["prev_flat_grad"], state["d"] * state["t"]
        ys = float(_C.dot(y, s))
        dirs, stps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        if ys > 1e-10:
            if len(dirs) == history_size:
                for past in (dirs, stps, ro):
                    past.pop(0)
            dirs.append(y)
            stps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / float(_C.dot(y, y))
        q, al = -gradient, [0.0] * len(dirs)
        for i in reversed(range(len(dirs))):
            al[i] = float(_C.dot(stps[i], q)) * ro[i]
            q -= dirs[i] * al[i]
        r: DeviceArray = q * state["H_diag"]
        for i in range(len(dirs)):
            r += stps[i] * (al[i] - float(_C.dot(dirs[i], r)) * ro[i])
        return r

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by up to max_iter iterations, and give the loss of the first call of closure.

        Raises TypeError without a closure.
        """
        if not callable(closure):
            raise TypeError("LBFGS.step() needs a closure that computes the loss and its gradients anew")
        compute = enable_grad()(closure)
        with no_grad():
            return self._iterate(compute)

    def _iterate(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        lr, change = number("LBFGS", "lr", group["lr"]), group["tolerance_change"]
        search = group["line_search_fn"]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first = closure()
        loss, evaluations = float(first), 1
        state["func_evals"] += 1
        gradient = self._gradient()
        done = float(gradient.abs().amax()) <= group["tolerance_grad"]
        iterations = 0
        while iterations < group["max_iter"] and not done:
            iterations += 1
            state["n_iter"] += 1
            direction = self._direction(state, gradient, group["history_size"])
            t = min(1.0, 1.0 / float(gradient.abs().sum())) * lr if state["n_iter"] == 1 else lr
            slope, before = float(_C.dot(gradient, direction)), loss
            state.update(d=direction, t=t, prev_flat_grad=gradient, prev_loss=before)
            if slope > -change:
                break
            looked = 0
            if search is not None:
                if search != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start, longest = _Point(0, loss, gradient, slope), float(direction.abs().amax())
                most = group["max_eval"] - evaluations
                found, looked = _line_search(self._along(closure, direction), start, t, longest, change, most)
                loss, gradient, t = found.loss, found.gradient, found.t
                state["t"] = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iterations != group["max_iter"]:  # nobody asks for the loss after the last
                    loss, looked = float(closure()), 1
                    gradient = self._gradient()
            evaluations += looked
            state["func_evals"] += looked
            done = (
                evaluations >= group["max_eval"]
                or float(gradient.abs().amax()) <= group["tolerance_grad"]
                or float((direction * t).abs().amax()) <= change
                or abs(loss - before) < change
            )
        return first
