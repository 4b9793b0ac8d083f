"""What libraries written for PyTorch do while they are imported, and the modules of PyTorch that programs import."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import python_path

import devtensor as dt

# In the style of torchvision, timm, transformers, torchmetrics, einops and Lightning.
LIBRARY = """
import torch
import torch.backends.cudnn as cudnn
import torch.fx
import torch.library
import torch.utils._pytree as pytree
from torch import Tensor, nn
from torch._dynamo.utils import is_compile_supported
from torch._utils import _flatten_dense_tensors, _get_device_index, _take_tensors, _unflatten_dense_tensors
from torch.autograd.variable import Variable
from torch.distributed._functional_collectives import wait_tensor
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.tensor import DTensor, Replicate
from torch.fx.graph_module import GraphModule
from torch.hub import HASH_REGEX, _get_torch_home, download_url_to_file, urlparse
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.module import _IncompatibleKeys
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.nn.utils.fusion import fuse_conv_bn_eval
from torch.onnx.symbolic_helper import parse_args
from torch.optim.adam import Adam
from torch.overrides import has_torch_function, has_torch_function_unary
from torch.profiler import record_function
from torch.types import Device, Number
from torch.utils.cpp_extension import load
from torch.utils.data import DistributedSampler
from torch.utils.dlpack import from_dlpack, to_dlpack
from torch.utils.hooks import RemovableHandle
from torch.utils.model_zoo import tqdm
import torchvision._meta_registrations

cudnn.benchmark = True
cudnn.deterministic = True
torch._C._log_api_usage_once("library")
BACKENDS = {SDPBackend.MATH: 1}
PLACES = {"rows": Replicate()}
SMALL = torch.finfo(torch.float8_e4m3fn).max
VERSION = torch.version.cuda, torch.__version__


class Proxy(torch.fx.Tracer):
    def trace(self, node: torch.fx.node.Target | None) -> "torch.fx.Graph": ...


@torch.library.register_fake("library::op")
def fake(x):
    return x


@parse_args("v", "i")
def symbolic(g, x, i):
    return x


@torch.jit.script
def swish(x: Tensor) -> Tensor:
    return x * x.sigmoid()


@torch.fx.wrap
@torch.jit._script_if_tracing
@torch.compiler.disable
def double(x: Tensor) -> Tensor:
    return x * 2


class Layer(nn.Module):
    fused: torch.jit.Final[bool]

    @torch.jit._overload_method
    def forward(self, x: Tensor) -> Tensor: ...

    @torch.jit.unused
    def forward(self, x):
        if torch.jit.is_scripting() or torch.compiler.is_compiling() or has_torch_function((x,)):
            raise RuntimeError
        torch._assert(x.ndim == 2, "two dimensions")
        with record_function("layer"), sdpa_kernel([SDPBackend.MATH]), torch.cuda.nvtx.range("layer"):
            return double(swish(x))


def place(model):
    return next(model.parameters(), torch.ones(1)).device != torch.device("meta")
"""
PROGRAM = """
import warnings
import torch
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import library
print([str(one.message) for one in said])
x = torch.ones(1, 2)
assert not isinstance(x, (library.DTensor, library.FullyShardedDataParallel, torch.UntypedStorage)), type(x)
assert x.dtype not in (torch.float8_e5m2, torch.uint16)
print(library.Layer()(x).shape, library.place(torch.nn.Linear(2, 2)), library.SMALL)
leaves, form = library.pytree.tree_flatten({"a": [1, (x, 2)], "b": None})
print(len(leaves), library.pytree.tree_unflatten(leaves, form)["a"][0])
print(library.pytree.tree_map_only(int, str, [1, 2.5]))
print(library.from_dlpack(library.to_dlpack(x)).shape, library.urlparse("https://x/y").path)
assert torch._C._get_tracing_state() is None and library._get_device_index("cuda:0") == 0
parts = [torch.ones(2), torch.zeros(1, 3)]
flat = library._flatten_dense_tensors(parts)
assert [part.tolist() for part in library._unflatten_dense_tensors(flat, parts)] == [[1, 1], [[0, 0, 0]]]
assert [len(some) for some in library._take_tensors([*parts, *parts], 20)] == [2, 2]
with torch.device("cpu"):
    print(torch.ones(1).device)
for call in (lambda: library.FullyShardedDataParallel(x), lambda: library.load("x", []), lambda: library.Proxy(),
             lambda: library.wait_tensor(x), lambda: torch.cuda.CUDAGraph(), lambda: torch.profiler.profile()):
    try:
        call()
    except NotImplementedError as error:
        print(error)
