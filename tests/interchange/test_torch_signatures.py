"""The parameters of devtensor's modules, functions and ops beside PyTorch's: as written down, and as installed."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import pytest
from torch_options import OPTIONS
from torch_signatures import COMPILED, DIFFERENT, RECORDED

import devtensor as dt


def found(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


def parameters(function: Any) -> str:
    """Names and defaults, without self and annotations."""
    texts, starred = [], False
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY and not starred:
            texts.append("*")
        starred = starred or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        if p.name != "self":
            star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            default = p.default.__name__ if inspect.isfunction(p.default) else repr(p.default)  # no address
            texts.append(star + p.name + ("" if p.default is p.empty else f"={default}"))
    return ", ".join(texts)


def test_parameters_are_pytorchs() -> None:
    wanted = RECORDED | COMPILED | DIFFERENT
    assert {name: parameters(found(dt, name)) for name in wanted} == wanted


def test_every_name_is_written_down() -> None:
    names = {f"nn.{name}" for name in dt.nn.__all__} - {"nn.functional", "nn.init", "nn.parallel", "nn.utils"}
    names |= {f"nn.functional.{name}" for name in dt.nn.functional.__all__}
    names |= {f"nn.init.{name}" for name in dt.nn.init.__all__} | {f"nn.utils.{name}" for name in dt.nn.utils.__all__}
    names |= {f"nn.parallel.{name}" for name in dt.nn.parallel.__all__}
    names |= {f"nn.utils.rnn.{name}" for name in dt.nn.utils.rnn.__all__}
    for module in ("parametrize", "parametrizations", "prune"):
        names |= {f"nn.utils.{module}.{name}" for name in getattr(dt.nn.utils, module).__all__}
    names -= {"nn.utils.rnn", "nn.utils.parametrize", "nn.utils.parametrizations", "nn.utils.prune"}
    names |= {f"optim.{name}" for name in dt.optim.__all__} - {"optim.lr_scheduler", "optim.swa_utils"}
    names |= {f"optim.lr_scheduler.{name}" for name in dt.optim.lr_scheduler.__all__}
    names |= {f"optim.swa_utils.{name}" for name in dt.optim.swa_utils.__all__}
    names |= {f"autograd.functional.{name}" for name in dt.autograd.functional.__all__}
    names |= {f"autograd.graph.{name}" for name in dt.autograd.graph.__all__} - {"autograd.graph.Node"}
    assert names <= {*RECORDED, *COMPILED}


def test_what_is_written_down_is_what_pytorch_has() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    importlib.import_module("torch.nn.utils.prune")
    if not torch.__version__.startswith("2.13"):
        pytest.skip(f"PyTorch {torch.__version__} is installed; the table is of 2.13")
    wrapped = {
        "nn.functional.max_pool2d",
        "nn.functional.adaptive_max_pool1d",
        "nn.functional.adaptive_max_pool2d",
        "nn.functional.adaptive_max_pool3d",
        "nn.functional.fractional_max_pool2d",
        "nn.functional.fractional_max_pool3d",
        "nn.functional.max_pool1d",
        "nn.functional.max_pool3d",
    }  # chosen by return_indices when it is called
    assert {n: parameters(found(torch, n)) for n in RECORDED if n not in wrapped} == {
        n: text for n, text in RECORDED.items() if n not in wrapped
    }


def test_options() -> None:
    for name, text in OPTIONS.items():
        options = text.split()
        names = list(inspect.signature(found(dt, name)).parameters)
        assert [n for n in names if n in options] == [n for n in options if n in names], name
        assert set(options) <= set(names), name
        method = getattr(dt.DeviceArray, name, None)
        if method is not None and options[0] == "input":
            assert set(options[1:]) - {"out"} <= set(inspect.signature(method).parameters), name
