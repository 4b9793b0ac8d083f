"""autocast: the dtype that each op gives, beside PyTorch's; recorded casts; errors that name the caller's operands."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import Any

import pytest
from support import CUDA_DEVICES, DEVICES

import devtensor as dt

Op = Callable[[Any, Callable[..., Any]], Any]  # of the library and a maker of operands


def _elementwise(name: str) -> Op:
    return lambda lib, f: getattr(lib, name)(f(3))


def _loss(name: str, *shapes: tuple[int, ...]) -> Op:
    return lambda lib, f: getattr(lib.nn.functional, name)(*(f(*shape) for shape in shapes))


def _layer(name: str, *sizes: int) -> Op:
    def call(lib: Any, f: Callable[..., Any]) -> Any:
        like = f(1)
        result = getattr(lib.nn, name)(*sizes).to(like.device).to(like.dtype)(f(2, 1, sizes[0]))
        return result[0] if isinstance(result, tuple) else result

    return call


def _attention(lib: Any, f: Callable[..., Any]) -> Any:
    x = f(2, 1, 4)
    return lib.nn.MultiheadAttention(4, 2, add_bias_kv=True).to(x.device).to(x.dtype)(x, x, x)[0]


OPS: dict[str, Op] = {
    "matmul": lambda lib, f: lib.matmul(f(3, 3), f(3, 3)),
    "@": lambda lib, f: f(3, 3) @ f(3, 3),
    "mm": lambda lib, f: f(3, 3).mm(f(3, 3)),
    "bmm": lambda lib, f: lib.bmm(f(2, 3, 3), f(2, 3, 3)),
    "mv": lambda lib, f: lib.mv(f(3, 3), f(3)),
    "dot": lambda lib, f: lib.dot(f(3), f(3)),
    "outer": lambda lib, f: lib.outer(f(3), f(3)),
    "addmm": lambda lib, f: lib.addmm(f(3, 3), f(3, 3), f(3, 3)),
    "addmv": lambda lib, f: lib.addmv(f(3), f(3, 3), f(3)),
    "addr": lambda lib, f: lib.addr(f(3, 3), f(3), f(3)),
    "baddbmm": lambda lib, f: lib.baddbmm(f(2, 3, 3), f(2, 3, 3), f(2, 3, 3)),
    "addbmm": lambda lib, f: lib.addbmm(f(3, 3), f(2, 3, 3), f(2, 3, 3)),
    "multi_dot": lambda lib, f: lib.linalg.multi_dot([f(3, 3), f(3, 3)]),
    "vecdot": lambda lib, f: lib.linalg.vecdot(f(3), f(3)),
    "einsum": lambda lib, f: lib.einsum("ij,jk->ik", f(3, 3), f(3, 3)),
    "einsum of one": lambda lib, f: lib.einsum("ij->ji", f(3, 3)),
    "einsum without a sum": lambda lib, f: lib.einsum("i,j->ij", f(3), f(3)),
    "einsum of all": lambda lib, f: lib.einsum("ij,ij->", f(3, 3), f(3, 3)),
    "tensordot": lambda lib, f: lib.tensordot(f(3, 3), f(3, 3), 1),
    "tensordot of all": lambda lib, f: lib.tensordot(f(3, 3), f(3, 3), dims=2),
    "softmin": lambda lib, f: lib.nn.functional.softmin(f(3), 0),
    "linalg.norm": lambda lib, f: lib.linalg.norm(f(3, 3)),
    "linear": lambda lib, f: lib.nn.functional.linear(f(3, 3), f(3, 3), f(3)),
    "conv1d": lambda lib, f: lib.nn.functional.conv1d(f(2, 3, 9), f(4, 3, 3), f(4)),
    "conv2d": lambda lib, f: lib.nn.functional.conv2d(f(2, 3, 9, 9), f(4, 3, 3, 3)),
    "conv3d": lambda lib, f: lib.nn.functional.conv3d(f(2, 3, 5, 5, 5), f(4, 3, 3, 3, 3)),
    "conv_transpose1d": lambda lib, f: lib.nn.functional.conv_transpose1d(f(2, 3, 9), f(3, 4, 3)),
    "conv_transpose2d": lambda lib, f: lib.nn.functional.conv_transpose2d(f(2, 3, 9, 9), f(3, 4, 3, 3)),
    "conv_transpose3d": lambda lib, f: lib.nn.functional.conv_transpose3d(f(2, 3, 4, 4, 4), f(3, 4, 3, 3, 3)),
    "prelu": lambda lib, f: lib.nn.functional.prelu(f(2, 3), f(3)),
    "attention": lambda lib, f: lib.nn.functional.scaled_dot_product_attention(*(f(1, 2, 4, 8) for _ in range(3))),
    "bilinear": lambda lib, f: lib.nn.functional.bilinear(f(2, 3), f(2, 3), f(4, 3, 3)),
    **{
        name: _elementwise(name)
        for name in "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan sqrt sigmoid tanh "
        "relu square sin erf".split()
    },
    "**": lambda lib, f: f(3) ** 2,
    "r**": lambda lib, f: 2 ** f(3),
    "pow": lambda lib, f: lib.pow(f(3), f(3)),
    "softplus": lambda lib, f: lib.nn.functional.softplus(f(3)),
    "gelu": lambda lib, f: lib.nn.functional.gelu(f(3)),
    "layer_norm": lambda lib, f: lib.nn.functional.layer_norm(f(2, 3), (3,), f(3), f(3)),
    "group_norm": lambda lib, f: lib.nn.functional.group_norm(f(2, 4, 3), 2, f(4), f(4)),
    "rms_norm": lambda lib, f: lib.nn.functional.rms_norm(f(2, 3), (3,)),
    "batch_norm": lambda lib, f: lib.nn.functional.batch_norm(f(4, 3), None, None, training=True),
    "cosine_similarity": _loss("cosine_similarity", (2, 3), (2, 3)),
    "dist": lambda lib, f: lib.dist(f(3), f(3)),
    "renorm": lambda lib, f: lib.renorm(f(3, 3), 2, 0, 1.0),
    "poisson_nll_loss": _loss("poisson_nll_loss", (3,), (3,)),
    "kl_div": lambda lib, f: lib.nn.functional.kl_div(f(3), f(3), reduction="sum"),
    "l1_loss": _loss("l1_loss", (3,), (3,)),
    "smooth_l1_loss": _loss("smooth_l1_loss", (3,), (3,)),
    "huber_loss": _loss("huber_loss", (3,), (3,)),
    "mse_loss": _loss("mse_loss", (3,), (3,)),
    "margin_ranking_loss": _loss("margin_ranking_loss", (3,), (3,), (3,)),
    "soft_margin_loss": _loss("soft_margin_loss", (3,), (3,)),
    "triplet_margin_loss": _loss("triplet_margin_loss", (2, 3), (2, 3), (2, 3)),
    "binary_cross_entropy_with_logits": _loss("binary_cross_entropy_with_logits", (3,), (3,)),
    "logsumexp": lambda lib, f: lib.logsumexp(f(3), 0),
    "softmax": lambda lib, f: lib.nn.functional.softmax(f(3), 0),
    "log_softmax": lambda lib, f: lib.nn.functional.log_softmax(f(3), 0),
    "sum": lambda lib, f: f(3).sum(),
    "mean": lambda lib, f: f(3).mean(),
    "prod": lambda lib, f: f(3, 3).prod(0),
    "cumsum": lambda lib, f: f(3).cumsum(0),
    "cumprod": lambda lib, f: lib.cumprod(f(3), 0),
    "norm": lambda lib, f: f(3).norm(),
    "vector_norm": lambda lib, f: lib.linalg.vector_norm(f(3)),
    "trace": lambda lib, f: f(3, 3).trace(),
    "var": lambda lib, f: f(3).var(),
    "interpolate": lambda lib, f: lib.nn.functional.interpolate(f(1, 1, 4, 4), scale_factor=2.0),
    "bicubic": lambda lib, f: lib.nn.functional.interpolate(f(1, 1, 4, 4), scale_factor=2.0, mode="bicubic"),
    "avg_pool2d": lambda lib, f: lib.nn.functional.avg_pool2d(f(1, 1, 4, 4), 2),
    "adaptive_avg_pool2d": lambda lib, f: lib.nn.functional.adaptive_avg_pool2d(f(1, 1, 5, 5), 2),
    "addcdiv": lambda lib, f: lib.addcdiv(f(3), f(3), f(3)),
    "atan2": lambda lib, f: lib.atan2(f(3), f(3)),
    "+": lambda lib, f: f(3) + 1.0,
    "LSTM": _layer("LSTM", 3, 4),
    "RNN": _layer("RNN", 3, 4),
    "Linear": _layer("Linear", 3, 4),
    "MultiheadAttention": _attention,
}
# What CUDA alone casts: PyTorch's page "Automatic Mixed Precision", section "CUDA Ops that autocast to float32" and the
# list of lower precision.
CUDA_LOWER = {"mv", "addmv", "addr", "einsum of one", "einsum without a sum", "einsum of all"}
CUDA_WIDEST = {"tensordot", "tensordot of all"}
CUDA_FLOAT32 = set(
    "acos asin cosh erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt sinh tan ** r** pow softplus "
    "layer_norm group_norm rms_norm cosine_similarity dist renorm logsumexp softmax log_softmax sum cumsum cumprod "
    "norm vector_norm linalg.norm softmin interpolate bicubic".split()
)
CPU_FLOAT32 = {"trace"}
HALF, FULL, DOUBLE = "bfloat16", "float32", "float64"


def operand(lib: Any, dtype: Any, device: str, *shape: int) -> Any:
    return lib.full(shape, 0.5, device=device).to(dtype)


CELLS = ("RNNCell", "GRUCell", "LSTMCell", "RNN", "GRU", "LSTM")


def states(lib: Any, name: str, dtype: str, state: str | None, device: str) -> list[str]:
    """Dtypes of what a recurrent layer gives, for weights and input of one dtype, and a state of another or none."""
    layer = getattr(lib.nn, name)(3, 4).to(device).to(getattr(lib, dtype))
    x = lib.ones(2, 3, dtype=getattr(lib, dtype), device=device)
    with lib.autocast(device.partition(":")[0], dtype=lib.bfloat16):
        given = None
        if state is not None:
            shape = (2, 4) if "Cell" in name else (1, 4)
            given = lib.ones(*shape, dtype=getattr(lib, state), device=device)
            given = (given, given) if "LSTM" in name else given
        pending, found = [layer(x, given)], []
        while pending:
            one = pending.pop()
            if isinstance(one, tuple):
                pending += one
            else:
                found.append(str(one.dtype).rpartition(".")[2])
    return found


@pytest.mark.parametrize("name", CELLS)
def test_recurrent_layers_keep_the_dtype_of_the_state_as_pytorch_does(name: str) -> None:
    torch = pytest.importorskip("torch")
    wanted = [("float32", None), ("float32", "float32"), ("float32", "bfloat16"), ("bfloat16", "float32")]
    for dtype, state in [*wanted, ("bfloat16", None), ("float64", None)]:
        assert states(dt, name, dtype, state, "cpu") == states(torch, name, dtype, state, "cpu"), (dtype, state)


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
def test_recurrent_layers_on_cuda_give_the_dtype_of_the_block(device: str) -> None:
    """As cuDNN's do in PyTorch, and the cells, which are in its list of lower precision."""
    for name in CELLS:
        assert set(states(dt, name, "float32", "float32", device)) == {"bfloat16"}, name


