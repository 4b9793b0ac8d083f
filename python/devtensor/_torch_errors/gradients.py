"""Why a gradient of PyTorch's failed: the lines that kept, changed, freed or cut, as far as they are known.

With origins=True the nodes of autograd know the line that recorded them and tensors the line that wrote to them.
Without it, a line is named only where the source of the failing function leaves no other.
"""

from __future__ import annotations

import ast
import functools
import heapq
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

from devtensor import _diagnosis
from devtensor._diagnosis import arrays, gradients, notes, origins, sources, variables
from devtensor._diagnosis.facts import Fact, Failure, Fix
from devtensor._diagnosis.gradients import Account, Line
from devtensor._errors import Origin
from devtensor._torch_errors import families, frames, recorder
from devtensor._torch_errors.explanation import Explanation

_MOST = 5000  # nodes that are looked at


def explained(sentence: str, family: families.Family, stack: list[frames.At]) -> Explanation | None:
    failure = Failure("backward", family.code, families.in_our_words(sentence), [], -1, library="torch")
    failure.innermost = stack[-1]  # type: ignore[assignment]
    known: list[Account | None] = []
    failure.accounts = {code: functools.partial(_kept, known, tell) for code, tell in _ACCOUNTS.items()}
    user = _diagnosis._caller(stack[-1])  # type: ignore[arg-type]
    site = sources.locate(user) if user is not None else None
    if user is None or site is None:
        return None
    node, own = _subject(site)
    value = variables.resolve(user, node, site.owner) if node is not None else variables.MISSING
    failure.op = own
    if not arrays.is_array(value):
        value = _differentiated(stack)
    if arrays.is_array(value):
        history = tuple(one.step for one in arrays.steps(value))
        fact = Fact("input", tuple(value.shape), value.dtype, value.device, history, value, node)
        failure.facts, failure.culprit = [fact], 0
    check = _CHECKS.get(family.code)
    if check is not None and not (failure.facts and check(value)):
        return None
    failure.about = (sentence, stack)
    from devtensor._torch_errors.explaining import _finished

    found = _finished(failure)
    alone = family.code in ("grad-missing", "grad-freed", "grad-modified") and known == [None]
    return found if found is not None and found.notes and not alone else None


def _kept(known: list[Account | None], tell: Callable[[Failure], Account | None], failure: Failure) -> Account | None:
    known.append(tell(failure))
    return known[-1]


def _differentiated(stack: list[frames.At]) -> Any:
    """The one tensor that backward() was called for, where its expression is a temporary."""
    for at in reversed(stack):
        if frames.is_torch(at.f_code.co_filename) and at.f_code.co_name == "backward":
            for name in ("self", "tensors"):
                held = variables.variable(at, name)  # type: ignore[arg-type]
                if arrays.is_array(held):
                    return held
                if type(held) is tuple and len(held) == 1:
                    return held[0]
    return variables.MISSING


def _subject(site: sources.Site) -> tuple[ast.expr | None, str]:
    """The tensor that a failing line is about, and what the line does."""
    node = site.node
    if isinstance(node, ast.AugAssign):
        return gradients._base(node.target), "in place"
    if isinstance(node, ast.Subscript):
        return gradients._base(node), "setitem"
    if isinstance(node, ast.Attribute):
        return node.value, node.attr
    if not isinstance(node, ast.Call):
        return None, ""
    func = node.func
    if isinstance(func, ast.Attribute) and not (
        node.args and func.attr in ("backward", "grad") and _is_module(func.value)
    ):
        return gradients._base(func.value), func.attr
    given = node.args[0] if node.args else None
    return given, func.attr if isinstance(func, ast.Attribute) else ""


def _is_module(node: ast.expr) -> bool:
    """torch.autograd of torch.autograd.backward(loss)."""
    return ast.unparse(node).rpartition(".")[2] == "autograd"


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "grad-missing": lambda x: not x.requires_grad,
    "grad-not-scalar": lambda x: x.numel() != 1,
    "grad-leaf-in-place": lambda x: x.is_leaf and x.requires_grad,
    "grad-leaf-view-in-place": lambda x: x.requires_grad,
    "grad-view-in-place": lambda x: x._is_view(),
    "grad-flag": lambda x: not x.is_leaf,
    "grad-dtype": lambda x: not (x.is_floating_point() or x.is_complex()),
    "grad-host-access": lambda x: x.requires_grad,
}


# ---------------------------------------------------------------- the graph


