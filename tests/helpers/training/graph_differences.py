"""Where programs of graph_programs.py are to differ between PyTorch and devtensor, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """A known one. text: a pattern of the statement; ours: of what devtensor says or does."""

    text: str
    ours: str
    why: str


# Where the two are to differ.
DIFFERENCES = [
    Difference("", r"NotImplementedError: the derivative for.*\n.*no error", "PyTorch: no second derivative"),
    Difference("", r"CopySlices returned an invalid gradient.*\n.*no error", "PyTorch: its index is smaller than src"),
    Difference("", r"written-to tensor refer to a single memory.*\n.*no error", "a write reads its source first"),
    Difference("", r"derivative for.*is not implemented.*\n.*no error", "PyTorch: no second derivative"),
    Difference("batch_norm", r"IndexError: select.*\n.*no error", "results without elements"),
    Difference("", r"no error\n.*second time.*needed by affine", "results without elements"),
    Difference("backward", r"outer: Expected 1-D argument.*\n.*no error", "results without elements"),
    Difference("interpolate", r"Non-empty \dD data tensor.*\n.*no error", "results without elements"),
    Difference(
        "binary_cross_entropy",
        r"elements of (input|target).*\n.*no error.*cosine_similarity",
        "PyTorch: its eps is 0 in float16",
    ),
    Difference("conv", r"Only zero batch or zero channel.*\n.*no error", "results without elements"),
    Difference("", r"devtensor.*, PyTorch \((0, \d+|\d+, 0)\).*scaled_dot_product", "attention of nothing has a batch"),
    Difference(r"\[", r"no error\n.*with size 0.*scaled_dot_product", "attention of nothing has a batch"),
    Difference("", r"RuntimeError: Trying to backward.*\n.*devtensor: no error", "numbers are kept, not arrays"),
    Difference("", r"RuntimeError: one of the variables.*\n.*devtensor: no error", "less is kept"),
    Difference("", r"no error\n.*second time.*needed by index_get", "repeat_interleave keeps an index"),
    Difference("", "(values|only).*create_graph.*prod", "no second derivative at 0; it reads its result"),
    Difference("", r"no error\n.*does not require grad.*create_graph", "a gradient of zeros is a constant"),
    Difference(
        "",
        r"is_leaf \(True, False\), PyTorch \((True, True|False, True)\).*create_graph",
        "PyTorch: a gradient of zeros is a constant",
    ),
    Difference(
        "", r"is_leaf \(False, True\), PyTorch \(True, False\).*create_graph", "a gradient of zeros is a constant"
    ),
    Difference(
        "", "only PyTorch has it.*(retain_grad|inputs=)", "retain_grad is of the op, not of what is written over"
    ),
    Difference(
        "", "(values|only).*(allow_unused|inputs=).*register_hook", "PyTorch's hooks miss gradients that are asked for"
    ),
    Difference(
        "",
        r"RuntimeError: Function Scatter\w*Backward.*\n.*(no error|hook must return)",
        "PyTorch: its index is smaller than src",
    ),
    Difference(
        "", r"RuntimeError: The size of tensor.*\n.*no error.*scatter_reduce", "PyTorch: its index is smaller than src"
    ),
    Difference("", r"RuntimeError: output with shape.*\n.*no error", "PyTorch: clamp does not sum over wider limits"),
    Difference("", r"no error\n.*DTypeMismatchError", "nothing is cast unasked"),
    Difference("", "view size", "strides of results"),
    Difference(r"\.mT|F\.linear|take_along_dim|unflatten|roll|repeat_interleave", "", "other rules for shapes"),
    Difference("", "values.*hardsigmoid", "PyTorch: 1/6 is rounded to float32, also for float64"),
    Difference("", "values.*digamma", "PyTorch: the derivative of digamma is right to 5e-10"),
    Difference("", "NotImplementedError.*LAPACK", "LAPACK is of the cpu"),
    Difference("values asked for", "IndexError: index.*take_along_dim", "other rules for shapes"),
    Difference("", "values.*take_along_dim", "other rules for shapes"),
    Difference("", r"values.*scatter_reduce", "PyTorch: its index is smaller than src"),
    Difference("", r"no error\n.*second time.*needed by function", "attention keeps its operands"),
    Difference("", r"no error\n.*second time.*interpolate", "interpolate keeps its indices and weights"),
    Difference("", r"derivative for aten::hardsigmoid.*\n.*no error", "PyTorch: hardsigmoid has no second derivative"),
    Difference("", r"detached in-place.*\n.*no error", "what was kept is no longer of the array"),
    Difference(
        "",
        r"is a view and (its base or another view|is being).*\n.*(no error|IndexError)",
        "pieces of split may be written to",
    ),
    Difference("batch_norm", r"no error\n.*at least 2D", "a shape is checked of nothing, too"),
    Difference("conv_transpose2d", r"RuntimeError: Given input size.*\n.*no error", "results without elements"),
    Difference("kron|pixel_shuffle", r"no error\n.*(0D to 4D|3D to 6D)", "up to 8 dimensions"),
    Difference("", "values of what is expanded.*autograd.grad", "PyTorch: a gradient may be an expanded view"),
    Difference("", r"A view was created in no_grad.*\n.*no error.*autograd.grad", "PyTorch: a gradient may be a view"),
    Difference("", r"no error\n.*does not require grad.*cumm(ax|in)", "PyTorch: the gradient of nothing wants one"),
    Difference("", "values.*linalg.det", "PyTorch: one singular matrix of a batch has no gradient"),
    Difference("", "values.*block_diag", "PyTorch: beside a block of nothing the gradient is another's"),
    Difference("", "values.*matrix_exp", "PyTorch: matrix_exp is right to 1e-8"),
    Difference("", "values.*unfold", "what unfold() repeats is not written to"),
    Difference("", "values.* overlaps", "a write reads its source first"),
    Difference("", r"no error\n.*modified.*array \w+ \(\d+, \d+, .*kept by matmul", "PyTorch: it may keep a copy"),
    Difference("", "only devtensor has it.*(detach|data).* writes", "a write through detach() cuts no view off"),
    Difference("", r"no error\n.*modified.*kept by (affine|normalize).*instance_norm", "PyTorch: it may keep a copy"),
    Difference("", r"no error\n.*doesn.t require grad.*(detach|data)", "a copy onto itself is nothing"),
    Difference("", "values.*create_graph.*elu", "PyTorch: the second derivative at a kink is 0"),
    Difference("", "values.*copysign", "the sign of a zero"),
    Difference("", "values.* other views$", "strides of results"),
    Difference("", r"could not construct a memory descriptor.*\n.*no error", "PyTorch: not for every layout"),
    Difference("", r"devtensor\.\w+, PyTorch \([\d, ]*\b0[,)].*conv2d", "results without elements"),
    Difference("", r"TypeError: .* but hook returned.*\n.*no error", "a hook sees no gradient of views of its array"),
    Difference(r"backward\(lib.ones", r"no error\n.*DeviceMismatchError", "PyTorch runs on the cpu"),
    Difference("as_strided", r"no error\n.*out of bounds", "the memory of results"),
    Difference("index_copy|index_fill", r"no error\n.*(Expected source|IndexError)", "other rules for shapes"),
    Difference("scaled_dot_product", r"no error\n.*ShapeMismatch", "other rules for shapes"),
    Difference("", r"INDICES element is out of DATA.*\n.*no error", "indices into nothing are looked at"),
    Difference(
        "", r"no error\n.*modified.*kept by (mul|matmul).*(kron|tensordot|inner)", "PyTorch: a write to what kron keeps"
    ),
    Difference("", r"is_leaf \(True, False\), PyTorch \(False, True\).* other views$", "strides of results"),
    Difference("", "values.*gelu.*nansum", "PyTorch: gelu(inf) is NaN in float32"),
    Difference("", r"IndexError: index.*\(take_along_dim on cuda", "other rules for shapes"),
    Difference("", r"does not require grad.*\n.*no error.*create_graph", "a gradient of zeros is recorded"),
    Difference("", r"RuntimeError: hook.*has changed.*\n.*no error", "a hook sees no gradient of views of its array"),
    Difference(r"\] = |copy_", r"a (view of a )?leaf Variable.*\n.*no error", "a copy onto itself is nothing"),
    Difference("", r"is_leaf \(False, True\), PyTorch \(True, False\).*(data|detach)", "a copy onto itself is nothing"),
    Difference("", r"no error\n.*shares in another way.*unfold", "what unfold() repeats is not written to"),
    Difference("", r"no error\n.*shares in another way.*(detach|data)", "no write to views of what was detached"),
    Difference("", r"a view of a leaf.*\n.*no error.*requires_grad_\(False", "PyTorch: views keep what their base was"),
    Difference("", "values.*expand_as.*register_hook", "a hook sees no gradient of views of its array"),
    Difference("", r"values.*\.data", "a write through .data to what is kept in another dtype is not seen"),
    Difference("", "only PyTorch has it, of no leaf", "a leaf that a write made a result has no gradient any more"),
    Difference("", "values.*softshrink", "it is x less clamp(x): an infinite gradient less itself"),
    Difference("", r"no error\n.*IndexError.*take_along_dim", "other rules for shapes"),
    Difference("", r"no error\n.*more than one element of the written-to", "what expand() repeats is not written to"),
    Difference("numpy", r"TypeError: Got unsupported.*\n.*no error", "NumPy gets bfloat16, too"),
    Difference("", r"no error\n.*or of a detached array, and is being modified", "no tracked write to a view of .data"),
    Difference("", r"no error\n.*modified.*\.data\b", "a write through .data to what is kept is found"),
    Difference("detach_", r"Can't detach views.*\n.*no error", "a view may be detached in place"),
    Difference("", "values.*logcumsumexp", "an infinity less itself"),
    Difference(r"\] = ", r"no error\n.*IndexError", "indices into nothing are looked at"),
    Difference("", r"moved into the graph interior.*\n.*no error", "a leaf that was written to has its gradient"),
    Difference(r"F\.pad", r"narrow.*length must.*\n.*no error", "more paddings than PyTorch has"),
    Difference(
        "", r"differentiated Tensors does not require.*\n.*no error.*create_graph", "a gradient of zeros is recorded"
    ),
    Difference("", r"A view was created in no_grad.*multiple views.*\n.*no error", "pieces of split may be written to"),
    Difference("inner|tensordot", r"no error\n.*at most 8 dimensions", "up to 8 dimensions"),
    Difference("adaptive_avg_pool2d", r"no error\n.*Kernel size can't", "results without elements"),
    Difference("lp_pool2d", r"RuntimeError: Expected.*\n.*no error", "no batch"),
    Difference(r"F\.pad", r"(Padding size|Expected 3D or 4D).*\n.*no error", "more paddings than PyTorch has"),
    Difference("adaptive_avg_pool2d", r"no error\n.*Expected 3D", "PyTorch: an output of one element is a mean"),
    Difference("batch_norm|group_norm", r"no error\n.*Expected weight", "PyTorch reads weights of any shape as a row"),
    Difference("", r"no error\n.*modified.*kept by function", "attention keeps its result"),
    Difference("index_fill|index_copy", r"RuntimeError: setStorage.*\n.*IndexError", "the builtin class"),
    Difference("", r"not implemented for.*\n.*no error", "PyTorch: not for this dtype"),
    Difference("(max|avg)_pool2d", r"RuntimeError.*\n.*no error", "no batch"),
    Difference(r"\] = ", "the broadcast shape|shape mismatch", "leading sizes of 1 are not dropped"),
    Difference("index_add|scatter_add", r"no error\n.*IndexError", "indices into nothing are looked at"),
    Difference("index_select|embedding", r"RuntimeError.*\n.*(IndexError|no error)", "the builtin class"),
    Difference("", r"RuntimeError: index.*out of bounds.*\n.*devtensor: IndexError", "the builtin class"),
]


def known(statement: str, text: str) -> Difference | None:
    return next((d for d in DIFFERENCES if re.search(d.text, statement) and re.search(d.ours, text)), None)
