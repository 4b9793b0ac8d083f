"""Attributes that a program sets on parameters and buffers, as PyTorch lets it: p.no_decay = True."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import devtensor as dt
from devtensor import nn

KINDS: list[Any] = [nn.Parameter, nn.Buffer]


@pytest.mark.parametrize("kind", KINDS)
def test_attributes(kind: Any, device: str) -> None:
    p = kind(dt.ones(2, device=device))
    p.no_decay = True
    p.group = [1]
    assert (p.no_decay, p.group, vars(p)) == (True, [1], {"no_decay": True, "group": [1]})
    del p.group
    assert not hasattr(p, "group") and not hasattr(kind(dt.ones(2)), "no_decay")
    with pytest.raises(AttributeError):
        p.shape = (3,)
    assert (p + 1).tolist() == [2, 2] and not hasattr(p + 1, "no_decay")


@pytest.mark.parametrize("kind", KINDS)
def test_copies(kind: Any) -> None:
    """As in PyTorch: copy and pickle keep them (pickle: of parameters), deepcopy does not."""
    p = kind(dt.ones(2))
    p.tag = [1]
    assert copy.copy(p).tag is p.tag and not hasattr(copy.deepcopy(p), "tag")
    again = pickle.loads(pickle.dumps(p))
    assert type(again) is type(p) and getattr(again, "tag", None) == ([1] if kind is nn.Parameter else None)
    assert type(pickle.loads(pickle.dumps(kind(dt.ones(2))))) is type(p)


def test_a_module_that_moves_keeps_them(device: str) -> None:
    m = nn.Linear(2, 2)
    m.weight.tag = 1  # type: ignore[attr-defined]
    assert m.to(device).double().weight.tag == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_circles_are_collected(kind: Any) -> None:
    m = nn.Module()
    m.p = p = kind(dt.ones(2))
    p.owner, p.itself = m, p
    gone = weakref.ref(m), weakref.ref(p)
    del m, p
    gc.collect()
    assert gone[0]() is None and gone[1]() is None


class Watching(nn.Module):
    """Its parameters' hooks are methods of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.seen = nn.Linear(2, 1), 0
        self.linear.weight.register_hook(self.look)
        self.linear.bias.register_post_accumulate_grad_hook(self.look)

    def look(self, x: dt.DeviceArray) -> None:
        self.seen += 1

    def forward(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return self.linear(x)


def test_hooks_that_refer_back_are_collected(device: str) -> None:
    model = Watching().to(device)
    gone = weakref.ref(model)
    model(dt.ones(3, 2, device=device)).sum().backward()
    assert model.seen == 2
    loss = model(dt.ones(3, 2, device=device)).sum()
    del model
    gc.collect()
    waiting = gone()
    assert waiting is not None  # the graph needs the hooks
    loss.backward()
    assert waiting.seen == 4
    del loss, waiting
    gc.collect()
    assert gone() is None
    p = nn.Parameter(dt.ones(2))
    p.register_hook(lambda g, p=p: p)  # type: ignore[misc]
    alone = weakref.ref(p)
    del p
    gc.collect()
    assert alone() is None


def test_classes_of_the_users() -> None:
    class Tagged(nn.Parameter):
        pass

    p = Tagged(dt.ones(2))
    p.tag = 1  # type: ignore[attr-defined]
    assert vars(p) == {"tag": 1} and copy.deepcopy(p).tag == 1  # type: ignore[attr-defined]
