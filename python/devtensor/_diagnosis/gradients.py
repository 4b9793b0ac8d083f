"""Why a gradient failed: the lines that kept, changed, freed or cut, and what to type there."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType, FrameType, ModuleType
from typing import Any

from devtensor import _C
from devtensor._diagnosis import arrays, ends, fixes, notes, origins, places, sources, variables
from devtensor._diagnosis.causes import see
from devtensor._diagnosis.facts import Failure, Fix
from devtensor._errors import Origin, Step

_MODES = ("no_grad", "inference_mode", "set_grad_enabled")
_CUTS = {"detach": "no gradient flows through .detach()", "data": "no gradient flows through .data"}
_MOST = 20000  # nodes that are looked at


@dataclass
class Line:
    """A line of the user's program that took part."""

    filename: str
    lineno: int
    site: sources.Site | None
    shown: str | None = None  # in place of the statement

    @property
    def where(self) -> str:
        return f"{sources.file_name(self.filename)}:{self.lineno}"

    @property
    def statement(self) -> ast.stmt | None:
        held = [node for node in self.site.path if isinstance(node, ast.stmt)] if self.site is not None else []
        return held[-1] if held else None

    @property
    def text(self) -> str:
        """The statement, on one line; of one with a body its first expression."""
        statement = self.statement
        if self.shown is not None or self.site is None or statement is None:
            return self.shown or ""
        shown = self.site.node if isinstance(statement, ast.For | ast.While | ast.With | ast.If) else statement
        return " ".join(self.site.text(shown).split())

    def origin(self, action: str) -> Origin:
        return Origin(action, self.filename, self.lineno)

    def fix_before(self, action: str, text: str) -> Fix | None:
        """A statement before that of the line, where one can be put."""
        number = places.line_before(self.site) if self.site is not None else None
        return Fix(text, Origin(action, self.filename, number)) if number is not None else None


@dataclass
class Account:
    """What happened: rows of (role, line, remark), in the order of the program; further remarks; a fix."""

    rows: list[tuple[str, Line, str]] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    fix: Fix | None = None
    message: str | None = None

    def complete(self, error: Any) -> None:
        if self.message is not None:
            error.args = (self.message,)

    def notes(self, failure: Failure, error: Any) -> list[str]:
        found = [failure.late] if failure.late else [notes.table(failure)] if failure.facts and not self.rows else []
        cells = [(role, notes.cut(line.text), line.where, remark) for role, line, remark in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        rows = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells]
        found += ["\n".join("  " + row.rstrip() for row in rows)] if rows else []
        found += self.remarks
        if error.fix is not None:
            found.append(f"Fix: {Fix(error.fix, error.fix_at, error.fix_how, error.fix_of)}")
        return found + see(failure.code, failure.library)


def account(failure: Failure) -> Account | None:
    """What is known of a gradient that failed; None of other errors."""
    explain = (_ACCOUNTS if failure.accounts is None else failure.accounts).get(failure.code)
    return explain(failure) if explain is not None else None


# ---------------------------------------------------------------- lines


def line_of(place: tuple[CodeType, int] | None, globals_: dict[str, Any] | None = None) -> Line | None:
    if place is None:
        return None
    code, instruction = place
    where = sources.position(code, instruction)
    if where is None:
        return None
    site = sources.locate(sources.Place(code, instruction, globals_ or {}))
    return Line(code.co_filename, where[0], site)


def _now(failure: Failure) -> Line | None:
    frame = failure.frame
    return line_of((frame.f_code, frame.f_lasti), frame.f_globals) if frame is not None else None


def _frames(failure: Failure) -> Iterator[FrameType]:
    frame = failure.frame
    while frame is not None:
        yield frame
        frame = frame.f_back


def _row(role: str, line: Line | None, remark: str = "") -> list[tuple[str, Line, str]]:
    return [(role, line, remark)] if line is not None else []


def _is_library(failure: Failure, node: ast.expr) -> bool:
    """Whether an expression is a module, such as torch or F, and no array."""
    if not isinstance(node, ast.Name | ast.Attribute):
        return False
    return any(variables.is_a(variables.resolve(frame, node), ModuleType) for frame in _frames(failure))


