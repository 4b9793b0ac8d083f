"""Optimizer: parameters in groups, their options and state, and the dictionaries that checkpoints hold."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import chain
from typing import Any

from devtensor._C import DeviceArray, float32, full
from devtensor._diagnosis import checkpoints, training, watching
from devtensor._diagnosis.sources import file_name
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn._hooks import RemovableHandle
from devtensor.optim._own_optimizers import (  # noqa: F401
    DeviceDict,
    ParamsT,
    StateDict,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
    group_by_device_and_dtype,
)

Params = Iterable[DeviceArray | dict[str, Any] | tuple[str, DeviceArray]]


class _RequiredParameter:
    """What defaults hold for an option that each group must have."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: _RequiredParameter = _RequiredParameter()
_HOOKS = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """step with the optimizer's hooks around it; schedulers learn that it was called."""

    @functools.wraps(step)
    def _run(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        self._opt_called = True
        for before in list(getattr(self, "_optimizer_step_pre_hooks", {}).values()):
            given = before(self, args, kwargs)
            if given is not None:
                if not (isinstance(given, tuple) and len(given) == 2):
                    raise RuntimeError(f"a step pre-hook must return None or (new_args, new_kwargs), but got {given!r}")
                args, kwargs = given
        result = step(self, *args, **kwargs)
        training.note_step(self)
        self._cleared = None
        for after in list(getattr(self, "_optimizer_step_post_hooks", {}).values()):
            after(self, args, kwargs)
        return result

    _run._hooked = True  # type: ignore[attr-defined]
    return _run


class Optimizer:
    """The base of all optimizers: holds parameters in groups, each with options of its own, and what it remembers.

    params: arrays, (name, array) pairs, or dictionaries with "params" and options that differ from the defaults. A
    subclass defines step. Raises TypeError for what is no collection of arrays, ValueError for an empty one and for an
    array in two groups.

    >>> weight = nn.Parameter(dt.ones(2))
    >>> optimizer = dt.optim.SGD([{"params": [weight], "lr": 0.5}], lr=0.1)
    >>> optimizer.param_groups[0]["lr"]
    0.5
    """

    _optimizer_step_pre_hooks: dict[int, Callable[..., Any]]
    _optimizer_step_post_hooks: dict[int, Callable[..., Any]]
    _optimizer_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _optimizer_state_dict_post_hooks: dict[int, Callable[..., Any]]
    _optimizer_load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _optimizer_load_state_dict_post_hooks: dict[int, Callable[..., Any]]
    _scalars: frozenset[str] = frozenset()  # which numbers of a state are kept as float32 arrays on the cpu
    _hook_count = 0
    _opt_called = False
    _was_checked = False
    _idle = 0  # steps without any gradient
    # After the last step: recorded ops that are older than the one before it, and steps in a row after which there were
    # more; the numbers of the last two steps
    _kept = (1 << 62, 0, 0, 0)
    _cleared: Any = None  # (code, instruction): where gradients that no step has used were cleared

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if step is not None and not hasattr(step, "_hooked"):
            cls.step = _hooked(step)  # type: ignore[method-assign]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        self._add_hooks()
        groups = _listed(params)
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        if watching.report is not None:
            watching.report.made(self)

    def _add_hooks(self) -> None:
        for name in _HOOKS:
            self.__dict__.setdefault(name, OrderedDict())
        training.optimizers.add(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._add_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines += [f"Parameter Group {i}"]
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ------------------------------------------------------------ groups

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own: a dictionary with "params". Options left out are the defaults.

        Raises TypeError and ValueError as the constructor does, and then the optimizer stays as it was.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {_kind(param_group)}")
        if "params" not in param_group:
            raise KeyError("a parameter group has its parameters under 'params'")
        names, params = _named(param_group["params"])
        for i, param in enumerate(params):
            self._check_parameter(i, param)
        self._check_apart(params, names)
        options = {**self.defaults, **{key: value for key, value in param_group.items() if key != "params"}}
        for name, value in options.items():
            if value is required:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        self._check_options(options)
        param_group.update(options, params=params)
        if names:
            param_group["param_names"] = names
        self.param_groups.append(param_group)

    def _check_parameter(self, i: int, param: Any) -> None:
        if not isinstance(param, DeviceArray):
            raise TypeError(
                f"optimizer can only optimize Tensors, but one of the params is {_kind(param)} (index {i})"
                f"{_of_module(param)}"
            )
        if not param.is_leaf and not param.retains_grad:
            raise ValueError(
                f"can't optimize a non-leaf Tensor: parameter {i}, {_shown(param)}, is the result of {_made(param)}. "
                "Its gradients go to the arrays that it was made of: give the optimizer those"
            )

    def _check_apart(self, params: list[DeviceArray], names: list[str]) -> None:
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters: each is updated twice a step",
                stacklevel=4,
            )
        for number, group in enumerate(self.param_groups):
            if bool(names) != ("param_names" in group):
                raise ValueError(
                    "all optimizer param groups should be with/without names: the new one "
                    f"has {'names' if names else 'none'}, group {number} {'none' if names else 'names'}"
                )
            held = {id(p) for p in group["params"]}
            for i, param in enumerate(params):
                if id(param) in held:
                    raise ValueError(
                        f"some parameters appear in more than one parameter group: parameter {i}, {_shown(param)}, "
                        f"is in group {number} already"
                    )

    def _check_options(self, options: dict[str, Any]) -> None:
        """Raises for options of a group that cannot be; a subclass knows which."""

    # ------------------------------------------------------------ steps

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters by their gradients. closure computes the loss anew, which is then returned."""
        raise NotImplementedError(f"{type(self).__name__} has no step")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; with set_to_none=False fill them with zeros."""
        cleared = False
        for group in self.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                cleared = True
                if set_to_none:
                    param.grad = None
                    continue
                if param.grad.requires_grad:  # of create_graph=True: what it was made of is no longer wanted
                    param.grad = param.grad.detach()
                with no_grad():
                    param.grad.zero_()
        if cleared:
            self._cleared = training.place_of_caller()

    # ------------------------------------------------------------ hooks

    _group_tensors_by_device_and_dtype = staticmethod(group_by_device_and_dtype)

    def _cuda_graph_capture_health_check(self) -> None:
        """Nothing to do: steps are not captured."""

    def _add_hook(self, hooks: dict[int, Any], hook: Any, prepend: bool = False) -> RemovableHandle:
        self._hook_count += 1
        hooks[self._hook_count] = hook
        if prepend and isinstance(hooks, OrderedDict):
            hooks.move_to_end(self._hook_count, last=False)
        return RemovableHandle(hooks, self._hook_count)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) before each step; it may return new (args, kwargs)."""
        return self._add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call hook(optimizer, args, kwargs) after each step."""
        return self._add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) before state_dict()."""
        return self._add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) after state_dict(); what it returns, unless None, becomes the result."""
        return self._add_hook(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer, state_dict) before load_state_dict(); what it returns, unless None, is loaded."""
        return self._add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(optimizer) after load_state_dict()."""
        return self._add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # ------------------------------------------------------------ checkpoints

    def state_dict(self) -> dict[str, Any]:
        """The options and the state as PyTorch has them: parameters are numbers, in the order of the groups.

        The arrays are those of the optimizer, not copies.
        """
        for before in list(self._optimizer_state_dict_pre_hooks.values()):
            before(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            params = group["params"]
            for i, param in enumerate(params, start):
                numbers.setdefault(id(param), i)
            start += len(params)
            options = {key: value for key, value in group.items() if key != "params"}
            groups.append({**options, "params": [numbers[id(param)] for param in params]})
        state = {numbers.get(id(key), key): value for key, value in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for after in list(self._optimizer_state_dict_post_hooks.values()):
            given = after(self, result)
            result = result if given is None else given
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what state_dict() gave, here or in PyTorch: copies, in the dtype and on the device of each
        parameter. "step" keeps its dtype on the cpu, and mu_product of NAdam and eta and mu of ASGD, which PyTorch
        casts and moves, stay float32 there: what goes on after loading has the bits of what was not interrupted. What
        is no array stays what it is.

        Raises ValueError where groups differ in number or size, TypeError for arrays of another library; the optimizer
        then stays as it was.
        """
        if not isinstance(state_dict, dict):
            raise checkpoints.unread(
                state_dict, TypeError(f"Expected state_dict to be dict-like, got {_kind(state_dict)}.")
            )
        state_dict = dict(state_dict)
        for before in list(self._optimizer_load_state_dict_pre_hooks.values()):
            given = before(self, state_dict)
            state_dict = state_dict if given is None else given
        saved = deepcopy(state_dict["param_groups"])
        self._check_groups(saved)
        ours = list(chain.from_iterable(group["params"] for group in self.param_groups))
        theirs = list(chain.from_iterable(group["params"] for group in saved))
        params = dict(zip(theirs, ours, strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        with no_grad():
            for key, value in state_dict["state"].items():
                if key in params:
                    state[params[key]] = _taken_over(value, params[key], (key,), self._scalars)
                else:
                    state[key] = value
        for group, loaded in zip(self.param_groups, saved, strict=True):
            loaded["params"] = group["params"]
            if "param_names" in group:
                loaded.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for after in list(self._optimizer_load_state_dict_post_hooks.values()):
            after(self)

    def _check_groups(self, saved: list[dict[str, Any]]) -> None:
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"loaded state dict has a different number of parameter groups: {len(saved)}, here "
                f"{len(self.param_groups)}"
            )
        for i, (group, loaded) in enumerate(zip(self.param_groups, saved, strict=True)):
            here, there = len(group["params"]), len(loaded["params"])
            if here != there:
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {i} has {there} parameters, here {here}"
                )


def _taken_over(value: Any, param: DeviceArray, path: tuple[Any, ...], scalars: frozenset[str]) -> Any:
    """A copy of what was saved for a parameter; path leads to it. scalars: see Optimizer._scalars."""
    if isinstance(value, DeviceArray):
        if path[-1] == "step":
            return value.detach().to("cpu", copy=True)
        if path[-1] in scalars:
            return value.detach().to("cpu", float32, copy=True)
        if param.dtype.is_floating_point:
            return value.detach().to(param.device, param.dtype, copy=True)
        return value.detach().to(param.device, copy=True)
    if path[-1] in scalars and isinstance(value, int | float):  # of older checkpoints
        return full((), value, dtype=float32, device="cpu")
    if isinstance(value, dict):
        return {key: _taken_over(item, param, (*path, key), scalars) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_taken_over(item, param, (*path, i), scalars) for i, item in enumerate(value))
    if hasattr(value, "__dlpack__"):
        raise TypeError(
            f"state of parameter {path[0]}, {path[-1]!r}: expected a devtensor.DeviceArray, but got {_kind(value)} "
            "(devtensor.from_dlpack makes one of it)"
        )
    return deepcopy(value)


def _listed(params: Any) -> list[Any]:
    if isinstance(params, DeviceArray):
        raise TypeError(
            "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            f"{_kind(params)}, {_shown(params)}: a list of one is [param]"
        )
    try:
        found = list(params)
    except TypeError:
        raise TypeError(
            f"params argument given to the optimizer should be an iterable of Tensors or dicts, but got {_kind(params)}"
            f"{_of_module(params)}"
        ) from None
    if not found:
        used_up = isinstance(params, Iterator)
        hint = ": the generator is used up or had nothing; call model.parameters() again" if used_up else ""
        raise ValueError(f"optimizer got an empty parameter list{hint}")
    return found


def _named(params: Any) -> tuple[list[str], list[Any]]:
    """The names, if there are any, and the parameters of a group."""
    if isinstance(params, DeviceArray):
        params = [params]
    if isinstance(params, set | frozenset):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = list(params)
    names = [item[0] for item in params if isinstance(item, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return names, [item[1] if isinstance(item, tuple) else item for item in params]


def _of_module(value: object) -> str:
    return ": its parameters() are what an optimizer takes" if callable(getattr(value, "parameters", None)) else ""


def _kind(value: object) -> str:
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _made(array: DeviceArray) -> str:
    origin = array.origin
    return "an op" if origin is None else f"{origin.action} at {file_name(origin.filename)}:{origin.lineno}"


def _shown(param: DeviceArray) -> str:
    return f"{param.dtype.name} {param.shape}"