"""


def run(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": python_path()}
    command = [sys.executable, "-m", "devtensor", "run", "--no-report", "--as-torch", "program.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_library(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(LIBRARY)
    (tmp_path / "torchvision").mkdir()  # of which only its registrations are looked at
    (tmp_path / "torchvision" / "__init__.py").write_text("")
    done = run(tmp_path, PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:7] == [
        "['jit.script(): devtensor compiles nothing; the function or module runs as it is']",
        "(1, 2) True 448.0",
        "4 1",
        "['1', 2.5]",
        "(1, 2) /y",
        "cpu",
        "devtensor.distributed.fsdp.FullyShardedDataParallel: models are not split over processes: each has its own, "
        "and DistributedDataParallel averages gradients",
    ]
    assert [line.partition(":")[0] for line in lines[7:]] == [
        "devtensor.utils.cpp_extension.load",
        "devtensor.fx.Tracer",
        "devtensor.distributed._functional_collectives.wait_tensor",
        "devtensor.cuda.CUDAGraph",
        "devtensor.profiler.profile",
    ]


LINES = [
    "import torch.backends.cudnn as cudnn; cudnn.benchmark = True",
    "import torch.backends.cudnn",
    "from torch.backends import cudnn",
    "from torch.cuda.amp import autocast, GradScaler",
    "from torch.optim.lr_scheduler import StepLR",
    "from torch.optim.sgd import SGD",
    "from torch.nn.modules.transformer import TransformerEncoderLayer",
    "from torch.nn.modules.sparse import Embedding",
    "from torch.nn.modules.flatten import Flatten",
    "from torch.autograd.grad_mode import no_grad",
    "from torch.amp.autocast_mode import autocast",
    "import torch; from torch.nn.utils.weight_norm import weight_norm as f; assert f is torch.nn.utils.weight_norm",
    "import torch.multiprocessing.spawn",
    "import torch.cpu, torch.version, torch.types",
    "import torch.nn.attention as a; a.sdpa_kernel(a.SDPBackend.MATH)",
    "import torch; torch.nn.modules.utils._pair(1); torch.nn.modules.Linear(1, 1); torch.nn.modules.conv.Conv2d",
    "from importlib.util import find_spec; assert find_spec('torch.fx') and find_spec('torch.nn')",
    "import torch; assert not hasattr(torch.complex64, 'itemsize') and getattr(torch.jit.x, 'y', 1) == 1",
]
EACH_LINE = """
import os
for line in {lines!r}:
    child = os.fork()
    if child == 0:
        exec(line, {{"__name__": "__main__"}})
        os._exit(0)
    print(os.waitpid(child, 0)[1], line)
