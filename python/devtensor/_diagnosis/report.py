"""What a training program did that a correct one may do too: lines at the end of `python -m devtensor run`.

The optimizers, Modules, dropout and backward() tell it what happens while watching.report is set, and so does the
compiled part (csrc/py/grad/report.c) of leaves and numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from devtensor import _C
from devtensor._diagnosis import gradients, graphs, training, variables, watching
from devtensor._transfers import size_text

_Place = tuple[CodeType, int]
_SHOWN = 3  # names in a line
_MANY = 3  # graphs, or passes, from which on a line is worth telling


@dataclass
class _Steps:
    """What is known of an optimizer."""

    kind: str
    steps: int = 0
    unused: dict[int, str] = field(default_factory=dict)  # parameters that never had a gradient: id -> name
    moded: list[tuple[str, Any]] = field(default_factory=list)  # Modules that training differs for
    evaluated: dict[str, int] = field(default_factory=dict)  # of them, those in evaluation mode: steps
    where: _Place | None = None  # eval()


@dataclass
class _Leaves:
    """The parameters that one line has made, as far as gradients reached them."""

    numbers: set[int] = field(default_factory=set)
    gradients: int = 0
    passes: int = 0
    latest: int = -1  # the backward in which the last gradient came


class Report:
    """Facts of a run."""

    def __init__(self) -> None:
        self._backwards = 0
        self._optimizers: list[_Steps] = []
        self._known: dict[int, tuple[Any, _Steps]] = {}
        self._leaves: dict[_Place, _Leaves] = {}
        self._modes: dict[int, tuple[Any, _Place | None, bool]] = {}
        self._dropped: dict[_Place | None, int] = {}
        self._not_finite: str | None = None

    # ------------------------------------------------------------ what happens

    def ran(self) -> None:
        """backward() has been called."""
        self._backwards += 1

    def made(self, optimizer: Any) -> None:
        steps = _Steps(type(optimizer).__name__)
        self._optimizers.append(steps)
        self._known[id(optimizer)] = weakref.ref(optimizer), steps

    def stepped(self, optimizer: Any, params: list[Any]) -> None:
        known, steps = self._known.get(id(optimizer), (None, None))
        if known is None or steps is None or known() is not optimizer:  # unpickled, or without Optimizer.__init__
            self.made(optimizer)
            steps = self._known[id(optimizer)][1]
        steps.steps += 1
        if steps.steps == 1:
            training.sought(self._look, steps, params)
        for param in params if steps.unused else ():
            if param.grad is not None:
                steps.unused.pop(id(param), None)
        for name, reference in steps.moded:
            module = reference()
            if module is not None and variables.instance_dict(module).get("training") is False:
                known, place, meant = self._modes.get(id(module), (None, None, False))
                told = known is not None and known() is module
                if not (told and meant):
                    steps.evaluated[name] = steps.evaluated.get(name, 0) + 1
                    steps.where = place if told else steps.where

    def _look(self, steps: _Steps, params: list[Any]) -> None:
        """At the first step, while the user's variables can be seen."""
        wanted = {id(param) for param in params if param.requires_grad}
        without = {id(param) for param in params if param.requires_grad and param.grad is None}
        for name, module in _modules():
            own = dict(gradients.parameters_of(module))
            steps.unused.update((id(param), f"{name}.{path}") for path, param in own.items() if id(param) in without)
            if any(id(param) in wanted for param in own.values()):
                parts = dict(variables.below(module))
                steps.moded += [
                    (f"{name}.{path}".rstrip(".") + f" ({type(one).__name__})", weakref.ref(one))
                    for path, one in parts.items()
                    if _depends(one, wanted) and _is_trained(path, parts, wanted)
                ]
        for param in params:
            if id(param) in without:
                steps.unused.setdefault(id(param), "a parameter")

    def moded(self, module: Any) -> None:
        """train() or eval() of a Module. Of a layer itself it is meant, as of a BatchNorm that is kept as it is."""
        place = training.place_of_caller()
        for one in module.modules():
            meant = one is module and not variables.module_tables(one)[2]
            self._modes[id(one)] = weakref.ref(one), place, meant

    def dropped(self) -> None:
        """Dropout in training mode while nothing is recorded."""
        place = training.place_of_caller()
        self._dropped[place] = self._dropped.get(place, 0) + 1

    def reached(self, number: int, place: _Place) -> None:
        """A gradient has come to a parameter; number is its own, place the line that made it."""
        leaves = self._leaves.setdefault(place, _Leaves())
        leaves.numbers.add(number)
        leaves.gradients += 1
        leaves.passes += leaves.latest != self._backwards
        leaves.latest = self._backwards

    def not_finite(self, op: str, array: Any, value: float) -> None:
        """A number that the user has read is infinite or NaN."""
        if self._not_finite is None:
            self._not_finite = ""  # what follows reads no numbers, but is the first all the same
            line = gradients.line_of(training.place_of_caller())
            name = training.sought(training.named, array) or "a result"
            self._not_finite = (
                f"{op}() of {name} gave {value} first at {line.where if line is not None else '?'}, after "
                f"{_times(self._backwards, 'backward pass', 'backward passes')}; "
                "dt.autograd.detect_anomaly() finds the op whose gradient is NaN first"
            )

    # ------------------------------------------------------------ what is told

    def lines(self) -> list[str]:
        """Sentences, each of one line; none for most programs."""
        return [*self._of_optimizers(), *self._of_leaves(), *self._of_modes(), *self._of_graphs(), *self._of_numbers()]

    def _of_optimizers(self) -> Iterator[str]:
        if self._backwards and self._optimizers and not any(one.steps for one in self._optimizers):
            yield f"backward() ran {_times(self._backwards, 'time')}, and no optimizer stepped"
        for one in self._optimizers:
            if one.steps and one.unused:
                names = list(one.unused.values())
                yield (
                    f"{_times(len(names), 'parameter')} of {one.kind} never had a gradient in its "
                    f"{_times(one.steps, 'step')}: {_listed(names)}"
                )
            if one.evaluated:
                names = list(one.evaluated)
                line = gradients.line_of(one.where)
                yield (
                    f"{_listed(names)} {'was' if len(names) == 1 else 'were'} in evaluation mode in "
                    f"{max(one.evaluated.values())} of {_times(one.steps, 'step')} of {one.kind}"
                    + (f", since eval() at {line.where}" if line is not None else "")
                    + ": call train() before training"
                )

    def _of_leaves(self) -> Iterator[str]:
        for place, one in self._leaves.items():
            line = gradients.line_of(place)
            if one.passes >= _MANY and one.gradients == len(one.numbers) and line is not None:
                yield (
                    f"parameters were made at {line.where} anew for each of {one.passes} backward passes and had one "
                    "gradient each: make layers in __init__, so that they learn"
                )

    def _of_modes(self) -> Iterator[str]:
        for place, times in self._dropped.items():
            line = gradients.line_of(place)
            if line is not None:
                yield (
                    f"dropout was in training mode under no_grad at {line.where} ({_times(times, 'time')}): call "
                    "eval() before validation"
                )

    def _of_graphs(self) -> Iterator[str]:
        for one in graphs.held_graphs(unused=True):
            if one.arrays >= _MANY:
                yield (
                    f"{one.arrays} arrays made at {one.where} keep {one.ops} recorded ops and "
                    f"{size_text(one.nbytes)} alive: compute them under no_grad, or keep .detach() of them"
                )

    def _of_numbers(self) -> Iterator[str]:
        if self._not_finite:
            yield self._not_finite


