"""A module's books by PyTorch's names: dictionaries of hooks, what is registered, hooks of state dictionaries."""

from __future__ import annotations

import copy
import pickle
import weakref
from typing import Any

import pytest
from support import CUDA_DEVICES

import devtensor as dt

torch = pytest.importorskip("torch")


def hooks(lib: Any) -> list[Any]:
    """What a program sees that reads and writes dictionaries of hooks."""
    layer, seen = lib.nn.Linear(2, 2), []
    names = """_forward_pre_hooks _forward_hooks _backward_hooks _backward_pre_hooks _forward_hooks_with_kwargs
        _forward_pre_hooks_with_kwargs _forward_hooks_always_called _state_dict_hooks _state_dict_pre_hooks
        _load_state_dict_pre_hooks _load_state_dict_post_hooks""".split()
    found: list[Any] = [[len(getattr(layer, name)) for name in names], layer._is_full_backward_hook]
    x = lib.ones(1, 2)
    first = layer.register_forward_hook(lambda *values: seen.append(len(values)))
    layer.register_forward_hook(lambda *values: seen.append(len(values)), with_kwargs=True, prepend=True)
    before = layer.register_forward_pre_hook(lambda module, args, kwargs: seen.append("before"), with_kwargs=True)
    layer.register_full_backward_hook(lambda *values: None)
    layer(x)
    found += [list(seen), [len(getattr(layer, name)) for name in names], layer._is_full_backward_hook is None]
    found += [first.id in layer._forward_hooks, before.id in layer._forward_pre_hooks_with_kwargs]
    hook = next(iter(layer._forward_hooks.values()))
    found.append(callable(hook))
    before.remove()
    found.append(len(layer._forward_pre_hooks_with_kwargs))
    layer._forward_hooks.clear()
    layer(x)
    found.append(list(seen))
    layer._forward_hooks[7] = lambda *values: seen.append("mine")
    layer(x)
    layer._forward_hooks = type(layer._forward_hooks)()
    layer(x)
    found.append(list(seen))
    for child in lib.nn.Sequential(layer, lib.nn.ReLU()).modules():
        child._backward_hooks.clear()
    return [*found, layer(x).shape == (1, 2)]


def registered(lib: Any) -> list[Any]:
    """The same for what is registered."""
    norm = lib.nn.BatchNorm1d(2)
    norm.register_buffer("mine", lib.ones(1), persistent=False)
    found = [list(norm._parameters), list(norm._buffers), list(norm._modules), sorted(norm._non_persistent_buffers_set)]
    norm._buffers["mine"] = lib.zeros(3)
    norm._buffers["other"] = lib.zeros(1)
    norm._modules["child"] = lib.nn.ReLU()
    found += [norm.mine.shape == (3,), sorted(norm.state_dict()), [name for name, _ in norm.named_modules()]]
    weight = norm._parameters["weight"]
    del norm._parameters["weight"]
    norm.weight = weight * 2
    found += [list(norm._parameters), "weight" in norm._parameters, norm.weight.tolist(), norm._parameters.get("none")]
    norm._parameters["bias"] = lib.nn.Parameter(lib.ones(2))
    found += [
        norm.bias.tolist(),
        [name for name, _ in norm.named_parameters()],
        len(norm._buffers),
        bool(norm._modules),
    ]
    for name, value in norm._buffers.items():
        found.append((name, None if value is None else list(value.shape)))
    norm._modules.pop("child")
    found += [hasattr(norm, "child"), dict(norm._modules) == {}]
    norm._parameters = {"scale": lib.nn.Parameter(lib.full((2,), 3.0)), "none": None}
    norm._buffers = {"mean": lib.full((2,), 4.0), "fleeting": lib.zeros(1)}
    norm._non_persistent_buffers_set = {"fleeting"}
    norm._modules = {"child": lib.nn.Linear(1, 1)}
    found += [norm.scale.tolist(), norm.mean.tolist(), norm.none, list(norm.state_dict()), hasattr(norm, "weight")]
    norm._non_persistent_buffers_set.add("mean")
    norm._non_persistent_buffers_set.discard("fleeting")
    found += [
        list(norm.state_dict()),
        "mean" in norm._non_persistent_buffers_set,
        len(norm._non_persistent_buffers_set),
    ]
    norm._non_persistent_buffers_set -= {"mean"}
    return [*found, list(norm.state_dict()), sorted(norm._non_persistent_buffers_set | {"z"})]


