"""Compare gradients with differences of the function itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from devtensor import _C
from devtensor.autograd.grad_mode import no_grad


class GradcheckError(RuntimeError):
    """A gradient differs from the differences of its function."""


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def _outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[_C.DeviceArray, ...]:
    """What function gives that requires a gradient."""
    return tuple(y for y in _tuple(function(*inputs)) if isinstance(y, _C.DeviceArray) and y.dtype.is_floating_point)


def _numbers(x: _C.DeviceArray) -> Any:
    """The elements as NumPy's float64: numpy is imported by who checks, not by who imports devtensor."""
    import numpy as np

    return np.array(x.detach().cpu().numpy(), dtype=np.float64)


def _replaced(inputs: Sequence[Any], index: int, values: Any) -> list[Any]:
    """inputs with other numbers in one of them, which keeps its strides, dtype and device."""
    changed = list(inputs)
    x = inputs[index]
    changed[index] = x.detach().clone()
    changed[index].copy_(_C.from_numpy(values).to(x.dtype))
    return changed


def _numerical(function: Callable[..., Any], inputs: Sequence[Any], index: int, eps: float) -> list[Any]:
    """For each output the derivative of every element by every element of one input."""
    import numpy as np

    start = _numbers(inputs[index])
    columns: list[list[Any]] = []
    with no_grad():
        for i in range(start.size):
            sides = []
            for step in (eps, -eps):
                moved = start.copy()
                moved.reshape(-1)[i] += step
                sides.append([_numbers(y).reshape(-1) for y in _outputs(function, _replaced(inputs, index, moved))])
            columns.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
    outputs = len(columns[0]) if columns else 0
    return [np.stack([c[k] for c in columns], axis=-1) for k in range(outputs)]


def _analytical(function: Callable[..., Any], inputs: Sequence[Any], index: int) -> list[Any]:
    """The same by backward: one row for each element of each output."""
    import numpy as np

    from devtensor.autograd import grad

    result = []
    for y in _outputs(function, inputs):
        rows = np.zeros((y.numel(), inputs[index].numel()))
        for i in range(y.numel() if y.requires_grad else 0):
            one = np.zeros(y.numel())
            one[i] = 1
            seed = _C.from_numpy(one.reshape(y.shape)).to(y.dtype).to(y.device)
            found = grad(y, inputs[index], seed, retain_graph=True, allow_unused=True)[0]
            rows[i] = 0 if found is None else _numbers(found).reshape(-1)
        result.append(rows)
    return result


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **ignored: Any,
) -> bool:
    """Whether the gradients of func agree with differences of it.

    Parameters
    ----------
    func : callable
        Takes the inputs, gives a DeviceArray or a tuple of them.
    inputs : tuple
        Those that are DeviceArrays with requires_grad are checked; float64, as eps is small.
    eps : float
        The step of the differences.
    atol, rtol : float
        What may differ: atol + rtol * the difference quotient.
    raise_exception : bool
        Whether a disagreement raises, or gives False.
    ignored
        Further options of PyTorch's gradcheck.

    Returns
    -------
    bool

    Raises
    ------
    GradcheckError
        It names input, output and element, and both values.

    Examples
    --------
    >>> x = dt.randn(3, dtype=dt.float64, requires_grad=True)
    >>> dt.autograd.gradcheck(lambda x: x.exp(), x)
    True
    """
    import numpy as np

    inputs = _tuple(inputs)
    checked = [i for i, x in enumerate(inputs) if isinstance(x, _C.DeviceArray) and x.requires_grad]
    if not checked:
        raise ValueError(
            "gradcheck expects at least one input tensor to require gradient, but none of the them have "
            "requires_grad=True."
        )
    for i in checked:
        pairs = zip(_analytical(func, inputs, i), _numerical(func, inputs, i, eps), strict=True)
        for k, (analytical, numerical) in enumerate(pairs):
            wrong = ~(np.abs(analytical - numerical) <= atol + rtol * np.abs(numerical))
            if not wrong.any():
                continue
            if not raise_exception:
                return False
            row, column = np.argwhere(wrong)[0]
            raise GradcheckError(
                f"Jacobian mismatch for output {k} with respect to input {i}: d output[{row}] / d input[{column}] is "
                f"{numerical[row, column]:.9g} by differences and {analytical[row, column]:.9g} by backward; "
                f"{int(wrong.sum())} of {wrong.size} elements differ"
            )
    return True


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, **options: Any) -> bool:
    """Whether the gradients of the gradients of func agree with differences: gradcheck of its backward.

    Parameters
    ----------
    func, inputs : as for gradcheck
    grad_outputs : tuple or None
        The gradients of the outputs; None: random numbers.
    options
        As for gradcheck.

    Returns
    -------
    bool

    Examples
    --------
    >>> x = dt.randn(3, dtype=dt.float64, requires_grad=True)
    >>> dt.autograd.gradgradcheck(lambda x: x.exp(), x)
    True
    """
    from devtensor.autograd import grad

    inputs = _tuple(inputs)
    outputs = [y for y in _outputs(func, inputs) if y.requires_grad]
    if grad_outputs is None:
        seeds = tuple(_C.randn_like(y.detach(), requires_grad=True) for y in outputs)
    else:
        seeds = _tuple(grad_outputs)
    wanted = [i for i, x in enumerate(inputs) if isinstance(x, _C.DeviceArray) and x.requires_grad]

    def first(*arrays: Any) -> Any:
        given, gradients = arrays[: len(inputs)], arrays[len(inputs) :]
        given = tuple(
            x.detach().requires_grad_() if i in wanted and not x.requires_grad else x for i, x in enumerate(given)
        )
        with _enabled():
            results = [y for y in _outputs(func, given) if y.requires_grad]
            return grad(results, [given[i] for i in wanted], gradients, create_graph=True, materialize_grads=True)

    return gradcheck(first, (*inputs, *seeds), **options)


def _enabled() -> Any:
    from devtensor.autograd.grad_mode import enable_grad

    return enable_grad()