def results(lib: Any, op: Op, device: str) -> list[str]:
    """Dtypes of the results of half, single and double operands."""
    found = []
    for name in (HALF, FULL, DOUBLE):
        make = functools.partial(operand, lib, getattr(lib, name), device)
        with lib.autocast(device.partition(":")[0], dtype=lib.bfloat16):
            found.append(str(op(lib, make).dtype).rpartition(".")[2])
    return found


def test_dtypes_are_those_of_pytorch_on_the_cpu() -> None:
    torch = pytest.importorskip("torch")
    ours = {name: results(dt, op, "cpu") for name, op in OPS.items()}
    theirs = {name: results(torch, op, "cpu") for name, op in OPS.items()}
    assert ours == theirs


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
def test_dtypes_are_those_of_pytorch_on_cuda(device: str) -> None:
    cpu = {name: results(dt, op, "cpu") for name, op in OPS.items()}
    expected = {name: found for name, found in cpu.items() if name not in CPU_FLOAT32}
    expected |= {name: [FULL, FULL, DOUBLE] for name in CUDA_FLOAT32}
    expected |= {name: [HALF, HALF, DOUBLE] for name in CUDA_LOWER} | {
        name: [HALF, FULL, DOUBLE] for name in CPU_FLOAT32
    }
    expected |= {name: [HALF, FULL, DOUBLE] for name in CUDA_WIDEST}
    assert {name: results(dt, op, device) for name, op in OPS.items()} == expected


