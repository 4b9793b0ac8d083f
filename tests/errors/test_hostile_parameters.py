"""Numbers that no op expects: none makes a loop long, a number overflow, or one device differ from another."""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
from typing import Any

import hostile_numbers
import images
import numpy as np
import pytest
from support import HELPERS, REAL, assert_close, lay_out, wide_of

import devtensor as dt

HOSTILE = HELPERS / "sweeps" / "hostile_numbers.py"
HANG = 300  # seconds for what takes a few: a loop of 2**62 steps takes a century


@functools.cache
def outcomes(device: str) -> dict[tuple[str, int], Any]:
    """What comes of all calls on a device, in a process of their own."""
    try:
        run = subprocess.run(
            [sys.executable, "-X", "faulthandler", str(HOSTILE), device],
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"hangs in {(error.stdout or b'').decode().splitlines()[-1:]}") from None
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert run.returncode == 0, f"ends in {lines[-1:]}\n{run.stderr[-3000:]}"
    return {(name, n): result for name, n, *found in lines for result in found}


def test_no_number_makes_a_call_long(device: str) -> None:
    found = outcomes(device)
    assert set(found) == {
        (name, n) for name in hostile_numbers.IMAGE | hostile_numbers.OTHERS for n in hostile_numbers.NUMBERS
    }
    assert {key: text for key, text in found.items() if "SystemError" in str(text) or "_check" in str(text)} == {}


def test_every_device_says_the_same(cuda: str) -> None:
    here, there = outcomes("cpu"), outcomes(cuda)
    different = {key: (text, there[key]) for key, text in here.items() if text != there[key]}
    if REAL:  # cuDNN refuses planes of 2**31 pixels, whatever is read of them
        different = {
            key: texts
            for key, texts in different.items()
            if not (key[0].startswith("conv") and str(texts[1]).startswith(("CudaError", "RuntimeError")))
        }
    assert different == {}, "\n".join(f"{key}: {str(texts)[:300]}" for key, texts in different.items())


@pytest.mark.parametrize("n", [2**31, 2**61, 2**62])
def test_windows_end_with_the_image(n: int, device: str) -> None:
    x = dt.arange(9, dtype=dt.float32, device=device).reshape(1, 1, 3, 3)
    assert dt.max_pool2d(x, n, ceil_mode=True).tolist() == [[[[8]]]]
    assert dt.max_pool2d(x, (1, n), ceil_mode=True).tolist() == [[[[2], [5], [8]]]]
    assert dt.avg_pool2d(x, n, ceil_mode=True).tolist() == [[[[4]]]]
    values, places = dt.max_pool2d(x, 2, n, 1, n // 2, True, True)
    assert (values.tolist(), places.tolist()) == ([[[[-np.inf]]]], [[[[0]]]])
    assert dt.max_pool2d(x, 1, 1, dilation=n).tolist() == x.tolist()


SETTINGS = [
    {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
    for kernel, stride, padding, dilation, ceil_mode in itertools.product(
        (1, 2, 5, (1, 40), (300, 2)), (1, 3, (2, 50)), (0, 1, (0, 20)), (1, 2, (40, 3)), (False, True)
    )
]


@pytest.mark.parametrize("layout", ["contiguous", "sliced", "channels_last"])
@pytest.mark.parametrize("op", ["max_pool2d", "avg_pool2d"])
def test_windows_larger_than_the_image(op: str, layout: str, device: str) -> None:
    values = np.random.default_rng(0).permutation(2 * 9 * 7 * 11).reshape(2, 9, 7, 11).astype(np.float32)
    x = lay_out(values, "float32", device, layout)
    compared = 0
    for settings in SETTINGS:
        parameters = {k: v for k, v in settings.items() if k != "dilation" or op == "max_pool2d"}
        try:
            got = getattr(dt, op)(x, **parameters)
        except RuntimeError:
            continue
        wide = values.astype(np.float64)
        compared += 1
        if op == "avg_pool2d":
            want = images.avg_pool2d(wide, **parameters)
        else:
            want = images.max_pool2d(wide, **parameters)
            again, places = dt.max_pool2d(x, **parameters, return_indices=True)
            assert_close(wide_of(again), want)
            flat = np.take_along_axis(wide.reshape(2, 9, -1), places.cpu().numpy().reshape(2, 9, -1), -1)
            assert_close(np.where(np.isinf(want), want, flat.reshape(want.shape)), want)
        assert_close(wide_of(got), want, 1e-3)
    assert compared > 40