def operands_at(failure: Failure, line: Line) -> list[ast.expr]:
    """The operands that an op was called with, as they are written; empty where that is not known."""
    node = line.site.node if line.site is not None else None
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        held = variables.MISSING
        for frame in _frames(failure):
            held = variables.resolve(frame, node.func)
            if held is not variables.MISSING:
                break
        if variables.module_tables(held) or (held is variables.MISSING and not _is_method(node.func.attr)):
            return []  # which op of the Module it was is not known
        given = [one for one in node.args if not isinstance(one, ast.Starred)]
        return given if _is_library(failure, node.func.value) else [node.func.value, *given]
    return []


def _is_method(name: str) -> bool:
    return arrays.method(variables.MISSING, name, variables.MISSING) is not None


def _targets(statement: ast.stmt | None) -> list[ast.expr]:
    if isinstance(statement, ast.Assign):
        found: list[ast.expr] = []
        for target in statement.targets:
            found += target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
        return found
    return [statement.target] if isinstance(statement, ast.AugAssign | ast.AnnAssign) else []


def _result_name(line: Line) -> str | None:
    """The variable that takes what the statement computes, where it is all that it computes."""
    statement, site = line.statement, line.site
    value = getattr(statement, "value", None)
    targets = _targets(statement)
    if site is None or len(targets) != 1 or (value is not site.node and statement is not site.node):
        return None
    return ast.unparse(targets[0])


def _base(node: ast.expr) -> ast.expr:
    """The array that a part belongs to: y of y[0]."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_place(node: ast.expr) -> bool:
    """A name, or an attribute of one: what can be assigned to."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


# ---------------------------------------------------------------- changed after it was kept


def _op_name(node: Any, op: str) -> str:
    """A function by the name of its class."""
    return str(node.name()).removesuffix("Backward") if op == "function" else op


def _modified(failure: Failure) -> Account | None:
    if type(failure.about) is not _C.Node:
        return None
    op, _, _, saved, _, _, kept = failure.about._facts
    op = _op_name(failure.about, op)
    operand, shape, dtype, device, _, write = next(one for one in kept if one[4])
    saved_line, write_line = line_of(saved), line_of(write)
    name = _parameter(failure) or _kept_name(failure, saved_line, operand)
    what = "its result" if operand < 0 else (name or "an operand")
    found = Account()
    found.rows += _row("kept", saved_line, f"{op} needs {what} for its gradient")
    found.rows += _row("changed", write_line, notes.MARK)
    found.rows += _row("needed", _now(failure))
    parts = [f"{name or 'an array'} {origins.dtype_name(dtype)} {notes.shape_text(shape)} on {device}"]
    parts += [f"kept by {op} at {saved_line.where}"] if saved_line is not None else [f"kept by {op}"]
    parts += [f"changed at {write_line.where}"] if write_line is not None else []
    found.message = f"{failure.message.partition(': kept by')[0]}: {', '.join(parts)}"
    if write_line is not None:
        found.fix = _before_write(failure, write_line)
        if _is_step(write_line):
            found.remarks.append(
                "An optimizer stepped between forward and backward: call backward() before step(), "
                "or compute the forward pass again after it"
            )
    else:
        found.remarks.append("The write was not seen here: memory that is shared with NumPy, or one of many writes")
    return found


def _kept_name(failure: Failure, line: Line | None, operand: int) -> str | None:
    if line is None or line.site is None:
        return None
    if operand < 0:
        return _result_name(line) or line.site.text(line.site.node)
    operands = operands_at(failure, line)
    return line.site.text(operands[operand]) if operand < len(operands) else None


def _parameter(failure: Failure) -> str | None:
    """The path of a parameter that the node keeps and that was written to, from a Module that a frame knows."""
    node = failure.about
    for frame in _frames(failure):
        for name, value in list(variables.visible(frame))[:2000]:
            if type(value) is _C._Parameter and _C._node_has(node, value)[0]:
                return name
            for path, held in parameters_of(value):
                if _C._node_has(node, held)[0]:
                    return f"{name}.{path}"
    return None


def parameters_of(module: Any) -> Iterator[tuple[str, Any]]:
    """(path, parameter) of a Module and those below it."""
    for path, one in variables.below(module):
        for key, held in variables.module_tables(one)[0].items():
            if arrays.is_array(held):
                yield f"{path}{key}", held


def _is_step(line: Line) -> bool:
    node = line.site.node if line.site is not None else None
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "step"


