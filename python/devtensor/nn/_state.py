"""How a state dictionary gets into a module: everything is checked before anything changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple

from devtensor import _C
from devtensor._C import DeviceArray, _Parameter
from devtensor._diagnosis import checkpoints
from devtensor._errors import ShapeMismatchError
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn._books import Books, extra_key

if TYPE_CHECKING:
    from devtensor.nn.module import Module


class IncompatibleKeys(NamedTuple):
    """What load_state_dict did not find in the dictionary, and what it found there and did not use."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


@dataclass
class _Answers:
    """What subclasses that override _load_from_state_dict say of the keys below their prefixes."""

    alone: dict[str, Module] = field(default_factory=dict)  # by prefix: what does not ask for the usual way
    forgiven: set[str] = field(default_factory=set)  # keys that were taken out of the lists
    missing: list[str] = field(default_factory=list)  # keys that were put in
    unexpected: list[str] = field(default_factory=list)

    def has(self, key: str) -> bool:
        """Whether a key is the business of one of those that load alone."""
        for prefix, part in self.alone.items():
            if key.startswith(prefix) and key[len(prefix) :].partition(".")[0] not in part._module_names:
                return True
        return False


class _Here(local):
    """The state of a thread."""

    lists: tuple[list[str], list[str]] | None = None  # what the usual way put into them, where it was asked for


_here = _Here()


def load_usually(module: Module, state: Mapping[str, Any], prefix: str) -> tuple[list[str], list[str]]:
    """Module._load_from_state_dict: notes that it was called, and gives the keys that miss and those of no use."""
    own = [*module._parameter_names, *(name for name, kept in module._buffer_names.items() if kept)]
    keys = [prefix + name for name in own if module.__dict__[name] is not None]
    extra = extra_key(module, prefix)
    keys += [extra] if extra is not None else []
    below = [key for key in state if key.startswith(prefix) and key not in keys]
    unexpected = [key for key in below if key[len(prefix) :].partition(".")[0] not in module._module_names]
    _here.lists = [key for key in keys if key not in state], unexpected
    return _here.lists


def load(module: Module, state: Mapping[str, Any], strict: bool, assign: bool) -> IncompatibleKeys:
    """See Module.load_state_dict."""
    if not isinstance(state, Mapping):
        raise checkpoints.unread(state, TypeError(f"Expected state_dict to be dict-like, got {type(state).__name__}."))
    problems: list[str] = []
    answers = _Answers()
    state = _prepared(module, state, strict, problems, answers)
    for path, part in module.named_modules(remove_duplicate=False):
        if hasattr(part, "_renamed"):  # a checkpoint may be older than the module
            state = part._renamed(state, path)
    for path, part in module.named_modules():
        if hasattr(part, "_take_shapes"):  # one that has had no call yet
            part._take_shapes(state, f"{path}." if path else "")
    places = {key: place for key, place in _places(module).items() if not answers.has(key)}
    parts = [(f"{path}." if path else "", part) for path, part in module.named_modules()]
    extra = {key: part for prefix, part in parts if (key := extra_key(part, prefix)) and not answers.has(key)}
    missing = [key for key in (*places, *extra) if key not in state and key not in answers.forgiven]
    known = (places, extra, answers.forgiven)
    unexpected = [key for key in state if not any(key in keys for keys in known) and not answers.has(key)]
    keys = IncompatibleKeys([*missing, *answers.missing], [*unexpected, *answers.unexpected])
    # What these take out of the lists is not complained of.
    how = _load_and_tell if any(_hooks(part, "after_load") for _, part in parts) else _load
    return how(module, places, extra, state, strict, assign, keys, problems)


def _places(module: Module) -> dict[str, Any]:
    """What a dictionary may fill, as state_dict(keep_vars=True) has it without hooks."""
    found: dict[str, Any] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        for name in (*part._parameter_names, *(name for name, kept in part._buffer_names.items() if kept)):
            if part.__dict__[name] is not None:
                found[prefix + name] = part.__dict__[name]
    return found


def _hooks(module: Module, which: str) -> list[Any]:
    return [] if module._hooks_of_module is None else list(getattr(module._hooks_of_module, which).values())


def _prepared(
    module: Module, state: Mapping[str, Any], strict: bool, problems: list[str], answers: _Answers
) -> Mapping[str, Any]:
    """What hooks, and subclasses that override _load_from_state_dict, make of a copy of the dictionary."""
    copied: dict[str, Any] | None = None
    for path, part in module.named_modules(remove_duplicate=False):
        prefix, own = f"{path}." if path else "", type(part)._load_from_state_dict is not Books._load_from_state_dict
        hooks, local_metadata = _hooks(part, "before_load"), {"version": part._version}
        if own or hooks:
            copied = OrderedDict(state) if copied is None else copied
        for hook in hooks:
            hook(part, copied, prefix, local_metadata, strict, answers.missing, answers.unexpected, problems)
        if own and copied is not None:
            _ask(part, copied, prefix, local_metadata, strict, problems, answers)
    return state if copied is None else copied


