"""Derivatives of a function, as functions of the same arguments; each is autograd.grad of what the function gives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool
from devtensor.autograd._transforms import calling
from devtensor.autograd.functional import _grad
from devtensor.autograd.grad_mode import enable_grad
from devtensor.utils._pytree import TreeSpec, tree_flatten, tree_leaves, tree_map, tree_unflatten

_Function = Callable[..., Any]
_Numbers = int | tuple[int, ...]


def _need_arrays(trees: Any) -> list[DeviceArray]:
    leaves = tree_leaves(trees)
    for leaf in leaves:
        if not isinstance(leaf, DeviceArray):
            raise ValueError(f"Thing passed to transform API must be DeviceArray, got {type(leaf)}")
    return leaves


def _recorded(tree: Any) -> Any:
    """tree with arrays that are recorded and lead back to where the given ones came from, if these are recorded."""
    return tree_map(lambda x: x.view_as(x) if x.requires_grad else x.detach().requires_grad_(), tree)


def _numbers_of(argnums: _Numbers, given: int) -> tuple[int, ...]:
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers or not all(type(n) is int for n in numbers):
        raise RuntimeError(f"argnum must be int or Tuple[int, ...], got: {argnums}")
    for n in numbers:
        if not -given <= n < given:
            raise RuntimeError(f"Got argnum={n}, but only {given} positional inputs")
    places = tuple(n % given for n in numbers)
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return places


def _begin(argnums: _Numbers, args: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """args with recorded ones where argnums says, and those: a tuple of them, or the one."""
    changed = list(args)
    places = _numbers_of(argnums, len(args))
    for place in places:
        _need_arrays(args[place])
        changed[place] = _recorded(args[place])
    chosen = tuple(changed[place] for place in places)
    return changed, chosen if isinstance(argnums, tuple) else chosen[0]


def _reaches_further(outputs: Iterable[DeviceArray], inputs: list[DeviceArray]) -> bool:
    """Whether outputs depend on a recorded array that is not of inputs, so that a derivative may have one in turn."""
    if any(x.grad_fn is not None for x in inputs):
        return True
    with enable_grad():
        views = [x.view_as(x) for x in inputs]
    own = {view.grad_fn.next_functions[0][0] for view in views if view.grad_fn is not None}
    stack = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen = set(stack)
    while stack:
        for node, _ in stack.pop().next_functions:
            if node is None or node in seen or node in own:
                continue
            if node.name() == "AccumulateGrad":
                return True
            seen.add(node)
            stack.append(node)
    return False


def _gradients(
    outputs: list[DeviceArray], inputs: list[DeviceArray], seeds: list[DeviceArray] | None = None
) -> list[DeviceArray]:
    """Of each input; zeros where no output depends on it. Recorded where they depend on other recorded arrays."""
    further = _reaches_further(outputs, inputs) or any(seed.requires_grad for seed in seeds or ())
    return _as_recorded(outputs, inputs, seeds, further)


def _as_recorded(
    outputs: list[DeviceArray], inputs: list[DeviceArray], seeds: list[DeviceArray] | None, further: bool
) -> list[DeviceArray]:
    found = _grad(tuple(outputs), tuple(inputs), None if seeds is None else tuple(seeds), further, True)
    return [_C.zeros_like(x) if g is None else g for g, x in zip(found, inputs, strict=True)]


def _ended(tree: Any, inputs: list[DeviceArray]) -> Any:
    """What a function gave, without the record that leads to inputs alone."""
    outputs = [x for x in tree_leaves(tree) if isinstance(x, DeviceArray) and x.requires_grad]
    if not outputs or _reaches_further(outputs, inputs):
        return tree
    return tree_map(lambda x: x.detach() if isinstance(x, DeviceArray) else x, tree)


def _parts(result: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def grad_and_value(func: _Function, argnums: _Numbers = 0, has_aux: bool = False) -> _Function:
    """A function that gives the gradient of func with respect to its arguments argnums, and what func gives.

    func gives one element; with has_aux a pair of it and of what is passed through: (gradient, (value, aux)) then. The
    chosen arguments may be arrays or lists, tuples and dictionaries of them, and the gradient has their form. It can be
    nested. Raises RuntimeError for other results and argument numbers, ValueError for arguments that are no arrays.

    >>> dt.func.grad_and_value(lambda x: (x * x).sum())(dt.tensor([1.0, 2.0]))
    (DeviceArray([2., 4.], device='cpu', dtype=float32), DeviceArray(5., device='cpu', dtype=float32))
    """
    op = "grad_and_value"
    has_aux = _need_bool(op, "has_aux", has_aux)

    @functools.wraps(func)
    def _derived(*args: Any, **kwargs: Any) -> Any:
        call = f"{op}(f)(*args)"
        with enable_grad():
            changed, chosen = _begin(argnums, args)
            with calling(args, kwargs):
                given = func(*changed, **kwargs)
            output, aux = _parts(given, has_aux, call)
            if not isinstance(output, DeviceArray):
                raise RuntimeError(f"{call}: Expected f(*args) to return a DeviceArray, got {type(output)}")
            if output.dim() != 0:
                raise RuntimeError(
                    f"{call}: Expected f(*args) to return a scalar array, got one with {output.dim()} dims. Maybe you "
                    "wanted to use the vjp or jacrev APIs instead?"
                )
            inputs, form = tree_flatten(chosen)
            result = tree_unflatten(_gradients([output], inputs), form)
        output, aux = _ended(output, inputs), _ended(aux, inputs)
        return (result, (output, aux)) if has_aux else (result, output)

    return _derived


def grad(func: _Function, argnums: _Numbers = 0, has_aux: bool = False) -> _Function:
    """A function that gives the gradient of func with respect to its arguments argnums; see grad_and_value.

    With has_aux it gives (gradient, aux).

    >>> slope = dt.func.grad(lambda x: x ** 3)
    >>> slope(dt.tensor(2.0)), dt.func.grad(slope)(dt.tensor(2.0))
    (DeviceArray(12., device='cpu', dtype=float32), DeviceArray(12., device='cpu', dtype=float32))
    """
    both = grad_and_value(func, argnums, _need_bool("grad", "has_aux", has_aux))

    @functools.wraps(func)
    def _derived(*args: Any, **kwargs: Any) -> Any:
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return _derived


def vjp(func: _Function, *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """func(*primals), and a function that gives the products of its argument with the Jacobian of func there.

    That one takes what has the form of func's result, and gives a tuple with one for each of primals. With has_aux func
    gives a pair, whose second part is the third result. Raises RuntimeError for what func may not give and for
    cotangents of another form or shape.

    >>> value, pull = dt.func.vjp(lambda x: x * x, dt.tensor([1.0, 2.0]))
    >>> pull(dt.ones(2))
    (DeviceArray([2., 4.], device='cpu', dtype=float32),)
    """
    has_aux = _need_bool("vjp", "has_aux", has_aux)
    _need_arrays(primals)
    with enable_grad():
        given = _recorded(primals)
        with calling(primals):
            result = func(*given)
        result, aux = _parts(result, has_aux, "vjp(f, *primals)")
    outputs, form = _outputs("vjp(f, *primals): expected f(*primals)", result)
    inputs, given_form = tree_flatten(given)

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        """The products; the options are there for PyTorch's sake."""
        seeds, its_form = tree_flatten(cotangents)
        if its_form != form:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function, which gave {len(outputs)} arrays; cotangents have {len(seeds)}"
            )
        with enable_grad():
            found = _gradients(outputs, inputs, seeds)
        return tree_unflatten(found, given_form)

    ended = _ended(result, inputs)
    return (ended, pull, _ended(aux, inputs)) if has_aux else (ended, pull)


