"""How programs of graph_programs.py are run, on PyTorch and on devtensor, and what is said to differ."""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
import torch.utils.checkpoint
from graph_differences import known

import devtensor as dt


@dataclass
class Statement:
    text: str
    target: str = ""  # the variable that it makes
    noisy: bool = False  # an op that rounds
    refused: Exception | None = None  # by PyTorch


@dataclass
class Program:
    statements: list[Statement] = field(default_factory=list)

    def text(self) -> str:
        return "\n".join(s.text for s in self.statements)


def helpers(lib: Any, device: str) -> dict[str, Any]:
    """What the statements use besides the library."""

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient * 2

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x * x * gradient

    return {
        "lib": lib,
        "F": lib.nn.functional,
        "Twice": Twice,
        "Cube": Cube,
        "checkpoint": lib.utils.checkpoint.checkpoint,
        "eye": lambda x: lib.eye(x.shape[-2], dtype=x.dtype, device=x.device),
        "tensor": functools.partial(lib.tensor, device=device),
    }


kept = functools.lru_cache(helpers)


def namespace(lib: Any, device: str = "cpu") -> dict[str, Any]:
    return {**kept(lib, device), "log": []}


# ---------------------------------------------------------------- running and judging


@functools.lru_cache(200_000)
def compiled(text: str) -> Any:
    return compile(text, "program", "exec")


def execute(s: Statement, names: dict[str, Any]) -> Exception | None:
    try:
        exec(compiled(s.text), names)
    except Exception as error:
        return error.with_traceback(None)
    return None


def numbers(x: Any) -> Any:
    x = x.detach()
    if x.device.type != "cpu":
        x = x.cpu()
    x = x.float() if str(x.dtype).endswith("bfloat16") else x
    return x.numpy(force=True) if isinstance(x, torch.Tensor) else x.numpy()  # PyTorch has zeros without memory


# rtol, and atol beside the largest element.
TOLERANCES = {"float64": (1e-9, 1e-12), "float32": (1e-3, 1e-4), "float16": (1e-2, 1e-2), "bfloat16": (6e-2, 6e-2)}


def agree(a: Any, b: Any, dtype: str) -> bool:
    """Whether ours, a, is PyTorch's."""
    if np.array_equal(a, b):
        return True
    rtol, atol = TOLERANCES[dtype] if b.dtype.kind == "f" else (0, 0)
    with np.errstate(all="ignore"):
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0) if b.dtype.kind == "f" else 1
        return np.allclose(a, b, rtol=rtol, atol=atol * scale, equal_nan=True)


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
        asked = isinstance(x, torch.Tensor) or x.is_leaf or getattr(x, "retains_grad", True)  # of others ours warns
        if asked and x.grad is not None:
            found[name + ".grad"] = x.grad
    return found


def is_cut(x: Any) -> bool:
    """Whether PyTorch refuses to be asked: a piece of split() whose memory was written to by another way."""
    try:
        return x.is_leaf is None
    except RuntimeError:
        return True


def of_no_leaf(arrays: dict[str, Any], name: str) -> str:
    x = arrays.get(name.removesuffix(".grad"))
    return ", of no leaf" if name.endswith(".grad") and x is not None and not (x.is_leaf or x.retains_grad) else ""


def is_expanded(x: Any) -> bool:
    return any(step == 0 and size > 1 for step, size in zip(x.stride(), x.shape, strict=True))


def compare(theirs: dict[str, Any], ours: dict[str, Any]) -> list[tuple[str, str]]:
    """(name, what differs); by the tolerance of the narrowest dtype, as its numbers may be cast to another."""
    a, b = flat(theirs), flat(ours)
    for name in [n for n, x in a.items() if x.numel() == 0]:  # PyTorch's gradients of nothing may want gradients
        a.pop(name + ".grad", None)
        b.pop(name + ".grad", None)
    dtypes = {str(x.dtype).split(".")[1] for x in a.values()} & set(TOLERANCES)
    narrowest = max(dtypes, key=list(TOLERANCES).index, default="float64")
    wrong = [(name, f"only PyTorch has it{of_no_leaf(a, name)}") for name in a.keys() - b.keys()]
    wrong += [(name, "only devtensor has it") for name in b.keys() - a.keys()]
    for name in a.keys() & b.keys():
        x, y = a[name], b[name]
        if is_cut(x):
            continue
        if tuple(x.shape) != tuple(y.shape) or str(x.dtype).split(".")[1] != str(y.dtype).split(".")[-1]:
            wrong.append((name, f"{tuple(y.shape)} {y.dtype}, PyTorch {tuple(x.shape)} {x.dtype}"))
        elif (x.requires_grad, x.is_leaf) != (y.requires_grad, y.is_leaf) and x.numel() > 0:
            wrong.append(
                (name, f"requires_grad, is_leaf {y.requires_grad, y.is_leaf}, PyTorch {x.requires_grad, x.is_leaf}")
            )
        elif not agree(numbers(y), numbers(x), narrowest):
            wrong.append((name, "values of what is expanded" if is_expanded(x) else "values"))
    return sorted(wrong)


