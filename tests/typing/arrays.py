"""Every method, attribute and operator of DeviceArray once, with the types of the results."""

from __future__ import annotations

import copy
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import devtensor as dt

x, y, row = dt.rand(2, 3), dt.rand(2, 3), dt.ones(3)
square, batch = dt.rand(3, 3), dt.rand(4, 3, 3)
whole, places, mask = dt.arange(6).reshape(2, 3), dt.zeros(2, 3, dtype=dt.int64), x > 0.5

# ---------------------------------------------------------------- attributes

assert_type(x.shape, dt.Size)
assert_type(x.strides, tuple[int, ...])
assert_type(x.dtype, dt.dtype)
assert_type(x.device, dt.device)
assert_type(x.ndim + x.nbytes + x.itemsize, int)
assert_type(x.is_cuda, bool)
assert_type(x.requires_grad, bool)
leaf = dt.ones(2, requires_grad=True)
product = leaf * 2
product.retain_grad()
assert_type(product.is_leaf, bool)
assert_type(leaf.grad, dt.DeviceArray | None)
if product.grad_fn is not None:
    assert_type(product.grad_fn.name(), str)
    assert_type(product.grad_fn.next_functions, tuple[tuple[dt.autograd.Node | None, int], ...])
leaf.register_hook(lambda gradient: gradient * 2).remove()
leaf.register_post_accumulate_grad_hook(lambda array: None).remove()
product.sum().backward(retain_graph=True)
product.detach_()
for view in (x.T, x.mT, x.data):
    assert_type(view, dt.DeviceArray)
if x.origin is not None:
    assert_type(x.origin.lineno, int)

# ---------------------------------------------------------------- operators, indices, protocols

for result in (
    x + y, 1 + x, x - 1, 1 - x, x * y, 2.5 * x, x / y, 1 / x, x // 2, 7 // x, x % 2, 3 % x, x**2, 2**x, square @ square,
    -x, +x, abs(x), ~mask, mask & mask, mask | mask, mask ^ mask, x == y, x != 1, x < y, x <= 1, x > y, x >= 0,
):  # fmt: skip
    assert_type(result, dt.DeviceArray)
for item in (
    x[np.array([0, 1])],
    x[np.array([True, False]), 0],
    round(x),
    round(x, 2),
    x[0],
    x[0, 1],
    x[..., -1],
    x[:, None, ::2],
    x[mask],
    x[places[0] % 2],
    x[[1, 0]],
    x[True],
    x[-1, [0, 2]],
):
    assert_type(item, dt.DeviceArray)
x[0] = 1.0
x[mask] = 0
x[:, 1] = y[:, 1]
x += y
x -= 1
x *= 2
x /= 2
square @= square
assert_type(x.tobytes(), bytes)
assert_type(x.to_device("cpu"), dt.DeviceArray)
assert_type(x.__array_interface__, dict[str, Any])
assert_type(len(x), int)
assert_type(bool(x.sum() > 0), bool)
assert_type(int(whole[0, 1]), int)
assert_type(float(x[0, 0]), float)
assert_type(list(x), list[dt.DeviceArray])
assert_type(list(range(10))[whole[0, 1]], int)
assert_type(copy.deepcopy(copy.copy(x)), dt.DeviceArray)
assert_type(f"{x.sum():.3f}", str)
assert_type(memoryview(x), memoryview)
assert_type(np.asarray(x), npt.NDArray[Any])
shared: npt.NDArray[Any] = np.from_dlpack(x)
assert_type(1.0 in x, bool)
assert_type({x: 1}[x], int)

# ---------------------------------------------------------------- values, places, copies

