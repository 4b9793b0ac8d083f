"""Pruning: masks that set entries of a parameter to 0, kept beside it: torch.nn.utils.prune."""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from devtensor import _C
from devtensor._C import DeviceArray, _need_int
from devtensor._composed.arguments import need_array
from devtensor._composed.reductions.moments import norm
from devtensor._composed.reductions.order import kthvalue
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn.module import Module
from devtensor.nn.utils.weights import need_module

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]

M = TypeVar("M", bound=Module)
Amount = int | float


def __dir__() -> list[str]:
    return __all__


# ---------------------------------------------------------------- what all methods share


def _hooks_of(module: Module, name: str | None = None) -> list[tuple[int, BasePruningMethod]]:
    """The pruning of a module, or of one of its parameters, with the places of its hooks."""
    hooks = module._hooks_of_module  # None for most
    found = [] if hooks is None else [(key, hook) for key, hook in hooks.before.items()]
    pruning = [(key, hook) for key, hook in found if isinstance(hook, BasePruningMethod)]
    return [(key, hook) for key, hook in pruning if name is None or hook._tensor_name == name]


def _parameter_of(module: Module, name: str) -> DeviceArray:
    need_module("prune", module)
    found = getattr(module, name, None) if isinstance(name, str) else None
    if not isinstance(found, DeviceArray):
        raise AttributeError(f"Module '{module}' has no parameter with name '{name}'")
    return found


def _check_scores(scores: DeviceArray | None, t: DeviceArray, of: str) -> DeviceArray:
    if scores is None:
        return t
    need_array("prune", "importance_scores", scores)
    if scores.shape != t.shape:
        text = f"importance_scores should have the same shape as {of}, got {scores.shape} vs {t.shape}"
        raise AssertionError(text)
    return scores