def _modules() -> list[tuple[str, Any]]:
    """The Modules among the caller's variables, and among the attributes of its object."""
    found = training.modules()
    frame = training.frame_of_caller()
    for name, value in list(variables.visible(frame))[:200] if frame is not None else []:
        if not variables.module_tables(value):
            for key, held in list(variables.instance_dict(value).items())[:100]:
                if variables.module_tables(held) and all(held is not one for _, one in found):
                    found.append((f"{name}.{key}", held))
    return found


def _depends(module: Any, wanted: set[int]) -> bool:
    """Whether training mode changes what a Module computes or keeps; not so where it is frozen."""
    from devtensor.nn.dropout import _Dropout
    from devtensor.nn.norm import _BatchNorm

    if variables.is_a(module, _Dropout):
        return True
    own = [param for param in variables.module_tables(module)[0].values() if param is not None]
    return variables.is_a(module, _BatchNorm) and (not own or any(id(param) in wanted for param in own))


def _is_trained(path: str, parts: dict[str, Any], wanted: set[int]) -> bool:
    """Whether the nearest Module around a part that has parameters has wanted ones. A teacher has none."""
    while True:
        own = [id(param) for _, param in gradients.parameters_of(parts[path])]
        if own or not path:
            return any(one in wanted for one in own)
        path = path[: path[:-1].rfind(".") + 1]


def _times(n: int, one: str, several: str | None = None) -> str:
    return f"{n} {one if n == 1 else several or f'{one}s'}"


def _listed(names: list[str]) -> str:
    rest = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + rest


# ---------------------------------------------------------------- called by the compiled part


def reached(number: int, place: _Place) -> None:
    if watching.report is not None:
        watching.report.reached(number, place)


def not_finite(op: str, array: Any, value: float) -> None:
    if watching.report is not None:
        watching.report.not_finite(op, array, value)


# ---------------------------------------------------------------- the whole


def start() -> Report:
    """From now on, for all threads."""
    watching.report = Report()
    _C._watch_training(True)
    return watching.report


def stop() -> None:
    watching.report = None
    _C._watch_training(False)