def _roots(stack: list[frames.At]) -> list[Any]:
    """What backward() was called for."""
    for at in reversed(stack):
        if frames.is_torch(at.f_code.co_filename) and at.f_code.co_name == "_engine_run_backward":
            held = variables.variable(at, "t_outputs")  # type: ignore[arg-type]
            return [one.grad_fn for one in held if getattr(one, "grad_fn", None) is not None]
        if frames.is_torch(at.f_code.co_filename) and at.f_code.co_name == "backward":
            held = variables.variable(at, "tensors")  # type: ignore[arg-type]
            held = held if type(held) in (tuple, list) else [held]
            return [one.grad_fn for one in held if getattr(one, "grad_fn", None) is not None]
    return []


def _nodes(roots: list[Any]) -> list[Any]:
    return list(_dated(roots))


def _dated(roots: list[Any]) -> dict[Any, tuple[Any, int]]:
    """The nodes, the latest first, each with its line and when it was recorded: one inside of an op has those of the
    op, which is the earliest that uses it."""
    found: dict[Any, tuple[Any, int]] = {}
    told: dict[Any, tuple[Any, int]] = {}
    waiting = [(-one._sequence_nr(), i, one) for i, one in enumerate(roots)]
    heapq.heapify(waiting)
    while waiting and len(found) < _MOST:
        _, _, node = heapq.heappop(waiting)
        if node in found:
            continue
        own = recorder.made(node)
        found[node] = own if own[1] else told.get(node, own)
        for below, _ in node.next_functions:
            if below is None or type(below).__name__ == "AccumulateGrad":
                continue
            if found[node][1] and (below not in told or found[node][1] < told[below][1]):
                told[below] = found[node]
            if below not in found:
                heapq.heappush(waiting, (-below._sequence_nr(), len(found) + len(waiting), below))
    return found


@functools.cache
def _saved(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in dir(kind) if name.startswith("_saved_"))


def _complaint(node: Any) -> tuple[str, str]:
    """The operand that a node can no longer read, and why; ("", "") of one that is whole."""
    kind: Any = type(node)
    for name in _saved(kind):
        try:
            getattr(node, name)
        except RuntimeError as error:
            return name, str(error)
        except Exception:
            continue
    return "", ""


# ---------------------------------------------------------------- changed after it was kept


def _modified(failure: Failure) -> Account | None:
    sentence, stack = failure.about
    found = Account()
    said = re.search(r"\[[\w.]+ \[(.*?)\]\].*? is at version (\d+); expected version (\d+)", sentence)
    if said is None:
        return None
    shape = tuple(map(int, re.findall(r"\d+", said[1])))
    node, name = _modified_node(stack, sentence)
    kept = gradients.line_of(recorder.made(node)[0])
    subject = _changed_variable(failure, node, name, shape, int(said[2]))
    write = None
    if subject is not None:
        write = gradients.line_of(recorder.write_of(subject[1]))
        if write is None and int(said[2]) - int(said[3]) == 1:
            write = _only_write(failure, subject[0], stack)
    op = re.sub(r"Backward\d*$", "", type(node).__name__).lower() if node is not None else ""
    what = subject[0] if subject is not None else "a tensor"
    found.rows += gradients._row("kept", kept, f"{op} needs {what} for its gradient")
    found.rows += gradients._row("changed", write, notes.MARK)
    found.rows += gradients._row("needed", gradients._now(failure))
    if subject is not None:
        value, times = subject[1], int(said[2]) - int(said[3])
        found.remarks.append(
            f"{subject[0]} {origins.dtype_name(value.dtype)} {notes.shape_text(tuple(value.shape))} on {value.device} "
            f"was changed {f'{times} times ' if times > 1 else ''}after it was kept"
        )
    if write is not None:
        found.fix = gradients._before_write(failure, write)
        if gradients._is_step(write):
            found.remarks.append(
                "An optimizer stepped between forward and backward: call backward() before step(), "
                "or compute the forward pass again after it"
            )
    return found if subject is not None or kept is not None else None


def _modified_node(stack: list[frames.At], sentence: str) -> tuple[Any, str]:
    """The node that complains in the words of the error, the one that backward() reaches first."""
    best: tuple[Any, str] = (None, "")
    for node in _nodes(_roots(stack)):
        name, complaint = _complaint(node)
        if complaint.partition(" Hint:")[0] == sentence.partition(" Hint:")[0]:
            if best[0] is None or node._sequence_nr() > best[0]._sequence_nr():
                best = node, name
    return best


