"""Module: what holds parameters, buffers and other modules."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, overload

from devtensor import _C
from devtensor._C import DeviceArray, _Buffer, _Parameter
from devtensor._diagnosis import watching
from devtensor._errors import _Explained
from devtensor._memory_formats import memory_format
from devtensor._types import Device, DType
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn._books import (
    OWN,
    Books,
    asks_for_getattr,
    attribute,
    check_own,
    extra_key,
    fill,
    is_of_torch,
    takes_state,
)
from devtensor.nn._hooks import RemovableHandle, _Hooks
from devtensor.nn._path import add_module
from devtensor.nn._state import IncompatibleKeys, load
from devtensor.nn._wish import Wish

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Self = TypeVar("Self", bound="Module")
_IncompatibleKeys = IncompatibleKeys  # PyTorch's name, which libraries import

_TOO_EARLY = "cannot assign {} before Module.__init__() call: super().__init__() comes first"


class _Uninitialised:
    """Stands in the class for what Module.__init__ puts into each module."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, module: object | None, owner: type) -> Any:
        if module is None:
            return self
        raise AttributeError(
            f"'{owner.__name__}' object has no attribute '{self._name}': its __init__ has not called super().__init__()"
        )


class _HasForward(Protocol[P, R]):
    @property
    def forward(self) -> Callable[P, R]: ...


