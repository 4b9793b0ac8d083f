"""Less memory for more time: parts of a model that compute again what their gradients read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from devtensor import _C, cuda
from devtensor._C import DeviceArray
from devtensor._dtypes.autocast import current
from devtensor.random import default_generator

__all__ = ["checkpoint", "checkpoint_sequential", "get_device_states", "set_device_states"]


def __dir__() -> list[str]:
    return __all__


def _no_contexts() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    return nullcontext(), nullcontext()


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = _no_contexts,
    determinism_check: str = "default",
    debug: bool = False,
    preserve_rng_state: bool = True,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call function(*args, **kwargs), and keep nothing for its gradients: backward calls it once more.

    Parameters
    ----------
    function : callable
        Must do the same both times; it may use parameters that are no arguments.
    use_reentrant : bool, optional
        Taken for code written for PyTorch: both ways there are this one.
    context_fn : callable
        Gives two context managers, for the first call and the second.
    determinism_check, debug, early_stop
        Taken for code written for PyTorch.
    preserve_rng_state : bool
        The second call draws the same random numbers, such as those of dropout, and leaves the generator as it was.

    Returns
    -------
    What function returns.

    Raises
    ------
    GradientError
        In backward, where the second call recorded other ops.

    Examples
    --------
    >>> x = dt.ones(3, requires_grad=True)
    >>> dt.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x).sum().backward()
    >>> x.grad
    DeviceArray([-2.4783, -2.4783, -2.4783], device='cpu', dtype=float32)
    """
    if not callable(function):
        raise TypeError(f"checkpoint(): argument 'function' must be callable, not {type(function).__name__}")
    first, second = context_fn()
    if not _C.is_grad_enabled():
        with first:
            return function(*args, **kwargs)
    before, mode = default_generator.get_state(), current()

    def again() -> None:
        now = default_generator.get_state()
        if preserve_rng_state:
            default_generator.set_state(before)
        try:
            with mode, second:
                function(*args, **kwargs)
        finally:
            if preserve_rng_state:
                default_generator.set_state(now)

    with first:
        return _C._run_light(function, args, kwargs, again)


def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Call functions one after the other on input, in as many checkpoints; the last segment keeps what it needs.

    >>> layers = nn.Sequential(nn.Linear(2, 2), nn.Tanh(), nn.Linear(2, 2), nn.Tanh())
    >>> dt.utils.checkpoint.checkpoint_sequential(layers, 2, dt.ones(1, 2)).shape
    (1, 2)
    """
    layers: Sequence[Callable[[Any], Any]] = list(functions)
    if not 1 <= segments <= max(len(layers), 1):
        raise ValueError(f"checkpoint_sequential(): segments must be from 1 to {len(layers)}, but got {segments}")

    def run(part: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
        def call(x: Any) -> Any:
            for layer in part:
                x = layer(x)
            return x

        return call

    size = len(layers) // segments
    for i in range(segments - 1):
        input = checkpoint(run(layers[i * size : (i + 1) * size]), input, use_reentrant=use_reentrant, **kwargs)
    return run(layers[(segments - 1) * size :])(input)


def get_device_states(*args: Any) -> tuple[list[int], list[DeviceArray]]:
    """The numbers of the GPUs that args have arrays on, one for each array, and the states of their generators.

    Lists, tuples and dictionaries are looked into. For layers that compute again what they did: reversible ones.

    >>> dt.utils.checkpoint.get_device_states(dt.ones(2))
    ([], [])
    """
    devices = [x.get_device() for x in _arrays_of(args) if x.is_cuda]
    return devices, [cuda.get_rng_state(device) for device in devices]


def set_device_states(devices: Sequence[int], states: Sequence[DeviceArray], *, device_type: str | None = None) -> None:
    """Sets the generators of GPUs to states that get_device_states gave. device_type: None, cpu or cuda.

    >>> dt.utils.checkpoint.set_device_states(*dt.utils.checkpoint.get_device_states(dt.ones(2)))
    """
    if device_type not in (None, "cpu", "cuda"):
        raise ValueError(f"set_device_states(): device_type must be cpu or cuda, not {_C._shown(device_type)}")
    for device, state in zip(devices, states, strict=False):
        cuda.set_rng_state(state, device)


def _arrays_of(value: Any) -> Iterator[DeviceArray]:
    if isinstance(value, DeviceArray):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _arrays_of(item)
