"""Einstein's sums: each is a product of matrices, once the dimensions stand in order."""

from __future__ import annotations

import functools
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray
from devtensor._composed.arguments import misshapen, need_entries
from devtensor._dtypes.autocast import SOME, autocasts
from devtensor._dtypes.rules import promote_types

# A dimension has a label: a letter, or one of these for those of an ellipsis, counted from the right.
_ELLIPSIS = "01234567"
_USAGE = (
    "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts "
    "list"
)


@autocasts
def einsum(*args: Any) -> DeviceArray:
    """The sum of products that an equation describes, such as "ij,jk->ik": a letter for each dimension of each operand.

    einsum(equation, *operands), or einsum(x, [0, 1], y, [1, 2], [0, 2]) with numbers from 0 to 51 for letters. Letters
    that the result lacks are summed over; without "->" it has those that appear once, in the alphabet's order. "..."
    stands for dimensions that broadcast, as sizes of 1 do. Each step is one product of matrices, from the left to the
    right. Operands of one dtype on one device: floats, or one array of any dtype. Raises DeviceMismatchError,
    DTypeMismatchError, ShapeMismatchError, RuntimeError for an equation that means nothing.

    >>> dt.einsum("ij,jk->ik", dt.ones(2, 3), dt.ones(3, 4)).shape
    (2, 4)
    """
    equation, operands = _arguments(args)
    names, arrays = need_entries("einsum", "operands", operands)
    dtypes = {x.dtype for x in arrays}
    if len(dtypes) > 1 and _C._as_torch() and not _multiplies(*args):  # then PyTorch multiplies, which promotes
        dtype = functools.reduce(promote_types, dtypes)
        arrays = tuple(x.to(dtype) for x in arrays)
    names, shown = names[:8], arrays[:8]
    if len(arrays) > 1:
        _C._check("einsum", names, shown)
        for k in range(8, len(arrays)):  # an error holds no more of them
            _C._check("einsum", (names[0], f"operands[{k}]"), (arrays[0], arrays[k]))
    try:
        labels, kept = _labelled(equation, tuple([x.shape for x in arrays]))
    except _Misfit as misfit:
        text, k, code = misfit.args
        raise misshapen("einsum", names, shown, f"einsum(): {text}", k if k < len(shown) else -1, code) from None
    return contracted("einsum", names, arrays, labels, kept)


def _multiplies(*args: Any) -> bool:
    """Whether a sum of products is asked for, which is a product of matrices."""
    try:
        equation, operands = _arguments(args)
        labels, kept = _labelled(equation, tuple([x.shape for x in operands]))
    except Exception:
        return False  # einsum itself says what is wrong
    return any(sum(label in one for one in labels) > 1 for label in set("".join(labels)) - set(kept))


SOME["einsum"] = _multiplies


class _Misfit(Exception):
    """A shape that does not fit the equation: a text, which operand, and the code of the error."""


@functools.lru_cache(maxsize=256)
def _labelled(equation: str, shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[str, ...], str]:
    """A label for each dimension of each operand, and those of the result."""
    terms, output = _parsed(equation)
    if len(terms) != len(shapes):
        count = "more" if len(terms) < len(shapes) else "fewer"
        raise _refused(f"{count} operands were provided than specified in the equation")
    labels = tuple(_labels(term, len(shape), k) for k, (term, shape) in enumerate(zip(terms, shapes, strict=True)))
    most = max(sum(label in _ELLIPSIS for label in one) for one in labels)
    dots = _ELLIPSIS[:most][::-1]
    kept = _implied(terms, dots) if output is None else output.replace(".", dots)
    for label in kept:
        if not any(label in one for one in labels):
            raise _refused(f"output subscript {label} does not appear in the equation for any input operand")
        if kept.count(label) > 1:
            raise _refused(f"output subscript {label} appears more than once in the output")
    _check_sizes(labels, shapes)
    return labels, kept


