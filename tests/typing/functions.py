"""Every function of devtensor once, with the types that its results have for mypy and pyright."""

from __future__ import annotations

import io
import warnings
from typing import Any, assert_type

import numpy as np

import devtensor as dt

x, y, row = dt.rand(2, 3), dt.rand(2, 3), dt.ones(3)
square, batch, image = dt.rand(3, 3), dt.rand(4, 3, 3), dt.rand(1, 2, 6, 6)
whole, places, mask = dt.arange(6).reshape(2, 3), dt.zeros(2, 3, dtype=dt.int64), x > 0.5
labels = dt.array([0, 2])

# ---------------------------------------------------------------- creation

assert_type(dt.array([[1.0, 2.0], [3.0, 4.0]], dtype=dt.float32, device="cpu"), dt.DeviceArray)
assert_type(dt.tensor(2.5, dtype="float64"), dt.DeviceArray)
assert_type(dt.asarray(np.ones(3), device=dt.device("cpu")), dt.DeviceArray)
assert_type(dt.as_tensor([1, 2], dt.int32), dt.DeviceArray)
assert_type(dt.empty(2, 3), dt.DeviceArray)
assert_type(dt.zeros((2, 3), dtype=np.float32), dt.DeviceArray)
assert_type(dt.ones(2, 3, dtype=float), dt.DeviceArray)
assert_type(dt.full((2, 3), 7), dt.DeviceArray)
assert_type(dt.arange(0, 1, 0.25), dt.DeviceArray)
assert_type(dt.linspace(0, 1, 5), dt.DeviceArray)
assert_type(dt.eye(2, 3), dt.DeviceArray)
assert_type(dt.rand(2, 3, generator=dt.Generator()), dt.DeviceArray)
assert_type(dt.randn(2, 3, dtype=dt.float16), dt.DeviceArray)
assert_type(dt.randint(0, 10, (2, 3)), dt.DeviceArray)
assert_type(dt.randperm(5), dt.DeviceArray)
assert_type(dt.normal(0.0, 1.0, (2, 3)), dt.DeviceArray)
assert_type(dt.empty_like(x), dt.DeviceArray)
assert_type(dt.zeros_like(x, dtype=dt.int8), dt.DeviceArray)
assert_type(dt.ones_like(x, device="cpu"), dt.DeviceArray)
assert_type(dt.full_like(x, 1.5), dt.DeviceArray)
assert_type(dt.rand_like(x), dt.DeviceArray)
assert_type(dt.randn_like(x), dt.DeviceArray)
assert_type(dt.from_numpy(np.arange(3)), dt.DeviceArray)
assert_type(dt.frombuffer(bytearray(8), dtype=dt.int32), dt.DeviceArray)
assert_type(dt.from_dlpack(x), dt.DeviceArray)
assert_type(dt.clone(x), dt.DeviceArray)
assert_type(dt.detach(x), dt.DeviceArray)

# ---------------------------------------------------------------- one array

for unary in (
    dt.neg(x), dt.abs(x), dt.absolute(x), dt.sign(x), dt.square(x), dt.exp(x), dt.expm1(x), dt.log(x), dt.log1p(x),
    dt.log2(x), dt.log10(x), dt.sqrt(x), dt.rsqrt(x), dt.reciprocal(x), dt.sin(x), dt.cos(x), dt.tan(x), dt.tanh(x),
    dt.sigmoid(x), dt.erf(x), dt.floor(x), dt.ceil(x), dt.round(x), dt.trunc(x), dt.isnan(x), dt.isinf(x),
    dt.isfinite(x), dt.logical_not(x), dt.bitwise_not(whole), dt.relu(x, out=y), dt.relu6(x), dt.leaky_relu(x, 0.1),
    dt.elu(x, 0.5), dt.silu(x), dt.softplus(x), dt.hardtanh(x, -1, 1), dt.gelu(x, approximate="tanh"),
    dt.clamp(x, 0, 1), dt.clip(x, min=0.5), dt.clamp(x, x, y),
):  # fmt: skip
    assert_type(unary, dt.DeviceArray)

