"""torch.utils.tensorboard: a SummaryWriter that writes through the package tensorboard, where that is installed."""

from __future__ import annotations

import importlib.util
import io
import os
import socket
import struct
import time
import zlib
from collections.abc import Mapping
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from devtensor._C import DeviceArray

if importlib.util.find_spec("tensorboard") is None:
    raise ModuleNotFoundError("torch.utils.tensorboard writes through tensorboard: pip install tensorboard")

__all__ = ["SummaryWriter"]

_REFUSED = frozenset(
    """add_audio add_custom_scalars add_custom_scalars_marginchart add_custom_scalars_multilinechart add_embedding
    add_graph add_image_with_boxes add_mesh add_onnx_graph add_pr_curve add_pr_curve_raw add_tensor add_video
    add_histogram_raw""".split()
)
_Numbers = npt.NDArray[Any]


def __dir__() -> list[str]:
    return __all__


def _host(value: Any) -> _Numbers:
    """Numbers as NumPy has them; those of a device are copied."""
    return value.detach().cpu().numpy() if isinstance(value, DeviceArray) else np.asarray(value)


def _number(op: str, value: Any) -> float:
    found = _host(value)
    if found.size != 1 or found.dtype.kind not in "biuf":
        raise ValueError(f"{op}(): one number is needed, but got shape {found.shape} of {found.dtype}")
    return float(found.reshape(()))


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """A picture of (height, width, 1, 3 or 4 channels) as a PNG file."""
    height, width, channels = pixels.shape
    kind = {1: 0, 3: 2, 4: 6}[channels]
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * channels)], 1)

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">2I5B", width, height, 8, kind, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows.tobytes())) + part(b"IEND", b"")
    )


def _pixels(op: str, image: Any, order: str) -> npt.NDArray[np.uint8]:
    """An image as (height, width, channels) of bytes; floats are from 0 to 1."""
    found, order = _host(image), order.upper()
    if sorted(order) not in (sorted("CHW"), sorted("HW")) or found.ndim != len(order):
        raise ValueError(f"{op}(): dataformats={order!r} does not fit an image of shape {found.shape}")
    found = found[None] if "C" not in order else found.transpose([order.index(c) for c in "CHW"])
    if found.shape[0] not in (1, 3, 4):
        raise ValueError(f"{op}(): an image has 1, 3 or 4 channels, and this one has {found.shape[0]}")
    if found.dtype.kind == "f":
        found = np.clip(found * 255.0, 0, 255)
    return np.ascontiguousarray(found.transpose(1, 2, 0).astype(np.uint8))


