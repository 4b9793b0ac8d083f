"""Random programs that build graphs: the same text runs on PyTorch and on devtensor, in float64.

    python tests/helpers/training/graph_programs.py --seed 1 --count 100000 [--views-in-place] [--program 4711]

A program is a list of statements. While it is written, PyTorch runs it, so that the next statement knows shapes and
flags. Judged are the outcome of every statement (a refusal by its class), and at the end all values, flags and
gradients. What PyTorch itself does not compute stably is compared as far as PyTorch agrees with itself: a second run
there adds noise of one unit in the last place to results of inexact ops.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from graph_differences import known

import devtensor as dt

SHAPES = [(), (1,), (3,), (2, 3), (2, 1), (3, 3), (1, 3), (4, 2, 3), (2, 1, 3), (3, 2), (5,), (0, 3), (2, 0)]

# a, b, c: arrays. What each op needs and gives:
SMOOTH = """
{a}.tanh(); {a}.sigmoid(); {a}.sin(); {a}.cos(); lib.erf({a}); ({a} * 0.1).exp(); ({a}.abs() + 0.5).log()
({a}.square() + 1).sqrt(); ({a}.square() + 1).rsqrt(); ({a} * {a} + 1).reciprocal(); F.silu({a}); F.gelu({a})
F.gelu({a}, approximate="tanh"); F.softplus({a}); ({a} * 0.1).expm1(); {a}.square().log1p()
({a}.square() + 2).log2(); ({a}.square() + 2).log10(); {a} / 3; {a} / ({b}.square() + 1); {a} ** 3; 2.0 ** ({a} * 0.1)
({a}.abs() + 0.5) ** 1.5; ({a}.square() + 1) ** ({b} * 0.1); lib.lerp({a}, {b}, 0.3); lib.lerp({a}, {b}, {c})
{a}.exp(); {a}.log(); {a}.sqrt(); {a} / {b}; {a}.abs() ** 0.5; {a}.reciprocal(); {a}.rsqrt(); {a} ** {b}; {a}.tan()
{a}.softmax(-1); {a}.log_softmax(0); F.softmax({a}, -1, dtype=lib.float64); {a}.mean(); {a}.mean(0)
{a}.mean(-1, keepdim=True); {a}.var(); {a}.std(-1); {a}.var(0, unbiased=False); {a}.norm(); {a}.norm(3, dim=-1)
{a}.norm(1, dim=0, keepdim=True); {a}.logsumexp(-1); {a}.logsumexp(0, keepdim=True)
F.normalize({a}, dim=0); F.layer_norm({a}, {a}.shape[-1:]); F.mse_loss({a}, {b})
F.cross_entropy({a}, lib.tensor([0, 1])); F.nll_loss({a}, lib.tensor([1, 0, 0]))
"""
# Exact on small dyadic numbers.
EXACT = """
-{a}; {a} + {b}; {a} - {b}; {a} * {b}; {a} + 0.5; 2 - {a}; {a} * 0.5; {a} * {a}; {a} + {a}; {a}.square(); {a} * -2
lib.add({a}, {b}, alpha=2); lib.sub({a}, {b}, alpha=0.5); {a}.sum(); {a}.sum(0); {a}.sum(-1, keepdim=True)
{a}.sum((0, -1)); {a}.sum(()); {a} @ {b}; {a} @ {b}.t(); lib.matmul({a}, {a}.transpose(-1, -2)); {b} @ {a}
lib.mm({a}, {b}); lib.mv({a}, {b}); lib.dot({a}, {b}); lib.outer({a}, {b}); lib.addmm({c}, {a}, {b})
F.linear({a}, {b}); F.linear({a}, {b}, {c}); lib.bmm({a}, {b}.transpose(1, 2)); {a}.prod(); {a}.prod(0)
{a}.prod(-1, keepdim=True); {a}.clone(); {a} ** 2; {a} ** 0; {a} ** 1; lib.baddbmm({c}, {a}, {b}, beta=0.5, alpha=2)
lib.cat([{a}, {b}]); lib.cat([{a}, {b}, {a}], -1); lib.cat([{a}, {b}], 0); lib.stack([{a}, {b}])
lib.stack([{a}, {a}], -1); lib.stack([{a}, {b}, {c}], 1); {a}.repeat(2, 1); lib.flip({a}, (0,)); lib.roll({a}, 1, 0)
lib.tril({a}); lib.triu({a}, 1); F.pad({a}, (1, 2)); {a}.t().contiguous(); {a}.repeat_interleave(2, 0)
{a}.double(); {a}.to(lib.float64); sum({a}); sum({a}.unbind(-1)); sum(c.sum() for c in {a}.chunk(2))
{a}[lib.tensor([0, 1, 0])]; {a}[[0, -1]]; {a}[:, lib.tensor([0, 0])]; {a}[lib.tensor([1, 0]), lib.tensor([0, 0])]
lib.index_select({a}, -1, lib.tensor([0, 0, 1])); lib.gather({a}, 0, lib.tensor([[0, 1, 0]]))
lib.take({a}, lib.tensor([[0, 1], [1, 0]])); lib.take_along_dim({a}, lib.tensor([[0, 1]]), -1)
F.embedding(lib.tensor([[0, 1], [1, 1]]), {a}); lib.scatter_add({a}, 0, lib.tensor([[0, 1]]), {b})
lib.index_add({a}, 0, lib.tensor([0, 0]), {b}); lib.index_add({a}, -1, lib.tensor([0, 1, 0]), {b}, alpha=-2)
"""
# Steps and corners: only on exact operands, where both libraries see the same side.
CORNERS = """
{a}.abs(); {a}.relu(); F.elu({a}); F.relu6({a}); F.leaky_relu({a}, 0.25); F.hardtanh({a}, -0.5, 0.5); {a}.sign()
{a}.floor(); ({a} * 3).ceil()
{a}.round(); {a}.trunc(); lib.maximum({a}, {b}); lib.minimum({a}, {b}); {a}.clamp(-0.5, 1)
{a}.clamp(min=0); {a}.clamp(max={b}); {a}.clamp({b}, {c}); lib.where({a} > {b}, {a}, {b}); lib.where({a} > 0, {b}, 0.5)
lib.where({a} < {b}, 2.0, {a}); {a}.masked_fill({a} > 0, 2.0); {a}.masked_fill({b} > 0, -1); {a}[{a} > 0]
{a}[{b} >= 0]; lib.masked_select({a}, {b} > 0); {a}.amax(); {a}.amax(0); {a}.amin(-1, keepdim=True); {a}.amax((0, -1))
{a}.max(); {a}.min(); {a}.max(0).values; {a}.min(-1, keepdim=True).values; {a} % 0.75; {a} % {b}
{a}.detach() * ({b} > 0)
F.l1_loss({a}, {b}); ({a} > {b}).double() * {a}; F.max_pool2d({a}, 1); lib.floor_divide({a}, 2).detach() * {b}
{a} * {a}.sign()
"""
VIEWS = """
{a}.t(); {a}.transpose(0, -1); {a}.mT; {a}.reshape(-1); {a}.flatten(); {a}.unsqueeze(0); {a}.unsqueeze(-1)
{a}.squeeze(); {a}.squeeze(0); {a}.squeeze(-1); {a}[0]; {a}[-1]; {a}[..., 0]; {a}[:, 0]; {a}[1:]; {a}[..., 1:]
{a}[::2]; {a}[..., ::2]; {a}[None]; {a}[..., None]; {a}[1:1]; {a}.expand(2, 3); {a}.expand(2, -1, 3)
{a}.expand(4, 2, 3)
{a}.narrow(0, 1, 1); {a}.narrow(-1, 0, 2); {a}.select(-1, 0); {a}.permute(-1, 0); {a}.permute(2, 0, 1)
{a}.reshape(3, -1); {a}.view(-1); {a}.view(1, -1); {a}.unbind()[0]; {a}.split(2)[0]; {a}.split([1, 1])[1]
{a}.chunk(2, -1)[0]; {a}.movedim(0, -1); {a}.ravel(); {a}.unflatten(0, (1, -1)); {a}.detach(); {a}.contiguous()
{a}[0, 1]; {a}[1, ..., 0]; {a}.expand_as({b}); {a}.view_as({b}); {a}.broadcast_to((2, 3)); {a}.swapaxes(0, 1)
{a}.reshape(()); {a}.data
"""
IN_PLACE = """
{a}.add_({b}); {a}.sub_(0.5); {a}.mul_({b}); {a}.mul_(2); {a}.neg_(); {a}.square_(); {a}.zero_(); {a}.fill_(0.5)
{a}.copy_({b}); {a}[0] = 1.5; {a}[0] = {b}; {a}[..., 0] = {b}; {a}[1:] = 2; {a}.add_({b}, alpha=2); {a} += {b}
{a} *= 0.5; {a}[:] = {b}; {a}[lib.tensor([0, 0])] = 0.5; {a}[[0, 1]] = {b}; {a}[..., None] = 1.0
{a}.index_add_(0, lib.tensor([0, 0]), {b}); {a} -= 1
"""
IN_PLACE_SMOOTH = """
{a}.tanh_(); {a}.sigmoid_(); {a}.sin_(); {a}.cos_(); {a}.div_(3); {a}.pow_(3); {a}.lerp_({b}, 0.3); {a}.exp_()
{a}.div_({b}.square() + 1)
"""
IN_PLACE_CORNERS = """
{a}.relu_(); {a}.abs_(); {a}.clamp_(-0.5, 0.5); {a}.masked_fill_({b} > 0, 0.25); {a}[{a} > 0] = 0.5; {a}[{b} > 0] = 0.0
"""
CASTS = "{a}.float(); {a}.float() * 2; {a}.float().double(); {a}.to(lib.float32) + {b}.float(); {a}.half().double()"
# What has nothing to do with the values.
EVENTS = """
{a}.register_hook(lambda g: g * 2); {a}.register_hook(lambda g: log.append(("{a}", g.clone()))); {a}.retain_grad()
{a}.register_hook(lambda g: None); {a}.register_hook(lambda g: g + 1).remove(); {l}.requires_grad_(False)
{l}.requires_grad_(); {l}.grad = None; {l}.requires_grad = True; {a}.requires_grad_(); {l}.grad = lib.ones_like({l})
{l}.register_post_accumulate_grad_hook(lambda p: log.append(("after", p.grad.clone())))
{l}.grad.zero_(); {a}.register_hook(lambda g: lib.zeros(7)); {a}.register_hook(lambda g: 3)
{a}.numpy(); {a}.tolist(); {l}.add_(1); {l}.grad = lib.ones(7, dtype=lib.float64); {a}.requires_grad_(False)
{l}[0] = 1; {l}.detach().add_(0.25); {l}.grad = {l}; {a}.register_hook(lambda g: {l}.detach().sum() * g)
{a}.item(); {l}.requires_grad
"""
LOSSES = """
{a}.sum().backward(); {a}.square().sum().backward(); ({a} * {b}).sum().backward(); {a}.sum().backward(retain_graph=True)
{a}.backward(lib.ones_like({a})); ({a} * {b}).mean().backward(retain_graph=True); {a}.backward()
lib.autograd.backward([{a}.sum(), {b}.sum()]); lib.autograd.backward([{a}, {b}], [lib.ones_like({a}), {b}.detach() * 1])
{a}.sum().backward(inputs=[{l}]); ({a}.sum() + {b}.sum()).backward(inputs=[{l}, {b}], retain_graph=True)
{a}.backward({a}.detach() * 2, retain_graph=True); {a}.backward(lib.ones(7, dtype=lib.float64)); {a}.backward({b} * 1)
"""
GRADS = """
lib.autograd.grad({a}.sum(), {l}); lib.autograd.grad({a}.sum(), [{l}, {b}], allow_unused=True)
lib.autograd.grad(({a} * {b}).sum(), [{l}], retain_graph=True, allow_unused=True)
lib.autograd.grad({a}.square().sum(), [{l}], create_graph=True); lib.autograd.grad({a}, {a}, {b} * 1)
lib.autograd.grad(({a} * {b}).sum(), [{a}, {b}, {l}], create_graph=True, allow_unused=True)
lib.autograd.grad([{a}.sum(), {b}.sum()], [{l}], materialize_grads=True)
"""


def rows(text: str) -> list[str]:
    return [row.strip() for line in text.strip().splitlines() for row in line.split("; ") if row.strip()]


KINDS = {
    "smooth": (rows(SMOOTH), 8),
    "exact": (rows(EXACT), 12),
    "corners": (rows(CORNERS), 7),
    "views": (rows(VIEWS), 10),
    "in_place": (rows(IN_PLACE), 2),
    "in_place_smooth": (rows(IN_PLACE_SMOOTH), 1),
    "in_place_corners": (rows(IN_PLACE_CORNERS), 1),
    "casts": (rows(CASTS), 1),
    "events": (rows(EVENTS), 3),
    "losses": (rows(LOSSES), 3),
    "grads": (rows(GRADS), 2),
    "leaf": ([], 2),
}


@dataclass
class Statement:
    text: str
    target: str = ""  # the variable that it makes
    noisy: bool = False  # an op that rounds
    refused: bool = False  # by PyTorch


@dataclass
class Program:
    statements: list[Statement] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join(s.text for s in self.statements)


def namespace(lib: Any) -> dict[str, Any]:
    functional = torch.nn.functional if lib is torch else dt.nn.functional
    return {"lib": lib, "F": functional, "log": []}


# ---------------------------------------------------------------- writing


def is_exact(x: Any) -> bool:
    """Whether the elements are small multiples of 1/64."""
    scaled = x.detach() * 64
    return bool((scaled == scaled.round()).all()) and bool((scaled.abs() < 2**30).all())


class Writer:
    """Writes one program, which PyTorch runs at once."""

    def __init__(self, seed: str, views_in_place: bool = False) -> None:
        self.random = random.Random(seed)
        self.views_in_place = views_in_place
        self.program = Program()
        self.names = namespace(torch)
        self.exact: set[str] = set()
        self.leaves: list[str] = []
        self.n = 0
        self.ended = False  # a way back was refused: what it had added by then is not defined
        self.float32 = self.random.random() < 0.1
        self.edges = self.random.random() < 0.1

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
        shape = r.choice(SHAPES)
        count = int(np.prod(shape))
        numbers = [r.choice([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, r.randint(-64, 64) / 32]) for _ in range(count)]
        if self.edges:
            numbers = [r.choice([x, x, x, float("inf"), float("nan"), 0.0]) for x in numbers]
        inner = repr(numbers).replace("inf", 'float("inf")').replace("nan", 'float("nan")')
        wants = r.choice([".requires_grad_()"] * 4 + [""])
        self.run(Statement(f"{name} = lib.tensor({inner}, dtype=lib.float64).reshape({shape}){wants}", name))
        self.leaves.append(name)
        if not self.edges:
            self.exact.add(name)

    def run(self, s: Statement) -> None:
        s.refused = execute(s, self.names) is not None
        if s.refused and self.random.random() < 0.8 and "backward" not in s.text:
            return  # few refusals are enough
        self.program.statements.append(s)
        if s.refused and ("backward" in s.text or "autograd.grad" in s.text):
            self.ended = True

    def pick(self, names: list[str]) -> str:
        """Late ones more often: chains get long."""
        return names[-1 - min(int(self.random.expovariate(0.35)), len(names) - 1)]

    def is_alone(self, name: str) -> bool:
        """Whether no other array shares the memory of name."""
        at = self.names[name].untyped_storage().data_ptr()
        others = [x for n, x in flat(self.names).items() if n != name]
        return not self.names[name]._is_view() and all(x.untyped_storage().data_ptr() != at for x in others)

    def filled(self, row: str, names: list[str], target: str | None = None) -> str:
        r = self.random
        values = {"b": self.pick(names), "c": self.pick(names), "a": target or self.pick(names)}
        shape = self.names[values["a"]].shape
        if r.random() < 0.5:  # one that may go with it
            values["b"] = r.choice([n for n in names if self.names[n].shape == shape] or names)
        values["l"] = r.choice(self.leaves)
        return row.format(**values)

    def statement(self) -> None:
        r = self.random
        kind = r.choices(list(KINDS), [weight for _, weight in KINDS.values()])[0]
        if kind == "leaf":
            self.leaf()
            return
        if kind == "casts" and not self.float32:
            return
        corners = kind.endswith("corners")
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
        writes = re.search(r"(v\d+)(\.add_|\[0\] =|\.detach\(\)\.add_|\.requires_grad_\(\))", text)
        if writes is not None and not self.views_in_place and not self.is_alone(writes[1]):
            return
        if kind in ("events", "losses"):
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
        noisy = kind in ("smooth", "casts") or (kind != "views" and any(u not in self.exact for u in used))
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
        if kind not in ("smooth", "casts") and isinstance(x, torch.Tensor) and all(u in self.exact for u in used):
            if x.is_floating_point() and is_exact(x):
                self.exact.add(name)

    def in_place(self, row: str, names: list[str], kind: str) -> None:
        """A write to a copy, or to an array that nobody shares memory with (with views_in_place: to any)."""
        r = self.random
        able = [n for n in names if self.views_in_place or self.is_alone(n)]
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
        statement = Statement(f"with lib.no_grad():\n    {text}" if r.random() < 0.05 else text)
        if "[[" in text or "lib.tensor" in text:  # half of a write with a wrong index may be done
            copy = {**self.names, target: self.names[target].detach().clone()}
            if execute(statement, copy) is not None:
                return
        self.run(statement)
        exact = not kind.endswith("smooth") and all(u in self.exact for u in re.findall(r"\bv\d+\b", text))
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


# ---------------------------------------------------------------- running and judging


def execute(s: Statement, names: dict[str, Any]) -> Exception | None:
    try:
        exec(compile(s.text, "program", "exec"), names)
    except Exception as error:
        return error
    return None


def numbers(x: Any) -> Any:
    x = x.detach()
    return x.numpy()


def agree(a: Any, b: Any) -> bool:
    """Whether ours, a, is PyTorch's."""
    narrow = a.dtype.kind == "f" and a.dtype.itemsize < 8
    with np.errstate(all="ignore"):
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind == "f" else 1
        return np.allclose(
            a, b, rtol=1e-3 if narrow else 1e-9, atol=(1e-4 if narrow else 1e-12) * scale, equal_nan=True
        )


