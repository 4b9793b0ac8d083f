"""Names of old and of recent programs: formats of memory, sizes, devices of any kind, states of generators."""

from __future__ import annotations

from typing import Any, assert_type

import devtensor as dt
from devtensor import accelerator, random, special

x, image = dt.rand(2, 3), dt.rand(1, 2, 3, 3)

last: dt.memory_format = dt.channels_last
for value in (
    image.contiguous(memory_format=last), image.clone(memory_format=dt.preserve_format), image.to(memory_format=last),
    dt.clone(image, memory_format=dt.contiguous_format), x.new(2, 3), x.new_tensor([1.0]), x.real, dt.positive(x),
    x.positive(), x.clone().apply_(abs), x.clone().map_(x, max), dt.logspace(0, 1, 3), dt.range(1, 3),
    x.clone().random_(0, 5), x.clone().log_normal_(), x.clone().cauchy_(), x.clone().geometric_(0.5),
    dt.normal(x, x), dt.repeat_interleave(x, dt.tensor([1, 2]), 0, output_size=3),
    x.repeat_interleave(dt.tensor([1, 2]), 0), x[range(2)],
    dt.ones(2).resize_as_(x), x.as_strided((2,), (1,)), dt.as_strided(x, (2,), (1,), 1),
    x.detach().as_strided_((2,), (1,)), dt.linspace(x[0, 0], 1, 3), dt.logspace(0, x[0, 0], 3), dt.full((2,), x[0, 0]),
    dt.full_like(x, x[0, 0]), x.new_full((2,), x[0, 0]), dt.nextafter(x, x), x.nextafter(x),
    dt.hann_window(4), dt.hamming_window(4, alpha=0.5), dt.blackman_window(4, False), dt.bartlett_window(4),
    x.fmax(x), x.fmin(x), x.logaddexp2(x),
    dt.fmax(x, x), dt.fmin(x, x), dt.logaddexp2(x, x), dt.select_scatter(x, x[0], 0, 1), x.select_scatter(x[0], 0, 1),
    dt.slice_scatter(x, x[:1], 0, 1), x.slice_scatter(x, step=1), dt.diagonal_scatter(x, x[0, :2]),
    x.diagonal_scatter(x[0, :2]), x.clone().fill_diagonal_(1.0), x.clone().nextafter_(x),
    dt.cumulative_trapezoid(x, dx=0.5),
    dt.randint_like(x, 5), dt.randint_like(x, 2, 5, dtype=dt.int64), dt.scalar_tensor(3), dt.empty_strided((2,), (1,)),
    dt.real(x), dt.conj(x), x.conj(), dt.conj_physical(x), x.conj_physical(), dt.resolve_conj(x), x.resolve_conj(),
    dt.angle(x), x.angle(), dt.i0(x), x.i0(), dt.special.i0(x), dt.special.i0e(x), dt.special.i1(x), dt.special.i1e(x),
    dt.bitwise_left_shift(dt.arange(3), 2), dt.arange(3).bitwise_left_shift(2), dt.bitwise_right_shift(8, dt.arange(3)),
    dt.arange(3).bitwise_right_shift(dt.arange(3)), dt.kaiser_window(4, beta=2.0),
    dt.diagflat(x, 1), x.diagflat(), x.sum_to_size(1, 3), x.sum_to_size((3,)), dt.vdot(x[0], x[0]), x[0].vdot(x[1]),
    dt.ger(x[0], x[0]), x[0].ger(x[1]), x[dt.newaxis], *dt.unravel_index(dt.arange(3), (2, 3)),
    *dt.split_with_sizes(x, [1, 1]), *x.split_with_sizes((1, 2), 1),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)
assert_type(image.is_contiguous(memory_format=dt.channels_last), bool)
assert dt.rand(1, 2, 3, 3, 3).contiguous(memory_format=dt.channels_last_3d).stride(1) == 1
dt.nn.Conv2d(2, 3, 3).to(memory_format=dt.channels_last)
kind: dt.layout = x.layout
assert kind == dt.strided

