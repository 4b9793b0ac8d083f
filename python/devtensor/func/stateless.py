"""A module as a function of its parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor.nn.module import Module
from devtensor.nn.norm import _BatchNorm

_MISSING = object()


def _owner(module: Module, key: str) -> tuple[Module, str]:
    """The module that has the array of this key, and its name there. Raises AttributeError."""
    *path, name = key.split(".")
    owner: Any = module
    for part in path:
        below = getattr(owner, part, _MISSING)
        if below is _MISSING:
            raise AttributeError(f"{type(owner).__name__} has no attribute `{part}`")
        if not isinstance(below, Module):
            raise TypeError(f"submodule {key.rpartition('.')[0]}: {below} is not an instance of Module")
        owner = below
    return owner, name


def _named_arrays(module: Module) -> list[tuple[str, DeviceArray]]:
    """Its parameters and buffers by key, those that are there twice under each of their keys."""
    return [
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    ]


def _need_all_keys(module: Module, arrays: Mapping[str, Any]) -> None:
    keys = {key for key, _ in _named_arrays(module)}
    faults = []
    if unexpected := [key for key in arrays if key not in keys]:
        faults.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing := sorted(keys - arrays.keys()):
        faults.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if faults:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(faults))


def _with_ties(module: Module, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """arrays, and each also under the other keys of the same parameter. Raises ValueError for two of one."""
    keys_of: dict[int, list[str]] = {}
    named = _named_arrays(module)
    for key, array in named:
        keys_of.setdefault(id(array), []).append(key)
    ties = {key: keys_of[id(array)] for key, array in named}
    tied = dict(arrays)
    for key, array in arrays.items():
        for other in ties.get(key, ()):
            if other in arrays and arrays[other] is not array:
                raise ValueError(
                    f"functional_call got multiple values for keys {sorted(ties[key])}, which are tied. Consider using "
                    "tie_weights=False"
                )
            tied[other] = array
    return tied


@contextmanager
def _in_place_of(module: Module, arrays: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """module with these arrays in the place of its own; gives those that are there when the block ends."""
    places = []
    for key, array in arrays.items():
        if not isinstance(array, DeviceArray):
            raise TypeError(f"{array} is not an instance of DeviceArray")
        places.append((key, *_owner(module, key), array))
    own = [owner.__dict__.get(name, _MISSING) for _, owner, name, _ in places]
    left: dict[str, Any] = {}
    try:
        for _, owner, name, array in places:
            owner.__dict__[name] = array
        yield left
    finally:
        for (key, owner, name, _), before in zip(places, own, strict=True):
            left[key] = owner.__dict__.pop(name)
            if before is not _MISSING:
                owner.__dict__[name] = before


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, DeviceArray] | Sequence[dict[str, DeviceArray]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """module(*args, **kwargs), computed with these arrays in the place of its parameters and buffers of those keys.

    The module has its own arrays again afterwards. One that the call replaced, as a counter that is assigned anew, is
    put into the dictionary. args that is no tuple is the one argument. With tie_weights an array also stands for the
    other keys of a parameter that is there twice; strict wants a value for every key.

    Raises TypeError for what is no array, AttributeError for a key of no submodule, ValueError for a key that is there
    twice, RuntimeError for keys that strict refuses.

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> dt.func.functional_call(layer, {"weight": dt.tensor([[2.0, 3.0]])}, dt.ones(2))
    DeviceArray([5.], device='cpu', dtype=float32)
    """
    op = "functional_call"
    if not isinstance(module, Module):
        raise TypeError(f"{op}(): argument 'module' must be a Module, not {type(module).__name__}")
    tie_weights = _C._need_bool(op, "tie_weights", tie_weights)
    strict = _C._need_bool(op, "strict", strict)
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict | list | tuple):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    dictionaries = [given] if isinstance(given, dict) else given
    arrays: dict[str, Any] = {}
    for dictionary in dictionaries:
        if not isinstance(dictionary, dict):
            raise ValueError(
                f"Expected all elements of parameter_and_buffer_dicts to be dictionaries, but got {type(dictionary)}"
            )
        if twice := sorted(arrays.keys() & dictionary):
            raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        arrays.update(dictionary)
    if strict:
        _need_all_keys(module, arrays)
    with _in_place_of(module, _with_ties(module, arrays) if tie_weights else arrays) as left:
        result = module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    for dictionary in dictionaries:
        for key in dictionary:
            if left[key] is not dictionary[key]:
                dictionary[key] = left[key]
    return result


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, DeviceArray], dict[str, DeviceArray]]:
    """The parameters and the buffers of models of one class, each stacked along a new first dimension.

    With vmap and functional_call they are an ensemble. The stacked parameters are leaves. Raises RuntimeError for no
    models, for models of several classes or not all in one mode.

    >>> parameters, buffers = dt.func.stack_module_state([nn.Linear(2, 1), nn.Linear(2, 1)])
    >>> parameters["weight"].shape
    (2, 1, 2)
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(model.training is not models[0].training for model in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters, buffers = {}, {}
    for key, parameter in models[0].named_parameters():
        arrays = [dict(model.named_parameters())[key] for model in models]
        parameters[key] = _C.stack([array.detach() for array in arrays]).requires_grad_(parameter.requires_grad)
    for key, _ in models[0].named_buffers():
        buffers[key] = _C.stack([dict(model.named_buffers())[key].detach() for model in models])
    return parameters, buffers


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """root, whose batch norms keep no running numbers any more, and always take those of the batch; in place.

    vmap and grad refuse the writes to running numbers that are not among their arguments.

    >>> dt.func.replace_all_batch_norm_modules_(dt.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