def _written(failure: Failure, line: Line) -> ast.expr | None:
    """The array that a statement writes to."""
    node, statement = (line.site.node if line.site is not None else None), line.statement
    if isinstance(node, ast.AugAssign):
        return _base(node.target)
    if isinstance(node, ast.Subscript) and node in _targets(statement):
        return _base(node)
    if isinstance(node, ast.Call):
        out = next((keyword.value for keyword in node.keywords if keyword.arg == "out"), None)
        if out is not None:
            return _base(out)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method.endswith("_") and isinstance(node.func, ast.Attribute) and not _is_library(failure, node.func.value):
            return _base(node.func.value)
        return _base(node.args[0]) if node.args else None  # F.relu(x, inplace=True), self.relu(x), dt.relu_(x)
    return None


def _before_write(failure: Failure, line: Line) -> Fix | None:
    target, statement = _written(failure, line), line.statement
    if target is None or statement is None or _is_step(line) or not _is_place(target):
        return None
    if any(isinstance(node, ast.Lambda | ast.ListComp | ast.GeneratorExp) for node in line.site.path):  # type: ignore[union-attr]
        return None
    text = ast.unparse(target)
    return line.fix_before("write", f"{text} = {text}.clone()")


# ---------------------------------------------------------------- used up by an earlier backward


def _freed(failure: Failure) -> Account | None:
    if type(failure.about) is not _C.Node:
        return None
    op, _, _, made, freed, freed_at, _ = failure.about._facts
    op = _op_name(failure.about, op)
    found = Account()
    first, now, made_line = line_of(freed), _now(failure), line_of(made)
    edge = _edge(failure, freed_at)
    entered = line_of(edge[0]._facts[3]) if edge is not None else None
    source = line_of(edge[2]._facts[3]) if edge is not None else None
    found.rows += _row("made", made_line, f"{op} kept what its gradient needs")
    found.rows += _row("freed", first, "this backward used the graph up")
    if edge is not None and entered is not None and source is not None and _is_carried(entered, source):
        found.rows += _row("used", entered, notes.MARK)
        name = _carried(failure, edge, entered, source)
        if name is not None:
            found.fix = entered.fix_before("detach", f"{name} = {name}.detach()")
            found.remarks.append(f"{name} was made by the graph that is used up, and is used again after that backward")
    elif first is not None:
        found.fix = _retaining(first)
    found.rows += _row("needed", now)
    ends = [f"freed by backward at {first.where}"] if first is not None else []
    ends += [f"needed by {op}" + (f" at {made_line.where}" if made_line is not None else "")]
    found.message = f"{failure.message.rpartition(' (')[0]} ({', '.join(ends)})"
    return found


def _edge(failure: Failure, freed_at: int) -> tuple[Any, int, Any] | None:
    """Where a new graph goes over into the one that was used up: its node, the operand, the node there; None where the
    result itself belongs to what was used up. What this backward has used up is later than freed_at."""
    roots = [fact.object.grad_fn for fact in failure.facts if type(fact.object) is _C.DeviceArray]
    stack = [node for node in roots if node is not None]
    if any(_is_used_up(node, freed_at) for node in stack):
        return None
    seen = set(stack)
    best: tuple[Any, int, Any] | None = None
    while stack and len(seen) < _MOST:
        node = stack.pop()
        for i, (operand, _) in enumerate(node.next_functions):
            if operand is None:
                continue
            if _is_used_up(operand, freed_at):
                if best is None or _order(node) > _order(best[0]):
                    best = (node, i, operand)
            elif operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return best


def _is_used_up(node: Any, freed_at: int) -> bool:
    facts = node._facts
    return bool(facts[2] and facts[1] <= freed_at)


def _is_carried(entered: Line, source: Line) -> bool:
    """Whether a value is used where, in the text, it has not been made yet: it comes from the last round."""
    return entered.filename == source.filename and entered.lineno <= source.lineno


def _order(node: Any) -> int:
    return int(node._facts[1])


def _carried(failure: Failure, edge: tuple[Any, int, Any], entered: Line, source: Line) -> str | None:
    """The variable by which an old graph came into a new one."""
    operands = operands_at(failure, entered)
    if edge[1] < len(operands):
        return ast.unparse(operands[edge[1]]) if _is_place(operands[edge[1]]) else None
    node = entered.site.node if entered.site is not None else None
    given = {ast.unparse(one) for one in node.args} if isinstance(node, ast.Call) else set()
    names = {ast.unparse(target) for target in _targets(source.statement)} & given
    return names.pop() if len(names) == 1 else None


