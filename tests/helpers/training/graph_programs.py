"""Random programs that build graphs: the same text runs on PyTorch and on devtensor.

    python tests/helpers/training/graph_programs.py --seed 1 --count 100000 [--views-in-place]
    DEVTENSOR_CUDA=sim:1 python tests/helpers/training/graph_programs.py --seed 1 --count 100000 --device cuda

A program is a list of statements. While it is written, PyTorch runs it, so that the next statement knows shapes and
flags. Judged are the outcome of every statement (a refusal by its class), and at the end all values, flags and
gradients. What PyTorch itself does not compute stably is compared as far as PyTorch agrees with itself: a second run
there adds noise of one unit in the last place to results of inexact ops, and a unit of 1 to those of ops that add terms
up. Most programs compute in float64, others in float32, float16 and bfloat16. On a device of CUDA ours makes its arrays
there, PyTorch on the cpu.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np
import torch
from graph_judge import TALLY, Program, Statement, execute, flat, is_cut, judge, namespace
from graph_rows import KINDS, SHAPES, WINDOW_WEIGHTS, WINDOWS


def is_exact(x: Any) -> bool:
    """Whether the elements are small multiples of 1/64."""
    scaled = x.detach() * 64
    return bool(((scaled == scaled.round()) & (scaled.abs() < 2**30)).all())


class Writer:
    """Writes one program, which PyTorch runs at once."""

    def __init__(self, seed: str, views_in_place: bool = False, device: str = "cpu") -> None:
        self.random = random.Random(seed)
        self.views_in_place = views_in_place
        self.device = device
        self.program = Program()
        self.names = namespace(torch)
        self.exact: set[str] = set()
        self.leaves: list[str] = []
        self.n = 0
        self.ended = False  # a way back was refused: what it had added by then is not defined
        self.as_run = True  # names hold what the program alone gives: nothing that was left out has changed an array
        self.float32 = self.random.random() < 0.1
        self.edges = self.random.random() < 0.1
        self.windows = self.random.random() < 0.12 and not self.edges  # infinite weights meet the zeros of a padding
        self.dtype = self.random.choices(["float64", "float32", "float16", "bfloat16"], [80, 14, 3, 3])[0]
        self.weights = WINDOW_WEIGHTS if self.windows else [weight for _, weight in KINDS.values()]

    def arrays(self, wanted: Any = lambda name, x: True) -> list[str]:
        def asked(name: str, x: torch.Tensor) -> Any:
            with contextlib.suppress(RuntimeError):  # a piece of a split whose source was written to
                return bool(wanted(name, x))

        return [
            n for n, x in self.names.items() if isinstance(x, torch.Tensor) and x.is_floating_point() and asked(n, x)
        ]

    def fresh(self) -> str:
        self.n += 1
        return f"v{self.n}"

    def leaf(self) -> None:
        r, name = self.random, self.fresh()
        shape = r.choice(WINDOWS if self.windows else SHAPES)
        count = int(np.prod(shape))
        numbers = [r.choice([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, r.randint(-64, 64) / 32]) for _ in range(count)]
        if self.edges:
            numbers = [r.choice([x, x, x, float("inf"), float("nan"), 0.0]) for x in numbers]
        inner = repr(numbers).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
        wants = r.choice([".requires_grad_()"] * 4 + [""])
        self.run(Statement(f"{name} = tensor({inner}, dtype=lib.{self.dtype}).reshape({shape}).clone(){wants}", name))
        self.leaves.append(name)
        if not self.edges:
            self.exact.add(name)

    def run(self, s: Statement) -> None:
        s.refused = execute(s, self.names)
        late = self.device != "cpu" and "tensor(" in s.text  # there an index is looked at when its result is
        if s.refused and (late or self.random.random() < 0.8) and "backward" not in s.text:
            self.as_run = self.as_run and bool(s.target) and "grad" not in s.text
            return  # few refusals are enough
        self.program.statements.append(s)
        if s.refused and ("backward" in s.text or "autograd.grad" in s.text):
            self.ended = True

    def pick(self, names: list[str]) -> str:
        """Late ones more often: chains get long."""
        return names[-1 - min(int(self.random.expovariate(0.35)), len(names) - 1)]

    def alone(self, names: list[str]) -> list[str]:
        """Those of names that share their memory with no other array."""
        found = {n: x.untyped_storage().data_ptr() for n, x in flat(self.names).items()}
        holders = Counter(found.values())
        return [n for n in names if not self.names[n]._is_view() and holders[found[n]] == 1]

    def filled(self, row: str, names: list[str], target: str | None = None) -> str:
        r = self.random
        values = {"b": self.pick(names), "c": self.pick(names), "a": target or self.pick(names)}
        shape = self.names[values["a"]].shape
        if r.random() < 0.5:  # one that may go with it
            values["b"] = r.choice([n for n in names if self.names[n].shape == shape] or names)
        values["l"] = r.choice(self.leaves)
        return row.format(**values)

    def finite(self, text: str) -> bool:
        names = [name for name in re.findall(r"\bv\d+\b", text) if not is_cut(self.names[name])]
        return all(bool(self.names[name].isfinite().all()) for name in names)

    def statement(self) -> None:
        r = self.random
        kind = r.choices(list(KINDS), self.weights)[0]
        if kind == "leaf":
            self.leaf()
            return
        if kind == "casts" and not self.float32:
            return
        corners = "corners" in kind
        names = self.arrays(lambda n, x: (n in self.exact and not self.float32) or not corners)
        if not names:
            return
        row = r.choice(KINDS[kind][0])
        if self.edges and re.search("prod|var|std|norm", row):
            return  # infinities less infinities: not in one order
        if kind.startswith("in_place"):
            self.in_place(row, names, kind)
            return
        text = self.filled(row, names)
        if re.search("attention|conv", row) is not None and not self.finite(text):
            return  # PyTorch's fused kernel forgets NaN; zeros of a padding meet infinities
        if "as_strided" in row and re.findall(r"\bv\d+\b", text)[0] not in self.leaves:
            return  # the strides of results, and where an empty slice begins
        writes = re.search(r"(v\d+)(\.add_|\[0\] =|\.detach\(\)\.add_|\.requires_grad_\(\))", text)
        if writes is not None and not self.views_in_place and not self.alone([writes[1]]):
            return
        flag = re.search(r"(v\d+)\.requires_grad(_\(\)| = True)", text)
        if flag is not None and not self.alone([flag[1]]):
            return  # in PyTorch earlier views of it require a gradient then, too
        if kind in ("events", "losses"):
            hooked = re.match(r"(v\d+)\.(register_hook|retain_grad)", text)
            if hooked is not None and self.views_in_place and self.names[hooked[1]]._is_view():
                return  # PyTorch crashes where the memory of some views has been written to
            self.run(Statement(text))
            return
        name = self.fresh()
        if kind == "grads":
            self.run(Statement(f"{name} = {text}", name))
            for k, x in enumerate(self.names.get(name, ()) if not self.ended else ()):
                if x is not None and r.random() < 0.5:
                    part = self.fresh()
                    self.run(Statement(f"{part} = {name}[{k}]", part))
            return
        self.op(name, text, kind)

    def op(self, name: str, text: str, kind: str) -> None:
        used = re.findall(r"\bv\d+\b", text)
        block = self.random.random()
        view = kind.startswith("views")
        rounds = kind.startswith(("smooth", "casts", "convolutions")) or (self.dtype != "float64" and not view)
        noisy = rounds or (not view and any(u not in self.exact for u in used))
        line = f"{name} = {text}"
        if block < 0.05:
            line = f"with lib.no_grad():\n    {line}"
        elif block < 0.07:
            line = f"with lib.no_grad(), lib.enable_grad():\n    {line}"
        self.run(Statement(line, name, noisy))
        x = self.names.get(name)
        same = any(x is other for n, other in self.names.items() if n != name)
        if isinstance(x, torch.Tensor) and ((line.startswith("with") and x._is_view()) or same):
            # PyTorch's views say that they require a gradient, also where nothing was recorded; what gives itself
            # there may be a view here
            del self.names[name]
            self.program.statements.pop()
            return
        if not rounds and isinstance(x, torch.Tensor) and all(u in self.exact for u in used):
            if x.is_floating_point() and is_exact(x):
                self.exact.add(name)

    def in_place(self, row: str, names: list[str], kind: str) -> None:
        """A write to a copy, or to an array that nobody shares memory with (with views_in_place: to any)."""
        r = self.random
        able = names if self.views_in_place else self.alone(names)
        if able and r.random() < 0.7:
            target = self.pick(able)
        else:
            target, source = self.fresh(), self.pick(names)
            self.run(Statement(f"{target} = {source} * 1", target, source not in self.exact))
            if target not in self.names:
                return
        text = self.filled(row, [n for n in names if n != target] or names, target)
        if re.search(rf"\b{target}\b.*\b{target}\b", text.replace(f"{target}[{target} > 0]", "")) is not None:
            return  # x *= x: what was there is kept here, PyTorch refuses it on the way back
        if "detach_" in row and not self.alone([target]):
            return  # PyTorch crashes at the next hook of a view
        statement = Statement(f"with lib.no_grad():\n    {text}" if r.random() < 0.05 else text)
        if "[[" in text or "tensor(" in text:  # half of a write with a wrong index may be done
            copy = {**self.names, target: self.names[target].detach().clone()}
            if execute(statement, copy) is not None:
                return
        self.run(statement)
        exact = (
            self.dtype == "float64"
            and "smooth" not in kind
            and all(u in self.exact for u in re.findall(r"\bv\d+\b", text))
        )
        touched = [
            n
            for n in self.arrays()
            if self.names[n].untyped_storage().data_ptr() == self.names[target].untyped_storage().data_ptr()
        ]
        for n in {target, *touched}:
            self.exact.discard(n)
            if exact and is_exact(self.names[n]):
                self.exact.add(n)

    def write(self) -> Program:
        for _ in range(self.random.randint(1, 3)):
            self.leaf()
        for _ in range(self.random.randint(2, 40)):
            if self.ended:
                return self.program
            self.statement()
        names = self.arrays(lambda n, x: x.requires_grad and not x.is_leaf)
        for name in names[-2:]:
            if not self.ended:
                self.run(Statement(f"{name}.sum().backward(retain_graph=True)"))
        return self.program


def smaller(program: Program, device: str) -> Program:
    """The same difference with fewer statements."""
    first = judge(program, device)
    kind = first.split("\n")[0].split(":")[-1] if first else ""
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(program.statements))):
            less = Program(program.statements[:k] + program.statements[k + 1 :])
            found = judge(less, device)
            if found is not None and found.split("\n")[0].split(":")[-1] == kind:
                program, changed = less, True
                break
    return program


def check(seed: int, k: int, views_in_place: bool = False, device: str = "cpu") -> str | None:
    """What differs in program k of a seed, with its text made small; None: nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        writer = Writer(f"{seed} {k}", views_in_place, device)
        program = writer.write()
        if judge(program, device, writer.names if writer.as_run else None) is None:
            return None
        program = smaller(program, device)
        return f"# seed {seed}, program {k}\n{program.text()}\n\n{judge(program, device)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--program", type=int, help="only this one: prints its text")
    parser.add_argument("--views-in-place", action="store_true", help="write to views and to what they share, too")
    parser.add_argument("--device", default="cpu", help="where devtensor's arrays are made")
    parser.add_argument("--seconds", type=float, help="stop after them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.program is not None:
        print(Writer(f"{options.seed} {options.program}", options.views_in_place, options.device).write().text())
        print(check(options.seed, options.program, options.views_in_place, options.device))
        return 0
    wrong, ran, began = 0, 0, time.monotonic()
    for k in range(options.first, options.first + options.count):
        if options.seconds is not None and time.monotonic() - began > options.seconds:
            break
        found = check(options.seed, k, options.views_in_place, options.device)
        ran += 1
        if found is not None:
            wrong += 1
            print(found, "\n", flush=True)
    print(f"{ran} programs of seed {options.seed} from {options.first}, {wrong} differ; for a known reason:")
    for why, count in TALLY.most_common():
        print(f"{count:7}  {why}")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
