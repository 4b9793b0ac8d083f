"""SummaryWriter, read back by tensorboard; refused by name where that is not installed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import devtensor as dt

THERE = importlib.util.find_spec("tensorboard") is not None


def test_without_tensorboard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "devtensor.utils.tensorboard", raising=False)
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *more: None if name == "tensorboard" else find(name))
    with pytest.raises(ModuleNotFoundError, match="writes through tensorboard: pip install tensorboard"):
        importlib.import_module("devtensor.utils.tensorboard")


@pytest.mark.skipif(not THERE, reason="tensorboard is not installed")
def test_what_is_written(tmp_path: Path, device: str) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from devtensor.utils.tensorboard import SummaryWriter

    def read(folder: Path) -> Any:
        found = EventAccumulator(str(folder), size_guidance={"tensors": 0, "histograms": 0, "images": 0})
        return found.Reload()

    loss = dt.tensor(0.5, device=device)
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", loss, 3)
        writer.add_scalar("lr", 0.1, dt.tensor(4))
        writer.add_scalars("both", {"a": 1, "b": loss}, 5)
        writer.add_text("note", "hello", 1)
        writer.add_histogram("weights", dt.arange(100, dtype=dt.float32, device=device), 2)
        writer.add_histogram("few", [0.0, 0.0, 1.0], bins="auto", max_bins=3)
        writer.add_histogram("uneven", [0.5, 2.0, 5.5], bins=[0.0, 1.0, 5.0, 6.0], max_bins=3)
        writer.add_image("picture", dt.ones(3, 4, 5, device=device), 1)
        writer.add_images("pictures", dt.zeros(3, 1, 4, 5))
        writer.add_hparams({"lr": 0.1}, {"accuracy": 0.9})
        assert writer.get_logdir() == str(tmp_path)
        with pytest.raises(AttributeError, match="SummaryWriter.add_graph is not there in devtensor"):
            writer.add_graph(None)
        with pytest.raises(ValueError, match=r"add_scalar\(\): one number is needed, but got shape \(2,\)"):
            writer.add_scalar("loss", dt.ones(2))
        with pytest.raises(TypeError, match="argument 'tag' must be str, not int"):
            writer.add_scalar(3, 1.0)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="dataformats='HWC' does not fit an image of shape"):
            writer.add_image("a", dt.ones(3, 4), dataformats="HWC")
        with pytest.raises(ValueError, match="an image has 1, 3 or 4 channels, and this one has 2"):
            writer.add_image("a", dt.ones(2, 4, 4))
    events = read(tmp_path)
    assert [(e.step, e.value) for e in events.Scalars("loss")] == [(3, 0.5)]
    assert events.Scalars("lr")[0].step == 4 and events.Scalars("accuracy")[0].value == pytest.approx(0.9)
    assert read(tmp_path / "both_b").Scalars("both")[0].value == 0.5
    assert events.Tensors("note/text_summary")[0].tensor_proto.string_val[0] == b"hello"
    assert b"| lr | 0.1 |" in events.Tensors("hparams/text_summary")[0].tensor_proto.string_val[0]
    uneven = events.Histograms("uneven")[0].histogram_value
    assert list(uneven.bucket_limit) == [0.0, 1.0, 5.0, 6.0] and list(uneven.bucket) == [0.0, 1.0, 1.0, 1.0]
    histogram = events.Histograms("weights")[0].histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (0, 99, 100, 4950)
    assert sum(histogram.bucket) == 100 and len(histogram.bucket) == len(histogram.bucket_limit)
    image = events.Images("picture")[0]
    assert (image.width, image.height) == (5, 4) and image.encoded_image_string[1:4] == b"PNG"
    plt = pytest.importorskip("matplotlib.image", reason="Matplotlib is not installed")
    import io

    np.testing.assert_array_equal(plt.imread(io.BytesIO(image.encoded_image_string)), np.ones((4, 5, 3)))
    assert events.Images("pictures")[0].width == 10