# ---------------------------------------------------------------- two arrays

for binary in (
    dt.add(x, y, alpha=2), dt.sub(x, 1), dt.mul(x, 2.5), dt.div(x, y, rounding_mode="floor"), dt.floor_divide(x, 2),
    dt.remainder(x, y), dt.pow(x, 2), dt.maximum(x, y), dt.minimum(x, y), dt.eq(x, y), dt.ne(x, 1), dt.lt(x, y),
    dt.le(x, y), dt.gt(x, 0.5), dt.ge(x, y), dt.logical_and(x, y), dt.logical_or(x, y), dt.logical_xor(x, y),
    dt.bitwise_and(whole, whole), dt.bitwise_or(whole, 1), dt.bitwise_xor(whole, whole), dt.lerp(x, y, 0.5),
    dt.isclose(x, y), dt.where(mask, x, y), dt.where(mask, x, 0),
):  # fmt: skip
    assert_type(binary, dt.DeviceArray)
assert_type(dt.where(mask), tuple[dt.DeviceArray, ...])
assert_type(dt.allclose(x, y, rtol=1e-3), bool)
assert_type(dt.equal(x, y), bool)
assert_type(dt.array_equal(x, y), bool)

# ---------------------------------------------------------------- reductions

for reduced in (
    dt.sum(x), dt.sum(x, (0, 1)), dt.sum(x, axis=0, keepdims=True), dt.prod(x, 0), dt.mean(x, 1, keepdim=True),
    dt.amax(x, 0), dt.amin(x, 0), dt.argmax(x), dt.argmin(x, 1), dt.any(mask), dt.all(mask, 0), dt.max(x), dt.min(x),
    dt.max(x, y), dt.var(x), dt.var(x, 0, correction=0), dt.std(x, axis=1), dt.logsumexp(x, 1), dt.norm(x),
    dt.softmax(x, 1), dt.log_softmax(x, dim=-1),
):  # fmt: skip
    assert_type(reduced, dt.DeviceArray)
assert_type(dt.max(x, 1), dt.max_result)
assert_type(dt.min(x, dim=1).indices, dt.DeviceArray)
values, indices = dt.min(x, 1)
least: dt.min_result = dt.min(x, 1)

# ---------------------------------------------------------------- products, convolutions, pooling, networks

for product in (
    dt.matmul(square, square), dt.mm(square, square, out=dt.empty(3, 3)), dt.bmm(batch, batch), dt.mv(square, row),
    dt.dot(row, row), dt.outer(row, row), dt.addmm(square, square, square, beta=0.5), dt.baddbmm(batch, batch, batch),
    dt.linear(x, square, row, activation="relu"), dt.conv1d(batch, dt.rand(5, 3, 2)),
    dt.conv2d(image, dt.rand(4, 2, 3, 3), padding="same"), dt.max_pool2d(image, 2), dt.avg_pool2d(image, (2, 2)),
    dt.adaptive_avg_pool2d(image, (3, 2)), dt.pad(image, (1, 1), value=0.5), dt.embedding(places, square),
    dt.batch_norm(image, None, None, training=True), dt.layer_norm(x, (3,)), dt.dropout(x, 0.1),
    dt.cross_entropy(x, labels), dt.nll_loss(x, labels), dt.mse_loss(x, y, reduction="sum"),
    dt.einsum("ij,kj->ik", x, y), dt.tensordot(x, square, 1), dt.inner(x, y), dt.kron(x, y), dt.cross(x, y, 1),
    dt.cdist(x, y, p=1.0), dt.trace(square), dt.addmv(row, square, row, beta=0.5), dt.addr(square, row, row, alpha=2),
    dt.addbmm(square, batch, batch), dt.chain_matmul(x, square, square), dt.matrix_power(square, 3),
):  # fmt: skip
    assert_type(product, dt.DeviceArray)
