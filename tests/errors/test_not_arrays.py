"""What is no array, in ops and initializers that are written in Python; and arrays without elements there."""

from __future__ import annotations

import numpy as np
import pytest
from support import DEVICES  # noqa: F401  (starts the suite's devices before devtensor is used)

import devtensor as dt

WANT_AN_ARRAY = {
    "flip": lambda x: dt.flip(x, 0),
    "roll": lambda x: dt.roll(x, 1),
    "ravel": lambda x: dt.ravel(x),
    "repeat_interleave": lambda x: dt.repeat_interleave(x, 2),
    "pad": lambda x: dt.pad(x, (1, 1)),
    "is_floating_point": lambda x: dt.is_floating_point(x),
    "expand_as": lambda x: dt.ones(2).expand_as(x),
    "view_as": lambda x: dt.ones(2).view_as(x),
    "type_as": lambda x: dt.ones(2).type_as(x),
    "one_hot": lambda x: dt.nn.functional.one_hot(x),
    "cross_entropy": lambda x: dt.nn.functional.cross_entropy(dt.ones(2, 3), x),
    "nll_loss": lambda x: dt.nn.functional.nll_loss(dt.ones(2, 3), x),
    **{
        name: lambda x, name=name: getattr(dt.nn.functional, name)(dt.ones(2), x, reduction="sum")
        for name in ("huber_loss", "smooth_l1_loss", "kl_div")
    },
    "binary_cross_entropy": lambda x: dt.nn.functional.binary_cross_entropy(dt.ones(2), x),
    "binary_cross_entropy_with_logits": lambda x: dt.nn.functional.binary_cross_entropy_with_logits(dt.ones(2), x),
    "set_stream": lambda x: dt.cuda.set_stream(0 if x is None else x),
    **{
        name: lambda x, name=name: getattr(dt.nn.functional, name)(x, inplace=True)
        for name in ("relu", "relu6", "leaky_relu", "elu", "silu", "hardtanh")
    },
    **{
        name: lambda x, name=name: getattr(dt.nn.init, name)(x)
        for name in dt.nn.init.__all__
        if name not in ("calculate_gain", "constant_", "sparse_")
    },
    "constant_": lambda x: dt.nn.init.constant_(x, 1),
    "sparse_": lambda x: dt.nn.init.sparse_(x, 0.5),
}


@pytest.mark.parametrize("op", WANT_AN_ARRAY)
def test_ops_written_in_python_say_what_is_no_array(op: str) -> None:
    for value in (None, 3, 2.5, "text", [1, 2], np.ones(2), object(), dt.float32):
        with pytest.raises(TypeError, match=rf"{op}\(\): argument '(input|other|target|tensor|stream)' must be"):
            WANT_AN_ARRAY[op](value)


@pytest.mark.parametrize("shape", [(0, 0), (0, 0, 3), (3, 0), (2, 3, 0)])
def test_parameters_without_elements_are_initialized(shape: tuple[int, ...], device: str) -> None:
    x = dt.zeros(shape, device=device)
    for name in ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "uniform_", "normal_"):
        assert getattr(dt.nn.init, name)(x) is x


def test_a_mode_that_is_no_text() -> None:
    for name in ("kaiming_uniform_", "kaiming_normal_"):
        for mode in (None, 1, slice(None), ["fan_in"]):
            with pytest.raises(ValueError, match="not supported"):
                getattr(dt.nn.init, name)(dt.ones(2, 2), mode=mode)


@pytest.mark.parametrize("layer", [dt.nn.Conv1d, dt.nn.Conv2d])
def test_channels_are_integers(layer: type[dt.nn.Module]) -> None:
    for wrong in (2.0, np.float32(2), "2", [2], None):
        for channels in ((wrong, 2, 1), (2, wrong, 1), (2, 2, 1, 1, 0, 1, wrong)):
            with pytest.raises(TypeError, match="must be int"):
                layer(*channels)
    assert layer(np.int64(2), 2, 1).in_channels == 2
