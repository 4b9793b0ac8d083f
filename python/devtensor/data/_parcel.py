"""How dataset and functions travel to the worker processes of a DataLoader.

They are pickled by name, as a worker imports the modules of the program. What it cannot import, such as a class of a
notebook cell, goes by value where cloudpickle is installed.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import sys
from collections import ChainMap
from collections.abc import Iterator
from multiprocessing import process
from multiprocessing.reduction import ForkingPickler
from types import FunctionType
from typing import Any

_HINT = (
    "With num_workers > 0 the dataset, collate_fn and worker_init_fn are pickled for the worker processes: lambdas and "
    "what is defined in a function can be sent where cloudpickle is installed (pip install cloudpickle)."
)


class Parcel:
    """A task on its way: pickled when a process is started for it, unpickled when the worker can tell what goes wrong.

    Where a process begins as a copy of this one, it has the task itself.
    """

    def __init__(self, task: Any, worker: int, pickled: bytes | None = None) -> None:
        self.worker = worker
        self._task = task
        self._pickled = pickled

    def __reduce__(self) -> Any:
        return Parcel, (None, self.worker, _pickle(self._task))

    def open(self) -> Any:
        """The task. Raises whatever unpickling raises."""
        if self._pickled is not None:
            unpickler = pickle.Unpickler(io.BytesIO(self._pickled))
            self._task, by_value, self._pickled = unpickler.load(), unpickler.load(), None
            for name, value in by_value.items():  # so that samples of these classes can go back by name
                vars(sys.modules["__main__"]).setdefault(name, value)
        return self._task


def main_file() -> str | None:
    """The file that a worker runs to have what the program defines; None where it cannot have that."""
    main = sys.modules["__main__"]
    name, file = getattr(getattr(main, "__spec__", None), "name", ""), getattr(main, "__file__", None)
    if file is None or name.rpartition(".")[2] == "__main__":  # which is not run again
        return None
    path = os.path.join(process.ORIGINAL_DIR or "", file)  # type: ignore[attr-defined]
    return path if os.path.exists(path) else None


@contextlib.contextmanager
def startable() -> Iterator[None]:
    """While processes are started: they would run any __file__ of the program, and "<stdin>" is no file."""
    main = vars(sys.modules["__main__"])
    file = main.get("__file__")
    hidden = file is not None and not os.path.exists(file) and main_file() is None
    if hidden:
        del main["__file__"]
    try:
        yield
    finally:
        if hidden:
            main["__file__"] = file


def _pickle(task: Any) -> bytes:
    """The task, and what is to be put into a worker's __main__ by name."""
    stream = io.BytesIO()
    pickler = _ByName(stream, pickle.HIGHEST_PROTOCOL)
    try:
        pickler.dump(task)
        pickler.dump({})
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        try:
            import cloudpickle  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ImportError:
            if not pickler.refused:
                error.add_note(_HINT)
            raise error from None
        return _pickle_by_value(task, cloudpickle.Pickler)
    return stream.getvalue()


def _pickle_by_value(task: Any, base: Any) -> bytes:
    found: dict[str, Any] = {}

    class ByValue(base):  # type: ignore[misc]
        def __init__(self, file: io.BytesIO) -> None:
            super().__init__(file, pickle.HIGHEST_PROTOCOL)
            self.dispatch_table = ChainMap(base.dispatch_table, ForkingPickler(file).dispatch_table)

        def reducer_override(self, obj: Any) -> Any:
            if _is_of_main(obj):
                if main_file() is not None and vars(sys.modules["__main__"]).get(obj.__qualname__) is obj:
                    return NotImplemented  # by name
                if obj.__qualname__.isidentifier():
                    found[obj.__qualname__] = obj
            return super().reducer_override(obj)

    stream = io.BytesIO()
    pickler = ByValue(stream)
    pickler.dump(task)
    pickler.dump(found)
    return stream.getvalue()


class _ByName(ForkingPickler):
    """Refuses what a worker could not import."""

    refused = False

    def reducer_override(self, obj: Any) -> Any:
        if _is_of_main(obj) and main_file() is None:
            self.refused = True
            kind = "class" if isinstance(obj, type) else "function"
            raise pickle.PicklingError(
                f"DataLoader: worker processes cannot import the {kind} {obj.__qualname__!r}, since it is defined in a "
                "notebook, at a prompt or in a program without a file. Put it into a module file and import it, or "
                "install cloudpickle (pip install cloudpickle), or use num_workers=0"
            )
        return NotImplemented


def _is_of_main(obj: Any) -> bool:
    return isinstance(obj, (type, FunctionType)) and obj.__module__ == "__main__"