def refuses_alike(s: Statement, theirs: Exception | None, ours: Exception | None) -> bool:
    """Whether both refuse, in the same class; on the way back each may find another reason first."""
    if theirs is None or ours is None:
        return theirs is ours
    return "backward" in s.text or isinstance(ours, (type(theirs), RuntimeError, NotImplementedError))


WORDS = re.compile(
    r"allow_unused|autograd\.grad|block_diag|conv2d|copysign|cosine_similarity|create_graph|cummax|cummin|digamma|elu|"
    r"expand_as|gelu|hardsigmoid|inner|inputs=|instance_norm|interpolate|kron|linalg\.det|logcumsumexp|matrix_exp|"
    r"nansum|prelu|prod|register_hook|requires_grad_\(False|retain_grad|scaled_dot_product|scatter_reduce|selu|"
    r"softshrink|take_along_dim|tensordot|unfold|\.data|\.detach\(\)"
)
WRITE = re.compile(r"(v\d+)(\.\w+_\(|\[.*\] [*+-/]?= | [*+-/]= )")
VARIABLE = re.compile(r"\bv\d+\b")


def written(s: Statement) -> str:
    """The variable that a statement writes to in place."""
    write = WRITE.match(s.text.splitlines()[-1].strip())
    return write[1] if write else ""


def about(program: Program, name: str) -> list[int]:
    """The numbers of the statements that a value hangs on, and of a gradient of those that hang on its array too."""
    used = [set(VARIABLE.findall(s.text)) for s in program.statements]
    made = [{s.target or written(s)} - {""} for s in program.statements]
    sources: dict[str, set[str]] = {}  # of each variable, with itself
    for k, s in enumerate(program.statements):
        from_all = set().union(*(sources.get(v, {v}) for v in used[k]))
        if written(s):  # and so is what it may be a view of
            made[k] |= sources.get(written(s), set())
        for v in made[k]:
            sources[v] = sources.get(v, {v}) | from_all
    start = set(VARIABLE.findall(name)) or set().union(*used)
    if ".grad" in name or "log" in name or "backward" in name:
        for k in range(len(program.statements)):
            start |= made[k] if used[k] & start else set()
    wanted = set().union(*(sources.get(v, {v}) for v in start))
    for _ in range(2):  # a write is also about how its target was made
        chosen = [k for k in range(len(used)) if made[k] & wanted or (not made[k] and used[k] & wanted)]
        targets = {written(program.statements[k]) for k in chosen} - {""}
        wanted |= set().union(*(sources.get(v, {v}) for v in targets))
    return chosen


def overlaps(program: Program, numbers: list[int]) -> bool:
    """Whether one of these statements writes while it reads other elements of its own memory."""
    names = namespace(torch)
    for k, s in enumerate(program.statements):
        for other in VARIABLE.findall(s.text) if k in numbers and written(s) else ():
            x, y = names.get(written(s)), names.get(other)
            if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x is not y:
                if x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr() != 0:
                    return True
        execute(s, names)
    return False


def sharing(names: dict[str, Any]) -> set[frozenset[str]]:
    """Which arrays share memory."""
    found: dict[int, set[str]] = {}
    for name, x in flat(names).items():
        if ".grad" not in name and x.numel():
            found.setdefault(x.data_ptr() - x.storage_offset() * x.element_size(), set()).add(name)
    return {frozenset(group) for group in found.values() if len(group) > 1}


def mentioned(program: Program, name: str) -> str:
    """What a difference of this array, or of this statement, may ask for: words of the statements that it hangs on."""
    numbers = about(program, name)
    texts = [s.text for k, s in enumerate(program.statements) if k in numbers or s.text == name]
    words = sorted({word for text in texts if "= tensor(" not in text for word in WORDS.findall(text)})
    writes = any(written(program.statements[k]) for k in numbers)
    return " ".join([*words, *(["overlaps"] if overlaps(program, numbers) else ["writes"] if writes else [])])


TALLY: Counter[str] = Counter()  # programs by the reason of their known difference


def expected(statement: str, text: str) -> bool:
    difference = known(statement, text)
    if difference is not None:
        TALLY[difference.why] += 1
    return difference is not None


def late_error() -> Exception | None:
    """What is wrong with an index or a value, which a device tells when somebody waits for it."""
    try:
        dt.cuda.synchronize()
    except (IndexError, RuntimeError) as error:
        return error
    return None


