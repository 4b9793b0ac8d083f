"""PyTorch's own errors, explained: real PyTorch computes, devtensor says which variable, which line, and what to type.

Nothing of torch is imported before the program imports it, and nothing runs before an error is shown.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from devtensor._torch_errors import hooks
from devtensor._torch_errors.explanation import Explanation, of_ours

__all__ = ["Explanation", "explain_torch", "explanation"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


class explain_torch:
    """Explains errors that PyTorch raises: notes below its own message name the variables, the odd one and the fix.

    Called once, `dt.explain_torch()`, it is on for the rest of the program; `with dt.explain_torch():` is on for a
    block, and `@dt.explain_torch()` for a function. Class, message and traceback of an error stay as they are; errors
    that the program catches and prints by traceback or logging have the notes too. Where it is not sure, nothing is
    added.

    origins=True also records which line made, moved or cast each tensor, in the thread that turns it on. That costs
    some microseconds for each op; without it nothing is recorded, and what works costs nothing. Raises RuntimeError
    where origins are wanted and PyTorch is not installed.

    >>> with dt.explain_torch():
    ...     pass  # train with PyTorch
    """

    def __init__(self, origins: bool = False) -> None:
        if type(origins) is not bool:
            raise TypeError(f"explain_torch(): argument 'origins' must be bool, not {type(origins).__name__}")
        self._origins = origins
        self._modes: list[Any] = []
        if origins:
            self._begin()
        hooks.turn_on()
        self._alone = True  # until it is a block or a decorator

    def _begin(self) -> None:
        from devtensor._torch_errors import recorder, tensors  # noqa: F401  (which tells what files are PyTorch's)

        try:
            self._modes.append(recorder.begin())
        except ModuleNotFoundError as error:
            text = "explain_torch(): origins=True records what PyTorch does, and PyTorch is not installed"
            raise RuntimeError(text) from error

    def _end(self) -> None:
        from devtensor._torch_errors import recorder

        if self._modes:
            recorder.end(self._modes.pop())

    def __enter__(self) -> explain_torch:
        if self._alone:
            self._alone = False
        else:
            hooks.turn_on()
            if self._origins:
                self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            hooks.explain_shown(error)
        finally:
            self._end()
            hooks.turn_off()

    def __call__(self, function: _Function) -> _Function:
        import functools

        if self._alone:  # a decorator is on while its function runs
            self._alone = False
            self._end()
            hooks.turn_off()

        @functools.wraps(function)
        def explained(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return explained  # type: ignore[return-value]


def explanation(error: BaseException) -> Explanation | None:
    """What is known of an error of devtensor's or of PyTorch's: operands, the odd one, the fix; None of any other.

    It has op, code, operands, culprit, fix, fix_at, fix_how, fix_of, notes and to_dict(). An error of PyTorch's is
    explained when this is called, if that has not happened before; its frames must still be there.

    >>> dt.explanation(ValueError("of a user's")) is None
    True
    """
    if not isinstance(error, BaseException):
        raise TypeError(f"explanation(): argument 'error' must be an exception, not {type(error).__name__}")
    ours = of_ours(error)
    if ours is not None:
        return ours
    from devtensor._torch_errors.explaining import explain

    return explain(error, notes=False)


def __dir__() -> list[str]:
    return __all__