def _changed_variable(failure: Failure, node: Any, name: str, shape: tuple[int, ...], version: int) -> Any:
    """(expression, tensor) of the one variable, or parameter of a Module, that it can be."""
    found: dict[int, tuple[str, Any]] = {}
    pointer = _pointer(node, name)
    for text, value in _tensors(failure):
        if value._version != version or value.numel() != math.prod(shape):
            continue
        if value.data_ptr() != pointer if pointer is not None else shape not in _shapes_of(value):
            continue  # where it is kept as a view, such as the transposed weight of a layer, the place tells
        found.setdefault(id(value), (text, value))
    return next(iter(found.values())) if len(found) == 1 else None


def _shapes_of(value: Any) -> tuple[tuple[int, ...], ...]:
    """What a tensor can have been kept as: itself, or transposed as a layer does with its weight."""
    own = tuple(value.shape)
    return (own, own[::-1])


def _pointer(node: Any, name: str) -> int | None:
    """Where the kept tensor lies; None where PyTorch does not tell, as 2.4 does not."""
    try:
        held = getattr(node, name.replace("_saved_", "_raw_saved_", 1)).data
        return int(held.data_ptr())
    except Exception:
        return None


def _tensors(failure: Failure) -> Iterator[tuple[str, Any]]:
    for frame in gradients._frames(failure):
        if _diagnosis.is_own(frame.f_code.co_filename):
            continue
        for name, value in list(variables.visible(frame))[:2000]:
            if arrays.is_array(value):
                yield name, value
            elif variables.module_tables(value):
                for path, held in gradients.parameters_of(value):
                    yield f"{name}.{path}", held
            elif type(value) in (list, tuple):
                for i, one in enumerate(value[:64]):
                    if arrays.is_array(one):
                        yield f"{name}[{i}]", one


def _only_write(failure: Failure, name: str, stack: list[frames.At]) -> Line | None:
    """The one statement of the failing function that writes to a variable, if there is but one, and in no loop."""
    frame = failure.frame
    site = sources.locate(frame) if frame is not None else None
    if frame is None or site is None or not name.isidentifier():
        return None
    body = _body(site)
    writes = [one for one in ast.walk(body) if isinstance(one, ast.stmt) and _writes_to(one, name)] if body else []
    if len(writes) != 1 or body is None or _in_loop(body, writes[0]):
        return None
    statement = writes[0]
    if statement.lineno >= frame.f_lineno:
        return None
    inner = _expression(statement)
    path = (body, statement) if inner is statement else (body, statement, inner)
    return Line(frame.f_code.co_filename, statement.lineno, sources.Site(inner, path, site.lines))


def _body(site: sources.Site) -> ast.AST | None:
    """The function around a place, else the module."""
    held = [one for one in site.path if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)]
    return held[-1] if held else None


def _in_loop(body: ast.AST, statement: ast.stmt) -> bool:
    loops = (one for one in ast.walk(body) if isinstance(one, ast.For | ast.While | ast.AsyncFor))
    return any(any(inner is statement for inner in ast.walk(loop)) for loop in loops)


def _expression(statement: ast.stmt) -> ast.AST:
    if isinstance(statement, ast.Expr):
        return statement.value
    return statement.targets[0] if isinstance(statement, ast.Assign) else statement


def _writes_to(statement: ast.stmt, name: str) -> bool:
    if isinstance(statement, ast.AugAssign):
        return _is_name(gradients._base(statement.target), name)
    if isinstance(statement, ast.Assign):
        return any(isinstance(one, ast.Subscript) and _is_name(gradients._base(one), name) for one in statement.targets)
    func = statement.value.func if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) else None
    if isinstance(func, ast.Attribute) and func.attr.endswith("_") and not func.attr.endswith("__"):
        return _is_name(gradients._base(func.value), name)
    return False


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


# ---------------------------------------------------------------- used up by an earlier backward


def _freed(failure: Failure) -> Account | None:
    _, stack = failure.about
    roots = _roots(stack)
    node, before = _used_up(roots)
    dates = _dated(roots)
    place, when = dates.get(node, (None, 0))
    made, first, freed_at = gradients.line_of(place), None, 0
    if before is not None:
        first, freed_at = gradients.line_of(before[:2]), before[2]
    found = Account()
    op = re.sub(r"Backward\d*$", "", type(node).__name__).lower() if node is not None else ""
    found.rows += gradients._row("made", made, f"{op} kept what its gradient needs")
    found.rows += gradients._row("freed", first, "this backward used the graph up")
    edge = _edge(roots, dates, freed_at) if freed_at else None
    entered = gradients.line_of(dates[edge[0]][0]) if edge is not None else None
    source = gradients.line_of(dates[edge[2]][0]) if edge is not None else None
    if edge is not None and entered is not None and source is not None and gradients._is_carried(entered, source):
        found.rows += gradients._row("used", entered, notes.MARK)
        name, statement = gradients._carried(failure, edge, entered, source), entered.statement
        if name is not None and statement is not None:
            at = Origin("detach", entered.filename, statement.lineno)
            found.fix = Fix(f"{name} = {name}.detach()", at)
            found.remarks.append(f"{name} was made by the graph that is used up, and is used again after that backward")
    elif first is not None:
        found.fix = gradients._retaining(first)
    elif not when:
        first = _earlier_backward(failure)
        found.rows += gradients._row("freed", first, "this backward used the graph up")
        found.fix = gradients._retaining(first) if first is not None else None
    found.rows += gradients._row("needed", gradients._now(failure))
    return found if len(found.rows) > 1 else None