class Module(Books, _C._Layer):
    """The base of all layers and models. A subclass registers its parts in __init__ and computes in forward.

    Assigning a Parameter, a Buffer or a Module to an attribute registers it: parameters(), state_dict() and to() have
    it. A plain DeviceArray is kept as an ordinary attribute, which to() does not move.

    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(dt.tensor([2.0]))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(dt.ones(2))
    DeviceArray([2., 2.], device='cpu', dtype=float32, grad_fn=<MulBackward0>)
    """

    training: bool = _Uninitialised()  # type: ignore[assignment]
    _parameter_names: dict[str, None] = _Uninitialised()  # type: ignore[assignment]
    _buffer_names: dict[str, bool] = _Uninitialised()  # type: ignore[assignment]
    _module_names: dict[str, Module | None] = _Uninitialised()  # type: ignore[assignment]
    _hooks_of_module: _Hooks | None = _Uninitialised()  # type: ignore[assignment]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args or kwargs:
            raise TypeError(f"{type(self).__name__}.__init__() hands arguments to Module.__init__(), which takes none")
        own = self.__dict__
        own["training"] = True
        own["_parameter_names"] = {}
        own["_buffer_names"] = {}  # name to whether it is persistent
        own["_module_names"] = {}  # name to None, or to a module that the class hides: see _hold
        own["_hooks_of_module"] = None

    # ------------------------------------------------------------ calls

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call of the module computes; a subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # Whatever parameters a subclass takes are right.
    forward: Callable[..., Any] = forward  # type: ignore[no-redef]

    if TYPE_CHECKING:  # a call takes and gives what the forward of the subclass takes and gives

        def __call__(self: _HasForward[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...

    def _explain(self, error: BaseException) -> None:
        """The error comes out of a call of this module."""
        if isinstance(error, _Explained) or getattr(error, "operands", None):  # ValueErrors know their arrays, too
            add_module(error, self)

    def _own_hooks(self) -> _Hooks:
        if self._hooks_of_module is None:
            self.__dict__["_hooks_of_module"] = _Hooks()
        return self.__dict__["_hooks_of_module"]  # type: ignore[no-any-return]

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call hook(module, args) before forward; what it returns, unless None, becomes the arguments."""
        hooks = self._own_hooks()
        return hooks.add(hooks.before, hook, prepend, (hooks.before_with_kwargs, with_kwargs))

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call hook(module, args, output) after forward; what it returns, unless None, becomes the output.

        with_kwargs: hook(module, args, kwargs, output). always_call: also when forward raises, with None as output.
        """
        hooks = self._own_hooks()
        marks = (hooks.after_with_kwargs, with_kwargs), (hooks.after_always, always_call)
        return hooks.add(hooks.after, hook, prepend, *marks)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_input, grad_output) when the gradients of the arguments have been computed.

        Both are tuples, with None for what has no gradient; what hook returns, unless None, replaces grad_input.
        """
        hooks = self._own_hooks()
        return hooks.add(hooks.backward, hook, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call hook(module, grad_output) before the gradients of the module are computed.

        What it returns, unless None, replaces grad_output.
        """
        hooks = self._own_hooks()
        return hooks.add(hooks.before_backward, hook, prepend)

    # ------------------------------------------------------------ registration

    def register_parameter(self, name: str, param: _Parameter | None) -> None:
        """Register a parameter under a name; None keeps the name free, as for a layer without bias.

        Raises KeyError for a name that cannot be one or that is taken, TypeError for anything but a Parameter.
        """
        if param is not None and not isinstance(param, _Parameter):
            raise TypeError(
                f"cannot assign '{_kind(param)}' object to parameter '{name}' (devtensor.nn.Parameter or None required)"
            )
        self._check_name("parameter", name, "_parameter_names")
        self._parameter_names[name] = None
        self.__dict__[name] = param

    def register_buffer(self, name: str, tensor: DeviceArray | None, persistent: bool = True) -> None:
        """Register an array that is not a parameter, such as a running mean: to() moves it, state_dict() has it if
        persistent.

        Raises KeyError for a name that cannot be one or that is taken, TypeError for anything but a DeviceArray.
        """
        if tensor is not None and not isinstance(tensor, DeviceArray):
            raise TypeError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' (devtensor.DeviceArray or None required)"
            )
        self._check_name("buffer", name, "_buffer_names")
        self._buffer_names[name] = persistent
        self.__dict__[name] = tensor

    def register_module(self, name: str, module: Module | None) -> None:
        """Register a module under a name. Raises KeyError for a name in use, TypeError for anything but a Module."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_kind(module)} is not a Module subclass")
        self._check_name("module", name, "_module_names")
        self._hold(name, module)

    add_module = register_module

    def _check_name(self, what: str, name: str, registry: str) -> None:
        if "_module_names" not in self.__dict__:
            raise AttributeError(_TOO_EARLY.format(what))
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {_kind(name)}")
        if name == "" or "." in name:
            raise KeyError(f'{what} name can\'t contain "." or be empty, got "{name}"')
        if name in OWN or (name not in self.__dict__[registry] and self._is_taken(name)):
            raise KeyError(f"attribute '{name}' already exists")

    def _is_taken(self, name: str) -> bool:
        return name in self.__dict__ or hasattr(type(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if isinstance(value, (_Parameter, _Buffer, Module)):
            what = "parameter" if isinstance(value, _Parameter) else "buffer"
            what = "module" if isinstance(value, Module) else what
            if name in own.get(f"_{what}_names", ()) and what != "module":
                own[name] = value
                if isinstance(value, _Buffer):
                    self._buffer_names[name] = value.persistent
                return
            if "_module_names" not in own:
                raise AttributeError(_TOO_EARLY.format("parameters" if what == "parameter" else what))
            if name not in self._module_names or what != "module":
                self._forget(name)
            if isinstance(value, _Parameter):
                self.register_parameter(name, value)
            elif isinstance(value, Module):
                self._hold(name, value)
            else:
                self.register_buffer(name, value, value.persistent)
            return
        if value is not None and name in own.get("_parameter_names", ()):
            raise TypeError(
                f"cannot assign '{_kind(value)}' as parameter '{name}' (devtensor.nn.Parameter or None expected)"
            )
        if value is not None and name in own.get("_module_names", ()):
            raise TypeError(
                f"cannot assign '{_kind(value)}' as child module '{name}' (devtensor.nn.Module or None expected)"
            )
        if name in own.get("_buffer_names", ()) and not (value is None or isinstance(value, DeviceArray)):
            raise TypeError(
                f"cannot assign '{_kind(value)}' as buffer '{name}' (devtensor.DeviceArray or None expected)"
            )
        if value is None and name in own.get("_module_names", ()):
            self._hold(name, None)
            return
        if name[:1] == "_":
            check_own(type(self), name)
        object.__setattr__(self, name, value)

    if TYPE_CHECKING:  # a real one would slow every attribute down

        def __getattr__(self, name: str) -> Any: ...

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__setstate__" in vars(cls):
            cls.__setstate__ = takes_state(vars(cls)["__setstate__"])  # type: ignore[assignment, method-assign]
        if hasattr(cls, "__getattr__"):
            if "__getattr__" not in vars(Module):
                Module.__getattr__ = attribute  # type: ignore[method-assign] # which the subclass may ask for
        elif asks_for_getattr(cls):
            cls.__getattr__ = attribute  # type: ignore[method-assign]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What copies and pickles begin with."""
        if is_of_torch(state):
            fill(self, state)
        else:
            self.__dict__.update(state)

    def __delattr__(self, name: str) -> None:
        own = self.__dict__
        if name in own or name not in own.get("_module_names", ()):  # else the class hides it
            object.__delattr__(self, name)
        for names in (self._parameter_names, self._buffer_names, self._module_names):
            names.pop(name, None)

    # ------------------------------------------------------------ what there is

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules registered here, each once, with their names."""
        seen = set()
        for name in list(self._module_names):
            module = self._child(name)
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules registered here, each once."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all below it, with their names, such as "layer3.conv1"."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name in list(self._module_names):
            module = self._child(name)
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """This module and all below it, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def _named(self, registry: str, prefix: str, recurse: bool, remove_duplicate: bool) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        found = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in found:
            for name in list(getattr(module, registry)):
                value = module.__dict__[name]
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield f"{path}.{name}" if path else name, value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, _Parameter]]:
        """All parameters with their names, such as "layer3.conv1.weight"."""
        return self._named("_parameter_names", prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[_Parameter]:
        """All parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, DeviceArray]]:
        """All buffers with their names, such as "bn1.running_mean"."""
        return self._named("_buffer_names", prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[DeviceArray]:
        """All buffers, each once."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """The module of a name such as "layer3.conv1"; this module for "". Raises AttributeError."""
        module = self
        for name in target.split(".") if target else ():
            found = getattr(module, name)
            if not isinstance(found, Module):
                raise AttributeError(f"'{name}' is not a Module")
            module = found
        return module

    def get_parameter(self, target: str) -> _Parameter:
        """The parameter of a name such as "layer3.conv1.weight". Raises AttributeError."""
        path, _, name = target.rpartition(".")
        found = getattr(self.get_submodule(path), name)
        if not isinstance(found, _Parameter):
            raise AttributeError(f"'{name}' is not a Parameter")
        return found

    def get_buffer(self, target: str) -> DeviceArray:
        """The buffer of a name such as "bn1.running_mean". Raises AttributeError."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        found = getattr(module, name)
        if name not in module._buffer_names or found is None:
            raise AttributeError(f"'{name}' is not a buffer")
        buffer: DeviceArray = found
        return buffer

    # ------------------------------------------------------------ moving and casting

    def _apply(self: Self, convert: Callable[[DeviceArray], DeviceArray]) -> Self:
        """Every parameter gets the memory of convert(it), its gradient as well, and every buffer becomes convert(it):
        all of them, or none when one fails. One that stands in two places stays one."""
        done: dict[int, DeviceArray] = {}
        moved: list[tuple[DeviceArray, DeviceArray, DeviceArray | None]] = []
        changes: list[tuple[dict[str, Any], str, DeviceArray]] = []
        with no_grad():
            for module in self.modules():
                for name in (*module._parameter_names, *module._buffer_names):
                    old = module.__dict__[name]
                    if old is None:
                        continue
                    if id(old) not in done:
                        done[id(old)] = new = convert(old)
                        if new is not old and isinstance(old, _Parameter):
                            moved.append((old, new, None if old.grad is None else convert(old.grad)))
                    if name in module._buffer_names and done[id(old)] is not old:
                        changes.append((module.__dict__, name, _like(old, done[id(old)])))
        for parameter, new, grad in moved:
            parameter.grad = None
            parameter.data = new
            parameter.grad = grad
        for own, name, new in changes:
            own[name] = new
        return self

    @overload
    def to(
        self: Self,
        device: Device | None = ...,
        dtype: DType | None = ...,
        non_blocking: bool = ...,
        *,
        memory_format: memory_format | None = ...,
    ) -> Self: ...
    @overload
    def to(self: Self, dtype: DType, non_blocking: bool = ...) -> Self: ...
    @overload
    def to(self: Self, tensor: DeviceArray, non_blocking: bool = ...) -> Self: ...
    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Move all parameters and buffers, cast the floating ones: to(device), to(dtype), to(device, dtype), to(other).

        memory_format: the order in memory of those with 4 or 5 dimensions, such as channels_last.

        The module itself is returned, with new Parameters in it where something changed. Nothing has changed when an
        exception is raised: TypeError for a dtype that is not a float, DeviceNotAvailableError, OutOfMemoryError.
        """
        order = kwargs.pop("memory_format", None)
        if "tensor" in kwargs:
            args = (kwargs.pop("tensor"), *args)
        probe, wish = _C.empty(0, dtype=_C.float32, device="cpu"), Wish()
        wish.read(probe, args, kwargs)
        if wish.dtype is not None and not wish.dtype.is_floating_point:
            raise TypeError(f"nn.Module.to only accepts floating point dtypes, but got desired dtype={wish.dtype}")

        def convert(x: DeviceArray) -> DeviceArray:
            dtype = wish.dtype if wish.dtype is not None and x.dtype.is_floating_point else x.dtype
            device = x.device if wish.device is None else wish.device
            fits = order if x.ndim in (4, 5) else None  # what has channels
            return x.to(device, dtype, non_blocking=wish.non_blocking, memory_format=fits)

        return self._apply(convert)

    def cuda(self: Self, device: Device | None = None) -> Self:
        """Move all parameters and buffers to a CUDA device, the current one by default."""
        return self._apply(lambda x: x.cuda(device))

    def cpu(self: Self) -> Self:
        """Move all parameters and buffers to the memory of the host."""
        return self._apply(lambda x: x.cpu())

    def type(self: Self, dst_type: DType) -> Self:
        """Cast all parameters and buffers."""
        return self._apply(lambda x: x.type(dst_type))

    def _cast(self: Self, dtype: _C.dtype) -> Self:
        return self._apply(lambda x: x.to(dtype) if x.dtype.is_floating_point else x)

    def float(self: Self) -> Self:
        """Cast the floating parameters and buffers to float32."""
        return self._cast(_C.float32)

    def double(self: Self) -> Self:
        """Cast the floating parameters and buffers to float64."""
        return self._cast(_C.float64)

    def half(self: Self) -> Self:
        """Cast the floating parameters and buffers to float16."""
        return self._cast(_C.float16)

    def bfloat16(self: Self) -> Self:
        """Cast the floating parameters and buffers to bfloat16."""
        return self._cast(_C.bfloat16)

    # ------------------------------------------------------------ modes

    def train(self: Self, mode: bool = True) -> Self:
        """Set training mode, which Dropout and BatchNorm look at, here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        for module in self.modules():
            module.__dict__["training"] = mode
        if watching.report is not None:
            watching.report.moded(self)
        return self

    def eval(self: Self) -> Self:
        """Set evaluation mode: train(False)."""
        return self.train(False)

    def apply(self: Self, fn: Callable[[Module], None]) -> Self:
        """Call fn with each module below this one, then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Make gradients flow to every parameter, or to none."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters; with set_to_none=False they become zeros."""
        for parameter in self.parameters():
            if parameter.grad is not None:
                if set_to_none:
                    parameter.grad = None
                else:
                    parameter.grad = parameter.grad.detach().zero_()

    # ------------------------------------------------------------ state

    def state_dict(
        self, *, destination: dict[str, DeviceArray] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, DeviceArray]:
        """All parameters and persistent buffers by name, in PyTorch's order; the arrays share their memory.

        With keep_vars the Parameters themselves instead of plain arrays.
        """
        found: dict[str, DeviceArray] = OrderedDict() if destination is None else destination
        hooks = self._hooks_of_module
        for hook in () if hooks is None else list(hooks.before_state.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(found, prefix, keep_vars)
        for name in self._module_names:
            module = self._child(name)
            if module is not None:
                module.state_dict(destination=found, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in () if hooks is None else list(hooks.after_state.values()):
            given = hook(self, found, prefix, {"version": self._version})
            found = found if given is None else given
        return found

    def _save_to_state_dict(self, destination: dict[str, Any], prefix: str, keep_vars: bool) -> None:
        """What the module itself has, without those below it."""
        for name in self._parameter_names:
            self._put(destination, prefix, name, keep_vars)
        for name, persistent in self._buffer_names.items():
            if persistent:
                self._put(destination, prefix, name, keep_vars)
        key = extra_key(self, prefix)
        if key is not None:
            destination[key] = self.get_extra_state()

    def _put(self, found: dict[str, DeviceArray], prefix: str, name: str, keep_vars: bool) -> None:
        value = self.__dict__[name]
        if value is not None:
            found[prefix + name] = value if keep_vars else value.detach()

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Copy the values of a state dictionary into the parameters and buffers, which keep device and dtype.

        With assign the arrays themselves take their places. Returns the missing and the unexpected keys; with strict
        there may be none. Raises RuntimeError for those, for values that are no arrays and for shapes that differ, all
        in one message that names each key; then nothing has changed.
        """
        return load(self, state_dict, strict, assign)

    # ------------------------------------------------------------ text

    def extra_repr(self) -> str:
        """The text in parentheses in the repr. A subclass may override it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + repr(self._child(name)) for name in self._module_names]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        return self._lay_out([*lines, *children])

    def _lay_out(self, lines: list[str]) -> str:
        if not lines:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(line.replace("\n", "\n  ") for line in lines) + "\n)"

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)})


def _like(old: DeviceArray, new: DeviceArray) -> DeviceArray:
    """new as the same kind of array as old."""
    if new is old or type(new) is type(old):
        return new
    return _Buffer(new, persistent=old.persistent) if isinstance(old, _Buffer) else new


def _refusal(value: object, what: str, name: str, wanted: str) -> TypeError:
    return TypeError(f"cannot assign '{_kind(value)}' as {what} '{name}' (devtensor.{wanted} or None expected)")


def _kind(value: object) -> str:
    return f"devtensor.{type(value).__name__}" if type(value) is DeviceArray else type(value).__name__
