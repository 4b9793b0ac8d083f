"""How dataset and functions travel to the worker processes of a DataLoader.

They are pickled by name, as a worker imports the modules of the program. What it cannot import, such as a class of a
notebook cell, goes by value where cloudpickle is installed.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import pickle
import sys
from collections import ChainMap
from collections.abc import Iterator
from multiprocessing import process, spawn
from multiprocessing.reduction import ForkingPickler
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

_HINT = (
    "With num_workers > 0 the dataset, collate_fn and worker_init_fn are pickled for the worker processes: lambdas and "
    "what is defined in a function can be sent where cloudpickle is installed (pip install cloudpickle)."
)


class Parcel:
    """A task on its way to a worker, which unpickles it, as it can tell what goes wrong.

    Where a process begins as a copy of this one, it has the task itself. Else the process starts with an empty one and
    is sent the contents: one that has died while it began cannot be waited for then.
    """

    def __init__(self, task: Any, worker: int) -> None:
        self.worker = worker
        self._task = task
        self._contents: Contents | None = None

    def __reduce__(self) -> Any:
        return Parcel, (None, self.worker)

    def contents(self) -> Contents:
        """What to send. Raises whatever pickling raises."""
        return Contents(_pickle(self._task), main_name(), main_file(), run_as_torch())

    def fill(self, contents: Contents) -> None:
        """With what was sent."""
        self._contents = contents

    def open(self) -> Any:
        """The task. Raises whatever the program raises that is imported here, and whatever unpickling raises."""
        if self._contents is not None:
            self._contents.import_main()
            unpickler = pickle.Unpickler(io.BytesIO(self._contents.pickled))
            self._task, by_value, self._contents = unpickler.load(), unpickler.load(), None
            for name, value in by_value.items():  # so that samples of these classes can go back by name
                vars(sys.modules["__main__"]).setdefault(name, value)
        return self._task


class Contents(NamedTuple):
    """A task pickled, and the program that has what it names: the module or the file, and whether torch means
    devtensor there."""

    pickled: bytes
    name: str | None
    file: str | None
    as_torch: bool

    def import_main(self) -> None:
        """The program as __main__, as multiprocessing imports it."""
        global importing_main
        if self.as_torch:
            from devtensor._as_torch.install import install_torch

            install_torch()
        current: Any = process.current_process()
        importing_main = current._inheriting = True  # no process may be started meanwhile
        try:
            if self.name is not None:
                spawn._fixup_main_from_name(self.name)  # type: ignore[attr-defined]
            elif self.file is not None:
                spawn._fixup_main_from_path(self.file)  # type: ignore[attr-defined]
        except SystemExit as end:
            raise RuntimeError(f"The program ended ({end.code}) while a worker of its DataLoader imported it") from None
        finally:
            importing_main = False
            del current._inheriting


importing_main = False
GUARD = (
    "the worker processes of a DataLoader import the program, which would start workers again: put what it runs below "
    '`if __name__ == "__main__":`, or use num_workers=0'
)


def run_as_torch() -> bool:
    return sys.modules.get("torch") is sys.modules["devtensor"]


def check_guard() -> None:
    """Raises RuntimeError where a worker that imports the program would come here as well."""
    if importing_main:
        raise RuntimeError(f"DataLoader: {GUARD}")
    main = sys.modules["__main__"]
    frame: Any = sys._getframe()
    while frame is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)):
        frame = frame.f_back
    if frame is None or (main_file() is None and main_name() is None):
        return
    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename)))
    except (SyntaxError, ValueError):
        return
    line = frame.f_lineno
    before = [one for one in tree.body if one.lineno <= line]
    if before and not any(isinstance(one, ast.If) and _asks_for_main(one.test) for one in before):
        place = f"{os.path.basename(frame.f_code.co_filename)}:{line}"
        raise RuntimeError(f"DataLoader at {place}: {GUARD}")


def _asks_for_main(test: ast.expr) -> bool:
    """Whether a condition tells the program from its import by a worker."""
    names = {one.id if isinstance(one, ast.Name) else getattr(one, "attr", "") for one in ast.walk(test)}
    return bool(names & {"__name__", "parent_process", "current_process"})


def main_name() -> str | None:
    """The module that a worker imports to have what the program defines; None where that is a file, or nothing."""
    name = getattr(getattr(sys.modules["__main__"], "__spec__", None), "name", None)
    return None if name is None or name.rpartition(".")[2] == "__main__" else name


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
    """While processes are started: they would run the program before they could tell of its errors."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


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