assert_type(x.size(), dt.Size)
assert_type(x.size(0) + x.stride(0) + x.dim() + x.numel() + x.element_size() + x.data_ptr(), int)
assert_type(x.stride(), tuple[int, ...])
assert_type(x.is_contiguous(), bool)
assert_type(x.is_pinned(), bool)
assert_type(x.is_floating_point(), bool)
assert_type(x.sum().item(), bool | int | float)
assert_type(x.numpy(), npt.NDArray[Any])
rows: list[list[float]] = x.tolist()
for moved in (
    x.to("cpu"), x.to(dt.float64), x.to("cpu", dt.float16, copy=True), x.to(y), x.to(device="cpu", non_blocking=True),
    x.cpu(), x.float(), x.double(), x.half(), x.bfloat16(), x.int(), x.long(), x.short(), x.char(), x.byte(), x.bool(),
    x.astype("int32"), x.type_as(y), x.clone(), x.detach(), x.contiguous(), x.requires_grad_(False),
    x.new_empty(2), x.new_zeros((2, 3)), x.new_ones(2, 3, dtype=dt.int8), x.new_full((2,), 1.5),
):  # fmt: skip
    assert_type(moved, dt.DeviceArray)
if dt.cuda.is_available():
    assert_type(x.cuda(), dt.DeviceArray)
    assert_type(x.cuda(0).to("cpu"), dt.DeviceArray)
    assert_type(x.pin_memory(), dt.DeviceArray)

# ---------------------------------------------------------------- ops of one array

for unary in (
    x.neg(), x.abs(), x.absolute(), x.sign(), x.square(), x.exp(), x.expm1(), x.log(), x.log1p(), x.log2(), x.log10(),
    x.sqrt(), x.rsqrt(), x.reciprocal(), x.sin(), x.cos(), x.tan(), x.tanh(), x.sigmoid(), x.erf(), x.floor(), x.ceil(),
    x.round(), x.trunc(), x.isnan(), x.isinf(), x.isfinite(), x.logical_not(), whole.bitwise_not(), x.relu(), x.relu6(),
    x.leaky_relu(0.1), x.elu(), x.silu(), x.softplus(), x.hardtanh(), x.gelu(), x.clamp(0, 1), x.clip(max=1),
):  # fmt: skip
    assert_type(unary, dt.DeviceArray)
for changed in (
    x.neg_(), x.abs_(), x.sign_(), x.square_(), x.exp_(), x.expm1_(), x.log_(), x.log1p_(), x.log2_(), x.log10_(),
    x.sqrt_(), x.rsqrt_(), x.reciprocal_(), x.sin_(), x.cos_(), x.tan_(), x.tanh_(), x.sigmoid_(), x.erf_(), x.floor_(),
    x.ceil_(), x.round_(), x.trunc_(), x.logical_not_(), whole.bitwise_not_(), x.relu_(), x.relu6_(), x.leaky_relu_(),
    x.elu_(), x.silu_(), x.softplus_(), x.hardtanh_(), x.clamp_(0, 1), x.copy_(y), x.fill_(2), x.zero_(), x.normal_(),
    x.uniform_(),
):  # fmt: skip
    assert_type(changed, dt.DeviceArray)

# ---------------------------------------------------------------- ops of several

for binary in (
    x.add(y, alpha=2), x.sub(1), x.mul(y), x.div(2), x.floor_divide(2), x.remainder(y), x.pow(2), x.maximum(y),
    x.minimum(y), x.eq(1), x.ne(y), x.lt(y), x.le(y), x.gt(0), x.ge(y), x.logical_and(y), x.logical_or(y),
    x.logical_xor(y), whole.bitwise_and(1), whole.bitwise_or(whole), whole.bitwise_xor(3), x.lerp(y, 0.5),
    x.isclose(y), x.where(mask, y), x.masked_fill(mask, 0), square.matmul(square), square.mm(square), batch.bmm(batch),
    square.mv(row), row.dot(row), row.outer(row), square.addmm(square, square), batch.baddbmm(batch, batch),
):  # fmt: skip
    assert_type(binary, dt.DeviceArray)
