"""record_transfers and forbid_transfers: what is seen, what is said of it, what is stopped before anything moves."""

from __future__ import annotations

import copy
import io
import pickle
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import pytest
from support import CUDA_DEVICES, no_transfers

import devtensor as dt
from devtensor import _transfers as transfers
from devtensor import nn

GPU = CUDA_DEVICES[0]

Way = tuple[str, Callable[[dt.DeviceArray, dt.DeviceArray], Any], str, int, str, str]

# name, what is done with x on the cpu and g on a GPU, both (3, 4) float32; action, bytes, from, to
WAYS: list[Way] = [
    ("to", lambda x, g: x.to(GPU), "to", 48, "cpu", GPU),
    ("to, narrower", lambda x, g: x.double().to(GPU, dt.float32), "to", 48, "cpu", GPU),
    ("to, wider", lambda x, g: x.to(GPU, dt.float64), "to", 48, "cpu", GPU),
    ("cuda", lambda x, g: x.cuda(0), "cuda", 48, "cpu", "cuda:0"),
    ("cpu", lambda x, g: g.cpu(), "cpu", 48, GPU, "cpu"),
    ("part", lambda x, g: g[:, 1].cpu(), "cpu", 12, GPU, "cpu"),
    ("later", lambda x, g: g.to("cpu", non_blocking=True), "to", 48, GPU, "cpu"),
    ("copy_", lambda x, g: g.copy_(x), "copy_", 48, "cpu", GPU),
    ("copy_ back", lambda x, g: x.copy_(g), "copy_", 48, GPU, "cpu"),
    ("item", lambda x, g: g.sum().item(), "item", 4, GPU, "cpu"),
    ("float", lambda x, g: float(g[0, 0]), "float", 4, GPU, "cpu"),
    ("bool", lambda x, g: 1 if g[0, 0] else 0, "bool", 4, GPU, "cpu"),
    ("int", lambda x, g: int(g[0, 0]), "int", 4, GPU, "cpu"),
    ("tolist", lambda x, g: g.tolist(), "tolist", 48, GPU, "cpu"),
    ("tensor", lambda x, g: dt.tensor([1.0, 2.0], device=GPU), "tensor", 8, "cpu", GPU),
    ("equal", lambda x, g: dt.equal(g, g), "equal", 1, GPU, "cpu"),
    ("allclose", lambda x, g: dt.allclose(g, g), "allclose", 1, GPU, "cpu"),
    ("in", lambda x, g: 1.0 in g, "contains", 1, GPU, "cpu"),
    ("pickle", lambda x, g: pickle.dumps(g), "pickle", 48, GPU, "cpu"),
    ("Module.to", lambda x, g: nn.Linear(3, 4, bias=False).to(GPU), "to", 48, "cpu", GPU),
    ("repr", lambda x, g: repr(g), "repr", 48, GPU, "cpu"),
]  # fmt: skip

NONE: dict[str, Callable[[dt.DeviceArray, dt.DeviceArray], Any]] = {
    "an op": lambda x, g: g @ g.T + 1,
    "same device": lambda x, g: (g.to(GPU, copy=True), g.clone(), x.to("cpu", copy=True), g.double()),
    "pinning": lambda x, g: x.pin_memory(),
    "nothing": lambda x, g: dt.zeros(0, 3).to(GPU),
    "from_numpy": lambda x, g: dt.from_numpy(x.numpy()),
    "host item": lambda x, g: (x.sum().item(), x.tolist(), repr(x)),
    "assignment of a number": lambda x, g: g.__setitem__(0, 5.0),
    "deepcopy": lambda x, g: copy.deepcopy(g),
}


@pytest.fixture
def pair() -> tuple[dt.DeviceArray, dt.DeviceArray]:
    return dt.ones(3, 4), dt.ones(3, 4, device=GPU)


@pytest.mark.parametrize(("call", "action", "nbytes", "source", "target"), [w[1:] for w in WAYS],
                         ids=[w[0] for w in WAYS])  # fmt: skip
def test_what_is_seen(call: Any, action: str, nbytes: int, source: str, target: str, pair: Any) -> None:
    before = dt._C.counters()["transfers"]
    with dt.record_transfers() as log:
        call(*pair)
    assert dt._C.counters()["transfers"] - before == len(log) == 1
    (one,) = log
    assert (one.nbytes, one.action, str(one.source), str(one.target)) == (nbytes, action, source, target)
    assert log.nbytes == nbytes
    assert one.filename == __file__
    assert one.lineno == call.__code__.co_firstlineno
    call(*pair)
    assert len(log) == 1


