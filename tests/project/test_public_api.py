"""The public names: there, documented, with a signature, as functions and as methods."""

from __future__ import annotations

import inspect
from types import ModuleType

import cases
import public_names
import pytest

import devtensor as dt
from devtensor import digits

UNARY = """neg abs sign exp expm1 log log1p log2 log10 sqrt rsqrt square reciprocal sin cos tan tanh sigmoid erf floor
ceil round trunc isnan isinf isfinite logical_not bitwise_not relu relu6 leaky_relu elu gelu silu softplus hardtanh
clamp""".split()
BINARY = """add sub mul div floor_divide remainder pow maximum minimum eq ne lt le gt ge logical_and logical_or
logical_xor bitwise_and bitwise_or bitwise_xor lerp""".split()
REDUCTIONS = "sum prod mean amax amin argmax argmin any all softmax log_softmax".split()
MATMULS = "matmul mm bmm mv dot outer addmm baddbmm".split()
SHAPES = """reshape flatten unflatten transpose permute movedim squeeze unsqueeze broadcast_to split chunk unbind
narrow select tril triu""".split()
FUNCTIONS_ONLY = "cat stack where linear conv2d max_pool2d avg_pool2d adaptive_avg_pool2d".split()
COMPOSED = """var std logsumexp norm flip addcdiv addcmul clamp_max clamp_min copysign deg2rad digamma exp2 float_power
frac
heaviside isneginf isposinf isreal ldexp lgamma logit nan_to_num rad2deg signbit sinc xlogy aminmax count_nonzero dist
nanmean nansum renorm scatter scatter_reduce index_copy index_fill index_put index_reduce put masked_scatter
gcd lcm frexp igamma igammac polygamma mvlgamma histogram is_same_size is_conj is_neg is_inference resolve_neg
kthvalue median nanmedian mode msort quantile nanquantile unique unique_consecutive bincount histc argwhere""".split()
SCANS = "cumsum cumprod logcumsumexp cummax cummin sort argsort topk".split()
SELECTIONS = "index_select gather scatter_add index_add take take_along_dim masked_fill masked_select nonzero".split()
COMPOSED_FUNCTIONS = """gradient poisson binomial lu_unpack searchsorted bucketize isin
embedding pad conv1d conv3d conv_transpose1d conv_transpose2d conv_transpose3d
max_pool1d max_pool3d avg_pool1d adaptive_avg_pool1d bilinear pixel_shuffle pixel_unshuffle channel_shuffle batch_norm
layer_norm dropout cross_entropy nll_loss mse_loss is_tensor
save load""".split()
NN = """Module Parameter Buffer Sequential ModuleList ModuleDict ParameterList ParameterDict Linear Conv1d Conv2d
BatchNorm1d BatchNorm2d LayerNorm Embedding Dropout Flatten Unflatten Identity MaxPool2d AvgPool2d AdaptiveAvgPool2d
ReLU ReLU6 LeakyReLU ELU GELU SiLU Sigmoid Tanh Softplus Hardtanh Softmax LogSoftmax CrossEntropyLoss MSELoss L1Loss
NLLLoss HuberLoss SmoothL1Loss KLDivLoss BCELoss BCEWithLogitsLoss
MarginRankingLoss TripletMarginLoss CosineEmbeddingLoss PoissonNLLLoss GaussianNLLLoss SoftMarginLoss HingeEmbeddingLoss
MultiMarginLoss CosineSimilarity PairwiseDistance RNN LSTM GRU RNNCell LSTMCell GRUCell
RNNBase RNNCellBase
Mish LogSigmoid Softsign GLU Softmin Softmax2d PReLU RReLU CELU SELU Threshold Hardshrink Softshrink Hardswish
Hardsigmoid Tanhshrink BatchNorm3d SyncBatchNorm GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d RMSNorm
CTCLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss NLLLoss2d TripletMarginWithDistanceLoss
AdaptiveLogSoftmaxWithLoss CrossMapLRN2d
LocalResponseNorm EmbeddingBag Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout
LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d LazyLinear LazyBatchNorm1d
LazyBatchNorm2d LazyBatchNorm3d Bilinear LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d
FractionalMaxPool2d FractionalMaxPool3d
Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d MaxPool1d MaxPool3d AvgPool1d AvgPool3d AdaptiveAvgPool1d
AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AdaptiveMaxPool3d LPPool1d LPPool2d LPPool3d
MaxUnpool1d MaxUnpool2d
MaxUnpool3d Upsample UpsamplingNearest2d UpsamplingBilinear2d Unfold Fold PixelShuffle PixelUnshuffle ChannelShuffle
ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d ReflectionPad3d
ReplicationPad1d ReplicationPad2d ReplicationPad3d CircularPad1d CircularPad2d CircularPad3d
MultiheadAttention TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder Transformer
DataParallel
functional init parallel utils""".split()
CREATION = """array tensor asarray empty zeros ones full arange linspace eye rand randn randint randperm normal
empty_like zeros_like ones_like full_like rand_like randn_like from_numpy frombuffer from_dlpack
from_cuda_array_interface manual_seed set_default_device
get_default_device set_default_dtype get_default_dtype""".split()
METHODS = """size numel dim stride element_size data_ptr is_contiguous is_pinned item tolist numpy clone contiguous
copy_ fill_ zero_ to cuda cpu float double half bfloat16 int long bool byte astype pin_memory type expand view
new_empty new_zeros new_ones new_full""".split()
ATTRIBUTES = "shape dtype device ndim nbytes itemsize strides T mT H mH is_cuda origin".split()
CUDA = """is_available device_count current_device set_device device get_device_name get_device_properties
get_device_capability synchronize empty_cache memory_allocated max_memory_allocated memory_reserved
reset_peak_memory_stats mem_get_info is_simulated memory_stats host_memory_stats max_memory_reserved
set_per_process_memory_fraction Stream Event stream current_stream default_stream set_stream RawKernel""".split()
ERRORS = """DeviceMismatchError DTypeMismatchError ShapeMismatchError DeviceNotAvailableError HostAccessError
OutOfMemoryError CudaError KernelArgumentError KernelCompileError""".split()
OTHERS = "device dtype Generator DeviceArray set_num_threads get_num_threads".split()

