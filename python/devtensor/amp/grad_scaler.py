"""GradScaler: losses are scaled so that gradients in float16 do not vanish; steps with infinite ones are left out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

from devtensor import _C, cuda
from devtensor._C import DeviceArray
from devtensor.autograd.grad_mode import no_grad

if TYPE_CHECKING:
    from devtensor.optim.optimizer import Optimizer

_FRESH, _UNSCALED, _STEPPED = range(3)


class _Stage:
    """What was done with an optimizer since the last update()."""

    def __init__(self) -> None:
        self.done = _FRESH
        self.infinite: bool | None = None  # None: not looked at


class GradScaler:
    """Scale losses by a factor that adapts: it grows after growth_interval good steps, and shrinks after a bad one.

    The factor is a number of the host. unscale_() reads one number for each device, which waits for it; scale() waits
    for nothing. Without a CUDA device GradScaler("cuda") turns itself off with a warning, as PyTorch's does. Raises
    ValueError for a growth_factor that is not above 1 and a backoff_factor that is not below.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.SGD([weight], lr=0.5)
    >>> scaler = dt.amp.GradScaler("cpu", init_scale=1024.0)
    >>> scaler.scale(weight.sum()).backward()
    >>> scaler.step(optimizer)
    >>> scaler.update()
    >>> weight.tolist()
    [0.5, 0.5]
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        if device not in ("cpu", "cuda"):
            raise RuntimeError(f"GradScaler(): device must be 'cpu' or 'cuda', not {_C._shown(device)}")
        if enabled and device == "cuda" and not cuda.is_available():
            warnings.warn("GradScaler is enabled, but CUDA is not available. Disabling.", stacklevel=2)
            enabled = False
        self._enabled = bool(enabled)
        if self._enabled and not growth_factor > 1.0:
            raise ValueError("The growth factor must be > 1.0.")
        if self._enabled and not backoff_factor < 1.0:
            raise ValueError("The backoff factor must be < 1.0.")
        self._scale = float(init_scale)
        self._growth_factor, self._backoff_factor = float(growth_factor), float(backoff_factor)
        self._growth_interval, self._growth_tracker = int(growth_interval), 0
        self._used = False  # scale() was called
        self._stages: WeakKeyDictionary[Any, _Stage] = WeakKeyDictionary()

    # ------------------------------------------------------------ losses

    @overload
    def scale(self, outputs: DeviceArray) -> DeviceArray: ...
    @overload
    def scale(self, outputs: Iterable[DeviceArray]) -> Iterable[DeviceArray]: ...
    def scale(self, outputs: Any) -> Any:
        """outputs times the factor, recorded: an array, or a list or tuple of them. Raises ValueError for others."""
        if not self._enabled:
            return outputs
        self._used = True
        if isinstance(outputs, DeviceArray):
            return outputs * _C.full((), self._scale, dtype=_C.float32, device=outputs.device)
        if isinstance(outputs, Iterable):
            scaled = [self.scale(one) for one in outputs]
            return scaled if isinstance(outputs, list) else tuple(scaled)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    # ------------------------------------------------------------ gradients

    def _stage(self, optimizer: Optimizer, what: str) -> _Stage:
        if not self._used:
            raise AssertionError(
                f"Attempted {what} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        return self._stages.setdefault(optimizer, _Stage())

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer by the factor, in place, before they are clipped; step() does it else.

        Raises RuntimeError where that was done since the last update(), ValueError for float16 gradients, which may
        have lost what was scaled up: keep the parameters in float32.
        """
        if not self._enabled:
            return
        stage = self._stage(optimizer, "unscale_")
        if stage.done == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if stage.done == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        self._unscale(optimizer, stage)
        stage.done = _UNSCALED

    def _unscale(self, optimizer: Optimizer, stage: _Stage) -> None:
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        if any(grad.dtype == _C.float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        finite: dict[_C.device, list[DeviceArray]] = {}
        with no_grad():
            for grad in grads:
                finite.setdefault(grad.device, []).append(grad.isfinite().all())
                grad.mul_(1.0 / self._scale)
            if finite:
                stage.infinite = not all(_C.stack(flags).all().item() for flags in finite.values())

    # ------------------------------------------------------------ steps

    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """optimizer.step(*args, **kwargs) on unscaled gradients, unless one is infinite or NaN; gives what that gives.

        Raises RuntimeError for a closure, and where it was called since the last update(), AssertionError where no
        parameter has a gradient.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        stage = self._stage(optimizer, "step")
        if stage.done == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if stage.done == _FRESH:
            self._unscale(optimizer, stage)
        if stage.infinite is None:
            text = "No inf checks were recorded for this optimizer: none of its parameters has a gradient."
            raise AssertionError(text)
        result = None if stage.infinite else optimizer.step(*args, **kwargs)
        stage.done = _STEPPED
        return result

    def update(self, new_scale: float | DeviceArray | None = None) -> None:
        """Adapt the factor after the steps of an iteration, or set it."""
        if not self._enabled:
            return
        if not self._used:
            raise AssertionError(
                "Attempted update but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )
        if new_scale is not None:
            self._scale = float(new_scale)
            self._stages.clear()
            return
        seen = [stage.infinite for stage in self._stages.values() if stage.infinite is not None]
        if not seen:
            raise AssertionError("No inf checks were recorded prior to update.")
        if any(seen):
            self._scale, self._growth_tracker = self._scale * self._backoff_factor, 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale, self._growth_tracker = self._scale * self._growth_factor, 0
        self._stages.clear()

    # ------------------------------------------------------------ settings

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def get_scale(self) -> float:
        """The factor; 1.0 where it is turned off."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """What a good interval multiplies the factor by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set what a good interval multiplies the factor by."""
        self._growth_factor = float(new_factor)

    def get_backoff_factor(self) -> float:
        """What a bad step multiplies the factor by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set what a bad step multiplies the factor by."""
        self._backoff_factor = float(new_factor)

    def get_growth_interval(self) -> int:
        """How many good steps make the factor grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set how many good steps make the factor grow."""
        self._growth_interval = int(new_interval)

    def state_dict(self) -> dict[str, Any]:
        """The settings, the factor and the good steps since it changed, as PyTorch has them; empty where it is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what state_dict() gave, here or in PyTorch. Raises RuntimeError for an empty one."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = float(state_dict["scale"])
        self._growth_factor = float(state_dict["growth_factor"])
        self._backoff_factor = float(state_dict["backoff_factor"])
        self._growth_interval = int(state_dict["growth_interval"])
        self._growth_tracker = int(state_dict["_growth_tracker"])