def loading(lib: Any) -> list[Any]:
    """The same for classes whose own _load_from_state_dict does not ask for the usual one, or edits the lists."""

    class Alone(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = lib.nn.Parameter(lib.zeros(2))
            self.below = lib.nn.Linear(1, 1)

        def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
            self.seen = sorted(key for key in state_dict if key.startswith(prefix))

    class Forgiving(lib.nn.Linear):  # type: ignore[misc, name-defined]
        def _load_from_state_dict(self, state_dict: Any, prefix: str, local: Any, strict: bool, *lists: Any) -> None:
            missing, unexpected, _ = lists
            super()._load_from_state_dict(state_dict, prefix, local, strict, *lists)
            found.append((list(missing), list(unexpected)))
            missing[:] = [key for key in missing if not key.endswith("bias")]
            unexpected[:] = [key for key in unexpected if not key.endswith("old")]

    found: list[Any] = []
    model = lib.nn.Sequential(Alone(), Forgiving(1, 1), lib.nn.Linear(1, 1))
    state = {key: lib.full(tuple(value.shape), 7.0) for key, value in model.state_dict().items()}
    found.append(str(model.load_state_dict({**state, "0.odd": lib.ones(1)})))
    found += [model[0].weight.tolist(), model[0].below.weight.tolist(), model[0].seen]
    del state["1.bias"]
    state["1.old"] = lib.ones(1)
    found.append(str(model.load_state_dict(state)))
    for changed in ({**state, "1.odd": lib.ones(1)}, {k: v for k, v in state.items() if k != "1.weight"}):
        with pytest.raises(RuntimeError) as error:
            model.load_state_dict(changed)
        found.append(sorted(key for key in ("1.odd", "1.old", "1.bias", "1.weight") if f'"{key}"' in str(error.value)))
    model.load_state_dict({**state, "1.odd": lib.ones(1)}, strict=False, assign=True)
    return [*found, model[0].weight.tolist(), model[1].weight.tolist()]


def states(lib: Any) -> list[Any]:
    """The same for hooks of state dictionaries and what subclasses override."""

    class Named(lib.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = lib.nn.Linear(1, 2)
            self.words = "none"

        def get_extra_state(self) -> Any:
            return {"words": self.words}

        def set_extra_state(self, state: Any) -> None:
            self.words = state["words"]

        def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
            if f"{prefix}old" in state_dict:
                state_dict[f"{prefix}inner.weight"] = state_dict.pop(f"{prefix}old")
            super()._load_from_state_dict(state_dict, prefix, *rest)

    model, found, seen = lib.nn.Sequential(Named(), lib.nn.Linear(2, 2)), [], []
    found.append(list(model.state_dict()))
    model[0].words = "kept"
    state = model.state_dict()
    other = lib.nn.Sequential(Named(), lib.nn.Linear(2, 2))
    other.load_state_dict(state)
    found.append(other[0].words)
    state["0.old"] = state.pop("0.inner.weight") * 0 + 5
    other.load_state_dict(state)
    found += [other[0].inner.weight.flatten().tolist(), "0.old" in state]
    other[1].register_state_dict_pre_hook(lambda module, prefix, keep: seen.append((prefix, keep)))
    other[1].register_state_dict_post_hook(
        lambda module, state, prefix, local: state.update({f"{prefix}w": state.pop(f"{prefix}weight")})
    )
    found += [list(other.state_dict()), list(seen)]
    other[1]._register_load_state_dict_pre_hook(
        lambda state, prefix, *rest: state.update({f"{prefix}weight": state.pop(f"{prefix}w")})
    )
    found.append(str(other.load_state_dict(other.state_dict())))
    other[1].register_load_state_dict_pre_hook(lambda module, state, *rest: seen.append(type(module).__name__))
    other.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    given = dict(other.state_dict())
    del given["0.inner.bias"]
    found += [str(other.load_state_dict(given)), list(seen)]
    other.register_load_state_dict_post_hook(lambda module, keys: keys.unexpected_keys.append("q"))
    try:
        other.load_state_dict(given)
    except RuntimeError as error:
        found.append('"q"' in str(error))
    return found


def what_is_complained_of(lib: Any) -> Any:
    """Keys that a pre-hook puts into the lists, and a subclass that sees its own keys alone."""
    found: list[Any] = []

    class Strict(lib.nn.Linear):  # type: ignore[misc]
        def _load_from_state_dict(
            self, state: Any, prefix: str, local: Any, strict: Any, missing: Any, *rest: Any
        ) -> None:
            rest[0].extend(key for key in state if key not in (f"{prefix}weight", f"{prefix}bias"))
            super()._load_from_state_dict(state, prefix, local, strict, missing, *rest)

    net = lib.nn.Sequential(Strict(2, 2), lib.nn.Linear(1, 1))
    found.append(str(net.load_state_dict(net.state_dict())))
    for which in (4, 5):
        layer = lib.nn.Linear(2, 2)
        layer._register_load_state_dict_pre_hook(lambda *given, which=which: given[which].append("added"))
        try:
            found.append(str(layer.load_state_dict(layer.state_dict())))
        except RuntimeError as error:
            found.append(str(error).strip())
    return found


@pytest.mark.parametrize("program", [hooks, registered, states, loading, what_is_complained_of])
def test_books_are_pytorchs(program: Any) -> None:
    ours, theirs = program(dt), program(torch)
    assert ours == [
        str(value).replace("_Incompatible", "Incompatible") if isinstance(value, str) else value for value in theirs
    ]


def dictionaries(lib: Any) -> list[Any]:
    """What a program sees that takes the books for the dictionaries that they are in PyTorch."""
    nn = lib.nn
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    books = model._modules
    found: list[Any] = [isinstance(book, dict) for book in (books, model[0]._parameters, model._buffers)]
    found += [[type(part).__name__ for part in reversed(books.values())], list(reversed(books))]
    found += [[name for name, _ in reversed(books.items())], list(reversed(books.keys()))]
    books["1"] = nn.Tanh()
    books["0"] = books.pop("0")  # to the end
    found += [repr(model), list(books), len(books), "0" in books, books.get("9", 4), books == {}, books == dict(books)]
    found += [list(books | {"a": 1}), list({"a": 1} | books), list({**books}), sorted(copy.copy(books))]
    copied = copy.deepcopy(books)
    copied["0"].weight.data.zero_()
    found += [list(copied), bool((model._modules["0"].weight != 0).any()), books.popitem()[0], list(model._modules)]
    model.add_module("new", nn.ReLU())
    found += [list(books), type(books.setdefault("more", nn.ReLU())).__name__, books.update(last=nn.Sigmoid())]
    model._modules |= {"forward": nn.Tanh()}  # hidden by the method
    found += [
        repr(model),
        type(books["forward"]).__name__,
        tuple(model(lib.ones(1, 3)).shape),
        type(model[-1]).__name__,
    ]
    layer = nn.Linear(2, 1)
    layer._parameters["weight"] = lib.ones(1, 2)  # no Parameter, as programs that compute weights do
    layer._parameters["more"] = lib.ones(2)
    found += [[name for name, _ in layer.named_parameters()], layer(lib.ones(2)).shape == (1,), layer.more.tolist()]
    del layer._parameters["more"]
    found += [hasattr(layer, "more"), (lambda **names: list(names))(**layer._parameters)]
    books.clear()
    return [*found, len(books), repr(model), list(model.children())]


def hidden(lib: Any) -> list[Any]:
    """The same for modules whose names the class has too."""
    nn = lib.nn

    class Model(nn.Module):  # type: ignore[misc,name-defined]
        conv = None

        def __init__(self) -> None:
            super().__init__()
            self.parameters = nn.ParameterList([nn.Parameter(lib.ones(2))])
            self.modules = nn.ModuleList([nn.Linear(1, 1)])
            self.conv, self.mro, self.prop = nn.Linear(1, 1), nn.Linear(1, 1), nn.ReLU()
            self._hooks: list[Any] = []

        @property
        def prop(self) -> int:
            return 5

        @prop.setter
        def prop(self, value: Any) -> None:
            raise AssertionError("a Module does not come here")

        def forward(self, x: Any) -> Any:
            return self.mro(x)

    def error(do: Any) -> str:
        with pytest.raises(Exception) as caught:
            do()
        return type(caught.value).__name__

    model = Model()
    found: list[Any] = [model.conv, model.prop, model._hooks, tuple(model(lib.ones(1, 1)).shape)]
    found += [[name for name, _ in model.named_parameters()], len(list(model.parameters())), list(model.state_dict())]
    found += [[name for name, _ in model.named_children()], [name for name, _ in model.named_modules()]]
    found += [repr(model).count("conv"), repr(model.load_state_dict(copy.deepcopy(model).state_dict()))]
    found += [len(pickle.loads(pickle.dumps(nn.Sequential(nn.Linear(1, 1))))), type(model._modules["prop"]).__name__]
    found += [{str(p.dtype).rpartition(".")[2] for p in copy.deepcopy(model).double().parameters()}]
    found.append(str(model.load_state_dict({"nothing": 1}, strict=False))[:50])
    found += [error(lambda: setattr(model, "parameters", 3)), error(lambda: model.get_submodule("parameters"))]
    found.append(error(lambda: setattr(model, "named_modules", nn.Parameter(lib.ones(1)))))
    found.append(error(lambda: model.register_buffer("children", lib.ones(1))))
    found += [error(lambda: model.add_module("children", nn.ReLU())), error(lambda: nn.ModuleDict({"keys": nn.ReLU()}))]
    model.add_module("parameters", nn.Linear(1, 1))  # it is registered already
    model.conv = None
    found += [model._modules["conv"], [name for name, _ in model.named_parameters()]]
    del model.conv, model.modules
    return [*found, list(model._modules), len(list(model.modules())), error(lambda: delattr(model, "modules"))]


def by_name(lib: Any) -> list[Any]:
    """The same for parts that a program asks for through __getattr__."""
    nn = lib.nn

    class Asks(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2, self.children = nn.Linear(1, 2), nn.Linear(2, 3), nn.ReLU()

        def forward(self, x: Any) -> Any:
            parts = [self.__getattr__(f"conv{i}") for i in (1, 2)]
            return self.__getattr__("children")(parts[1](parts[0](x)))

    class Below(Asks):
        pass

    class Falls(nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(1, 2)

        def __getattr__(self, name: str) -> Any:
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(super().__getattr__("inner"), name)

    found: list[Any] = [tuple(kind()(lib.ones(1, 1)).shape) for kind in (Asks, Below)]
    for do in (lambda: Asks().__getattr__("nothing"), lambda: Falls().nothing):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
            do()
    return [*found, Falls().in_features, tuple(Falls().inner.weight.shape)]


@pytest.mark.parametrize("see", [dictionaries, hidden, by_name])
def test_what_is_registered_is_found_as_in_pytorch(see: Any) -> None:
    assert see(dt) == see(torch)


@pytest.mark.parametrize("device", CUDA_DEVICES)
def test_hidden_modules_move_along(device: str) -> None:
    class Model(dt.nn.Module):
        conv = None

        def __init__(self) -> None:
            super().__init__()
            self.conv = dt.nn.Linear(1, 1)

    model = Model().to(device)
    assert {str(p.device) for p in model.parameters()} == {str(dt.device(device))} and model.conv is None


def test_books_are_no_part_of_a_cycle() -> None:
    model = dt.nn.Linear(1, 1)
    gone = weakref.ref(model)
    assert list(model._parameters) == ["weight", "bias"]
    del model
    assert gone() is None
