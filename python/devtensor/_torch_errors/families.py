"""The sentences of PyTorch that are explained, by family: what they are about, as regular expressions.

Collected from PyTorch 2.4.1, 2.11 and 2.13 on the cpu and the meta device. Those of CUDA are from the libraries and the
Python sources of 2.4.1 and 2.11 for CUDA; tests/helpers/pytorch/torch_sentences.py compares them.
A sentence only has to belong to a family: what disagrees is read from the operands, and where those do not show it
nothing is said.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class Family(NamedTuple):
    """code is that of devtensor's own error of this kind; about: what the operands must show."""

    code: str
    about: str
    pattern: re.Pattern[str]


_ROWS: dict[tuple[str, str], list[str]] = {
    ("device-mismatch", "device"): [
        r"Expected all tensors to be on the same device",
        r"Tensor on device \S+ is not on the expected device \S+",
        r"Input type \(.*\) and (weight|bias) type \(.*\) should be the same",
        r"indices should be either on (the )?cpu or on the same device as the indexed tensor",
        r"[Ee]xpect(ed|s)? .*(on|in) (the )?same device",
        r"[Ee]xpect(ed|s)? .* to have the same device",
        r"(must|should|need to) (all )?(be (on|in|placed on)|have) (the )?same device",
        r"device of \w+ \(.*\) must match device of \w+ \(",
        r"(arguments|tensors) (are (located )?)?on different (GPUs|devices)",
        r"is on (cpu|CPU|cuda\S*|mps\S*|xpu\S*|meta), (but )?(expected|different from)",
        r"[Ee]xpected '\w+' to be (a )?(CUDA|CPU)\b.*, but got",
        r"Expected tensors to have CUDA DeviceType, but got",
        r"Expected out tensor to have device",
        r"Input, output and indices must be on the current device",
        r"CPU Scalar support for \w+ argument is not supported when calling \w+ on CUDA tensors",
        r"Input and (parameter|hidden) tensors are not at the same device",
        r"expected device \S+ but got device \S+",
        r"Unhandled FakeTensor Device Propagation for \S+, found two different devices",
    ],
    ("dtype-mismatch", "dtype"): [
        r"(mat1 and mat2|self and mat2|input and weight) must have the same dtype",
        r"expected scalar type \w+ but found \w+",
        r"Input type \(.*\) and (weight|bias) type \(.*\) should be the same",
        r"result type \w+ can't be cast to the desired output type \w+",
        r"Found dtype \w+ but expected \w+",
        r"[Ee]xpect(ed|s)? .*\bto have (the )?same (dtypes?|type as)\b",
        r"all tensors must have be the same dtype|must all have the same type",
        r"must be same dtype as the input tensor",
        r"Expected attn_mask dtype to be bool or float or to match query dtype",
        r"Expected self\.dtype to be equal to src\.dtype",
        r"input must have the type torch\.\w+, got type torch\.\w+",
        r"Expected out tensor to have dtype",
        r"expected dtype \w+ for `\w+` but got dtype \w+",
        r"must have the same (scalar type|dtype)",
        r"Input dtypes must be the same, got",
        r"RNN input dtype \(.*\) does not match weight dtype",
        r"[Ii]nput and (hidden|parameter) tensors are not the same dtype",
        r"(Index put|index_put|scatter\(\)|scatter_add|index_copy_\(\)).*(dtype|scalar type)",
        r"mixed dtype \(CPU\): (all inputs must share same datatype|expect parameter to have scalar type)",
    ],
    ("dtype-not-supported", "floats"): [
        r"\"(?!nll_loss\w*_index\")[^\"]+\" not implemented for '\w+'",
        r"could not infer output dtype\. Input dtype must be either a floating point or complex dtype",
        r"Input dtype must be either a floating point or complex",
        r"[Ee]xpected (a )?floating.point",
        r"expects? (a )?floating.point",
        r"[Oo]nly (supports )?floating.point",
        r"to have floating.point (or complex )?dtype|must be either float or double dtype",
        r"expected common dtype to be floating.point, yet common dtype is",
    ],
    ("dtype-of-target", "target"): [
        r"expected target dtype to be Long or Byte, but got \w+",
        r"expected scalar type (Long|Byte) but found \w+",
        r"\"nll_loss\w*_index\" not implemented for '\w+'",  # of CUDA
        r"Expected floating point type for target with class probabilities, got \w+",
        r"0D or 1D target tensor expected, multi-target not supported",
    ],
    ("dtype-of-index", "index"): [
        r"tensors used as indices must be long",
        r"Expected tensor for argument #\d+ 'indices' to have one of the following scalar types",
        r"Expected dtype int(32/int|32 or int)?64 for index",
        r"index_\w+\(\): [Ee]xpected .*int.* (for|index)",
        r"one_hot is only applicable to index tensor",
    ],
    ("shape-mismatch", "shape"): [
        r"mat1 and mat2 shapes cannot be multiplied",
        r"size mismatch, got",
        r"a and b must have same reduction dim",
        r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\) at non-singleton dimension \d+",
        r"Given groups=\d+, weight of size",
        r"Given transposed=",
        r"Expected (size for first two dimensions of batch2|batch2? tensor)",
        r"batch1 and batch2 must have same number of batches",
        r"inconsistent tensor size, expected tensor",
        r"The expanded size of the tensor \(\d+\) must match the existing size",
        r"Sizes of tensors must match except in dimension",
        r"stack expects each tensor to be equal size",
        r"Kernel size can't be greater than actual input size",
        r"shape '\[.*\]' is invalid for input of size \d+",
        r"shape mismatch: ",
        r"The shape of the mask .* does not match the shape of the indexed tensor",
        r"Given normalized_shape=",
        r"(running_mean|running_var|weight|bias) should contain \d+ elements not \d+",
        r"[Ee]xpected number of channels in input to be divisible by num_groups",
        r"Expected weight to be a vector of size equal to the number of channels in input",
        r"Using a target size \(.*\) that is different to the input size",
        r"Target size \(.*\) must be the same as input size",
        r"Expected input batch_size \(\d+\) to match target batch_size",
        r"Expected target size",
        r"input\.size\(-1\) must be equal to input_size",
        r"input has inconsistent input_size",
        r"Expected hidden(\[\d\])? size",
        r"einsum\(\): subscript \w has size",
        r"size does not match weight size",
        r"weight tensor should be defined either for all",
        r"output with shape .* doesn't match the broadcast shape",
        r"Shape mismatch|shapes? .* (cannot|could not) be broadcast",
        r"mismatch between the size|Size does not match at dimension",
        r"Expected index \[.*\] to be no larger than self",
        r"expected bias to be 1-dimensional with \d+ elements",
        r"Number of indices \(\d+\) should be equal to",
        r"source tensor shape must match self tensor shape",
        r"must match the size of|X1 and X2 must have the same number of columns",
    ],
    ("rank-mismatch", "shape"): [
        r"[Ee]xpected \dD( \(\w+\))?( or \dD)? (\([\w ]+\) )?input",
        r"Expected \dD(\s\(\w+\))? or \dD \(batched\) input to conv\dd",
        r"(\w+): Expected input to be \dD or \dD",
        r"'\w+' must be \d-D",
        r"must be \dD|must be (a )?\d-D|must be (a )?(matrix|vector)|matrices expected|vector expected",
        r"1D tensors expected, but got \dD and \dD tensors",
        r"both arguments to (matmul|linear) need to be at least 1D",
        r"input must have (2|3) dimensions|LSTM: Expected input|GRU: Expected input|RNN: Expected input",
    ],
    ("host-access", "alone"): [r"can't convert \S+ device type tensor to numpy"],
    ("view-needs-copy", "alone"): [r"view size is not compatible with input tensor's size and stride"],
    ("overlapping-write", "alone"): [
        r"more than one element of the written-to tensor refers to a single memory location"
    ],
    ("index-out-of-range", "position"): [
        r"index -?\d+ is out of bounds for dimension \d+ with size \d+",
        r"index out of range in self",
        r"Target -?\d+ is out of bounds",
        r"index -?\d+ is out of bounds",
    ],
    ("dimension-out-of-range", "alone"): [r"Dimension out of range \(expected to be in range of"],
    ("invalid-index", "alone"): [r"too many indices for tensor of dimension"],
    ("selected-out-of-range", "alone"): [r"selected index k out of range"],
    ("ambiguous-bool", "alone"): [r"Boolean value of Tensor with more than one value is ambiguous"],
    ("not-a-scalar", "alone"): [r"a Tensor with \d+ elements cannot be converted to Scalar"],
    ("not-a-sequence", "alone"): [r"iteration over a 0-d tensor", r"len\(\) of a 0-d tensor"],
    ("invalid-argument", "argument"): [r"argument '(\w+)' \(position \d+\) must be Tensor, not numpy\.ndarray"],
    ("grad-missing", "gradient"): [r"does not require grad and does not have a grad_fn"],
    ("grad-not-scalar", "gradient"): [r"grad can be implicitly created only for (real )?scalar outputs"],
    ("grad-freed", "gradient"): [r"Trying to backward through the graph a second time"],
    ("grad-modified", "gradient"): [
        r"one of the variables needed for gradient computation has been modified by an inplace operation"
    ],
    ("grad-leaf-in-place", "gradient"): [
        r"a leaf Variable that requires grad is being used in an in-place operation",
        r"a leaf Variable that requires grad has been used in an in-place operation",
    ],
    ("grad-leaf-view-in-place", "gradient"): [
        r"a view of a leaf Variable that requires grad is being used in an in-place operation"
    ],
    ("grad-view-in-place", "gradient"): [
        r"is a view and (is|was) being modified inplace.* (no_grad|no-grad)",
        r"A view was created in no_grad mode and is being modified inplace",
        r"is a view and is being modified inplace",
        r"Output \d+ of \w+ is a view and is being modified inplace",
    ],
    ("grad-out", "alone"): [r"functions with out=\.\.\. arguments don't support automatic differentiation"],
    ("grad-flag", "gradient"): [r"you can only change requires_grad flags of leaf variables"],
    ("grad-dtype", "gradient"): [
        r"[Oo]nly Tensors of floating point (and complex )?dtype can require gradients",
    ],
    ("grad-host-access", "gradient"): [r"Can't call numpy\(\) on Tensor that requires grad"],
    ("grad-unused", "gradient"): [r"One of the differentiated Tensors appears to not have been used in the graph"],
    ("grad-assign", "gradient"): [
        r"assigned grad has data of a different (size|type)",
        r"Mismatch in shape: grad_output\[\d+\] has a shape of",
    ],
}