class SummaryWriter:
    """Writes numbers, texts, histograms and pictures of a training to files that tensorboard shows.

    log_dir: the folder, by default runs/ with time, machine and comment. add_scalar, add_scalars, add_text,
    add_histogram, add_image, add_images, add_figure, add_hparams, flush and close are there; the other methods of
    PyTorch's writer are refused by name. Arrays on a device are copied to the host. Needs the package tensorboard.
    """

    def __init__(
        self,
        log_dir: str | os.PathLike[str] | None = None,
        comment: str = "",
        purge_step: int | None = None,
        max_queue: int = 10,
        flush_secs: int = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            name = time.strftime("%b%d_%H-%M-%S") + f"_{socket.gethostname()}{comment}"
            log_dir = os.path.join("runs", name)
        self.log_dir: str = os.fspath(log_dir)
        self.purge_step = purge_step
        self._options = max_queue, flush_secs, filename_suffix
        self._writers: dict[str, Any] = {}
        self._open(self.log_dir)
        if purge_step is not None:
            from tensorboard.compat.proto import event_pb2  # type: ignore[import-not-found, unused-ignore]

            start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._write(event_pb2.Event(session_log=start), purge_step, None)

    def __getattr__(self, name: str) -> Any:
        if name in _REFUSED:
            raise AttributeError(
                f"SummaryWriter.{name} is not there in devtensor: PyTorch's writer or tensorboardX has it"
            )
        raise AttributeError(f"'SummaryWriter' object has no attribute {name!r}")

    def _open(self, folder: str) -> Any:
        if folder not in self._writers:
            from tensorboard.summary.writer.event_file_writer import (  # type: ignore[import-not-found, unused-ignore]
                EventFileWriter,
            )

            self._writers[folder] = EventFileWriter(folder, *self._options)
        return self._writers[folder]

    def _write(self, event: Any, step: Any, walltime: float | None, folder: str | None = None) -> None:
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(_number("SummaryWriter", step))
        self._open(self.log_dir if folder is None else folder).add_event(event)

    def _add(self, value: dict[str, Any], step: Any, walltime: float | None, folder: str | None = None) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2

        if not isinstance(value["tag"], str):
            raise TypeError(f"SummaryWriter: argument 'tag' must be str, not {type(value['tag']).__name__}")
        summary = summary_pb2.Summary(value=[summary_pb2.Summary.Value(**value)])
        self._write(event_pb2.Event(summary=summary), step, walltime, folder)

    def get_logdir(self) -> str:
        """The folder."""
        return self.log_dir

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """A number: a loss at a step. new_style and double_precision are accepted."""
        self._add({"tag": tag, "simple_value": _number("add_scalar", scalar_value)}, global_step, walltime)

    def add_scalars(
        self, main_tag: str, tag_scalar_dict: Mapping[str, Any], global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Several numbers in one picture, each in a folder of its own."""
        for tag, value in tag_scalar_dict.items():
            folder = os.path.join(self.log_dir, f"{main_tag.replace('/', '_')}_{tag}")
            self._add({"tag": main_tag, "simple_value": _number("add_scalars", value)}, global_step, walltime, folder)

    def add_text(self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None) -> None:
        """A text in Markdown."""
        from tensorboard.compat.proto import summary_pb2, tensor_pb2, types_pb2

        plugin = summary_pb2.SummaryMetadata.PluginData(plugin_name="text", content=b"")
        tensor = tensor_pb2.TensorProto(dtype=types_pb2.DT_STRING, string_val=[text_string.encode()])
        tensor.tensor_shape.dim.add().size = 1
        metadata = summary_pb2.SummaryMetadata(plugin_data=plugin)
        value = {"tag": f"{tag}/text_summary", "metadata": metadata, "tensor": tensor}
        self._add(value, global_step, walltime)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """How often which values come; bins as in numpy.histogram, or powers of 1.1 by default."""
        from tensorboard.compat.proto import summary_pb2

        found = _host(values).astype(np.float64).reshape(-1)
        if found.size == 0:
            raise ValueError("add_histogram(): the input has no element.")
        if isinstance(bins, str) and bins == "tensorflow":
            grid = 1e-12 * 1.1 ** np.arange(774)
            edges: Any = np.concatenate([-grid[::-1], [0], grid])
        else:
            edges = bins
        counts, limits = np.histogram(found, edges)
        if max_bins is not None and len(counts) > max_bins:
            counts, limits = np.histogram(found, np.linspace(limits[0], limits[-1], max_bins + 1))
        there = np.flatnonzero(counts)
        first, last = (there[0], there[-1] + 1) if len(there) else (0, 1)
        histo = summary_pb2.HistogramProto(
            min=found.min(),
            max=found.max(),
            num=len(found),
            sum=found.sum(),
            sum_squares=found.dot(found),
            bucket_limit=[float(limits[first]), *limits[first + 1 : last + 1].tolist()],
            bucket=[0.0, *counts[first:last].tolist()],
        )
        self._add({"tag": tag, "histo": histo}, global_step, walltime)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """A picture of (channels, height, width), or as dataformats says: floats from 0 to 1, or bytes."""
        from tensorboard.compat.proto import summary_pb2

        pixels = _pixels("add_image", img_tensor, dataformats)
        height, width, channels = pixels.shape
        image = summary_pb2.Summary.Image(
            height=height, width=width, colorspace=channels, encoded_image_string=_png(pixels)
        )
        self._add({"tag": tag, "image": image}, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Pictures of one size as one: in a square, row by row."""
        found, order = _host(img_tensor), dataformats.upper()
        if sorted(order) not in (sorted("NCHW"), sorted("NHW")) or found.ndim != len(order):
            raise ValueError(f"add_images(): dataformats={order!r} does not fit images of shape {found.shape}")
        found = found[:, None] if "C" not in order else found.transpose([order.index(c) for c in "NCHW"])
        count, channels, height, width = found.shape
        columns = int(np.ceil(np.sqrt(count)))
        rows = -(-count // columns)
        grid = np.zeros((channels, rows * height, columns * width), found.dtype)
        for i, image in enumerate(found):
            row, column = divmod(i, columns)
            grid[:, row * height : (row + 1) * height, column * width : (column + 1) * width] = image
        self.add_image(tag, grid, global_step, walltime)

    def add_figure(
        self, tag: str, figure: Any, global_step: Any = None, close: bool = True, walltime: float | None = None
    ) -> None:
        """A figure of matplotlib, or a list of figures of one size; close them afterwards."""
        import matplotlib.pyplot as plt

        figures = figure if isinstance(figure, list) else [figure]
        pictures = []
        for one in figures:
            data = io.BytesIO()
            one.savefig(data, format="raw", dpi=one.dpi)
            width, height = one.canvas.get_width_height()
            pictures.append(np.frombuffer(data.getvalue(), np.uint8).reshape(height, width, 4)[..., :3])
            if close:
                plt.close(one)
        self.add_images(tag, np.stack(pictures), global_step, walltime, "NHWC")

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        hparam_domain_discrete: Any = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Options and what came of them, as a table in a text and as numbers."""
        lines = [f"| {name} | {value} |" for name, value in hparam_dict.items()]
        self.add_text("hparams", "\n".join(["| name | value |", "|---|---|", *lines]), global_step)
        for name, value in metric_dict.items():
            self.add_scalar(name, value, global_step)

    def flush(self) -> None:
        """Write what waits to the files."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Write what waits and close the files; what is added later opens new ones."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def __enter__(self) -> SummaryWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
