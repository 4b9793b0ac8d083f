"""Where exceptions are seen: when one is about to be shown.

traceback.TracebackException makes the text for print_exc, logging, workers of a DataLoader and pytest alike; an
uncaught one goes through sys.excepthook and threading.excepthook. Nothing runs while nothing is shown.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from typing import Any

_lock = threading.RLock()
_on = 0
_before: dict[str, Any] = {}


def explain_shown(error: BaseException | None, uncaught: bool = False) -> None:
    """Explains an exception before it is shown. Never raises."""
    if "torch" not in sys.modules or error is None:
        return
    from devtensor._torch_errors.explaining import explain_chain

    explain_chain(error, error if uncaught else None)


def turn_on() -> None:
    """Explains what is shown from now on; counted, so that blocks nest."""
    global _on
    with _lock:
        _on += 1
        if _on == 1:
            _install()


def turn_off() -> None:
    global _on
    with _lock:
        _on -= 1
        if _on == 0:
            _remove()


def is_on() -> bool:
    return _on > 0


def _install() -> None:
    import traceback

    made, shown, of_threads = traceback.TracebackException.__init__, sys.excepthook, threading.excepthook

    def init(self: Any, exc_type: Any, exc_value: Any, *args: Any, **kwargs: Any) -> None:
        explain_shown(exc_value)
        made(self, exc_type, exc_value, *args, **kwargs)

    def excepthook(kind: Any, error: Any, trace: Any) -> None:
        explain_shown(error, uncaught=True)
        shown(kind, error, trace)

    def thread_excepthook(given: Any) -> None:
        explain_shown(given.exc_value, uncaught=True)
        of_threads(given)

    _before.update(init=made, excepthook=shown, threads=of_threads)
    _before.update(own=(init, excepthook, thread_excepthook))
    traceback.TracebackException.__init__ = init  # type: ignore[method-assign]
    sys.excepthook, threading.excepthook = excepthook, thread_excepthook
    _install_ipython()


def _remove() -> None:
    """Puts back what nobody else has replaced meanwhile."""
    import traceback

    init, excepthook, thread_excepthook = _before["own"]
    if traceback.TracebackException.__init__ is init:
        traceback.TracebackException.__init__ = _before["init"]  # type: ignore[method-assign]
    if sys.excepthook is excepthook:
        sys.excepthook = _before["excepthook"]
    if threading.excepthook is thread_excepthook:
        threading.excepthook = _before["threads"]
    shell = _before.pop("shell", None)
    if shell is not None and vars(shell).get("showtraceback") is _before["shown"]:
        del shell.showtraceback
    _before.clear()


def _install_ipython() -> None:
    """A cell's error is shown by the shell itself."""
    with contextlib.suppress(Exception):
        shell = sys.modules["IPython"].get_ipython()
        if shell is None:
            return
        show = shell.showtraceback

        def showtraceback(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> Any:
            with contextlib.suppress(Exception):
                explain_shown(exc_tuple[1] if exc_tuple is not None else sys.exc_info()[1])
            return show(exc_tuple, *args, **kwargs)

        shell.showtraceback = showtraceback
        _before.update(shell=shell, shown=showtraceback)