def _retaining(line: Line) -> Fix | None:
    node = line.site.node if line.site is not None else None
    if line.site is None or not isinstance(node, ast.Call) or any(k.arg == "retain_graph" for k in node.keywords):
        return None
    again = places.with_keyword(line.site, node, "retain_graph", "True")
    return Fix(again, line.origin("backward"), "instead", line.site.text(node))


# ---------------------------------------------------------------- never recorded


def _missing(failure: Failure) -> Account | None:
    fact = failure.facts[0] if failure.facts else None
    if fact is None or not arrays.is_array(fact.object):
        return None
    found = Account()
    found.rows += _row("needed", _now(failure))
    line: Line | None = None
    for i, (step, (_, place, off)) in enumerate(zip(fact.history, arrays.steps(fact.object), strict=False)):
        line = line_of(place)
        if line is not None and _cut(failure, found, fact.history, i, off, line):
            break
        if i + 1 == len(fact.history) and line is not None:
            found.rows += _row("made", line, f"by {step.action}, which requires no gradient")
    else:
        _end(failure, found, fact.history, line)
    found.rows.reverse()  # the order of the program
    return found


def _end(failure: Failure, found: Account, history: tuple[Step, ...], last: Line | None) -> None:
    """What is known where a history ends: it follows one operand of each op, and no write in place."""
    now, frozen = _now(failure), _frozen(failure)
    found.remarks += frozen
    hidden = ends.hidden(failure, now) if now is not None else None
    if hidden is not None and now is not None and now.site is not None:
        line = Line(now.filename, hidden.statement.lineno, now.site._replace(path=(hidden.statement,)))
        found.rows.insert(1, ("cut", line, f"{notes.MARK}: {hidden.remark}"))
        found.fix = hidden.fix if not frozen else None
        return
    asked = ends.asked(failure, last) if last is not None and history[-1].action in ends.NUMBERS else None
    end = f"Its history ends with {history[-1].action}" if history and history[-1].action else "It has no history"
    found.remarks.append(asked or f"{end}: requires_grad=True makes an array a leaf")


def _cut(failure: Failure, found: Account, history: tuple[Step, ...], i: int, off: bool, line: Line) -> bool:
    """Whether no gradient flows through a step; why goes into found."""
    step = history[i]
    before = history[i + 1] if i + 1 < len(history) else None
    remark: str | None = None
    if step.action in _CUTS:
        remark, found.fix = _CUTS[step.action], _without_detach(line)
    elif off:
        block, found.fix = _block(failure, line)
        found.rows += _row("cut", line, f"{notes.MARK}: nothing was recorded here")
        found.rows += _row("off", block)
        return True
    elif not step.dtype.is_floating_point and (before is None or before.dtype.is_floating_point):
        remark = f"{step.action} gives {origins.dtype_name(step.dtype)}, which has no gradient"
    elif step.action in ends.NUMBERS:
        remark, found.fix = ends.of_numbers(failure, line) or (None, None)
    found.rows += _row("cut", line, f"{notes.MARK}: {remark}") if remark is not None else []
    return remark is not None


def _without_detach(line: Line) -> Fix | None:
    node = line.site.node if line.site is not None else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach":
        inner = node.func.value
    elif isinstance(node, ast.Attribute) and node.attr == "data":
        inner = node.value
    else:
        return None
    of = line.site.text(node) if line.site is not None else ""
    return Fix(ast.unparse(inner), Origin("detach", line.filename, node.end_lineno or node.lineno), "instead", of)


def _block(failure: Failure, line: Line) -> tuple[Line | None, Fix | None]:
    """The block, or decorator, that had turned recording off, and what to write there."""
    lines = [line, *filter(None, (line_of((f.f_code, f.f_lasti), f.f_globals) for f in _frames(failure)))]
    for one in lines:
        for node in reversed(one.site.path if one.site is not None else ()):
            for expression in _modes(node):
                text = ast.unparse(expression)
                shown = f"with {text}:" if isinstance(node, ast.With | ast.AsyncWith) else f"@{text}"
                return Line(one.filename, expression.lineno, one.site, shown), _recording(one, expression)
    return None, None


def _modes(node: ast.AST) -> list[ast.expr]:
    held = [item.context_expr for item in node.items] if isinstance(node, ast.With | ast.AsyncWith) else []
    held += node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
    return [one for one in held if _mode_name(one) in _MODES]