def _used_up(roots: list[Any]) -> tuple[Any, Any]:
    """The first node that an earlier backward() has used up, and that backward; this one has freed nodes as well."""
    dates = _dated(roots)
    complaining = [one for one in dates if "a second time" in _complaint(one)[1]]
    earlier = recorder.backwards()
    for before in reversed(earlier):
        found = [one for one in complaining if 0 < dates[one][1] < before[2]]
        loss = before[3]()
        if loss is not None and loss.grad_fn is not None and loss.grad_fn not in roots:
            reached = set(_nodes([loss.grad_fn]))
            found = [one for one in found if one in reached]
        if found:
            return max(found, key=lambda one: one._sequence_nr()), before
    return (complaining[0] if len(complaining) == 1 else None), None


def _edge(roots: list[Any], dates: dict[Any, tuple[Any, int]], freed_at: int) -> tuple[Any, int, Any] | None:
    """Where a new graph goes over into the one that was used up; None where the result itself belongs to that."""

    def used_up(node: Any) -> bool:
        _, when = dates.get(node, (None, 0))
        return when <= freed_at if when else "a second time" in _complaint(node)[1]

    if any(map(used_up, roots)):
        return None
    best: tuple[Any, int, Any] | None = None
    seen, waiting = set(roots), list(roots)
    while waiting and len(seen) < _MOST:
        node = waiting.pop()
        for i, (below, _) in enumerate(node.next_functions):
            if below is None or type(below).__name__ == "AccumulateGrad":
                continue
            if used_up(below):
                if below in dates and (best is None or dates[node][1] > dates[best[0]][1]):
                    best = node, i, below
            elif below not in seen:
                seen.add(below)
                waiting.append(below)
    return best


def _earlier_backward(failure: Failure) -> Line | None:
    """The one call above in the failing function that was made for the same variable, in no loop."""
    frame = failure.frame
    site = sources.locate(frame) if frame is not None else None
    body = _body(site) if site is not None else None
    if frame is None or site is None or body is None or not isinstance(site.node, ast.Call):
        return None
    wanted = ast.unparse(site.node.func)
    found = [one for one in ast.walk(body) if isinstance(one, ast.Call) and ast.unparse(one.func) == wanted]
    earlier = [one for one in found if one.lineno < site.node.lineno]
    statements = [one for one in ast.walk(body) if isinstance(one, ast.Expr) and one.value in earlier]
    if len(found) != 2 or len(statements) != 1 or any(_in_loop(body, one) for one in statements):
        return None
    if any(one is not site.node and one not in earlier for one in found):
        return None
    call = earlier[0]
    return Line(frame.f_code.co_filename, call.lineno, sources.Site(call, (body, statements[0], call), site.lines))


# ---------------------------------------------------------------- never recorded


def _missing(failure: Failure) -> Account | None:
    history = failure.facts[0].history
    if history and (history[-1].action in origins._CREATES or history[-1].action == "Parameter"):
        return gradients._missing(failure)
    found, now = Account(), gradients._now(failure)
    for i, (step, (_, place, off)) in enumerate(zip(history, arrays.steps(failure.facts[0].object), strict=False)):
        line = gradients.line_of(place)
        if line is not None and gradients._cut(failure, found, history, i, off, line):
            break
        del step
    found.rows.reverse()
    found.rows += gradients._row("needed", now)
    if len(found.rows) < 2:
        found.remarks += gradients._frozen(failure)
        if now is not None:
            block, found.fix = gradients._block(failure, now)
            found.rows = [*gradients._row("off", block, "nothing is recorded here"), *found.rows]
    return found if len(found.rows) > 1 or found.remarks else None


_ACCOUNTS = {
    "grad-modified": _modified,
    "grad-freed": _freed,
    "grad-missing": _missing,
    "grad-leaf-in-place": gradients._leaf_written,
    "grad-leaf-view-in-place": gradients._leaf_written,
}