@pytest.mark.parametrize("device", DEVICES)
def test_a_network_trains_as_in_pytorch(device: str) -> None:
    """Convolution, batch_norm of halves with its own float32, attention, LSTM, loss: weights' gradients are float32."""
    torch = pytest.importorskip("torch")
    seen = []
    for lib, where in ((dt, device), (torch, "cpu")):
        lib.manual_seed(0)
        nn = lib.nn
        model = nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(2), nn.LayerNorm(36)
        )
        head = nn.LSTM(36, 8)
        for parameter in (*model.parameters(), *head.parameters()):
            with lib.no_grad():
                parameter.copy_(lib.linspace(-0.5, 0.5, parameter.numel()).reshape(parameter.shape))
        model, head = model.to(where), head.to(where)
        x = lib.linspace(-1, 1, 3 * 2 * 36).reshape(3, 2, 6, 6).sin().to(where)
        with lib.autocast(where.partition(":")[0], dtype=lib.bfloat16):
            y, _ = head(model(x))
            loss = nn.functional.mse_loss(y, lib.ones(3, 4, 8, device=where))
        loss.backward()
        seen.append([loss.item(), *(p.grad.abs().sum().item() for p in model.parameters())])
        assert {p.grad.dtype for p in (*model.parameters(), *head.parameters())} == {lib.float32}
        assert (y.dtype, loss.dtype) == (lib.bfloat16, lib.float32)
    assert seen[0] == pytest.approx(seen[1], rel=0.06, abs=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_casts_are_for_the_block_the_thread_and_the_device(device: str) -> None:
    kind = device.partition(":")[0]
    x = dt.ones(3, 3, device=device)
    seen = []
    with dt.autocast(kind, dtype=dt.bfloat16):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
        with dt.autocast(kind, enabled=False):
            seen.append((x @ x).dtype)
        with dt.autocast(kind, dtype=dt.float16):
            seen.append((x @ x).dtype)
        seen.append((x @ x).dtype)
        other = dt.ones(3, 3, device="cpu")
        seen.append((other @ other).dtype if kind == "cuda" else dt.float32)
        with pytest.raises(ZeroDivisionError), dt.autocast(kind, dtype=dt.float16):
            raise ZeroDivisionError
        assert dt.get_autocast_dtype(kind) == dt.bfloat16
        assert dt.is_autocast_enabled(kind)
    seen.append((x @ x).dtype)
    assert seen == [dt.float32, dt.float32, dt.float16, dt.bfloat16, dt.float32, dt.float32]


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_written_is_left_alone(device: str) -> None:
    x, half = dt.full((3, 3), 0.5, device=device), dt.full((3,), 0.5, device=device).bfloat16()
    with dt.autocast(device.partition(":")[0], dtype=dt.bfloat16):
        out = dt.empty(3, 3, device=device)
        assert dt.matmul(x, x, out=out).dtype == dt.float32
        half.exp_()
        half.pow_(2)
        half.cumsum_(0)
        assert half.dtype == dt.bfloat16


@pytest.mark.parametrize("device", DEVICES)
def test_a_weight_is_cast_once_in_a_block(device: str) -> None:
    weight = dt.ones(3, 3, device=device, requires_grad=True)
    kind = device.partition(":")[0]
    with dt.autocast(kind, dtype=dt.bfloat16):
        (dt.ones(1, 3, device=device) @ weight @ weight).sum().backward()
        assert len(dt._dtypes.autocast.here.leaves) == 1
        with dt.no_grad():
            assert (weight @ weight).dtype == dt.bfloat16
    assert not dt._dtypes.autocast.here.leaves
    assert weight.grad.tolist() == [[6.0] * 3] * 3
    with dt.autocast(kind, dtype=dt.bfloat16, cache_enabled=False):
        weight @ weight
        assert not dt._dtypes.autocast.here.leaves


@pytest.mark.parametrize("device", DEVICES)
def test_errors_name_the_callers_operands(device: str) -> None:
    images, weight = dt.ones(2, 4, device=device), dt.ones(3, 3, device=device, requires_grad=True)
    with dt.autocast(device.partition(":")[0], dtype=dt.bfloat16):
        with pytest.raises(dt.ShapeMismatchError) as error:
            images @ weight
        assert [operand.expression for operand in error.value.operands] == ["images", "weight"]
        double = dt.ones(2, 3, dtype=dt.float64, device=device)
        with pytest.raises(dt.DTypeMismatchError) as mismatch:
            dt.nn.functional.linear(double, weight)
        assert mismatch.value.fix == "double = double.float()"
        assert [operand.dtype for operand in mismatch.value.operands] == [dt.float64, dt.float32]


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
def test_devices_are_still_told_apart(device: str) -> None:
    x, weight = dt.ones(2, 3), dt.ones(3, 3, device=device)
    with dt.autocast("cuda"), dt.autocast("cpu"), pytest.raises(dt.DeviceMismatchError) as error:
        x @ weight
    assert [operand.dtype for operand in error.value.operands] == [dt.float32, dt.float32]


@pytest.mark.parametrize("device", CUDA_DEVICES[:1])
def test_binary_cross_entropy_is_refused_on_cuda(device: str) -> None:
    p = dt.full((3,), 0.5, device=device)
    with dt.autocast("cuda"), pytest.raises(RuntimeError, match="binary_cross_entropy_with_logits"):
        dt.nn.functional.binary_cross_entropy(p, p)


@pytest.mark.parametrize("device", DEVICES)
def test_checkpoint_runs_again_in_the_same_mode(device: str) -> None:
    weight = dt.ones(3, 3, device=device, requires_grad=True)
    seen = []

    def layer(x: dt.DeviceArray) -> dt.DeviceArray:
        y = x @ weight
        seen.append(y.dtype)
        return y.float().exp()

    with dt.autocast(device.partition(":")[0], dtype=dt.bfloat16):
        loss = dt.utils.checkpoint.checkpoint(layer, dt.ones(1, 3, device=device)).sum()
    loss.backward()
    assert seen == [dt.bfloat16, dt.bfloat16]


@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_the_users(device: str) -> None:
    kind = device.partition(":")[0]
    seen = []

    class Square(dt.autograd.Function):
        @staticmethod
        @dt.amp.custom_fwd(device_type=kind, cast_inputs=dt.float32)
        def forward(ctx: Any, x: dt.DeviceArray) -> dt.DeviceArray:
            seen.append((x.dtype, dt.is_autocast_enabled(kind)))
            ctx.save_for_backward(x)
            return x @ x

        @staticmethod
        @dt.amp.custom_bwd(device_type=kind)
        def backward(ctx: Any, grad: dt.DeviceArray) -> dt.DeviceArray:
            (x,) = ctx.saved_tensors
            seen.append(((grad @ x).dtype, dt.is_autocast_enabled(kind)))
            return grad @ x.mT + x.mT @ grad

    x = dt.ones(2, 2, device=device, requires_grad=True)
    with dt.autocast(kind, dtype=dt.bfloat16):
        Square.apply(x.bfloat16()).sum().backward()
    Square.apply(x.bfloat16())
    assert seen == [(dt.float32, False), (dt.float32, False), (dt.bfloat16, False)]


def test_keywords_of_a_function_are_cast_too() -> None:
    """An array in a keyword, or in a list there, gets the dtype that the function asks for."""
    seen = []

    @dt.amp.custom_fwd(device_type="cpu", cast_inputs=dt.float32)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> None:
        seen.append([(name, value.dtype if name == "x" else value[0].dtype) for name, value in kwargs.items()])

    x = dt.ones(2, dtype=dt.bfloat16)
    with dt.autocast("cpu"):
        forward(types.SimpleNamespace(), x=x, many=[x])
    assert seen == [[("x", dt.float32), ("many", dt.float32)]]


def test_what_is_no_half_type_turns_it_off() -> None:
    with pytest.warns(UserWarning, match="computes in float16 or bfloat16, but dtype is"):
        mode = dt.autocast("cpu", dtype=dt.float64)
    with mode:
        assert not dt.is_autocast_enabled("cpu")
    with pytest.raises(RuntimeError, match="device_type must be 'cpu' or 'cuda'"):
        dt.autocast("tpu")


def test_a_decorated_function() -> None:
    @dt.autocast("cpu")
    def product(x: dt.DeviceArray) -> dt.DeviceArray:
        return x @ x

    assert product(dt.ones(2, 2)).dtype == dt.bfloat16
    assert product(dt.ones(2, 2).double()).dtype == dt.float64


@pytest.mark.parametrize("device", DEVICES)
def test_gradients_of_a_function_have_the_dtypes_of_its_inputs(device: str) -> None:
    """PyTorch's own example."""
    kind = device.partition(":")[0]

    class Product(dt.autograd.Function):
        @staticmethod
        @dt.amp.custom_fwd(device_type=kind)
        def forward(ctx: Any, x: dt.DeviceArray, w: dt.DeviceArray) -> dt.DeviceArray:
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        @dt.amp.custom_bwd(device_type=kind)
        def backward(ctx: Any, grad: dt.DeviceArray) -> Any:
            x, w = ctx.saved_tensors
            return grad @ w.t(), x.t() @ grad

    x, w = (dt.ones(2, 2, device=device, requires_grad=True) for _ in range(2))
    with dt.autocast(kind, dtype=dt.bfloat16):
        y = Product.apply(x, w)
    y.sum().backward()
    assert (y.dtype, x.grad.dtype, w.grad.dtype) == (dt.bfloat16, dt.float32, dt.float32)


@pytest.mark.parametrize("device", DEVICES)
def test_what_an_op_writes_is_never_a_cast(device: str) -> None:
    norm = dt.nn.BatchNorm2d(1).to(device).bfloat16()
    mode = dt.autocast(device.partition(":")[0], dtype=dt.bfloat16)
    with mode, pytest.raises(dt.DTypeMismatchError):
        norm(dt.ones(2, 1, 2, 2, device=device))
    norm = dt.nn.BatchNorm2d(1).to(device)
    with mode:
        norm(dt.arange(8.0, device=device).reshape(2, 1, 2, 2).bfloat16())
    assert norm.running_mean.item() == pytest.approx(0.35)


def test_the_dtype_of_the_input_is_kept_by_any_order_of_names() -> None:
    x, s = dt.rand(4, 2).bfloat16(), dt.ones(2)
    with dt.autocast("cpu"):
        assert dt.nn.functional.batch_norm(running_mean=s, running_var=s, input=x).dtype == dt.bfloat16
        assert dt.nn.functional.layer_norm(weight=s, normalized_shape=(2,), bias=s, input=x).dtype == dt.bfloat16


def test_a_block_that_ends_in_another_thread() -> None:
    def block() -> Any:
        with dt.autocast("cpu"):
            yield

    held, seen = block(), []
    with dt.autocast("cpu", enabled=False):
        next(held)

    def end() -> None:
        held.close()
        with dt.autocast("cpu"):
            seen.append(dt.nn.functional.mse_loss(dt.ones(2).bfloat16(), dt.ones(2).bfloat16()).dtype)

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert seen == [dt.float32]
    dt._C._autocast_on(False)
    dt._dtypes.autocast.here.__init__()