def _mode_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _recording(line: Line, node: ast.expr) -> Fix | None:
    """The same block with recording on."""
    name = node.func if isinstance(node, ast.Call) else node
    if not isinstance(name, ast.Attribute) or line.site is None:
        return None
    text = f"{ast.unparse(name.value)}.enable_grad" + ("()" if isinstance(node, ast.Call) else "")
    return Fix(text, Origin(name.attr, line.filename, node.lineno), "instead", line.site.text(node))


def _frozen(failure: Failure) -> list[str]:
    """Modules of the failing frame none of whose parameters wants a gradient."""
    found = []
    frame = failure.frame
    for name, value in list(variables.visible(frame))[:2000] if frame is not None else []:
        flags = [bool(held.requires_grad) for _, held in parameters_of(value)]
        if flags and not any(flags):
            found.append(f"All {len(flags)} parameters of {name} have requires_grad=False")
    return found


# ---------------------------------------------------------------- moved between forward and backward


def _moved(failure: Failure) -> Account | None:
    """A parameter that has another device or dtype meanwhile."""
    if type(failure.about) is not _C.Node:
        return None
    op, _, _, made, *_ = failure.about._facts
    cast = "was cast" in failure.message
    found = Account()
    found.rows += _row("made", line_of(made), f"forward, with {op}")
    name, array = _operand_elsewhere(failure)
    if array is not None:
        steps = _C._steps(array)
        decided = origins.deciding([Step(*step) for step, _, _ in steps], "dtype" if cast else "device")
        found.rows += _row("moved", line_of(steps[decided][1]), notes.MARK)
        found.message = f"{failure.message} ({name})"
    found.rows += _row("needed", _now(failure))
    found.remarks.append(f"{'Cast' if cast else 'Move'} a model before the forward pass, or after backward()")
    return found


def _operand_elsewhere(failure: Failure) -> tuple[str, Any]:
    """An operand of the node that has been moved or cast, and where a Module or a variable has it."""
    for frame in _frames(failure):
        for name, value in list(variables.visible(frame))[:2000]:
            if variables.is_a(value, _C.DeviceArray) and _C._node_has(failure.about, value)[1]:
                return name, value
            for path, held in parameters_of(value):
                if _C._node_has(failure.about, held)[1]:
                    return f"{name}.{path}", held
    return "", None


# ---------------------------------------------------------------- refused where they stand


def _leaf_written(failure: Failure) -> Account | None:
    """An update by hand: the same statement in a block without recording."""
    now, frame = _now(failure), failure.frame
    library = fixes.library_name(frame, failure.library) if frame is not None else None
    statement = now.statement if now is not None else None
    if now is None or now.site is None or library is None or statement is None:
        return None
    if not isinstance(statement, ast.AugAssign | ast.Assign | ast.Expr) or statement.lineno != statement.end_lineno:
        return None
    if places.line_before(now.site) is None:  # a `with` cannot stand behind another statement
        return None
    text = now.site.text(statement)
    return Account(fix=Fix(f"with {library}.no_grad(): {text}", None, "instead", text))


_FOR_SCORES = "Scores that have not gone through sigmoid() are for nn.BCEWithLogitsLoss"


def _scores(failure: Failure) -> Account | None:
    """Scores in the place of probabilities: the loss that takes them."""
    node = failure.site.node if failure.site is not None else None
    fact = failure.facts[failure.culprit] if failure.culprit >= 0 else None
    if failure.late and "binary_cross_entropy" in failure.op:
        return Account(remarks=[_FOR_SCORES])
    if failure.site is None or fact is None or fact.name != "input" or not isinstance(node, ast.Call):
        return None
    text = failure.site.text(node.func)
    if not text.endswith("binary_cross_entropy"):
        return Account(remarks=[_FOR_SCORES]) if "binary_cross_entropy" in failure.op else None
    return Account(fix=Fix(f"{text}_with_logits", None, "instead", text))


_ACCOUNTS: dict[str, Callable[[Failure], Account | None]] = {
    "grad-modified": _modified,
    "grad-freed": _freed,
    "grad-missing": _missing,
    "grad-moved": _moved,
    "not-probabilities": _scores,
    "grad-leaf-in-place": _leaf_written,
    "grad-leaf-view-in-place": _leaf_written,
}