assert_type(dt.max_pool2d(image, 2, return_indices=True), tuple[dt.DeviceArray, dt.DeviceArray])

# ---------------------------------------------------------------- shapes

for shaped in (
    dt.reshape(x, (3, 2)), dt.reshape(x, 3, 2), dt.view(x, -1), dt.flatten(x), dt.unflatten(x, 1, (3, 1)),
    dt.ravel(x), dt.transpose(x, 0, 1), dt.swapaxes(x, 0, 1), dt.t(x), dt.permute(x, 1, 0), dt.movedim(x, 0, 1),
    dt.moveaxis(x, (0, 1), (1, 0)), dt.squeeze(x), dt.unsqueeze(x, 0), dt.expand(row, 2, 3),
    dt.broadcast_to(row, (2, 3)), dt.narrow(x, 1, 0, 2), dt.select(x, 0, 1), dt.tril(x), dt.triu(x, 1), dt.flip(x, 0),
    dt.roll(x, 1, 0), dt.repeat_interleave(x, 2, 0), dt.cat([x, y]), dt.concat((x, y), 1),
    dt.concatenate([x, y], axis=0), dt.stack([x, y], dim=0), dt.hstack([x, y]), dt.vstack((x, row)), dt.dstack([x, y]),
    dt.column_stack([x, y]), dt.row_stack([x, y]), dt.block_diag(x, row), dt.cartesian_prod(row, row),
    dt.combinations(row, 2, True), dt.diag(row, 1), dt.diag_embed(x, 0, 0, 2), dt.tril_indices(3, 4, 1),
    dt.triu_indices(3, 4, dtype=dt.int32, device="cpu"), dt.tile(x, (2, 1)), dt.rot90(x, 2, (0, 1)), dt.fliplr(x),
    dt.flipud(x), dt.swapdims(x, 0, 1), dt.adjoint(x), dt.narrow_copy(x, 1, 0, 2), dt.diff(x, 1, 0, prepend=y),
    dt.vander(row, 3, increasing=True), dt.trapezoid(x, row), dt.trapz(x, dx=0.5), dt.cov(x), dt.corrcoef(x),
):  # fmt: skip
    assert_type(shaped, dt.DeviceArray)
for parts in (
    dt.split(x, 1), dt.chunk(x, 2, dim=1), dt.unbind(x), dt.tensor_split(x, (1,), 1), dt.hsplit(x, 3), dt.vsplit(x, 2),
    dt.dsplit(batch, (1, 2)), dt.meshgrid(row, row, indexing="xy"), dt.broadcast_tensors(x, row),
):  # fmt: skip
    assert_type(parts, tuple[dt.DeviceArray, ...])
assert_type(dt.broadcast_shapes((2, 1), 3), dt.Size)
raised: list[dt.DeviceArray] = [dt.atleast_1d(x), dt.atleast_2d(x), dt.atleast_3d(x)]

# ---------------------------------------------------------------- selection

for chosen in (
    dt.index_select(x, 0, labels % 2), dt.gather(x, 1, places), dt.take(x, places), dt.take_along_dim(x, places, 1),
    dt.masked_fill(x, mask, 0), dt.masked_select(x, mask), dt.nonzero(mask), dt.scatter_add(x, 1, places, x),
    dt.index_add(x, 1, labels, x[:, 1:], alpha=0.5),
):  # fmt: skip
    assert_type(chosen, dt.DeviceArray)
assert_type(dt.nonzero(mask, as_tuple=True), tuple[dt.DeviceArray, ...])

# ---------------------------------------------------------------- questions and settings