def _ask(
    part: Module,
    state: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    problems: list[str],
    answers: _Answers,
) -> None:
    """Calls the _load_from_state_dict of a subclass. The usual way, if that asks for it, is gone later, for all."""
    lists: tuple[list[str], list[str]] = [], []
    own = OrderedDict((key, value) for key, value in state.items() if key.startswith(prefix))
    outer, _here.lists = _here.lists, None
    try:
        part._load_from_state_dict(own, prefix, local_metadata, strict, *lists, problems)
        usual = _here.lists
    finally:
        _here.lists = outer
    for key in [key for key in state if key.startswith(prefix) and key not in own]:
        del state[key]
    state.update(own)
    if usual is None:
        answers.alone[prefix] = part
    known: tuple[list[str], list[str]] = ([], []) if usual is None else usual
    for before, after, added in zip(known, lists, (answers.missing, answers.unexpected), strict=True):
        answers.forgiven |= set(before) - set(after)
        added += [key for key in after if key not in before]


def _from_below(module: Module) -> list[Module]:
    """A Module and those in it; what is below comes first."""
    return [*(part for child in module.children() for part in _from_below(child)), module]


def _load_and_tell(
    module: Module,
    places: dict[str, Any],
    extra: dict[str, Module],
    state: Mapping[str, Any],
    strict: bool,
    assign: bool,
    keys: IncompatibleKeys,
    problems: list[str],
) -> IncompatibleKeys:
    """The hooks that are called after a module is filled, and then the complaints about keys."""
    _load(module, places, extra, state, False, assign, keys, problems)
    for part in _from_below(module):
        for hook in _hooks(part, "after_load"):
            if hook(part, keys) is not None:
                raise RuntimeError(
                    "hooks of register_load_state_dict_post_hook return None: they change the lists of keys"
                )
    return _load(module, {}, {}, {}, strict, assign, keys, [])


def _load(
    module: Module,
    places: dict[str, Any],
    extra: dict[str, Module],
    state: Mapping[str, Any],
    strict: bool,
    assign: bool,
    keys: IncompatibleKeys,
    problems: list[str],
) -> IncompatibleKeys:
    missing, unexpected = keys
    differing: list[str] = []
    if strict and missing:
        problems.append(f"Missing key(s) in state_dict: {_quoted(missing)}.")
    if strict and unexpected:
        problems.append(f"Unexpected key(s) in state_dict: {_quoted(unexpected)}.")
    for key, place in places.items():
        if key in state:
            problem = _difference(key, place, state[key])
            if problem:
                problems.append(problem)
                differing += [key] if isinstance(state[key], DeviceArray) else []
    if problems:
        lines = "\n\t".join(problems)
        text = f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{lines}"
        if differing:
            raise _mismatch(text, places, state, differing)
        raise checkpoints.prefixed({*places, *extra}, state, RuntimeError(text))
    if assign:
        _assign(module, state, places)
    else:
        _copy(places, state)
    for key, part in extra.items():
        if key in state:
            part.set_extra_state(state[key])
    return keys


def _difference(key: str, place: DeviceArray, value: Any) -> str | None:
    if not isinstance(value, DeviceArray):
        return (
            f'While copying the parameter named "{key}", expected a devtensor.DeviceArray from the state_dict but '
            f"received {type(value)} (devtensor.from_numpy makes one of a NumPy array)"
        )
    if value.shape != place.shape:
        return (
            f"size mismatch for {key}: copying a param with shape {value.shape} ({value.dtype}) from checkpoint, "
            f"the shape in current model is {place.shape} ({place.dtype})."
        )
    return None


_SHOWN = 4  # pairs of operands


def _mismatch(
    text: str, places: Mapping[str, DeviceArray], state: Mapping[str, Any], differing: list[str]
) -> ShapeMismatchError:
    """The error about values of another shape: operands are each parameter and what stands for it in the checkpoint."""
    names, arrays = [], []
    for key in differing[:_SHOWN]:
        names += [key, f'state_dict["{key}"]']
        arrays += [places[key], state[key]]
    error = ShapeMismatchError(text)
    _C._explained("load_state_dict", tuple(names), tuple(arrays), "shape-mismatch", error, 1)
    return error


def _copy(places: Mapping[str, DeviceArray], state: Mapping[str, Any]) -> None:
    """What crosses devices or dtypes is converted first, so that a full device leaves everything as it was."""
    ready = {key: state[key].to(place.device, place.dtype) for key, place in places.items() if key in state}
    with no_grad():
        for key, value in ready.items():
            places[key].copy_(value)


def _assign(module: Module, state: Mapping[str, Any], places: Mapping[str, Any]) -> None:
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        for name in (*part._parameter_names, *part._buffer_names):
            value = state.get(prefix + name) if prefix + name in places else None
            if value is None:
                continue
            if name in part._parameter_names and not isinstance(value, _Parameter):
                value = _Parameter(value, part.__dict__[name].requires_grad)
            part.__dict__[name] = value


def _quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