FAMILIES = tuple(Family(code, about, re.compile(text)) for (code, about), texts in _ROWS.items() for text in texts)

_SCALARS = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64", "Int": "int32",
    "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}  # fmt: skip
_WORD = re.compile(r"\b(torch\.(?:cuda\.)?|CPU|CUDA)?(" + "|".join(_SCALARS) + r")(Tensor|Type)?\b")
_WORDS_OF_C = {
    "long int": "int64", "long": "int64", "short int": "int16", "short": "int16", "unsigned char": "uint8",
    "signed char": "int8", "int": "int32", "c10::Half": "float16", "half": "float16", "c10::BFloat16": "bfloat16",
    "float": "float32", "double": "float64", "bool": "bool",
}  # fmt: skip
_LOWER = re.compile(r"(?:(?<=type )|(?<=type \()|(?<=\w: )|(?<=input )|(?<=!= ))(" + "|".join(_WORDS_OF_C) + r")\b")


def families(sentence: str) -> list[Family]:
    """Those that a sentence may belong to, in the order of the table."""
    return [family for family in FAMILIES if family.pattern.search(sentence)]


def dtypes_in(sentence: str) -> set[str]:
    """The dtypes that a sentence names, in devtensor's words: float32 for Float, float or torch.FloatTensor."""
    found = {_SCALARS[match[2]] for match in _WORD.finditer(sentence)}
    found |= {_WORDS_OF_C[match[1]] for match in _LOWER.finditer(sentence)}
    return found | set(re.findall(r"torch\.((?:b?float|u?int|complex)\d+|bool)\b", sentence))


def devices_in(sentence: str) -> set[str]:
    """The devices with an index that a sentence names, such as cuda:0."""
    return set(re.findall(r"\b(?:cuda|xpu|mps):\d+\b", sentence))


def in_our_words(sentence: str) -> str:
    """The first line with dtypes called as devtensor's sentences call them, which is what the diagnosis reads."""
    text = _WORD.sub(lambda match: _SCALARS[match[2]], sentence.partition("\n")[0])
    return _LOWER.sub(lambda match: _WORDS_OF_C[match[1]], text)