assert_type(dt.numel(x), int)
assert_type(dt.is_tensor(x), bool)
assert_type(dt.is_floating_point(x), bool)
assert_type(dt.manual_seed(1), dt.Generator)
dt.cuda.manual_seed(1)
dt.cuda.manual_seed_all(1)
assert_type(dt.cuda.is_bf16_supported(), bool)
assert_type(dt.cuda.is_initialized(), bool)
assert_type(dt.finfo(dt.float32).eps, float)
assert_type(dt.iinfo(dt.int64).max, int)
assert_type(dt.autograd.Variable(dt.ones(2), requires_grad=True), dt.Tensor)
dt.set_float32_matmul_precision("high")
assert_type(dt.get_float32_matmul_precision(), str)
dt.use_deterministic_algorithms(True)
assert_type(dt.are_deterministic_algorithms_enabled(), bool)
assert_type(dt.is_inference_mode_enabled(), bool)
assert_type(dt.backends.cudnn.allow_tf32, bool)
assert_type(dt.backends.cudnn.is_available(), bool)
assert_type(dt.backends.cudnn.version(), int | None)
dt.backends.cudnn.benchmark = True
assert_type(dt.backends.mps.is_available(), bool)
assert_type(dt.backends.mkl.is_available(), bool)
assert_type(dt.backends.mkldnn.is_available(), bool)
assert_type(dt.backends.openmp.is_available(), bool)
assert_type(dt.backends.cpu.get_cpu_capability(), str)
assert_type(dt.backends.cuda.flash_sdp_enabled(), bool)
with dt.backends.cudnn.flags(benchmark=True), dt.backends.cuda.sdp_kernel(enable_flash=False), dt.device("cpu") as cpu:
    assert_type(cpu, dt.device)
with warnings.catch_warnings(action="ignore"):
    compiled = dt.compile(dt.nn.Linear(2, 2))
assert_type(dt.nn.init.trunc_normal_(dt.empty(2), std=0.02), dt.Tensor)
assert_type(dt.seed(), int)
assert_type(dt.initial_seed(), int)
assert_type(dt.get_default_device(), dt.device)
assert_type(dt.get_default_dtype(), dt.dtype)
dt.set_default_device("cpu")
dt.set_default_dtype(dt.float32)
assert_type(dt.get_num_threads(), int)
dt.set_num_threads(dt.get_num_threads())
dt.set_float32_precision(dt.get_float32_precision())
dt.set_printoptions(precision=3, threshold=float("inf"), sci_mode=False)
dt.set_printoptions(profile="default")
assert_type(dt.get_printoptions(), dict[str, Any])
assert_type(dt.counters(), dict[str, int])
dt.set_error_detail(dt.get_error_detail())


@dt.explain_torch(origins=False)
def step(rate: float) -> float:
    return rate / 2


assert_type(step(1.0), float)
with dt.explain_torch() as explained:
    assert_type(explained, dt.explain_torch)
known = dt.explanation(ValueError("of a user's"))
if known is not None:
    assert_type(known, dt.Explanation)
    assert_type(known.to_dict(), dict[str, Any])
    assert_type(known.fix, str | None)

for dtype in (
    dt.float16, dt.bfloat16, dt.float32, dt.float64, dt.int8, dt.int16, dt.int32, dt.int64, dt.uint8, dt.bool,
    dt.half, dt.float, dt.double, dt.short, dt.int, dt.long,
):  # fmt: skip
    assert_type(dtype, dt.dtype)
assert_type(dt.pi + dt.e + dt.inf + dt.nan, float)

# ---------------------------------------------------------------- files, modes, classes

file = io.BytesIO()
dt.save({"x": x}, file)
file.seek(0)
state = dt.load(file, device="cpu")


@dt.no_grad()
def decorated(a: dt.Tensor, n: int) -> dt.Tensor:
    return a * n


assert_type(decorated(x, 2), dt.DeviceArray)
with dt.no_grad(), dt.inference_mode(), dt.enable_grad(), dt.set_grad_enabled(False):
    pass
assert_type(dt.device("cuda", 0).index, int | None)
assert_type(dt.__version__, str)
