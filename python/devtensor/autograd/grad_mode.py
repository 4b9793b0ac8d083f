"""Whether ops are recorded: context managers and decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from types import TracebackType
from typing import Any, TypeVar, overload

from devtensor import _C

_F = TypeVar("_F", bound=Callable[..., Any])
_G = TypeVar("_G", bound="_GradMode")


class _GradMode:
    """Context manager and decorator, with parentheses and without."""

    _mode = True

    @overload
    def __new__(cls, mode: _F) -> _F: ...  # type: ignore[misc]
    @overload
    def __new__(cls: type[_G], mode: bool = True) -> _G: ...

    def __new__(cls, mode: Any = True) -> Any:
        return cls()(mode) if callable(mode) else super().__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        self._before: list[bool] = []

    def _wanted(self) -> bool:
        return self._mode

    def __call__(self, function: _F) -> _F:
        """Make a function, or a generator at each of its steps, run in this mode."""
        again = functools.partial(_Fixed, self._wanted())
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def _steps(*args: Any, **kwargs: Any) -> Any:
                return _each_step(again, function(*args, **kwargs))

            return _steps  # type: ignore[return-value]
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def _awaited(*args: Any, **kwargs: Any) -> Any:
                with again():
                    return await function(*args, **kwargs)

            return _awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def _call(*args: Any, **kwargs: Any) -> Any:
            with again():
                return function(*args, **kwargs)

        return _call  # type: ignore[return-value]

    def __enter__(self) -> None:
        self._before.append(_C._set_grad_enabled(self._wanted()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C._set_grad_enabled(self._before.pop())


class _Fixed(_GradMode):
    """One use of a mode."""

    def __new__(cls, mode: bool = True) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode


def _each_step(mode: Callable[[], _Fixed], generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Set the mode while the generator runs, not while its user does."""
    try:
        with mode():
            value = next(generator)
        while True:
            try:
                sent = yield value
            except GeneratorExit:
                with mode():
                    generator.close()
                raise
            except BaseException as error:
                with mode():
                    value = generator.throw(error)
            else:
                with mode():
                    value = generator.send(sent)
    except StopIteration as end:
        return end.value


class no_grad(_GradMode):
    """Record nothing: results require no gradient.

    >>> x = dt.ones(2, requires_grad=True)
    >>> with dt.no_grad():
    ...     (x + 1).requires_grad
    False
    """

    _mode = False


class enable_grad(_GradMode):
    """Record again, inside of no_grad.

    >>> x = dt.ones(2, requires_grad=True)
    >>> with dt.no_grad(), dt.enable_grad():
    ...     (x + 1).requires_grad
    True
    """


class inference_mode(_GradMode):
    """Record nothing, as no_grad; with False it changes nothing. Arrays made in it may be used anywhere later.

    >>> x = dt.ones(2, requires_grad=True)
    >>> with dt.inference_mode():
    ...     (x + 1).requires_grad
    False
    """

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._inference = mode

    def _wanted(self) -> bool:
        return not self._inference and _C.is_grad_enabled()


class set_grad_enabled(_GradMode):
    """Record or not, from now on; as a context manager, until its end.

    >>> x = dt.ones(2, requires_grad=True)
    >>> with dt.set_grad_enabled(False):
    ...     (x + 1).requires_grad
    False
    """

    def __new__(cls, mode: Any = True) -> Any:
        return object.__new__(cls)

    def __init__(self, mode: bool = True) -> None:
        super().__init__()
        self._mode = mode
        self._outer = _C._set_grad_enabled(mode)

    def __call__(self, function: _F) -> _F:
        """Make a function run in this mode, which is taken back here."""
        _C._set_grad_enabled(self._outer)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self._mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _C._set_grad_enabled(self._outer)
