"""What a log keeps of an error and of transfers: to_dict(), ready for JSON."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import source_files
from support import ONE
from typical_mistakes import EXAMPLES

import devtensor as dt


def test_every_kind_of_error_is_ready_for_json() -> None:
    for code, examples in EXAMPLES.items():
        for _, text in examples if code != "stream-race" or not ONE else ():  # which simulates two devices
            error = source_files.run(text.lstrip("\n"), {"__name__": "__main__"}, filename="<train.py>")
            if not hasattr(error, "to_dict"):  # a class of Python's own
                assert type(error).__module__ == "builtins"
                continue
            found = json.loads(json.dumps(error.to_dict()))
            assert (found["type"], found["message"], found["code"]) == (type(error).__name__, str(error), code)
            assert found["notes"] == error.__notes__ and found["fix"] == error.fix
            assert [one["name"] for one in found["operands"]] == [one.name for one in error.operands]
            if found["culprit"] is not None:
                assert found["culprit"] in [one["name"] for one in found["operands"]]


def test_the_operands_are_there(device: str) -> None:
    x, y = dt.ones(2, 3, device=device), dt.ones(2, 3, device=device, dtype=dt.float64)
    with pytest.raises(dt.DTypeMismatchError) as raised:
        x @ y
    first, second = raised.value.to_dict()["operands"]
    assert (first["expression"], first["shape"], first["dtype"], first["device"]) == ("x", [2, 3], "float32", device)
    assert second["origin"]["action"] == "ones" and second["origin"]["filename"] == __file__
    assert second["history"][0]["dtype"] == "float64"


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert record.exc_info is not None
        self.found.append(json.dumps(record.exc_info[1].to_dict()))  # type: ignore[union-attr]


def test_a_handler_of_logging_writes_it() -> None:
    log, lines = logging.getLogger("devtensor.test"), _Lines()
    log.addHandler(lines)
    log.propagate = False
    try:
        dt.ones(2) + dt.ones(3)
    except RuntimeError:
        log.exception("failed")
    assert json.loads(lines.found[0])["code"] == "shape-mismatch"


def test_transfers_are_ready_for_json() -> None:
    x = dt.ones(3)
    with dt.record_transfers() as log:
        x.to("cuda:0").cpu()
    found = json.loads(json.dumps(log.to_dict()))
    assert (found["count"], found["nbytes"]) == (2, 24)
    first = found["transfers"][0]
    assert first == json.loads(json.dumps(log[0].to_dict()))
    assert (first["source"], first["target"], first["nbytes"], first["expression"]) == ("cpu", "cuda:0", 12, "x")