@pytest.mark.parametrize("name", list(NONE))
def test_what_is_none(name: str, pair: Any) -> None:
    with dt.record_transfers() as log, dt.forbid_transfers():
        NONE[name](*pair)
    assert list(log) == []
    assert str(log) == "0 transfers"


@pytest.mark.parametrize(("call", "action"), [w[1:3] for w in WAYS], ids=[w[0] for w in WAYS])
def test_what_is_stopped(call: Any, action: str, pair: Any) -> None:
    if action == "repr":
        with dt.forbid_transfers():
            assert "device=" in call(*pair)
        return
    with (
        no_transfers(),
        dt.forbid_transfers(),
        pytest.raises(dt.TransferForbiddenError, match="is forbidden") as caught,
    ):
        call(*pair)
    assert caught.value.code == "transfer-forbidden"
    shown = "\n".join(caught.value.__notes__)
    assert "forbidden by forbid_transfers() at" in shown
    assert "test_transfer_log.py" in shown
    assert pair[0].tolist() == [[1.0] * 4] * 3
    call(*pair)


def test_how(pair: Any) -> None:
    x, g = pair
    pinned = x.pin_memory()
    with dt.record_transfers() as log:
        x.to(GPU)
        pinned.to(GPU)
        pinned.to(GPU, non_blocking=True)
        g.cpu()
        g.to("cpu", non_blocking=True)
    assert [(one.pinned, one.synchronous) for one in log] == [
        (False, True), (True, True), (True, False), (False, True), (True, False)
    ]  # fmt: skip


def test_expressions() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2, bias=False))
    batch = {"x": dt.ones(2, 3)}
    with dt.record_transfers() as log:
        model.to(GPU)
        y = model(batch["x"].to(GPU))
        y.sum().item()
        [float(row[0]) for row in y]
    assert [one.expression for one in log] == [
        "model.0.weight", "model.0.bias", "model.2.weight", 'batch["x"]', "y.sum()", "row[0]", "row[0]"
    ]  # fmt: skip


def test_the_table() -> None:
    g, layer = dt.ones(3, device=GPU), nn.Linear(2, 2)
    with dt.record_transfers() as log:
        for _ in range(4):
            g.sum().item()
        layer.to(GPU)
    assert [(line.times, line.nbytes, line.array) for line in log.lines()] == [(2, 24, "layer.*"), (4, 16, "g.sum()")]
    (trip,) = log.round_trips()
    assert (trip.times, trip.first.action, trip.waits) == (4, "item", True)
    assert log.round_trips(5) == []
    out = io.StringIO()
    with redirect_stdout(out):
        print(log)
    text = out.getvalue()
    assert "6 transfers: 2 to devices (24 bytes), 4 to the host (16 bytes)" in text
    assert f"waited for {GPU} 4 times (.item() of g.sum())" in text
    page = log._repr_html_()
    assert page.count("<tr>") == 3
    assert "<td>g.sum()</td>" in page
    assert log[0].place.endswith(f":{log[0].lineno}")
    assert [one.action for one in log[-2:]] == ["to", "to"]


def test_html_is_escaped() -> None:
    g = dt.ones(3, device=GPU)
    with dt.record_transfers() as log:
        (g < 2).all().item()
    assert "(g &lt; 2).all()" in log._repr_html_()


def helper(x: dt.DeviceArray) -> dt.DeviceArray:
    return x.cpu()


class Logger:
    def note(self, x: dt.DeviceArray) -> dt.DeviceArray:
        return helper(x)


@pytest.mark.parametrize("allow", ["helper", helper, ["Logger.note"], ("x.py", Logger.note), "test_transfer_log.py",
                                   f"test_transfer_log.py:{helper.__code__.co_firstlineno + 1}", __file__])  # fmt: skip
def test_places(allow: Any) -> None:
    g = dt.ones(3, device=GPU)
    with dt.forbid_transfers(allow=allow):
        Logger().note(g)


def test_other_places() -> None:
    g = dt.ones(3, device=GPU)
    for allow in ("elper", "log.py", "test_transfer_log.py:1", "Logger", ()):
        with dt.forbid_transfers(allow=allow), pytest.raises(dt.TransferForbiddenError):
            Logger().note(g)
    with pytest.raises(TypeError, match="forbid_transfers"):
        dt.forbid_transfers(allow=[3])  # type: ignore[list-item]