class BasePruningMethod(ABC):
    """The base of ways to prune: a subclass has compute_mask(t, default_mask) and PRUNING_TYPE.

    apply() moves the parameter to name_orig, keeps its mask as the buffer name_mask, and computes name anew before each
    forward.
    """

    PRUNING_TYPE: str
    _tensor_name: str | None = None

    def __call__(self, module: Module, inputs: Any) -> None:
        assert self._tensor_name is not None
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        """A mask like default_mask with more zeros, chosen by t."""

    def apply_mask(self, module: Module) -> DeviceArray:
        """The parameter times its mask. Raises AssertionError before apply()."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = module._buffers[f"{self._tensor_name}_mask"], module._parameters[f"{self._tensor_name}_orig"]
        assert mask is not None and original is not None
        result: DeviceArray = mask.to(original.dtype) * original
        return result

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: DeviceArray | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prune a parameter of module by a method that is made of the other arguments; on top of what has pruned it.

        importance_scores, of the same shape, replace its values in the comparison. Raises AttributeError for a
        parameter that is not there, AssertionError for scores of another shape.
        """
        given = _parameter_of(module, name)
        method: BasePruningMethod = cls(*args, **kwargs)
        scores = _check_scores(importance_scores, given, f"parameter {name} of {module}")
        method._tensor_name = name
        before = _hooks_of(module, name)
        if len(before) > 1:
            raise AssertionError(f"{name} of module {module} is pruned by several hooks: use a PruningContainer")
        if before:
            mask = getattr(module, f"{name}_mask").detach().clone()
            old = before[0][1]
            container = old if isinstance(old, PruningContainer) else PruningContainer(old)
            container.add_pruning_method(method)
            method = container
        else:
            mask = _C.ones_like(given).detach()
        try:
            with no_grad():
                mask = method.compute_mask(scores.detach(), default_mask=mask)
        except Exception:
            if before and before[0][1] is method:  # a container without the method that failed
                method._pruning_methods = method._pruning_methods[:-1]  # type: ignore[attr-defined]
            raise
        if before:
            del module._own_hooks().before[before[0][0]]
        else:
            delattr(module, name)
            module.register_parameter(f"{name}_orig", given)  # type: ignore[arg-type]
        module.register_buffer(f"{name}_mask", mask)
        setattr(module, name, method.apply_mask(module))
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: DeviceArray, default_mask: DeviceArray | None = None, importance_scores: DeviceArray | None = None
    ) -> DeviceArray:
        """t with more zeros, chosen by importance_scores (t by default). Nothing else is changed."""
        need_array("prune", "t", t)
        scores = _check_scores(importance_scores, t, "tensor t")
        mask = _C.ones_like(t).detach() if default_mask is None else default_mask
        with no_grad():
            mask = self.compute_mask(scores.detach(), default_mask=mask)
        return t * mask

    def remove(self, module: Module) -> None:
        """Make the zeros permanent, under the parameter's old name. The hook stays: prune.remove() removes it too."""
        weight = self.apply_mask(module)
        name = self._tensor_name
        assert name is not None
        delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        assert original is not None
        original.data = weight.detach()
        delattr(module, f"{name}_orig")
        delattr(module, f"{name}_mask")
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several ways to prune one parameter, one after the other: each chooses among what is left.

    Channels that are left are counted on the host, which waits for a device.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1 and isinstance(args[0], BasePruningMethod):
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod | None) -> None:
        """Put one more at the end. Raises TypeError for what is none, ValueError for one of another parameter."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        if method is not None:
            self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        """default_mask with what the last method prunes among the entries that are left."""
        method = self._pruning_methods[-1]
        part: Any
        if method.PRUNING_TYPE == "unstructured":
            part = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            if not hasattr(method, "dim"):
                raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need an attribute `dim`')
            if not -t.ndim <= method.dim < t.ndim:
                raise IndexError(f"Index is out of bounds for tensor with dimensions {t.ndim}")
            d = method.dim % t.ndim
            others = [k for k in range(t.ndim) if k != d]
            part = (*[slice(None)] * d, (default_mask != 0).sum(others) != 0)
        elif method.PRUNING_TYPE == "global":
            part = ()
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(t.dtype).clone()
        mask[part] = method.compute_mask(t[part], default_mask=default_mask[part]).to(mask.dtype)
        return mask


# ---------------------------------------------------------------- ways to prune


def _need_amount(amount: Amount) -> Amount:
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {_C._shown(amount)}. Must be int or float.")
    whole = isinstance(amount, numbers.Integral)
    if amount < 0 or (not whole and not amount <= 1):
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
    return amount


def _count(amount: Amount, size: int) -> int:
    """How many of size entries. Raises ValueError for more than there are."""
    count = int(amount) if isinstance(amount, numbers.Integral) else round(amount * size)
    if count > size:
        raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
    return count


def _without(mask: DeviceArray, scores: DeviceArray, count: int, largest: bool) -> DeviceArray:
    """mask with zeros where the count largest or smallest scores are."""
    flat = mask.contiguous().clone().reshape(-1)
    if count:
        flat[scores.reshape(-1).topk(count, largest=largest).indices] = 0
    return flat.reshape(mask.shape)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the names of a pruned parameter: prune.identity."""

    PRUNING_TYPE: str = "unstructured"

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes entries at random: prune.random_unstructured."""

    PRUNING_TYPE: str = "unstructured"

    def __init__(self, amount: Amount) -> None:
        self.amount: Amount = _need_amount(amount)

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        count = _count(self.amount, t.numel())
        return _without(default_mask, _C.rand_like(t), count, True) if count else default_mask.clone()


class L1Unstructured(BasePruningMethod):
    """Prunes the entries of the least absolute value: prune.l1_unstructured."""

    PRUNING_TYPE: str = "unstructured"

    def __init__(self, amount: Amount) -> None:
        self.amount: Amount = _need_amount(amount)

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        return _without(default_mask, t.abs(), _count(self.amount, t.numel()), False)


class _Structured(BasePruningMethod):
    PRUNING_TYPE: str = "structured"

    def __init__(self, amount: Amount, dim: int) -> None:
        self.amount: Amount = _need_amount(amount)
        self.dim: int = _need_int(type(self).__name__, "dim", dim)

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        if t.ndim < 2:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        if not -t.ndim <= self.dim < t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        d = self.dim % t.ndim
        count = _count(self.amount, t.shape[d])
        if not count:
            return default_mask
        kept = self._kept(t, d, count)
        shape = [t.shape[k] if k == d else 1 for k in range(t.ndim)]
        return kept.to(t.dtype).reshape(shape) * default_mask.to(t.dtype)

    def _kept(self, t: DeviceArray, d: int, count: int) -> DeviceArray:
        """Which channels stay: all of dim d but count."""
        raise NotImplementedError


class RandomStructured(_Structured):
    """Prunes channels of dim at random: prune.random_structured."""

    def __init__(self, amount: Amount, dim: int = -1) -> None:
        super().__init__(amount, dim)

    def _kept(self, t: DeviceArray, d: int, count: int) -> DeviceArray:
        drawn = _C.rand(t.shape[d], device=t.device)
        return drawn > kthvalue(drawn, count).values


class LnStructured(_Structured):
    """Prunes the channels of dim that have the least n-norm: prune.ln_structured."""

    def __init__(self, amount: Amount, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n: float | str = n

    def _kept(self, t: DeviceArray, d: int, count: int) -> DeviceArray:
        lengths = norm(t, self.n, [k for k in range(t.ndim) if k != d])
        kept = _C.zeros(t.shape[d], dtype=_C.bool, device=t.device)
        kept[lengths.topk(t.shape[d] - count).indices] = True
        return kept


class CustomFromMask(BasePruningMethod):
    """Prunes where a mask is 0: prune.custom_from_mask."""

    PRUNING_TYPE: str = "global"

    def __init__(self, mask: DeviceArray) -> None:
        need_array("CustomFromMask", "mask", mask)
        self.mask: DeviceArray = mask

    def compute_mask(self, t: DeviceArray, default_mask: DeviceArray) -> DeviceArray:
        return default_mask * self.mask.to(default_mask.dtype)


# ---------------------------------------------------------------- functions


def identity(module: M, name: str) -> M:
    """Give a parameter of module the names of a pruned one, name_orig and name_mask, and prune nothing.

    >>> layer = nn.utils.prune.identity(nn.Linear(2, 3), "bias")
    >>> layer.bias_mask.tolist()
    [1.0, 1.0, 1.0]
    """
    Identity.apply(module, name)
    return module


def random_unstructured(module: M, name: str, amount: Amount) -> M:
    """Set entries of a parameter of module to 0 at random: amount of them, a share where it is a float.

    Raises ValueError for a negative amount or one above all, TypeError for what is no number.

    >>> layer = nn.utils.prune.random_unstructured(nn.Linear(2, 3), "weight", amount=2)
    >>> int((layer.weight_mask == 0).sum())
    2
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: M, name: str, amount: Amount, importance_scores: DeviceArray | None = None) -> M:
    """Set the entries of a parameter of module that have the least absolute value to 0.

    amount of them, a share where it is a float. importance_scores, of the same shape, replace its values in the
    comparison. Raises ValueError for a negative amount or one above all.

    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=0.5)
    >>> int((layer.weight == 0).sum()), [name for name, _ in layer.named_parameters()]
    (3, ['bias', 'weight_orig'])
    """
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: M, name: str, amount: Amount, dim: int) -> M:
    """Set channels of dim of a parameter of module to 0 at random: amount of them, a share where it is a float.

    Raises ValueError for a parameter of one dimension, IndexError for a dim out of range.

    >>> layer = nn.utils.prune.random_structured(nn.Linear(2, 4), "weight", amount=1, dim=0)
    >>> int((layer.weight_mask.sum(1) == 0).sum())
    1
    """
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: M, name: str, amount: Amount, n: float | str, dim: int, importance_scores: DeviceArray | None = None
) -> M:
    """Set the channels of dim of a parameter of module that have the least n-norm to 0.

    amount of them, a share where it is a float; n as p of dt.norm. importance_scores, of the same shape, replace its
    values in the comparison. Raises ValueError for a parameter of one dimension, IndexError for a dim out of range.

    >>> layer = nn.utils.prune.ln_structured(nn.Linear(2, 4), "weight", amount=0.5, n=2, dim=0)
    >>> int((layer.weight_mask.sum(1) == 0).sum())
    2
    """
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Mapping[tuple[Module, str], DeviceArray] | None = None,
    **kwargs: Any,
) -> None:
    """Prune several parameters, each (module, name), as if they were one vector.

    importance_scores: arrays to look at in place of some of them. kwargs make the pruning_method. Raises TypeError for
    a method that is structured.

    >>> layer = nn.Linear(2, 4)
    >>> nn.utils.prune.global_unstructured(
    ...     [(layer, "weight"), (layer, "bias")], nn.utils.prune.L1Unstructured, amount=6
    ... )
    >>> int((layer.weight == 0).sum() + (layer.bias == 0).sum())
    6
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    if importance_scores is not None and not isinstance(importance_scores, Mapping):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    given, scores = list(parameters), importance_scores or {}
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. '
            f"Found method {pruning_method} of type {method.PRUNING_TYPE}"
        )
    arrays = [_parameter_of(module, name).detach() for module, name in given]
    looked_at = [scores.get((module, name), x).detach() for (module, name), x in zip(given, arrays, strict=True)]
    masks = [getattr(module, f"{name}_mask", None) if _hooks_of(module, name) else None for module, name in given]
    container = PruningContainer(method)
    with no_grad():
        whole = container.compute_mask(
            _C.cat([x.reshape(-1) for x in looked_at]),
            _C.cat([(_C.ones_like(x) if m is None else m).reshape(-1) for x, m in zip(arrays, masks, strict=True)]),
        )
        parts = whole.split([x.numel() for x in arrays])
    for (module, name), x, part in zip(given, arrays, parts, strict=True):
        custom_from_mask(module, name, part.reshape(x.shape))


def custom_from_mask(module: M, name: str, mask: DeviceArray) -> M:
    """Set the entries of a parameter of module to 0 where mask, of its shape, is.

    >>> layer = nn.utils.prune.custom_from_mask(nn.Linear(2, 2), "bias", dt.tensor([0.0, 1.0]))
    >>> layer.bias_mask
    DeviceArray([0., 1.], device='cpu', dtype=float32)
    """
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: M, name: str) -> M:
    """Make the zeros of a pruned parameter its own: name is a parameter again, name_orig and name_mask are gone.

    Raises ValueError for a parameter that is not pruned.

    >>> layer = nn.utils.prune.l1_unstructured(nn.Linear(2, 3), "weight", amount=0.5)
    >>> [name for name, _ in nn.utils.prune.remove(layer, "weight").named_parameters()]
    ['bias', 'weight']
    """
    need_module("remove", module)
    for key, hook in _hooks_of(module, name):
        hook.remove(module)
        del module._own_hooks().before[key]
        return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of module, or of a module in it, is pruned.

    >>> nn.utils.prune.is_pruned(nn.Linear(2, 3))
    False
    """
    need_module("is_pruned", module)
    return any(_hooks_of(inner) for _, inner in module.named_modules())
