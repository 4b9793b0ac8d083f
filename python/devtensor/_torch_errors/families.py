"""The sentences of PyTorch that are explained, by family: what they are about, as regular expressions.

Collected from PyTorch 2.13 on the cpu and the meta device. Those of older versions and of CUDA are from memory.
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
        r"[Ii]ndices should be either on (the )?cpu or on the same device as the indexed tensor",
        r"[Ee]xpected .* (to be )?(on|in) (the )?same device",
        r"[Ee]xpected .* to have the same device",
        r"(arguments|tensors) are (located )?on different (GPUs|devices)",
        r"is on (cpu|cuda\S*|mps\S*|xpu\S*|meta), (but )?(expected|different from)",
        r"Input and parameter tensors are not at the same device",
        r"Input and hidden tensors are not at the same device",
        r"expected device \S+ but got device \S+",
        r"Unhandled FakeTensor Device Propagation for \S+, found two different devices",
    ],
    ("dtype-mismatch", "dtype"): [
        r"expected (m1 and m2|mat1 and mat2|self and mat2|self and vec|batch1 and batch2) to have the same dtype",
        r"(mat1 and mat2|self and mat2|input and weight) must have the same dtype",
        r"expected scalar type \w+ but found \w+",
        r"Input type \(.*\) and (weight|bias) type \(.*\) should be the same",
        r"result type \w+ can't be cast to the desired output type \w+",
        r"Found dtype \w+ but expected \w+",
        r"expected (both vectors|matrix and vector|both matrices) to have (the )?same dtype",
        r"dot : expected both vectors to have same dtype",
        r"Expected query, key, and value to have the same dtype",
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
        r"\"\w+\" not implemented for '\w+'",
        r"could not infer output dtype\. Input dtype must be either a floating point or complex dtype",
        r"Input dtype must be either a floating point or complex",
        r"[Ee]xpected (a )?floating.point",
        r"expects? (a )?floating.point",
        r"[Oo]nly (supports )?floating.point",
    ],
    ("dtype-of-target", "target"): [
        r"expected target dtype to be Long or Byte, but got \w+",
        r"expected scalar type (Long|Byte) but found \w+",
        r"Expected floating point type for target with class probabilities, got \w+",
        r"0D or 1D target tensor expected, multi-target not supported",
    ],
    ("dtype-of-index", "index"): [
        r"tensors used as indices must be long",
        r"Expected tensor for argument #\d+ 'indices' to have one of the following scalar types",
        r"Expected dtype int(32/int|32 or int)?64 for index",
        r"index_\w+\(\): [Ee]xpected .*int.* (for|index)",
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
_WORD = re.compile(r"\b(torch\.(?:cuda\.)?)?(" + "|".join(_SCALARS) + r")(Tensor)?\b")
_LOWER = re.compile(r"(?<=dtype )(float|double|half|long|int|bool)\b|\b(float|double)(?= !=)|(?<=!= )(float|double)\b")
_WORDS_OF_C = {"float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32"}


def families(sentence: str) -> list[Family]:
    """Those that a sentence may belong to, in the order of the table."""
    return [family for family in FAMILIES if family.pattern.search(sentence)]


def dtypes_in(sentence: str) -> set[str]:
    """The dtypes that a sentence names, in devtensor's words: float32 for Float, float or torch.FloatTensor."""
    found = {_SCALARS[match[2]] for match in _WORD.finditer(sentence)}
    found |= {_WORDS_OF_C.get(word, word) for match in _LOWER.finditer(sentence) for word in match.groups() if word}
    return found | set(re.findall(r"torch\.((?:b?float|u?int|complex)\d+|bool)\b", sentence))


def in_our_words(sentence: str) -> str:
    """The first line with dtypes called as devtensor's sentences call them, which is what the diagnosis reads."""
    text = _WORD.sub(lambda match: _SCALARS[match[2]], sentence.partition("\n")[0])
    return _LOWER.sub(lambda match: _WORDS_OF_C.get(match[0], match[0]), text)