size = dt.Size([2, 3])
assert_type(size.numel(), int)
assert_type(size[1:], dt.Size)
assert_type(size[0], int)
for count in (x.nelement(), x.ndimension(), x.storage_offset(), dt.get_device(x), x.get_device()):
    assert_type(count, int)
for truth in (
    dt.is_complex(x), x.is_complex(), dt.is_signed(x), x.is_signed(), dt.is_storage(x), x.is_cpu, x.is_meta, x.is_mps,
    x.is_quantized, x.is_sparse,
):  # fmt: skip
    assert_type(truth, bool)
memory, raw = x.storage(), x.untyped_storage()
assert_type(memory, dt.TypedStorage)
assert_type(raw, dt.UntypedStorage)
assert_type(memory.untyped(), dt.UntypedStorage)
assert_type(memory.fill_(0.0), dt.TypedStorage)
assert_type(dt.default_generator.get_state(), dt.DeviceArray)
assert_type(dt.default_generator.clone_state(), dt.Generator)
refused = (
    x.set_, x.to_sparse, x.to_sparse_csr, x.coalesce, x.stft,
    x.istft, x.share_memory_,
)  # fmt: skip
assert all(callable(method) for method in refused)

for value in (
    special.digamma(x), special.entr(x), special.erf(x), special.erfc(x), special.erfinv(x), special.exp2(x),
    special.expit(x), special.expm1(x), special.gammaln(x), special.log1p(x), special.log_softmax(x, 1),
    special.logit(x), special.logsumexp(x, 1), special.ndtr(x), special.ndtri(x), special.psi(x), special.round(x),
    special.sinc(x), special.softmax(x, 1), special.xlogy(x, x), special.xlog1py(x, 2.0), special.log_ndtr(x),
    special.erfcx(x), special.multigammaln(x + 1, 2),
    special.polygamma(1, x), special.gammainc(x, x), special.gammaincc(x, x),
):  # fmt: skip
    assert_type(value, dt.DeviceArray)

state = dt.get_rng_state()
assert_type(state, dt.DeviceArray)
dt.set_rng_state(state)
random.set_rng_state(random.get_rng_state())
with random.fork_rng(enabled=True):
    random.manual_seed(random.initial_seed())
    assert_type(random.seed(), int)
dt.set_rng_state(state)

dt.cuda.set_rng_state(dt.cuda.get_rng_state())
states: list[dt.DeviceArray] = dt.cuda.get_rng_state_all()
dt.cuda.set_rng_state_all(states)

assert_type(accelerator.is_available(), bool)
assert_type(accelerator.device_count(), int)
assert_type(accelerator.current_accelerator(), dt.device | None)
if accelerator.is_available():
    accelerator.set_device_index(accelerator.current_device_index())
    accelerator.set_device_idx(accelerator.current_device_idx())
    accelerator.set_stream(accelerator.current_stream())
    accelerator.synchronize()
    accelerator.empty_cache()
    assert_type(accelerator.memory_allocated() + accelerator.max_memory_allocated(), int)

places = dt.empty(2, 3, dtype=dt.int64)
assert_type(dt.sort(x, 1, out=(dt.empty(2, 3), places)), dt.sort_result)
for written in (
    dt.cat([x, x], out=dt.empty(4, 3)), dt.addcmul(x, x, x, out=dt.empty(2, 3)), dt.std(x, out=dt.empty(())),
    dt.hstack([x, x], out=dt.empty(2, 6)), dt.gather(x, 1, dt.zeros(2, 3, dtype=dt.int64), out=dt.empty(2, 3)),
):  # fmt: skip
    assert_type(written, dt.DeviceArray)


class Image(dt.Tensor):
    caption: str = ""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs)


class Weight(dt.nn.Parameter):
    tag: int = 0


shown: Image = x.as_subclass(Image)
shown.caption = "two"
weight = Weight(x)
assert isinstance(shown + 1, Image)
assert_type(weight * 2, dt.DeviceArray)