def judge(program: Program, device: str = "cpu", theirs: dict[str, Any] | None = None) -> str | None:
    """What differs, or None. theirs: what PyTorch's names hold, where it has run."""
    if device != "cpu":
        late_error()  # of the program before
    ran, ours, halfway = theirs is not None, namespace(dt, device), False
    theirs = namespace(torch) if theirs is None else theirs
    for k, s in enumerate(program.statements):
        a, b = s.refused if ran else execute(s, theirs), execute(s, ours)
        if isinstance(a, NameError):  # while a program is made smaller
            return None
        if a is not None and b is None and device != "cpu":
            b = late_error()
            ours.pop(s.target, None)
        if not refuses_alike(s, a, b):
            what = f"PyTorch: {name_of(a)}\n  devtensor: {name_of(b)}"
            before = mentioned(program, s.text)
            return None if expected(s.text, f"{what} {before}") else f"statement {k}: {s.text}\n  {what}"
        if a is not None and ("backward" in s.text or "autograd.grad" in s.text):
            halfway = True
            break
    if shares_gradients(theirs):
        return None
    try:
        wrong = [(name, what) for name, what in compare(theirs, ours) if not (halfway and is_of_gradients(name))]
    except (IndexError, RuntimeError) as error:  # of a device, which tells it now
        text = f"values asked for: {name_of(error)}"
        return None if expected(text, text) else text
    if any(what.startswith("values") for _, what in wrong):
        wrong = beyond_noise(program, theirs, ours, wrong)
    views = " other views" if wrong and sharing(theirs) != sharing(ours) else ""
    said = {name: f"{what} {mentioned(program, name)}{views}" for name, what in wrong}
    unknown = [(name, what) for name, what in wrong if known(name, said[name]) is None]
    if wrong and not unknown:
        expected(wrong[0][0], said[wrong[0][0]])
    wrong = unknown
    if not wrong:
        return None
    name, what = wrong[0]
    a, b = flat(theirs).get(name), flat(ours).get(name)
    return f"{name}: {what}\n  PyTorch:   {shown(a)}\n  devtensor: {shown(b)}\n  ({len(wrong)} differ)"


def is_of_gradients(name: str) -> bool:
    """Whether a refused way back may have left it half done."""
    return ".grad" in name or "log" in name


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


# What adds terms up, or has a term of one: near zero they round by more than one unit of the result.
ADDS_UP = re.compile(
    "_norm|kl_div|einsum|gelu|cosine_similarity|logaddexp|matmul|linear|conv|@|std|var|mean|sum|dot|avg_pool|interpolate"
)


def beyond_noise(program: Program, theirs: Any, ours: Any, wrong: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Those of wrong that differ by more than PyTorch from itself, with noise of one unit in the last place."""
    spread: dict[str, Any] = {}
    exact = flat(theirs)
    for seed in range(5):
        names, generator = namespace(torch), np.random.default_rng(seed)
        for s in program.statements:
            execute(s, names)
            x = names.get(s.target)
            if s.noisy and isinstance(x, torch.Tensor) and x.is_floating_point():
                noise, more = (
                    torch.as_tensor(torch.finfo(x.dtype).eps * generator.normal(size=tuple(x.shape)), dtype=x.dtype)
                    for _ in range(2)
                )
                with torch.enable_grad() if x.requires_grad else torch.no_grad():
                    names[s.target] = x * (1 + noise) + (more if ADDS_UP.search(s.text) else 0)
        for name, x in flat(names).items():
            if name in exact and exact[name].shape == x.shape:
                with np.errstate(all="ignore"):
                    d = np.abs(numbers(x).astype(np.float64) - numbers(exact[name]).astype(np.float64))
                spread[name] = np.maximum(spread.get(name, 0), np.where(np.isnan(d), np.inf, d))
    mine = flat(ours)
    zero_times = "xlogy" in program.text() or any(x.numel() == 0 for x in mine.values())
    kept = []
    for name, what in wrong:
        if what.startswith("values") and name in spread:
            a, b = numbers(mine[name]).astype(np.float64), numbers(exact[name]).astype(np.float64)
            with np.errstate(all="ignore"):
                steady = np.isfinite(spread[name])
                most = 1000 * spread[name].max(initial=0, where=steady)
                bad = steady & ~((np.abs(a - b) <= most) | (a == b) | (np.isnan(a) & np.isnan(b)))
            if ".grad" in name or "." in name or "log" in name:
                bad &= ~np.isnan(b)  # a NaN that a mask stops here: PyTorch multiplies it by 0
                bad &= np.isfinite(b) | np.isfinite(a)
                bad &= ~(zero_times & np.isnan(a))  # no gradient, or one of 0, times what is not finite
                bad &= np.isfinite(a) | (re.search("prod", program.text()) is None)  # it leaves out zero times NaN
            if not bad.any():
                continue
        kept.append((name, what))
    return kept