FUNCTIONS = [*UNARY, *BINARY, *REDUCTIONS, *SCANS, *MATMULS, *SHAPES, *FUNCTIONS_ONLY, *CREATION]
FUNCTIONS += [*COMPOSED, *COMPOSED_FUNCTIONS, *SELECTIONS]
ALL_METHODS = [*UNARY, *BINARY, *REDUCTIONS, *SCANS, *MATMULS, *SHAPES, *METHODS, *COMPOSED, *SELECTIONS]


def test_functions() -> None:
    for name in (*FUNCTIONS, "set_num_threads", "get_num_threads"):
        assert_documented(getattr(dt, name), name)


def test_methods() -> None:
    for name in (*ALL_METHODS, *(f"{name}_" for name in cases.IN_PLACE)):
        assert_documented(getattr(dt.DeviceArray, name), name)


def test_attributes() -> None:
    assert [name for name in ATTRIBUTES if not getattr(dt.DeviceArray, name).__doc__] == []


@pytest.mark.parametrize("name", CUDA)
def test_cuda(name: str) -> None:
    function = getattr(dt.cuda, name)
    assert function.__doc__
    inspect.signature(function)


@pytest.mark.parametrize("name", [*ERRORS, *OTHERS])
def test_types_and_errors(name: str) -> None:
    assert getattr(dt, name).__doc__


def test_nn() -> None:
    assert set(dt.nn.__all__) == set(NN)
    assert [name for name in NN if not getattr(dt.nn, name).__doc__] == []


