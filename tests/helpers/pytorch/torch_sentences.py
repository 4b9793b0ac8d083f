"""Sentences of PyTorch's that this machine may not be able to provoke: those of CUDA, and those of older versions.

`python tests/helpers/pytorch/torch_sentences.py` looks for the words of each in the installed PyTorch, in its libraries
and its Python sources, and lists those that are not there. A build for CUDA has all of them but those of OLDER.
"""

from __future__ import annotations

import re
from pathlib import Path

# code: what PyTorch puts together; {} is what it fills in, here with the words between the braces;
# {} alone is where two of its words meet
CUDA = {
    "device-mismatch": [
        "Expected all tensors to be on the same device, but found at least two devices, {cuda:0} and {cpu}!",
        "Expected all tensors to be on the same device, but found at least two devices, {cuda:0} and {cpu}!"
        " (when checking argument for argument {mat1} in method {wrapper_CUDA_addmm})",
        "Expected all tensors to be on the same device, but got {mat1} is on {cpu}, different from other tensors on "
        "{cuda:0} (when checking argument in method {wrapper_CUDA_addmm})",
        "Expected all tensors to be on the same device. addmm: expected 'mat1' to be CUDA, but got CPU",
        "add: expected 'other' to be a CUDA tensor, but got a CPU tensor",
        "Expected tensor for {argument #1 'input'} to have the same device as tensor for {argument #2 'grid'}; but "
        "device {0} does not equal {1} (while checking arguments for {cudnn_grid_sampler})",
        "Tensor for {argument #2 'weight'} is on CPU, {}but expected {it} to be on GPU (while checking arguments for "
        "{cudnn_batch_norm})",
        "Input type ({torch.cuda.FloatTensor}) and weight type ({torch.FloatTensor}) should be the same",
        "Input type ({torch.FloatTensor}) and weight type ({torch.cuda.FloatTensor}) should be the same or input "
        "should be a MKLDNN tensor and weight is a dense tensor",
        "indices should be either on {cpu} or on the same device as the indexed tensor ({cuda:0})",
        "Input and {hidden} tensors are not at the same device, found input tensor at {cuda:0} and {hidden} tensor at "
        "{cpu}",
        "grid_sampler(): expected input and grid to be on same device, but input is on {cuda:0} and grid is on {cpu}",
        "take(): self, index and out expected to be in the same device, but got self.device = {cuda:0}",
        "index_copy_(): self, index and source expected to be in the same device, but got (self) {cuda:0}",
        "torch.searchsorted(): boundaries and input value tensors {}should have same device type, but got boundaries "
        "tensor device type {cuda:0}",
        "X1 and X2 must have the same device type. X1: {cuda} X2: {cpu}",
        "device of X1 ({0}) must match device of X2 ({1})",
        "stft input and window must be on the same device but got self on {cuda:0} and window on {cpu}",
        "torch.block_diag: input tensors must all be on the same device.",
        "multi_dot(): all tensors must be on the same device but tensor 0 is on {cuda:0} and tensor {1} {cpu}",
        "meshgrid expects all tensors to have the same device",
        "multinomial arguments must have the same device",
        "quantile() q tensor must be on the same device as the input tensor",
        "expected self and mask to be on the same device, but got mask on {cpu} and self on {cuda:0}",
        "masked_fill_: Expected inputs to be on same device",
        "{linalg.solve: }Expected b and A to be on the same device, but found b on {cuda:0} and A on {cpu} instead.",
        "Expected query, key, and value to have the same device type, but got query.device: {cuda:0} key.device: {cpu}",
        "Cannot compare two tensors on different devices. Got: {cuda:0} and {cpu}",
        "Expected out tensor to have device {cuda:0}, but got {cpu} instead",
        "Input, output and indices must be on the current device",
        "{prelu: }expects input and weight tensors to be on the same device.",
    ],
    "dtype-mismatch": [
        "expected mat1 and mat2 to have the same dtype, but got: {double} != {float}",
        "expected m1 and m2 to have the same dtype, but got: {double} != {float}",
        "expected scalar type {Float} but found {Double}",
        "Input type ({torch.cuda.DoubleTensor}) and bias type ({torch.cuda.FloatTensor}) should be the same",
        "Expected tensor for {argument #1 'input'} to have the same type as tensor for {argument #2 'weight'}; but "
        "type {torch.cuda.DoubleTensor} does not equal {torch.cuda.FloatTensor} (while checking arguments for "
        "{cudnn_batch_norm})",
        "Expected query, key, and value to have the same dtype, but got query.dtype: {double} key.dtype: {float}",
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: {double}",
        "{scatter}(): Expected self.dtype to be equal to src.dtype",
        "masked_scatter_: expected self and source to have same dtypes but got {Float} and {Double}",
        "linalg.solve: Expected A and B to have the same dtype, but found A of type {Float}",
        "multi_dot(): all tensors must have be the same dtype but tensor 0 is {Float}",
        "quantile() q tensor must be same dtype as the input tensor",
    ],
    "dtype-not-supported": [
        "\"{}addmm_cuda{}\" not implemented for '{Long}'",
        "\"{}host_softmax{}\" not implemented for '{Long}'",
        "quantile() input tensor must be either float or double dtype",
        "nanmean(): expected input to have floating point or complex dtype but got {Long}",
    ],
    "dtype-of-target": [
        "\"{}nll_loss_forward_reduce_cuda_kernel_2d_index{}\" not implemented for '{Float}'",
        "\"{}nll_loss_forward_no_reduce_cuda_kernel_index{}\" not implemented for '{Int}'",
    ],
    "dtype-of-index": [
        "tensors used as indices must be long, int, byte or bool tensors",
        "Expected tensor for {argument #1 'indices'} to have one of the following {}scalar types: {Long, Int}",
    ],
    "shape-mismatch": [
        "mat1 and mat2 shapes cannot be multiplied ({32}x{256} and {128}x{10})",
        "The size of tensor a ({3}) must match the size of tensor b ({4}) at non-singleton dimension {1}",
        "Size does not match at dimension {0} expected index {[3, 2]} to be no larger than self {[2, 2]}",
    ],
    "grad-freed": ["Trying to backward through the graph a second time (or directly access saved tensors after "],
    "grad-modified": [
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
    ],
}  # fmt: skip
# Words of one version alone, with that version.
OLDER = {
    "dtype-mismatch": [("input must have the type {torch.float32}, got type {torch.float64}", "2.4")],
    "shape-mismatch": [
        ("Size does not match at dimension {0} expected index {[3, 2]} to be smaller than self {[2, 2]}", "2.4"),
    ],
}  # fmt: skip


def filled(template: str) -> str:
    return re.sub(r"\{(.*?)\}", r"\1", template)


def pieces(template: str) -> list[str]:
    """The words that PyTorch's program holds, as far as they are long enough to be looked for."""
    return [one for one in re.split(r"\{.*?\}", template) if len(one.strip()) > 6]


def main() -> None:
    import torch

    folder = Path(torch.__file__).parent
    files = [*folder.glob("lib/libtorch*.so"), *folder.glob("nn/**/*.py"), *folder.glob("_refs/**/*.py")]
    wanted = {one: template for rows in CUDA.values() for template in rows for one in pieces(template)}
    missing = dict(wanted)
    for file in files:
        text = file.read_bytes()
        missing = {one: template for one, template in missing.items() if one.encode() not in text}
    print(f"PyTorch {torch.__version__}: {len(wanted) - len(missing)} of {len(wanted)} phrases found")
    for one, template in missing.items():
        print(f"  {one!r} of {filled(template)!r}")


if __name__ == "__main__":
    main()
