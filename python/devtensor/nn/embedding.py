"""Rows of a weight by index, one by one and in bags, as modules."""

from __future__ import annotations

from devtensor import _C
from devtensor._C import DeviceArray, _need_bool, _need_int, _need_number, _Parameter
from devtensor._composed.arguments import need_array
from devtensor._composed.layers.embeddings import Mode, check_mode
from devtensor._types import Device, DType
from devtensor.autograd.grad_mode import no_grad
from devtensor.nn import functional as F
from devtensor.nn import init
from devtensor.nn.layers import _float_options
from devtensor.nn.module import Module


class _Rows(Module):
    """What has a weight (num_embeddings, embedding_dim), normal at first, with zeros in the row padding_idx."""

    weight: _Parameter

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        max_norm: float | None,
        norm_type: float,
        scale_grad_by_freq: bool,
        sparse: bool,
        weight: DeviceArray | None,
        freeze: bool,
        device: Device | None,
        dtype: DType | None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        rows, columns = _need_int(op, "num_embeddings", num_embeddings), _need_int(op, "embedding_dim", embedding_dim)
        self.num_embeddings: int = rows
        self.embedding_dim: int = columns
        if padding_idx is not None:
            padding_idx = _need_int(op, "padding_idx", padding_idx)
            if not -rows <= padding_idx < rows:
                raise ValueError("padding_idx must be within num_embeddings")
            padding_idx %= rows
        self.padding_idx: int | None = padding_idx
        self.max_norm: float | None = None if max_norm is None else _need_number(op, "max_norm", max_norm)
        self.norm_type: float = _need_number(op, "norm_type", norm_type)
        self.scale_grad_by_freq: bool = _need_bool(op, "scale_grad_by_freq", scale_grad_by_freq)
        self.sparse: bool = _need_bool(op, "sparse", sparse)
        options, learns = _float_options(op, device, dtype), not _need_bool(op, "_freeze", freeze)
        if weight is None:
            self.weight = _Parameter(_C.empty((rows, columns), **options), requires_grad=learns)
            self.reset_parameters()
            return
        need_array(op, "_weight", weight)
        if weight.shape != (rows, columns):
            raise ValueError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = _Parameter(weight, requires_grad=learns)

    def reset_parameters(self) -> None:
        """New random numbers in weight."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].zero_()

    def _shown_norms(self) -> str:
        text = "" if self.max_norm is None else f", max_norm={self.max_norm}"
        text += "" if self.norm_type == 2 else f", norm_type={self.norm_type}"
        return text + (", scale_grad_by_freq=True" if self.scale_grad_by_freq else "")


def _sizes(embeddings: DeviceArray) -> tuple[int, int]:
    need_array("from_pretrained", "embeddings", embeddings)
    if embeddings.ndim != 2:
        raise ValueError("Embeddings parameter is expected to be 2-dimensional")
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Rows):
    """Rows of weight (num_embeddings, embedding_dim) by index: int64 (*) to (*, embedding_dim).

    weight begins normal, with zeros in the row padding_idx, which gets no gradient. max_norm: rows of a larger norm are
    scaled to it when they are used.

    >>> nn.Embedding(10, 4)(dt.tensor([[1, 2, 3]])).shape
    (1, 3, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: DeviceArray | None = None,
        _freeze: bool = False,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            _freeze,
            device,
            dtype,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: DeviceArray,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding whose weight shares the memory of embeddings, a matrix."""
        rows, columns = _sizes(embeddings)
        freeze = _need_bool("from_pretrained", "freeze", freeze)
        return cls(rows, columns, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse, embeddings, freeze)

    def forward(self, input: DeviceArray) -> DeviceArray:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        sparse = ", sparse=True" if self.sparse else ""
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}{self._shown_norms()}{sparse}"


class EmbeddingBag(_Rows):
    """The sum, mean or largest number, by mode, of the rows of weight that each bag names: (bags, embedding_dim).

    A row of the input (bags, size) is a bag; with offsets (bags) the input is (count), and a bag begins at each offset.

    >>> nn.EmbeddingBag(10, 4)(dt.tensor([1, 2, 4, 5]), dt.tensor([0, 3])).shape
    (2, 4)
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Mode = "mean",
        sparse: bool = False,
        _weight: DeviceArray | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(
            num_embeddings,
            embedding_dim,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight,
            False,
            device,
            dtype,
        )
        check_mode("EmbeddingBag", mode, scale_grad_by_freq, sparse)
        self.mode: Mode = mode
        self.include_last_offset: bool = _need_bool("EmbeddingBag", "include_last_offset", include_last_offset)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: DeviceArray,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: Mode = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag whose weight shares the memory of embeddings, a matrix."""
        rows, columns = _sizes(embeddings)
        made = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        made.weight.requires_grad_(not _need_bool("from_pretrained", "freeze", freeze))
        return made

    def forward(
        self, input: DeviceArray, offsets: DeviceArray | None = None, per_sample_weights: DeviceArray | None = None
    ) -> DeviceArray:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{self._shown_norms()}, mode={self.mode!r}{padding}"
