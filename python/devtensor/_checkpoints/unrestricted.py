"""A pickle read as pickle reads it, for load(weights_only=False): what it names is imported and called.

Only for files whose writer the caller trusts. Names of PyTorch stand for what has the same name here.
"""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

import devtensor
from devtensor import _C
from devtensor._C import _Buffer
from devtensor._checkpoints import names, trusted
from devtensor._checkpoints.pickle_reader import Maker, Storage


def load(data: bytes, at: int, storage: Storage, encoding: str) -> tuple[Any, int]:
    """What the pickle that begins at a byte of data holds, and where it ends.

    storage gives what a persistent id stands for. Raises ValueError where data end too early, what storage raises, and
    whatever the code raises that is run.
    """
    file = io.BytesIO(data)
    file.seek(at)
    try:
        return _Unpickler(file, storage, encoding).load(), file.tell()
    except EOFError:
        raise ValueError("its pickle ends too early") from None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, storage: Storage, encoding: str) -> None:
        super().__init__(file, encoding=encoding)
        self._storage = storage

    def persistent_load(self, identity: Any) -> Any:
        if type(identity) is tuple and identity[0] in ("module", b"module"):  # a class with its source, before 1.6
            return identity[1]
        return self._storage(identity)

    def find_class(self, module: str, name: str) -> Any:
        full = f"{module}.{name}"
        if full in trusted.given:
            return trusted.given[full]
        if module == "torch" or module.startswith("torch."):
            return _of_torch(module, name)
        try:
            return super().find_class(module, name)
        except (ImportError, AttributeError) as error:
            kind = AttributeError if isinstance(error, AttributeError) else type(error)
            last = name.rpartition(".")[2]
            raise kind(
                f"{error}: the file has an object of {full}. A program that reads it must have {last} there, as "
                "that which wrote it had; a file of state_dict() asks for no class"
            ) from None


def _of_torch(module: str, name: str) -> Any:
    name = _RENAMED.get(name, name)
    full = f"{module}.{name}"
    if full in _OWN:
        return _OWN[full]
    try:
        found = names.find(module, name)
    except pickle.UnpicklingError:
        return _same_here(module, name)
    return found.make if isinstance(found, Maker) else found


def _same_here(module: str, name: str) -> Any:
    """torch.nn.modules.linear.Linear is devtensor.nn.Linear: the nearest package above that has the name."""
    parts = module.split(".")[1:]
    if parts[:2] == ["_C", "_nn"]:
        parts = ["nn", "functional"]
    for count in range(len(parts), -1, -1):
        here = sys.modules.get(".".join(["devtensor", *parts[:count]]))
        public = count > 0 or not parts or parts[0].startswith("_")  # else a function of the package is another thing
        found = getattr(here, name, None) if public else None
        if found is not None:
            return found
    raise pickle.UnpicklingError(f"it names {module}.{name}, which devtensor has nothing for")


def _array_of_class(make: Any, kind: Any, arguments: Any, state: Any) -> Any:
    """torch._tensor._rebuild_from_type_v2: an array with a class and attributes."""
    array = make(*arguments)
    if isinstance(state, dict) and state.get("_is_buffer") is True:
        return _Buffer(array, persistent=state.get("persistent") is True)
    if kind not in (_C.DeviceArray, _C._Parameter):
        raise pickle.UnpicklingError(f"it has an array of class {getattr(kind, '__name__', kind)}")
    return array


_RENAMED = {"NonDynamicallyQuantizableLinear": "Linear"}  # of MultiheadAttention
_OWN = {
    "torch._tensor._rebuild_from_type_v2": _array_of_class,
    "torch._C._VariableFunctionsClass": devtensor,  # getattr(it, "tanh") is torch.tanh
    "torch.Tensor": _C.DeviceArray,
    "torch.nn.parameter.Parameter": _C._Parameter,
    "torch.nn.parameter.Buffer": _C._Buffer,
}