def test_nesting() -> None:
    g = dt.ones(3, device=GPU)

    @dt.forbid_transfers()
    def guarded() -> Any:
        return g.cpu()

    @dt.allow_transfers()
    def marked() -> Any:
        return g.cpu()

    with dt.forbid_transfers():
        marked()
        with dt.allow_transfers():
            g.cpu()
            with pytest.raises(dt.TransferForbiddenError):
                guarded()
        with dt.forbid_transfers(allow="test_nesting"), pytest.raises(dt.TransferForbiddenError):
            g.cpu()
    g.cpu()
    with dt.record_transfers() as outer:
        with dt.record_transfers() as inner:
            g.cpu()
        g.cpu()
    assert (len(outer), len(inner)) == (2, 1)
    assert dt._C._watch_transfers(0) == 0


def test_threads() -> None:
    """A block is its thread's; a log of all threads sees the others too."""
    g = dt.ones(3, device=GPU)
    failed: list[Exception] = []

    def work() -> None:
        try:
            g.cpu()
        except Exception as error:
            failed.append(error)

    with dt.record_transfers(all_threads=True) as everything, dt.record_transfers() as mine, dt.forbid_transfers():
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failed
    assert (len(everything), len(mine)) == (4, 0)
    assert {one.filename for one in everything} == {__file__}


def test_a_broken_watcher_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from devtensor import _transfers

    def broken(*args: Any) -> None:
        raise ValueError("planted")

    seen: list[Any] = []
    monkeypatch.setattr("sys.unraisablehook", seen.append)
    g = dt.ones(3, device=GPU)
    with dt.record_transfers():
        monkeypatch.setattr(_transfers, "_user_frame", broken)
        assert g.tolist() == [1.0] * 3
        monkeypatch.undo()
    assert [type(one.exc_value) for one in seen] == [ValueError]


def test_nothing_is_kept_alive() -> None:
    import gc
    import weakref

    x = dt.ones(3)
    held = weakref.ref(x)
    with dt.record_transfers() as log:
        x.to(GPU)
    with pytest.raises(dt.TransferForbiddenError), dt.forbid_transfers():
        x.to(GPU)
    del x
    gc.collect()
    assert held() is None
    assert log[0].expression == "x"
    assert pickle.loads(pickle.dumps(log[0])) == log[0]


def test_load_state_dict_moves_each() -> None:
    model, other = nn.Linear(3, 4).to(GPU), nn.Linear(3, 4)
    with dt.record_transfers() as log:
        model.load_state_dict(other.state_dict())
    assert sorted(one.nbytes for one in log) == [16, 48]


@pytest.mark.skipif(len(CUDA_DEVICES) < 2, reason="needs two devices")
def test_between_devices() -> None:
    x = dt.ones(3, device=CUDA_DEVICES[1])
    with dt.record_transfers() as log:
        x.to(GPU)
    (one,) = log
    assert (str(one.source), str(one.target), one.pinned, one.synchronous) == (CUDA_DEVICES[1], GPU, False, False)
    assert "1 between devices (12 bytes)" in str(log)


class _Terminal:
    """What stands for a stream of a terminal."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    def isatty(self) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_the_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every column has a name; long names of arrays, then of files, are cut; nothing is where there is no terminal."""
    an_array_with_a_name_that_nobody_would_give_to_an_array_of_his = dt.ones(3)
    with dt.record_transfers() as log:
        an_array_with_a_name_that_nobody_would_give_to_an_array_of_his.to("cuda:0")
    whole = transfers.report(log._totals()).splitlines()
    assert "total bytes" in whole[1] and "host waits" in whole[1] and whole[2].endswith("yes")
    assert "an_array_with_a_name_that_nobody_would_give_to_an_array_of_his" in whole[2]
    for width in (100, 120):
        cut = transfers.report(log._totals(), width=width).splitlines()
        assert max(map(len, cut)) <= width and "..." in cut[2], cut
    assert transfers.report(log._totals(), width=400).splitlines() == whole
    assert "\x1b[33m" in transfers.report(log._totals(), colour=True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "77")
    assert transfers.of_stream(_Terminal(True)) == (77, True)
    assert transfers.of_stream(_Terminal(False)) == transfers.of_stream(_Terminal(ValueError())) == (None, False)
    assert transfers.of_stream(None) == (None, False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert transfers.of_stream(_Terminal(True)) == (77, False)