"""


def test_modules(tmp_path: Path) -> None:
    """Each line in a process that has imported nothing of torch yet."""
    done = run(tmp_path, EACH_LINE.format(lines=LINES))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"0 {line}" for line in LINES]


def test_what_is_nowhere_is_still_told(tmp_path: Path) -> None:
    done = run(tmp_path, "import torch.no_such_module\n")
    assert done.returncode == 1 and "torch.no_such_module: devtensor does not provide it" in done.stderr
    done = run(tmp_path, "import importlib.util\nprint(importlib.util.find_spec('torch.no_such_module'))\n")
    assert done.stdout == "None\n"


def test_arrays_without_dimensions_as_numbers() -> None:
    """As PyTorch has it, where no gradient flows to them."""
    low, high = dt.tensor(2.0), dt.tensor(2.0)
    assert dt.empty(2).uniform_(low, high).tolist() == [2.0, 2.0]
    assert dt.add(dt.ones(1), dt.ones(1), alpha=low).item() == 3
    assert dt.nn.functional.leaky_relu(dt.full((1,), -1.0), low).item() == -2
    with pytest.raises(TypeError, match="must be a number, not devtensor.DeviceArray"):
        dt.empty(2).uniform_(low, dt.ones(1))
    with pytest.raises(TypeError, match="must be a number"):
        dt.empty(2).uniform_(low, dt.tensor(3.0, requires_grad=True))


def test_the_device_meta_and_blocks() -> None:
    meta = dt.device("meta")
    assert (str(meta), meta.type, meta.index, repr(meta)) == ("meta", "meta", None, "device(type='meta')")
    assert meta == dt.device("meta") and meta != dt.device("cpu") and dt.ones(1).device != meta
    for call in (lambda: dt.ones(1, device=meta), lambda: dt.ones(1).to(meta), meta.__enter__):
        with pytest.raises(dt.DeviceNotAvailableError, match="Device meta does not exist: an array has memory"):
            call()
    entered, left = threading.Event(), threading.Event()

    def elsewhere() -> None:
        with dt.device("cuda:0"):
            entered.set()
            left.wait()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    entered.wait()
    with dt.device("cuda:0"):
        left.set()
        thread.join()
        assert dt.ones(1).device == dt.device("cuda:0")
    assert dt.ones(1).device == dt.device("cpu")
    before = dt.get_default_device()
    with dt.device("cuda:0") as device, dt.device("cpu"):
        assert (dt.ones(1).device, device) == (dt.device("cpu"), dt.device("cuda:0"))
    with pytest.raises(ZeroDivisionError), dt.device("cuda:0"):
        assert dt.ones(1).device == dt.device("cuda:0")
        raise ZeroDivisionError
    assert dt.get_default_device() == before
    with pytest.raises(RuntimeError, match="without __enter__"):
        before.__exit__(None, None, None)


def test_ops_for_the_cpu_under_another_default_device() -> None:
    x = dt.eye(3) * 2
    x.requires_grad_()
    with dt.device("cuda:0"):
        dt.linalg.svd(x)[1].sum().backward()
        dt.linalg.cholesky(x).sum().backward()
        assert dt.linalg.qr(x, mode="r").Q.device == dt.device("cpu")
        assert dt.nn.init.orthogonal_(dt.empty(2, 3, device="cpu")).device == dt.device("cpu")
        packed = dt.nn.utils.rnn.pack_padded_sequence(dt.ones(2, 3, 4), [3, 2], batch_first=True)
        assert dt.nn.utils.rnn.pad_packed_sequence(packed)[1].device == dt.device("cpu")


VERSIONS = """
import torch
from torch.torch_version import TorchVersion as V
print(V("1.10.0") > "1.9", V("2.13.0+cpu") > "2.13.0", V("2.13") == (2, 13), V("2.13.0") >= (2, 13, 1))
print(V("2.0") == None, V("2.0") != "x", {torch.__version__: 1}[str(torch.__version__)])
version, own = torch.__version__.split("+")
print(torch.__version__ >= "2.0", own.split(".")[0], torch.version.__version__ == torch.__version__)
print(tuple(int(part) for part in version.split(".")[:2]) >= (2, 0))
try:
    V("2.0") < None
except TypeError:
    print("TypeError")
"""


NAMES = """
import torch
from torch.optim.lr_scheduler import LRScheduler, StepLR, _LRScheduler
from torch.optim.optimizer import Optimizer, required

assert str(torch.float32) == repr(torch.float32) == f"{torch.ones(1).dtype}" == "torch.float32"
assert (repr(torch.strided), repr(torch.channels_last)) == ("torch.strided", "torch.channels_last")
assert getattr(torch, str(torch.int64).split(".")[1]) is torch.int64
assert repr(required) == "<required parameter>"


class Constant(_LRScheduler):
    def get_lr(self):
        return list(self.base_lrs)


class Old(Optimizer):
    def __init__(self, params, lr=required):
        super().__init__(params, dict(lr=lr))


p = torch.nn.Parameter(torch.ones(2))
assert isinstance(Constant(Old([p], lr=0.1)), LRScheduler)
try:
    Old([p])
except ValueError as error:
    assert "didn't specify a value of required optimization parameter lr" in str(error)
else:
    raise AssertionError
try:
    torch.linalg.cholesky(-torch.eye(2))
except torch._C._LinAlgError as error:
    assert isinstance(error, torch.linalg.LinAlgError)
print("done")
"""


def test_names_of_older_programs(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text(NAMES)
    words = [sys.executable, "-m", "devtensor", "run", "--as-torch", str(tmp_path / "names.py")]
    ran = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": python_path()})
    assert ran.stdout == "done\n", ran.stderr
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    del torch
    ran = subprocess.run([sys.executable, str(tmp_path / "names.py")], capture_output=True, text=True)
    assert ran.stdout == "done\n", ran.stderr


def test_the_version_that_programs_compare(tmp_path: Path) -> None:
    done = run(tmp_path, VERSIONS)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "True True True False\nFalse True 1\nTrue devtensor True\nTrue\nTypeError\n"
    assert "devtensor" not in dt.__version__