def flat(names: dict[str, Any]) -> dict[str, Any]:
    """All arrays by a name, with their gradients."""
    found: dict[str, Any] = {}
    array = (torch.Tensor, dt.DeviceArray)
    for name, x in list(names.items()):
        if re.fullmatch(r"v\d+", name) is None:
            continue
        for k, part in enumerate(x if isinstance(x, tuple) else (x,)):
            if isinstance(part, array):
                found[f"{name}.{k}" if isinstance(x, tuple) else name] = part
    for k, (name, x) in enumerate(names["log"]):
        found[f"log[{k}] of {name}"] = x
    for name, x in list(found.items()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if x.grad is not None:
                found[name + ".grad"] = x.grad
    return found


def is_cut(x: Any) -> bool:
    """Whether PyTorch refuses to be asked: a piece of split() whose memory was written to by another way."""
    try:
        return x.is_leaf is None
    except RuntimeError:
        return True


def compare(theirs: dict[str, Any], ours: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, what differs)"""
    a, b = flat(theirs), flat(ours)
    wrong = [(name, "only PyTorch has it" if name in a else "only devtensor has it") for name in a.keys() ^ b.keys()]
    for name in a.keys() & b.keys():
        x, y = a[name], b[name]
        if is_cut(x):
            continue
        if tuple(x.shape) != tuple(y.shape) or str(x.dtype).split(".")[1] != str(y.dtype).split(".")[-1]:
            wrong.append((name, f"{tuple(y.shape)} {y.dtype}, PyTorch {tuple(x.shape)} {x.dtype}"))
        elif (x.requires_grad, x.is_leaf) != (y.requires_grad, y.is_leaf):
            wrong.append(
                (name, f"requires_grad, is_leaf {y.requires_grad, y.is_leaf}, PyTorch {x.requires_grad, x.is_leaf}")
            )
        elif not agree(numbers(y), numbers(x)):
            wrong.append((name, "values"))
    return sorted(wrong)


def refuses_alike(s: Statement, theirs: Exception | None, ours: Exception | None) -> bool:
    """Whether both refuse, in the same class; on the way back each may find another reason first."""
    if theirs is None or ours is None:
        return theirs is ours
    return "backward" in s.text or isinstance(ours, (type(theirs), RuntimeError, NotImplementedError))


def mentioned(program: Program) -> str:
    """What of the whole program a difference may ask for, in one order."""
    return " ".join(
        sorted(set(re.findall("allow_unused|create_graph|inputs=|prod|register_hook|retain_grad", program.text())))
    )


def judge(program: Program) -> str | None:
    """What differs, or None."""
    theirs, ours = namespace(torch), namespace(dt)
    for k, s in enumerate(program.statements):
        a, b = execute(s, theirs), execute(s, ours)
        if isinstance(a, NameError):  # while a program is made smaller
            return None
        if not refuses_alike(s, a, b):
            what = f"PyTorch: {name_of(a)}\n  devtensor: {name_of(b)}"
            before = mentioned(program)
            return None if known(s.text, f"{what} {before}") is not None else f"statement {k}: {s.text}\n  {what}"
        if a is not None and ("backward" in s.text or "autograd.grad" in s.text):
            return None
    if shares_gradients(theirs):
        return None
    wrong = compare(theirs, ours)
    if any(what == "values" for _, what in wrong):
        wrong = beyond_noise(program, theirs, ours, wrong)
    before = mentioned(program)
    wrong = [(name, what) for name, what in wrong if known(name, f"{what} {before}") is None]
    if not wrong:
        return None
    name, what = wrong[0]
    a, b = flat(theirs).get(name), flat(ours).get(name)
    return f"{name}: {what}\n  PyTorch:   {shown(a)}\n  devtensor: {shown(b)}\n  ({len(wrong)} differ)"


def shares_gradients(names: dict[str, Any]) -> bool:
    """Whether two leaves of PyTorch have one .grad: a second way back adds to it twice."""
    found = [x.data_ptr() for name, x in flat(names).items() if name.endswith(".grad") and x.numel()]
    return len(set(found)) < len(found)


def shown(x: Any) -> str:
    return "-" if x is None else str(numbers(x).tolist())[:300]


def name_of(error: Exception | None) -> str:
    return (
        "no error" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    )


def beyond_noise(program: Program, theirs: Any, ours: Any, wrong: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of wrong that differ by more than PyTorch from itself, with noise of one unit in the last place."""
    spread: dict[str, Any] = {}
    exact = flat(theirs)
    for seed in range(3):
        names, generator = namespace(torch), np.random.default_rng(seed)
        for s in program.statements:
            execute(s, names)
            x = names.get(s.target)
            if s.noisy and isinstance(x, torch.Tensor) and x.is_floating_point():
                eps = torch.finfo(x.dtype).eps
                mode = torch.enable_grad() if x.requires_grad else torch.no_grad()
                with mode:
                    names[s.target] = x * torch.as_tensor(
                        1 + eps * generator.normal(size=tuple(x.shape)), dtype=x.dtype
                    )
        for name, x in flat(names).items():
            if name in exact and exact[name].shape == x.shape:
                with np.errstate(all="ignore"):
                    d = np.abs(numbers(x).astype(np.float64) - numbers(exact[name]).astype(np.float64))
                spread[name] = np.maximum(spread.get(name, 0), np.where(np.isnan(d), np.inf, d))
    mine = flat(ours)
    kept = []
    for name, what in wrong:
        if what == "values" and name in spread:
            a, b = numbers(mine[name]).astype(np.float64), numbers(exact[name]).astype(np.float64)
            with np.errstate(all="ignore"):
                bad = np.isfinite(spread[name]) & ~(
                    (np.abs(a - b) <= 1000 * spread[name].max(initial=0)) | (a == b) | (np.isnan(a) & np.isnan(b))
                )
            if ".grad" in name or "." in name or "log" in name:
                bad &= ~np.isnan(b)  # a NaN that a mask stops here: PyTorch multiplies it by 0
                bad &= np.isfinite(b) | np.isfinite(a)
                bad &= np.isfinite(a) | (re.search("prod", program.text()) is None)  # it leaves out zero times NaN
            if not bad.any():
                continue
        kept.append((name, what))
    return kept


def smaller(program: Program) -> Program:
    """The same difference with fewer statements."""
    first = judge(program)
    kind = first.split("\n")[0].split(":")[-1] if first else ""
    changed = True
    while changed:
        changed = False
        for k in reversed(range(len(program.statements))):
            less = Program(program.statements[:k] + program.statements[k + 1 :])
            found = judge(less)
            if found is not None and found.split("\n")[0].split(":")[-1] == kind:
                program, changed = less, True
                break
    return program


def check(seed: int, k: int, views_in_place: bool = False) -> str | None:
    """What differs in program k of a seed, with its text made small; None: nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = Writer(f"{seed} {k}", views_in_place).write()
        if judge(program) is None:
            return None
        program = smaller(program)
        return f"# seed {seed}, program {k}\n{program.text()}\n\n{judge(program)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--program", type=int, help="only this one: prints its text")
    parser.add_argument("--views-in-place", action="store_true", help="write to views and to what they share, too")
    options = parser.parse_args()
    if options.program is not None:
        print(Writer(f"{options.seed} {options.program}", options.views_in_place).write().text())
        print(check(options.seed, options.program, options.views_in_place))
        return 0
    wrong = 0
    for k in range(options.first, options.first + options.count):
        found = check(options.seed, k, options.views_in_place)
        if found is not None:
            wrong += 1
            print(found, "\n", flush=True)
    print(f"{options.count} programs, {wrong} differ")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main())