def _outputs(begin: str, result: Any) -> tuple[list[DeviceArray], TreeSpec]:
    outputs, form = tree_flatten(result)
    for output in outputs:
        if not isinstance(output, DeviceArray):
            raise RuntimeError(f"{begin} to return only arrays, got unsupported type {type(output)}")
    return outputs, form


def jvp(
    func: _Function, primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """func(*primals), and the product of the Jacobian of func there with tangents, by two backward passes.

    tangents have the form and shapes of primals. Outputs that are no floats have zeros. What func computes under
    no_grad is a constant, which it is not in PyTorch's forward mode. strict raises RuntimeError where func does not
    depend on primals, instead of giving zeros. With has_aux func gives a pair, whose second part is the third result.

    >>> dt.func.jvp(lambda x: x * x, (dt.tensor([1.0, 2.0]),), (dt.ones(2),))[1]
    DeviceArray([2., 4.], device='cpu', dtype=float32)
    """
    call = "jvp(f, primals, tangents)"
    strict, has_aux = _need_bool("jvp", "strict", strict), _need_bool("jvp", "has_aux", has_aux)
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{call}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    _need_arrays(primals)
    vectors, form = tree_flatten(tangents)
    with enable_grad():
        given = _recorded(primals)
        inputs, its_form = tree_flatten(given)
        if form != its_form:
            raise RuntimeError(f"{call}: Expected primals and tangents to have the same python structure.")
        for x, vector in zip(inputs, vectors, strict=True):
            if not isinstance(vector, DeviceArray) or vector.shape != x.shape:
                size = list(vector.shape) if isinstance(vector, DeviceArray) else type(vector)
                raise RuntimeError(f"{call}: a tangent must have the size of its primal, {list(x.shape)}, not {size}.")
        with calling(primals):
            result = func(*given)
        result, aux = _parts(result, has_aux, call)
        outputs, out_form = _outputs(f"{call}: expected f(*primals)", result)
        slopes_of = [x for x in outputs if x.is_floating_point()]
        seeds = [_C.ones_like(x).requires_grad_() for x in slopes_of]  # any do: the backward is linear in them
        slopes = _gradients(slopes_of, inputs, seeds)
        if strict and not any(slope.requires_grad for slope in slopes):
            raise RuntimeError(f"{call}: the result of f does not depend on primals, which strict=True refuses.")
        found = iter(_gradients(slopes, seeds, vectors))
    products = tree_unflatten([next(found) if x.is_floating_point() else _C.zeros_like(x) for x in outputs], out_form)
    ended = _ended(result, inputs)
    products = _ended(products, [*inputs, *seeds])
    return (ended, products, _ended(aux, inputs)) if has_aux else (ended, products)


def linearize(func: _Function, *primals: Any) -> tuple[Any, _Function]:
    """func(*primals), and a function of tangents that gives the product of the Jacobian of func there with them.

    Each call of that one calls func again, as jvp does, whose rules and errors hold.

    >>> value, push = dt.func.linearize(lambda x: x * x, dt.tensor([1.0, 2.0]))
    >>> push(dt.ones(2))
    DeviceArray([2., 4.], device='cpu', dtype=float32)
    """
    value, _ = vjp(func, *primals)
    return value, lambda *tangents: jvp(func, primals, tangents)[1]


def jacrev(
    func: _Function, argnums: _Numbers = 0, *, has_aux: bool = False, chunk_size: int | None = None
) -> _Function:
    """A function that gives the Jacobian of func with respect to its arguments argnums.

    For an output and an input it has the shape (*output.shape, *input.shape); where func gives a structure, or the
    arguments are one, there is one for each of their arrays. There is one backward pass for each element of the
    outputs, whatever chunk_size is. has_aux, nesting and errors are those of grad_and_value.

    >>> dt.func.jacrev(lambda x: x * x)(dt.tensor([1.0, 2.0]))
    DeviceArray([[2., 0.],
                 [0., 4.]], device='cpu', dtype=float32)
    """
    has_aux = _need_bool("jacrev", "has_aux", has_aux)
    if chunk_size is not None and _C._need_int("jacrev", "chunk_size", chunk_size) <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def _derived(*args: Any, **kwargs: Any) -> Any:
        with enable_grad():
            changed, chosen = _begin(argnums, args)
            with calling(args, kwargs):
                given = func(*changed, **kwargs)
            result, aux = _parts(given, has_aux, "jacrev(f)(*args)")
            outputs, form = _outputs("jacrev(f)(*args): expected f(*args)", result)
            inputs, in_form = tree_flatten(chosen)
            jacobians = [tree_unflatten(_jacobians(output, inputs), in_form) for output in outputs]
        answer = tree_unflatten(jacobians, form)
        return (answer, _ended(aux, inputs)) if has_aux else answer

    return _derived


def _jacobians(output: DeviceArray, inputs: list[DeviceArray]) -> list[DeviceArray]:
    """Of one output, one for each input."""
    further = _reaches_further([output], inputs)
    rows = [_as_recorded([element], inputs, None, further) for element in output.reshape(-1)]
    if not rows:
        return [x.new_zeros((*output.shape, *x.shape)) for x in inputs]
    return [_C.stack(row).reshape((*output.shape, *row[0].shape)) for row in zip(*rows, strict=True)]


def jacfwd(func: _Function, argnums: _Numbers = 0, has_aux: bool = False, *, randomness: str = "error") -> _Function:
    """jacrev(func, argnums, has_aux=has_aux): there is no forward mode, and the Jacobian is the same.

    But for what func computes under no_grad, which is a constant here.

    >>> dt.func.jacfwd(lambda x: x.sum())(dt.ones(2))
    DeviceArray([1., 1.], device='cpu', dtype=float32)
    """
    if _C._need_str("jacfwd", "randomness", randomness) not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    return jacrev(func, argnums, has_aux=has_aux)


def hessian(func: _Function, argnums: _Numbers = 0) -> _Function:
    """A function that gives the second derivatives of func with respect to its arguments argnums.

    What func computes under no_grad is a constant.

    >>> dt.func.hessian(lambda x: (x * x * x).sum())(dt.tensor([1.0, 2.0]))
    DeviceArray([[ 6.,  0.],
                 [ 0., 12.]], device='cpu', dtype=float32)
    """
    return jacrev(jacrev(func, argnums), argnums)