def _refused(text: str) -> RuntimeError:
    return RuntimeError(f"einsum(): {text}")


def _arguments(args: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation and its operands; of the form with lists, the equation that they stand for."""
    if len(args) < 2:
        raise ValueError(_USAGE)
    if isinstance(args[0], str):
        only = args[1]
        return args[0], tuple(only) if len(args) == 2 and isinstance(only, (list, tuple)) else args[1:]
    operands, lists = args[: len(args) // 2 * 2 : 2], args[1::2]
    equation = ",".join(_letters(one) for one in lists)
    if len(args) % 2:
        equation += "->" + _letters(args[-1])
    return equation, operands


def _letters(subscripts: Any) -> str:
    if not isinstance(subscripts, (list, tuple)):
        raise TypeError(f"einsum(): a list of subscripts must follow each operand, not {type(subscripts).__name__}")
    found = ""
    for n in subscripts:
        if n is Ellipsis:
            found += "..."
            continue
        number = _C._need_int("einsum", "subscripts", n)
        if not 0 <= number < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        found += chr(65 + number) if number < 26 else chr(71 + number)
    return found


def _parsed(equation: str) -> tuple[tuple[str, ...], str | None]:
    """The labels of each operand and of the result, with one "." for an ellipsis."""
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    position = 0
    for k, term in enumerate(terms):
        _check_term(term, position, f"for operand {k}")
        position += len(term) + 1
    if arrow:
        _check_term(right, position + 1, "for the output")
    plain = tuple(term.replace(" ", "").replace("...", ".") for term in terms)
    return plain, right.replace(" ", "").replace("...", ".") if arrow else None


def _check_term(term: str, start: int, whose: str) -> None:
    rest = term.replace("...", "   ", 1)
    if "..." in rest:
        raise _refused(f"found '.' {whose} for which an ellipsis was already found")
    if "." in rest:
        raise _refused(f"found '.' {whose} that is not part of any ellipsis")
    for at, label in enumerate(rest):
        if label != " " and not (label.isascii() and label.isalpha()):
            raise _refused(
                f"invalid subscript given at index {start + at} in the equation string, subscripts must be in [a-zA-Z]"
            )


def _labels(term: str, ndim: int, k: int) -> str:
    """A label for each dimension of operand k."""
    more = ndim - len(term.replace(".", ""))
    if more < 0 or (more > 0 and "." not in term):
        text = f"the number of subscripts in the equation ({len(term.replace('.', ''))}) "
        text += "is more than" if "." in term else "does not match"
        text += f" the number of dimensions ({ndim}) for operand {k}"
        raise _Misfit(text + ("" if "." in term else " and no ellipsis was given"), k, "rank-mismatch")
    return term.replace(".", _ELLIPSIS[:more][::-1])


def _implied(terms: tuple[str, ...], dots: str) -> str:
    every = "".join(terms).replace(".", "")
    return dots + "".join(sorted(label for label in set(every) if every.count(label) == 1))


def _check_sizes(labels: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]) -> None:
    """Raises for a label of two sizes, of which neither is 1."""
    sizes: dict[str, int] = {}
    for k, (one, shape) in enumerate(zip(labels, shapes, strict=True)):
        mine: dict[str, int] = {}
        for label, size in zip(one, shape, strict=True):
            if mine.setdefault(label, size) != size:
                text = f"subscript {label} is repeated for operand {k} but the sizes don't match, {size} != "
                raise _Misfit(f"{text}{mine[label]}", k, "shape-mismatch")
            seen = sizes.get(label, 1)
            if size not in (1, seen) and seen != 1:
                text = f"subscript {label} has size {size} for operand {k} which does not broadcast with "
                raise _Misfit(f"{text}previously seen size {seen}", k, "shape-mismatch")
            sizes[label] = size if seen == 1 else seen


# ---------------------------------------------------------------- the product


def contracted(
    op: str, names: tuple[str, ...], arrays: tuple[DeviceArray, ...], labels: tuple[str, ...], kept: str
) -> DeviceArray:
    """The sum of products over the labels that kept lacks, with the dimensions in the order of kept."""
    result, mine = _diagonals(arrays[0], labels[0])
    for k in range(1, len(arrays)):
        later = {*kept, *"".join(labels[k + 1 :])}
        x, its = _diagonals(arrays[k], labels[k])
        if len({*mine, *its}) > 8 and len(later & {*mine, *its}) > 8:
            raise misshapen(op, names, arrays[: len(names)], f"{op}(): arrays have at most 8 dimensions", -1)
        result, mine = _multiplied(result, mine, x, its, later)
    result, mine = _summed(result, mine, set(kept))
    order = [mine.index(label) for label in kept]
    return result.permute(order) if order != list(range(len(order))) else result


def _diagonals(x: DeviceArray, labels: str) -> tuple[DeviceArray, str]:
    """x with one dimension for each label."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first, second = labels.index(label), labels.rindex(label)
            x = x.diagonal(0, first, second)
            labels = labels[:first] + labels[first + 1 : second] + labels[second + 1 :] + label
    return x, labels


def _summed(x: DeviceArray, labels: str, kept: set[str]) -> tuple[DeviceArray, str]:
    gone = [d for d, label in enumerate(labels) if label not in kept]
    return (x.sum(gone), "".join(label for label in labels if label in kept)) if gone else (x, labels)


def _squeezed(x: DeviceArray, labels: str, gone: list[str]) -> tuple[DeviceArray, str]:
    if not gone:
        return x, labels
    return x.squeeze([labels.index(label) for label in gone]), "".join(label for label in labels if label not in gone)


def _multiplied(x: DeviceArray, mine: str, y: DeviceArray, its: str, kept: set[str]) -> tuple[DeviceArray, str]:
    """The product of two operands, summed over the labels that are not kept."""
    apart = [one for one in mine if one in its and x.shape[mine.index(one)] != y.shape[its.index(one)]]
    x, mine = _squeezed(x, mine, [label for label in apart if x.shape[mine.index(label)] == 1])
    y, its = _squeezed(y, its, [label for label in apart if label in mine])
    x, mine = _summed(x, mine, kept | set(its))
    y, its = _summed(y, its, kept | set(mine))
    batch = "".join(label for label in mine if label in its and label in kept)
    inside = "".join(label for label in mine if label in its and label not in kept)
    left = "".join(label for label in mine if label not in its)
    right = "".join(label for label in its if label not in mine)
    x, y = _ordered(x, mine, batch + left + inside), _ordered(y, its, batch + inside + right)
    b, shape = len(batch), x.shape[: len(batch + left)] + y.shape[len(batch + inside) :]
    if not inside:
        x = x.reshape(*x.shape, *[1] * len(right)) if right else x
        y = y.reshape(*y.shape[:b], *[1] * len(left), *y.shape[b:]) if left else y
        return x * y, batch + left + right
    if b == 0 and not left and not right and len(inside) == 1:
        return x.dot(y), ""
    lead = list(x.shape[:b]) if b <= 6 else [_count(x.shape[:b])]
    rows, columns = _count(shape[b : b + len(left)]), _count(shape[b + len(left) :])
    depth = _count(x.shape[b + len(left) :])
    product = _reshaped(x, [*lead, rows, depth]) @ _reshaped(y, [*lead, depth, columns])
    return _reshaped(product, list(shape)), batch + left + right


def _ordered(x: DeviceArray, labels: str, wanted: str) -> DeviceArray:
    return x if labels == wanted else x.permute([labels.index(label) for label in wanted])


def _reshaped(x: DeviceArray, shape: list[int]) -> DeviceArray:
    return x if list(x.shape) == shape else x.reshape(shape)


def _count(sizes: tuple[int, ...]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


__all__ = [
    "einsum",
]
