"""What the environment may ask of the simulated GPU: a drawn order of work, memory that holds all kinds of things."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from typing import Any

import pytest
from support import REAL, python_path

pytestmark = pytest.mark.skipif(REAL, reason="of the simulated device")

DONE = """
import json, devtensor as dt
events = []
streams = [dt.cuda.Stream() for _ in range(4)]
for _ in range(8):
    for stream in streams:
        with dt.cuda.stream(stream):
            x = dt.full((10,), 2.0, device="cuda") * 3
            events.append(stream.record_event())
print(json.dumps([event.query() for event in events]))
"""
HELD = """
import json, devtensor as dt
out = []
for dtype in ("float32", "float64", "float16", "bfloat16", "int32"):
    held = [dt.empty(1, dtype=dtype, device="cuda").item() for _ in range(4)]  # one block, released and given out again
    out.append([str(value) for value in held])
print(json.dumps(out))
"""


def answer(program: str, **settings: str) -> Any:
    env = os.environ | {"PYTHONPATH": python_path(), "DEVTENSOR_CUDA": "sim:1"} | settings
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=env, timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def test_an_order_that_is_drawn() -> None:
    """Some work is over before anybody waits, other work for each seed; without one, none is."""
    late, *drawn = (answer(DONE, DEVTENSOR_SIM_ORDER=seed) for seed in ("0", "1", "2", "2"))
    assert not late[0] and sum(late) <= sum(drawn[0])
    assert sum(drawn[0]) > 4
    assert drawn[0] != drawn[1] == drawn[2]


def test_memory_that_nobody_has_written() -> None:
    first, *_ = answer(HELD, DEVTENSOR_SIM_FILL="nan")
    assert [math.isnan(float(x)) for x in first] == [True] * 4
    for held in answer(HELD, DEVTENSOR_SIM_FILL="turns"):
        values = [float(x) for x in held]
        assert sum(math.isnan(x) or x == -1 for x in values) == 1
        assert sum(x > 6e4 for x in values) == sum(x < -6e4 for x in values) == sum(x == 0 for x in values) == 1