for changed in (
    x.add_(y), x.sub_(1), x.mul_(2), x.div_(y + 1), x.floor_divide_(2), x.remainder_(3), x.pow_(2), x.eq_(y), x.ne_(y),
    x.lt_(y), x.le_(1), x.gt_(y), x.ge_(y), x.logical_and_(y), x.logical_or_(y), x.logical_xor_(y),
    whole.bitwise_and_(3), whole.bitwise_or_(1), whole.bitwise_xor_(1), x.lerp_(y, 0.5), x.masked_fill_(mask, 1),
):  # fmt: skip
    assert_type(changed, dt.DeviceArray)
assert_type(x.allclose(y), bool)
assert_type(x.equal(y), bool)

# ---------------------------------------------------------------- reductions, shapes, selection

for reduced in (
    x.sum(), x.sum(0, keepdim=True), x.prod(axis=1), x.mean((0, 1)), x.amax(0), x.amin(0), x.argmax(), x.argmin(1),
    mask.any(), mask.all(0), x.max(), x.min(), x.var(), x.std(0), x.logsumexp(1), x.norm(), x.softmax(1),
    x.log_softmax(-1),
):  # fmt: skip
    assert_type(reduced, dt.DeviceArray)
assert_type(x.max(1), dt.max_result)
assert_type(x.min(axis=1).values, dt.DeviceArray)
for shaped in (
    x.reshape(3, 2), x.view(6), x.view((3, 2)), x.view_as(y), x.flatten(), x.unflatten(1, (3, 1)), x.ravel(),
    x.transpose(0, 1), x.swapaxes(0, 1), x.t(), x.permute(1, 0), x.movedim(0, 1), x.moveaxis(0, 1), x.squeeze(),
    x.unsqueeze(0), row.expand(2, 3), row.expand_as(x), row.broadcast_to((2, 3)), x.narrow(1, 0, 2), x.select(0, 1),
    x.diagonal(),
    x.tril(), x.triu(1), x.flip(0), x.roll(1), x.repeat(2, 1), x.repeat_interleave(2), x.tile(2, 1), x.rot90(1, (0, 1)),
    x.fliplr(), x.flipud(), x.adjoint(), x.swapdims(0, 1), x.reshape_as(y), x.narrow_copy(1, 0, 2), x.unfold(1, 2, 1),
    x.diff(n=2), x.diag(), x.diag_embed(1), x.clone().tril_(), x.clone().triu_(1), x.cov(correction=0), x.corrcoef(),
    x.inner(y), x.kron(y), x.cross(y, 1), square.trace(), row.addmv(square, row), square.addr(row, row, beta=0.5),
    square.addbmm(batch, batch, alpha=2), square.matrix_power(2), square.H, batch.mH, square.det(), square.inverse(),
    square.logdet(), square.pinverse(), square.matrix_exp(), (square @ square.T + 1).cholesky(), square.qr().Q,
    square.svd(some=False).V, square.slogdet().sign, dt.ones(1, 2).squeeze_(), dt.ones(2).unsqueeze_(0),
    dt.ones(2, 3).transpose_(0, 1), dt.ones(2, 3).t_(), dt.ones(2, 3).swapaxes_(0, 1), dt.ones(2, 3).swapdims_(0, 1),
    dt.ones(2, 3).resize_(3, 2),
):  # fmt: skip
    assert_type(shaped, dt.DeviceArray)
for parts in (
    x.split(1), x.chunk(2), x.unbind(), mask.nonzero(as_tuple=True), x.tensor_split(2, 1), x.hsplit(3), x.vsplit((1,)),
    batch.dsplit(3),
):  # fmt: skip
    assert_type(parts, tuple[dt.DeviceArray, ...])
for chosen in (
    x.index_select(0, places[0] % 2), x.gather(1, places), x.take(places), x.take_along_dim(places, 1), mask.nonzero(),
    x.masked_select(mask), x.scatter_add(1, places, x), x.scatter_add_(1, places, x), x.index_add(1, places[0], x),
    x.index_add_(1, places[0], x, alpha=2),
):  # fmt: skip
    assert_type(chosen, dt.DeviceArray)
name: str = dt.ones(2).type()