@pytest.mark.parametrize(
    "module",
    [
        *(dt.nn.functional, dt.nn.init, dt.nn.parallel, dt.nn.utils, dt.nn.utils.rnn),
        *(dt.data, dt.data.distributed, dt.distributed, dt.hub, dt.linalg, dt.optim, dt.optim.lr_scheduler),
        *(dt.optim.swa_utils, dt.autograd.functional, dt.autograd.graph, dt.func),
        *(dt.nn.utils.parametrize, dt.nn.utils.parametrizations, dt.nn.utils.prune),
    ],
    ids=lambda m: m.__name__,
)
def test_modules_of_functions(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]
        assert inspect.getdoc(getattr(module, name)), name


def assert_documented(function: object, name: str) -> None:
    text = (inspect.getdoc(function) or "").partition(">>>")[0]
    assert callable(function) and text.strip()[-1:] in tuple(".)`"), name
    signature = inspect.signature(function)  # type: ignore[arg-type]
    assert function.__name__ == name  # type: ignore[attr-defined]
    if name in (*cases.UNARY, *cases.BINARY, *cases.MATMULS) and getattr(dt, name, None) is function:
        assert next(iter(signature.parameters)) == "input"


def test_out_is_in_the_signature() -> None:
    for name in {*cases.OUT} - {"where"}:
        assert "out" in inspect.signature(getattr(dt, name)).parameters, name


def test_all_is_complete() -> None:
    assert {*FUNCTIONS, *ERRORS, *OTHERS} <= set(dt.__all__)
    assert {name for name in dir(dt._C) if not name.startswith("_")} <= set(dt.__all__)
    assert len(set(dt.__all__)) == len(dt.__all__)


@pytest.mark.parametrize("module", [*public_names.modules(), digits], ids=lambda module: module.__name__)
def test_completion_shows_public_names_only(module: ModuleType) -> None:
    """dir(), which shells and notebooks complete from, shows what __all__ has; each name is documented or a value."""
    shown = [name for name in dir(module) if not name.startswith("_")]
    assert shown == sorted(module.__all__)
    for name in shown:
        value = getattr(module, name)
        assert isinstance(value, (dt.dtype, float, type(None))) or inspect.getdoc(value), name
        assert getattr(value, "__module__", "devtensor").startswith("devtensor"), name


def test_the_version_is_shown() -> None:
    assert "__version__" in dir(dt)


def test_names_for_pytorch_code() -> None:
    assert dt.Tensor is dt.DeviceArray
    assert dt.tensor([1.0]).requires_grad is False
    x = dt.ones(2, 3)
    assert x.t().shape == (3, 2)
    assert x.detach().data_ptr() == x.data_ptr()
    with dt.no_grad():
        assert (x + 1).tolist() == [[2, 2, 2]] * 2
    assert dt.as_tensor(x) is x


def test_keywords_are_pytorchs() -> None:
    x = dt.ones(1, 1, 4, 4)
    w = dt.ones(1, 1, 3, 3)
    assert dt.conv2d(input=x, weight=w, bias=None, stride=1, padding=1, dilation=1, groups=1).shape == (1, 1, 4, 4)
    assert dt.matmul(input=x, other=x).shape == (1, 1, 4, 4)
    assert dt.add(input=x, other=x, alpha=2).sum().item() == 48
    assert dt.cat(tensors=[x, x], dim=0).shape == (2, 1, 4, 4)
    assert dt.softmax(input=x, dim=-1).shape == x.shape
    assert dt.sum(input=x, dim=(0, 1), keepdim=True).shape == (1, 1, 4, 4)
    assert dt.clamp(input=x, min=0, max=0.5).sum().item() == 8
    assert dt.where(condition=x > 0, input=x, other=0).sum().item() == 16
    assert dt.max_pool2d(input=x, kernel_size=2, stride=2, padding=0, ceil_mode=False).shape == (1, 1, 2, 2)
    assert dt.full(size=(2,), fill_value=1.0).tolist() == [1, 1]
    assert dt.zeros(size=(2,)).tolist() == [0, 0]


def test_version() -> None:
    assert dt.__version__.count(".") >= 1
