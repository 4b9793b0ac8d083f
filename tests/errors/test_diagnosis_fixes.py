"""Every fix that is proposed is executed: before the failing line, or in place of the expression, it makes it pass."""

from __future__ import annotations

import pickle
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import source_files
from source_files import GPU
from support import REAL, ROOT, skip_kernels
from typical_mistakes import EXAMPLES

from devtensor import nn
from devtensor._diagnosis.causes import CAUSES

TO = f'.to("{GPU}")'

# (name, source, fix). The failing line ends in "# here". x, y, m are on the cpu, g and n on a GPU (source_files.names).
FIXES: list[tuple[str, str, str | None]] = [
    # device
    ("name", "x + g  # here", f"x = x{TO}"),
    ("second name", "g + x  # here", f"x = x{TO}"),
    ("function", "dt.matmul(x, n)  # here", f"x = x{TO}"),
    ("keyword", "dt.matmul(g, other=m)  # here", f"m = m{TO}"),
    ("attribute", "b = Box(w=x)\ng + b.w  # here", f"b.w = b.w{TO}"),
    ("deep attribute", "b = Box(c=Box(w=x))\ng + b.c.w  # here", f"b.c.w = b.c.w{TO}"),
    ("entry of a dict", "d = {'w': x}\ng + d['w']  # here", f"d['w'] = d['w']{TO}"),
    ("entry of a list", "l = [x]\ng + l[0]  # here", f"l[0] = l[0]{TO}"),
    ("entry by a variable", "l, i = [x], 0\ng + l[i]  # here", f"l[i] = l[i]{TO}"),
    ("entry of a tuple", "t = (x,)\ng + t[0]  # here", f"t[0]{TO}"),
    ("local", "def f(a, b):\n    return a + b  # here\nf(x, g)", f"a = a{TO}"),
    ("own cell", "def f(a):\n    def h(): return a\n    return a + g  # here\nf(x)", f"a = a{TO}"),
    ("closure", "def f(a):\n    def h():\n        return a + g  # here\n    return h()\nf(x)", f"a{TO}"),
    ("global in a function", "def f():\n    return x + g  # here\nf()", f"x{TO}"),
    ("lambda", "f = lambda a: a + g  # here\nf(x)", f"a{TO}"),
    ("comprehension", "[a * g for a in (x, y)]  # here", f"a{TO}"),
    ("name in a comprehension", "[a * y for a in (g, g)]  # here", f"y{TO}"),
    ("generator expression", "list(dt.add(a, g) for a in (x,))  # here", f"a{TO}"),
    ("result of a call", "def make(): return x\nz = make() + g  # here", f"make(){TO}"),
    ("result of an operator", "z = (x - 1) * g  # here", f"(x - 1){TO}"),
    ("negation", "z = -x * g  # here", f"(-x){TO}"),
    ("argument that is an operator", "dt.add(x - 1, g)  # here", f"(x - 1){TO}"),
    ("assignment expression", "z = (w := x) + g  # here", f"(w := x){TO}"),
    ("bound in the statement", "z = ((w := x) is x, dt.add(g, w))  # here", f"w{TO}"),
    ("property", "class C:\n    w = property(lambda self: x)\nc = C()\ng + c.w  # here", f"c.w{TO}"),
    ("slots", "class C:\n    __slots__ = ('w',)\nc = C(); c.w = x\ng + c.w  # here", f"c.w = c.w{TO}"),
    ("frozen",
     "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass C:\n    w: object\nc = C(x)\ng + c.w  # here",
     f"c.w{TO}"),
    ("named tuple", "import collections\nt = collections.namedtuple('T', 'w')(x)\ng + t.w  # here", f"t.w{TO}"),
    ("class attribute", "class C:\n    w = x\ng + C.w  # here", f"C.w{TO}"),
    ("class body", "class C:\n    a = x\n    b = a + g  # here", f"a = a{TO}"),
    ("self", "class C:\n    def __init__(self): self.w = x\n    def f(self): return g @ self.w.T  # here\nC().f()",
     f"self.w.T{TO}"),
    ("self in place",
     "class C:\n    def __init__(self): self.w = x\n    def f(self):\n        return g + self.w  # here\nC().f()",
     f"self.w = self.w{TO}"),
    ("augmented, right", "g += x  # here", f"x = x{TO}"),
    ("augmented, left", "x += g  # here", 'g = g.to("cpu")'),
    ("augmented, in a loop", "for i in range(3):\n    g += x  # here", f"x = x{TO}"),
    ("method in place", "x.add_(g)  # here", 'g = g.to("cpu")'),
    ("assignment to a part", "g[0] = x[0]  # here", f"x[0]{TO}"),
    ("assignment to a part of", "x[0] = g[0]  # here", 'g[0].to("cpu")'),
    ("in a condition", "if (x < g) is not None: pass  # here", f"x = x{TO}"),
    ("out", "dt.add(g, g, out=x)  # here", 'g = g.to("cpu")'),
    ("list", "dt.cat([g, x, g])  # here", f"x = x{TO}"),
    ("list in a variable", "l = [g, x]\ndt.stack(l)  # here", f"l[1] = l[1]{TO}"),
    ("starred", "l = [x, g]\ndt.add(*l)  # here", f"l[0] = l[0]{TO}"),
    ("double star", "d = {'input': g, 'other': x}\ndt.add(**d)  # here", f"d['other'] = d['other']{TO}"),
    ("majority on the cpu", "dt.where(x > 0, y, g)  # here", 'g = g.to("cpu")'),
    ("addmm", "dt.addmm(dt.ones(2), g, n)  # here", "dt.ones(2, device=g.device)"),
    ("made here and reshaped", "g * dt.arange(2).unsqueeze(1)  # here", "dt.arange(2, device=g.device)"),
    ("made here by a loop", "[g * dt.full((3,), k) for k in range(2)]  # here", "dt.full((3,), k, device=g.device)"),
    ("made here of another array", "g * (dt.ones(3) + x)  # here", f"(dt.ones(3) + x){TO}"),
    ("made here, device said", "g * dt.ones(3, device='cpu')  # here", f"dt.ones(3, device='cpu'){TO}"),
    ("made in a function", "def f(a):\n    k = dt.arange(3)\n    return a * k  # here\nf(g)",
     "dt.arange(3, device=a.device)"),
    ("made in a function and met there", "def f(a):\n    k = dt.ones(3)\n    x * k\n    return a * k  # here\nf(g)",
     f"k = k{TO}"),
    ("0 dimensions", "s = dt.tensor(2.0)\ng * s  # here", f"s = s{TO}"),
    ("operator module", "import operator\noperator.mul(g, x)  # here", f"x = x{TO}"),
    ("several lines", "z = dt.add(g, x)  # here", f"x = x{TO}"),
    ("device and dtype", "w = dt.ones((2, 3), dtype='float64')\ndt.linear(w, g)  # here", f"w = w{TO}.float()"),
    ("device and the commonest dtype",
     "a, b = g.double(), dt.ones(4)\nw = dt.ones((4, 3), dtype='float64', device=g.device)\ndt.linear(a, w, b)  # here",
     f"b = b{TO}.double()"),
    ("device and shape", "dt.matmul(x, g)  # here", None),
    ("device, then in place of ints", "i = dt.ones((2, 3), dtype='int64')\ni += g  # here", None),
    ("three devices", "dt.addmm(x, g, dt.ones((3, 3), device='cuda:1'))  # here", None),
    # dtype
    ("float64 input", "w = dt.ones((4, 3), dtype='float64')\ndt.linear(w, x)  # here", "w = w.float()"),
    ("float64 weight", "w = dt.ones((4, 3), dtype='float64')\ndt.linear(x, w)  # here", "w = w.float()"),
    ("from numpy", "a = dt.from_numpy(np.ones((5, 3)))\na @ m  # here", "a = a.float()"),
    ("half", "a = dt.ones((5, 3), dtype='float16')\na @ m.half() @ dt.ones((2, 2))  # here",
     "dt.ones((2, 2)).half()"),
    ("bias", "b = dt.ones(2, dtype='float64')\ndt.linear(x, y, b)  # here", "b = b.float()"),
    ("integers", "i = dt.ones((2, 2), dtype='int64')\ndt.linear(i, i)  # here", "i = i.float()"),
    ("integers and floats", "i = dt.ones((2, 2), dtype='int64')\ni @ x  # here", "i = i.float()"),
    ("two integers", "i = dt.ones((2, 2), dtype='int64'); j = i + 1\ndt.linear(i, j)  # here",
     "i, j = i.float(), j.float()"),
    ("int32 labels", "i = dt.zeros(2, dtype='int32')\ndt.nn.functional.cross_entropy(x, i)  # here", "i = i.long()"),
    ("bool labels", "i = dt.zeros(2, dtype='bool')\ndt.nn.functional.nll_loss(x, i)  # here", "i = i.long()"),
    ("float64 labels", "i = dt.zeros(2).double()\ndt.nn.functional.cross_entropy(x, i)  # here", "i = i.long()"),
    ("labels of int scores", "i = dt.zeros(2, dtype='int32')\ndt.nn.functional.cross_entropy(x.int(), i)  # here",
     None),
    ("float classes", "i = dt.zeros(2)\ndt.nn.functional.one_hot(i)  # here", "i = i.long()"),
    ("softmax", "i = dt.ones(3, dtype='int64')\ndt.softmax(i, dim=0)  # here", "i = i.float()"),
    ("softmax, method", "i = dt.ones(3, dtype='int64')\ni.softmax(0)  # here", "i = i.float()"),
    ("in place of ints", "i = dt.ones((2, 3), dtype='int64')\ni += x  # here", "i = i.float()"),
    ("in place of ints by a number", "i = dt.ones(3, dtype='int64')\ni *= 1.5  # here", "i = i.float()"),
    ("out of another dtype", "o = dt.ones((2, 3), dtype='float64')\ndt.add(x, y, out=o)  # here", "o = o.float()"),
    ("conv2d", "i = dt.ones((1, 2, 4, 4), dtype='float64'); w = dt.ones((3, 2, 3, 3))\ndt.conv2d(i, w)  # here",
     "i = i.float()"),
    ("max_pool2d", "i = dt.ones((1, 4, 4), dtype='uint8')\ndt.max_pool2d(i, 2)  # here", "i = i.float()"),
    # shape
    ("linear, transposed", "w = dt.ones((3, 4))\ndt.linear(x, w)  # here", "w = w.T"),
    ("matmul, transposed", "w = dt.ones((4, 3))\nx @ w  # here", "w = w.T"),
    ("matmul, first transposed", "w = dt.ones((2, 4))\nx @ w  # here", "x = x.T"),
    ("matmul, either", "x @ y  # here", None),
    ("matmul, neither", "x @ dt.ones((7, 5))  # here", None),
    ("mm, transposed", "w = dt.ones((5, 3))\ndt.mm(x, w)  # here", "w = w.T"),
    ("bmm, transposed", "a = dt.ones((2, 4, 3)); b = dt.ones((2, 5, 3))\ndt.bmm(a, b)  # here", "b = b.mT"),
    ("bmm, no batch", "a = dt.ones((4, 3)); b = dt.ones((1, 3, 5))\ndt.bmm(a, b)  # here", "a = a.unsqueeze(0)"),
    ("addmm, transposed", "w = dt.ones((5, 3))\ndt.addmm(dt.ones(5), x, w)  # here", "w = w.T"),
    ("linear, bias of two dimensions", "b = dt.ones((1, 2))\ndt.linear(x, y, b)  # here", "b = b.reshape(-1)"),
    ("conv2d, channels last", "i = dt.ones((1, 8, 9, 3)); w = dt.ones((4, 3, 3, 3))\ndt.conv2d(i, w)  # here",
     "i = i.permute(0, 3, 1, 2)"),
    ("conv2d, one image, channels last", "i = dt.ones((8, 9, 3)); w = dt.ones((4, 3, 3, 3))\ndt.conv2d(i, w)  # here",
     "i = i.permute(2, 0, 1)"),
    ("conv2d, no channels", "i = dt.ones((8, 9)); w = dt.ones((4, 1, 3, 3))\ndt.conv2d(i, w)  # here",
     "i = i.unsqueeze(0)"),
    ("conv2d, batch without channels", "i = dt.ones((5, 8, 9)); w = dt.ones((4, 1, 3, 3))\ndt.conv2d(i, w)  # here",
     "i = i.unsqueeze(1)"),
    ("conv2d, weight swapped", "i = dt.ones((1, 3, 8, 9)); w = dt.ones((3, 4, 3, 3))\ndt.conv2d(i, w)  # here",
     "w = w.transpose(0, 1)"),
    ("conv2d, weight of TensorFlow", "i = dt.ones((1, 5, 8, 9)); w = dt.ones((3, 3, 5, 7))\ndt.conv2d(i, w)  # here",
     "w = w.permute(3, 2, 0, 1)"),
    ("conv2d, bias of four dimensions",
     "i = dt.ones((1, 3, 8, 9)); w = dt.ones((4, 3, 3, 3)); b = dt.ones((1, 4, 1, 1))\ndt.conv2d(i, w, b)  # here",
     "b = b.reshape(-1)"),
    ("conv2d, depthwise", "i = dt.ones((1, 3, 8, 9)); w = dt.ones((3, 1, 3, 3))\ndt.conv2d(i, w)  # here", None),
    ("conv2d, small image", "i = dt.ones((1, 3, 2, 2)); w = dt.ones((4, 3, 3, 3))\ndt.conv2d(i, w)  # here", None),
    ("one scale per channel", "i = dt.ones((2, 3, 4, 5)); s = dt.ones(3)\ni * s  # here", "s = s.reshape(-1, 1, 1)"),
    ("one scale per row", "s = dt.ones(2)\nx * s  # here", "s = s.reshape(-1, 1)"),
    ("no broadcasting", "x + m  # here", None),
    ("in place", "s = dt.ones(3)\ns += x  # here", None),
    ("reshape", "x.reshape(4, 2)  # here", None),
    # the rest
    ("numpy()", "g.numpy()  # here", "g = g.cpu()"),
    ("np.asarray", "np.asarray(g)  # here", "g = g.cpu()"),
    ("numpy() of a result", "(g + 1).numpy()  # here", "(g + 1).cpu()"),
    ("numpy() of what requires a gradient", "w = dt.ones(3, device=g.device, requires_grad=True)\nw.numpy()  # here",
     "w = w.detach().cpu()"),
    ("a list for NumPy", "l = [g[0], g[1]]\nnp.array(l)  # here", "l = [one.cpu() for one in l]"),
    ("a tuple for NumPy", "l = (g[0], x[1])\nnp.mean(l)  # here", "l = tuple(one.cpu() for one in l)"),
    ("a list with a number for NumPy", "l = [1.0, g[0, 0]]\nnp.array(l)  # here", "l[1] = l[1].cpu()"),
    ("a literal list for NumPy", "np.mean([g[0, 0]])  # here", "g[0, 0].cpu()"),
    ("a list that is made for NumPy", "np.mean([a + 1 for a in (g, g)])  # here", None),
    ("plus a NumPy array", "a = np.ones(3)\nx + a  # here", "a = dt.from_numpy(a)"),
    ("NumPy array plus", "a = np.ones(3)\na + x  # here", "a = dt.from_numpy(a)"),
    ("plus a NumPy result", "x + np.ones(3)  # here", "dt.from_numpy(np.ones(3))"),
    ("times a NumPy array on a GPU", "a = np.ones(3)\ng * a  # here", f"a = dt.from_numpy(a){TO}"),
    ("matmul with a NumPy array", "a = np.ones((3, 2))\ng @ a  # here", f"a = dt.from_numpy(a){TO}.float()"),
    ("plus NumPy that does not fit", "a = np.ones(7)\nx + a  # here", None),
    ("plus NumPy of complex numbers", "a = np.ones(3) * 1j\nx + a  # here", None),
    ("read-only", "a = np.ones(3); a.flags.writeable = False; r = dt.from_numpy(a)\nr += 1  # here", "r = r.clone()"),
    ("overlapping", "e = dt.ones(1).expand(4)\ne += 1  # here", "e = e.clone()"),
    ("view", "v = dt.ones((2, 3)).T\nv.view(6)  # here", "v = v.contiguous()"),
    # composed of others
    ("classes", "t = dt.tensor([0, 2])\nF.cross_entropy(g, t)  # here", f"t = t{TO}"),
    ("classes that do not fit", "t = dt.tensor([0, 2, 1])\nF.cross_entropy(g, t)  # here", None),
    ("weights of classes", "t, w = dt.tensor([0, 2]), dt.ones(3).to(GPU)\nF.cross_entropy(x, t, weight=w)  # here",
     "w = w.to(\"cpu\")"),
    ("embedding", "t = dt.tensor([0, 1])\nF.embedding(t, g)  # here", f"t = t{TO}"),
    ("batch norm", "v = dt.ones((4, 3))\nF.batch_norm(v, None, None, g[0], training=True)  # here", f"v = v{TO}"),
    ("conv1d", "v = dt.ones((1, 2, 8)); w = dt.ones((4, 2, 3), device=GPU)\nF.conv1d(v, w)  # here", f"v = v{TO}"),
    ("index_select", "t = dt.tensor([0, 1])\ng.index_select(0, t)  # here", f"t = t{TO}"),
    ("masked_fill", "t = x > 0\ng.masked_fill(t, 0.0)  # here", f"t = t{TO}"),
    ("weights of classes of another dtype",
     "t, w = dt.tensor([0, 2]), dt.ones(3, dtype='float64')\nF.cross_entropy(x, t, weight=w)  # here", "w = w.float()"),
    ("integers for scores", "t, i = dt.tensor([0, 2]), dt.ones((2, 3), dtype='int64')\nF.cross_entropy(i, t)  # here",
     "i = i.float()"),
    ("classes that are floats", "t = dt.tensor([0.0, 2.0])\nF.nll_loss(x, t)  # here", "t = t.long()"),
    ("classes from a call", "t = [dt.tensor([0, 2])]\nF.cross_entropy(g, t[0].clone())  # here", f"t[0].clone(){TO}"),
    ("lerp", "e = y.double()\ndt.lerp(x, e, 0.5)  # here", "e = e.float()"),
    ("lerp, array weight", "w = dt.ones(3, dtype='float64')\ndt.lerp(x, y, w)  # here", "w = w.float()"),
    ("clamp between arrays", "dt.clamp(g, x, n.T)  # here", f"x = x{TO}"),
    ("power", "x ** g  # here", f"x = x{TO}"),
    ("expand_as", "s = dt.ones(2)\ns.expand_as(x)  # here", "s = s.reshape(-1, 1)"),
    ("bits of a float", "i = dt.ones(3, dtype='int64')\ni & dt.ones(3)  # here", None),
    ("loss of two dtypes", "t = dt.ones((2, 3), dtype='float64')\nF.mse_loss(x, t)  # here", "t = t.float()"),
    # what the call would ask for next is in the fix, or there is none
    ("targets in a column, of ints", "t = dt.tensor([0, 1])\nF.binary_cross_entropy(x[:, :1] / 2, t)  # here",
     "t = t.float().unsqueeze(1)"),
    ("targets in a column, elsewhere",
     "t = dt.tensor([0.0, 1.0])\nF.binary_cross_entropy_with_logits(g[:, :1], t)  # here", f"t = t{TO}.unsqueeze(1)"),
    ("targets in a column", "t = dt.ones(2)\nF.binary_cross_entropy_with_logits(x[:, :1], t)  # here",
     "t = t.unsqueeze(1)"),
    ("targets in a column, in a loop",
     "t = dt.ones(2)\nfor i in range(2):\n    F.binary_cross_entropy(x[:, :1] / 2, t)  # here", "t.unsqueeze(1)"),
    ("targets that are a column", "t = dt.ones(2, 1)\nF.binary_cross_entropy_with_logits(x[:, 0], t)  # here",
     "t = t.squeeze(1)"),
    ("targets that do not fit", "F.binary_cross_entropy_with_logits(g, dt.ones(3))  # here", None),
    ("targets of another size and dtype", "F.binary_cross_entropy(x / 2, dt.ones(3).double())  # here", None),
    ("channels and dtype", "c = nn.Conv2d(1, 8, 3); v = dt.ones(2, 3, 8, 8).double()\nc(v)  # here", None),
    ("channels and device", "c = nn.Conv2d(1, 8, 3).to(GPU); v = dt.ones(2, 3, 8, 8)\nc(v)  # here", None),
    ("groups and device", "c = nn.Conv2d(2, 8, 3, groups=2).to(GPU); v = dt.ones(2, 2, 8, 8)\nc(v)  # here",
     f"v = v{TO}"),
    ("groups of a call", "w = dt.ones((4, 1, 3), device=GPU); v = dt.ones(2, 2, 8)\nF.conv1d(v, w, groups=2)  # here",
     f"v = v{TO}"),
    ("an image that padding makes wide enough",
     "c = nn.Conv2d(1, 8, 3, padding=1).to(GPU); v = dt.ones(2, 1, 1, 1)\nc(v)  # here", f"v = v{TO}"),
    ("a small image elsewhere", "c = nn.Conv2d(1, 8, 3).to(GPU); v = dt.ones(2, 1, 2, 2)\nc(v)  # here", None),
    ("a transposed convolution", "c = nn.ConvTranspose2d(2, 3, 3).to(GPU); v = dt.ones(4, 2, 5, 5)\nc(v)  # here",
     f"v = v{TO}"),
    ("places that are floats, elsewhere", "i = dt.tensor([0.0, 1.0, 1.0])\ng[i]  # here", f"i = i{TO}.long()"),
    ("a mask of floats, elsewhere", "i = dt.tensor([0.0, 1.0])\ng[i]  # here", f"i = i{TO}.bool()"),
    ("a mask elsewhere", "i = dt.tensor([True, False])\ng[i]  # here", f"i = i{TO}"),
    ("a mask of columns elsewhere", "i = dt.tensor([True, False, True])\ng[:, i]  # here", f"i = i{TO}"),
    ("a mask that does not fit", "i = dt.tensor([True, False, True])\ng[i]  # here", None),
    ("a value that does not fit", "v = dt.ones(4)\ng[0] = v  # here", None),
    ("rows at places elsewhere", "i, v = dt.tensor([0]), g[:1] + 1\ng[i] = v  # here", f"i = i{TO}"),
    ("in place and too large", "v = dt.ones(4, 2, 3)\ng.add_(v)  # here", None),
    ("joined, of other sizes", "v = dt.ones(2, 4)\ndt.cat([g, v])  # here", None),
    ("joined along them", "l = [g, dt.ones(2, 4)]\ndt.cat(l, dim=1)  # here", f"l[1] = l[1]{TO}"),
    ("bits of floats", "x & g  # here", None),
    ("classes that are floats, elsewhere", "t = dt.tensor([0.0, 2.0])\nF.nll_loss(g, t)  # here",
     f"t = t{TO}.long()"),
    ("a function that serves the cpu alone", "dt.linalg.solve(g[:, :2], x)  # here", None),
    ("a function whose shapes are not known here", "dt.cdist(g, x)  # here", f"x = x{TO}"),
    ("a dilated kernel that is too wide", "c = nn.Conv2d(3, 8, 3, dilation=3).to(GPU); v = dt.ones(2, 3, 5, 5)\n"
     "c(v)  # here", None),
    ("a state of another width", "l = nn.GRU(3, 4).to(GPU); v, h = dt.ones((5, 2, 3), device=GPU), dt.zeros(1, 2, 5)\n"
     "l(v, h)  # here", None),
    ("the state of one layer of two", "l = nn.GRU(3, 4, 2).to(GPU); v = dt.ones((5, 2, 3), device=GPU)\n"
     "h = dt.zeros(1, 2, 4)\nl(v, h)  # here", None),
    ("layer_norm", "l = nn.LayerNorm(3).to(GPU)\nl(x)  # here", f"x = x{TO}"),
    ("layer_norm of another size", "l = nn.LayerNorm(4).to(GPU)\nl(x)  # here", None),
    ("rms_norm", "l = nn.RMSNorm(3).to(GPU)\nl(x)  # here", f"x = x{TO}"),
    ("cosine_similarity", "F.cosine_similarity(g, x)  # here", f"x = x{TO}"),
    # layers of several operands
    ("LSTM", "l = nn.LSTM(3, 4).to(GPU); v = dt.ones(5, 2, 3)\nl(v)  # here", f"v = v{TO}"),
    ("LSTM and dtype", "l = nn.LSTM(3, 4).to(GPU); v = dt.ones(5, 2, 3).double()\nl(v)  # here", f"v = v{TO}.float()"),
    ("LSTM of another size", "l = nn.LSTM(3, 4).to(GPU); v = dt.ones(5, 2, 7)\nl(v)  # here", None),
    ("LSTM, never moved", "l = nn.LSTM(3, 4); v = dt.ones((5, 2, 3), device=GPU)\nl(v)  # here", f"l{TO}"),
    ("LSTMCell", "l = nn.LSTMCell(3, 4).to(GPU); v = dt.ones(2, 3)\nl(v)  # here", f"v = v{TO}"),
    ("the state of a GRU", "l = nn.GRU(3, 4).to(GPU); v, h = dt.ones((5, 2, 3), device=GPU), dt.zeros(1, 2, 4)\n"
     "l(v, h)  # here", f"h = h{TO}"),
    ("a state of another batch", "l = nn.GRU(3, 4).to(GPU); v, h = dt.ones((5, 2, 3), device=GPU), dt.zeros(1, 5, 4)\n"
     "l(v, h)  # here", None),
    ("a mask of attention", "l = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).to(GPU)\n"
     "v, k = dt.ones((2, 5, 4), device=GPU), dt.zeros(5, 5)\nl(v, k)  # here", f"k = k{TO}"),
    ("a mask of attention that does not fit", "l = nn.TransformerEncoderLayer(4, 2, 8).to(GPU)\n"
     "v, k = dt.ones((2, 5, 4), device=GPU), dt.zeros(5, 5)\nl(v, k)  # here", None),
    ("attention", "k = dt.ones(2, 4, 3); v = k.to(GPU)\nF.scaled_dot_product_attention(v, k, v)  # here",
     f"k = k{TO}"),
    # given to C
    ("sum", "rows = [g, x]\nsum(rows)  # here", f"rows[1] = rows[1]{TO}"),
    ("reduce", "import functools, operator\nfunctools.reduce(operator.add, [g, x])  # here", f"x = x{TO}"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fix"), [row[1:] for row in FIXES], ids=[row[0] for row in FIXES])
def test_fix(text: str, fix: str | None) -> None:
    space = {"nn": nn}
    error = source_files.run(text, source_files.names() | space)
    assert isinstance(error, RuntimeError), error
    assert error.fix == fix
    shown = "\n".join(error.__notes__)
    if fix is None:
        assert "Fix:" not in shown
        return
    assert f"Fix: {fix}" in shown
    after = source_files.run(source_files.repaired(text, error), source_files.names() | space)
    assert after is None, (source_files.repaired(text, error), after)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("i = dt.tensor([0.0, 1.0, 0.0])\nx[:, i]  # here", "i = i.bool()"),  # as many as columns: a mask
        ("i = dt.tensor([2.0, 1.0, 0.0])\nx[:, i]  # here", "i = i.long()"),
        ("i = dt.ones(2, device=GPU)\ng[i]  # here", None),  # nothing is read from a GPU to tell
    ],
)
def test_floats_that_may_be_a_mask(text: str, fix: str | None) -> None:
    test_fix(text, fix)


@pytest.mark.skipif(REAL, reason="the examples ask for simulated devices")
@pytest.mark.parametrize("code", EXAMPLES)
def test_gallery(code: str) -> None:
    """The examples of docs/errors.md are what they say."""
    for _, text in EXAMPLES[code]:
        skip_kernels(text)
        text = text.lstrip("\n")
        error = source_files.run(text, {"__name__": "__main__"})
        assert error.code == code
        assert f"See: python -m devtensor explain {code}" in error.__notes__
        assert code in CAUSES
        if error.fix is not None:
            assert source_files.run(source_files.repaired(text, error), {"__name__": "__main__"}) is None
    if not isinstance(error, RuntimeError):  # a class of Python's own, with the same attributes
        again = pickle.loads(pickle.dumps(error))
        for name in ("op", "code", "operands", "culprit", "fix", "__notes__"):
            assert getattr(again, name) == getattr(error, name)


CORE = ROOT / "csrc" / "core"


# Writes whose result somebody else looks at: (name, source, fix). The fix must not send it to a copy.
WRITES: list[tuple[str, str, str | None]] = [
    ("a parameter", "def f(b, v):\n    b += v  # here\nf(x, g)\nassert x[0, 0] == 2", 'v = v.to("cpu")'),
    ("a part of a parameter", "def f(b, v):\n    b[0] = v  # here\nf(x, 2 * g[0])\nassert x[0, 0] == 2",
     'v = v.to("cpu")'),
    ("a row in a loop", "for row in x:\n    row += g[0]  # here\nassert x[0, 0] == 2", 'g[0].to("cpu")'),
    ("a view",
     "def f():\n    t = dt.zeros(2, 3)\n    r = t[0]\n    r.add_(g[0])  # here\n    return t\nassert f()[0, 0] == 1",
     'g[0].to("cpu")'),
    ("out of a caller", "def f(o):\n    dt.mul(g, 2, out=o)  # here\nf(x)\nassert x[0, 0] == 2", 'g.to("cpu")'),
    ("parameters of a module",
     "m = nn.Linear(3, 2, bias=False).requires_grad_(False)\n"
     "for p in m.parameters():\n    p.copy_(p).mul_(0).add_(g)  # here\nassert m.weight[0, 0] == 1", 'g = g.to("cpu")'),
    ("an entry that a call gave", "d = {'w': x}\nd['w'].mul_(2).add_(g)  # here\nassert x[0, 0] == 3",
     'g = g.to("cpu")'),
    ("an entry", "d = {'w': x}\nd['w'].add_(g)  # here\nassert d['w'][0, 0].item() == 2", f"d['w'] = d['w']{TO}"),
    ("its own", "def f():\n    a = dt.zeros(2, 3)\n    for i in range(2):\n        a += g  # here\n    return a\n"
     "assert f()[0, 0].item() == 2",
     f"a = a{TO}"),
    ("its own, which a list has", "def f():\n    a = dt.zeros(2, 3)\n    l = [a]\n    a += g  # here\n    return l[0]\n"
     "assert f()[0, 0].item() == 1", 'g.to("cpu")'),
    ("ints of a caller", "def f(b, v):\n    b += v  # here\nf(x.long(), x)", None),
    ("ints of its own", "def f(v):\n    b = dt.zeros(2, 3, dtype=dt.int64)\n    b += v  # here\n    return b\n"
     "assert f(x / 2)[0, 0] == 0.5",
     "b = b.float()"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fix"), [row[1:] for row in WRITES], ids=[row[0] for row in WRITES])
def test_what_is_written_is_seen(text: str, fix: str | None) -> None:
    error = source_files.run(text, source_files.names() | {"nn": nn})
    assert isinstance(error, RuntimeError), error
    assert error.fix == fix
    if fix is not None:
        assert source_files.run(source_files.repaired(text, error), source_files.names() | {"nn": nn}) is None


def test_all_that_the_fix_converts_is_marked() -> None:
    text = f"m = nn.LSTM(3, 4){TO}\nh, c = dt.ones((1, 4)), dt.ones((1, 4))\nm(g, (h, c))  # here"
    error = source_files.run(text, source_files.names() | {"nn": nn})
    assert error.fix == f"h, c = h{TO}, c{TO}"
    marked = [line.split()[1] for line in error.__notes__[0].splitlines() if "<- the odd one" in line]
    assert marked == ["h", "c"]


def test_a_part_that_is_written_has_its_own_shape() -> None:
    error = source_files.run("x[0:1, 1:] = g[0]  # here")
    assert (error.operands[0].expression, error.operands[0].shape) == ("x[0:1, 1:]", (1, 2))


def sentences(files: Iterable[Path]) -> dict[str, set[str]]:
    """The codes of the failures that C files write, by the function that begins the sentence."""
    found: dict[str, set[str]] = {}
    for text in map(Path.read_text, files):
        for function, code in re.findall(
            r'\b(dt_fail|dt_sentence_\w+)\(\s*(?:(?:t->)?err,\s*DT_\w+,\s*)?"([a-z-]+)"', text
        ):
            found.setdefault(function, set()).add(code)
    return found


@pytest.mark.skipif(not CORE.exists(), reason="reads the source tree")
def test_every_kind_is_documented() -> None:
    """Those with operands have a section of their own, which the notes point to."""
    found = sentences(CORE.rglob("check*.c"))
    kinds = found["dt_sentence_begin"] | found["dt_sentence_shapes"]
    assert len(kinds) > 6
    assert kinds <= set(EXAMPLES)


# What other files of the core say of numbers, devices and memory: never of an array that the user gave.
NOT_OF_OPERANDS = {"invalid-parameter", "invalid-device", "device-not-available", "transfer-forbidden", "out-of-memory",
                   "too-many-values", "not-kept"}  # fmt: skip


@pytest.mark.skipif(not CORE.exists(), reason="reads the source tree")
def test_sentences_about_operands_stand_in_check() -> None:
    elsewhere = {path.name: sentences([path]) for path in CORE.rglob("*.c") if not path.name.startswith("check")}
    assert sum(len(found.get("dt_fail", ())) for found in elsewhere.values()) > 6
    for name, found in elsewhere.items():
        assert found.keys() <= {"dt_fail"}, name
        assert found.get("dt_fail", set()) <= NOT_OF_OPERANDS, name


def test_share_of_mistakes_with_a_fix() -> None:
    assert sum(fix is not None for _, _, fix in FIXES) >= 80


MODULES: list[tuple[str, str, str, str, str]] = [
    ("never moved", "net = Net()\nnet(g)  # here", "weight", "net.layer.weight", f"net{TO}"),
    ("input forgotten", "net = Net().to(GPU)\nnet(x)  # here", "input", "x", f"x = x{TO}"),
    ("float64 layer", "net = nn.Linear(3, 2).double()\nnet(x)  # here", "input", "x", "x = x.double()"),
]  # fmt: skip


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 2)

    def forward(self, x: Any) -> Any:
        return self.layer(x)


@pytest.mark.parametrize(("text", "name", "expression", "fix"), [row[1:] for row in MODULES],
                         ids=[row[0] for row in MODULES])  # fmt: skip
def test_modules_of_the_library(text: str, name: str, expression: str, fix: str) -> None:
    """Layers in devtensor's own files: the caller's line and variables are spoken of, and the whole Module is moved."""
    space = source_files.names() | {"Net": Net, "nn": nn}
    error = source_files.run(text, dict(space))
    assert error.culprit.name == name
    assert error.culprit.expression == expression
    assert error.fix == fix
    assert source_files.run(source_files.repaired(text, error), dict(space)) is None


def test_an_array_that_is_not_registered() -> None:
    text = """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = x
        def forward(self, x):
            return x * self.scale  # here
    Net()(g)
    """
    error = source_files.run(text, source_files.names() | {"nn": nn})
    assert error.fix == f"self.scale = self.scale{TO}"
    shown = "\n".join(error.__notes__)
    assert "self.scale is a plain attribute, not a parameter or buffer" in shown
    assert 'self.register_buffer("scale", ...)' in shown
    assert source_files.run(source_files.repaired(text, error), source_files.names() | {"nn": nn}) is None


@pytest.mark.parametrize(("held", "told"), [
    ("[nn.Linear(3, 3), nn.Linear(3, 2)]", "self.parts is a plain list, so .to() on the Module leaves what is in it "
     "where it is; make it an nn.ModuleList: self.parts = nn.ModuleList(self.parts)"),
    ("(nn.Linear(3, 3),)", "self.parts is a plain tuple, so .to() on the Module leaves what is in it where it is; "
     "make it an nn.ModuleList: self.parts = nn.ModuleList(self.parts)"),
    ('{"a": nn.Linear(3, 3)}', "make it an nn.ModuleDict: self.parts = nn.ModuleDict(self.parts)"),
    ("nn.ModuleList([nn.Linear(3, 3)])", None),
])  # fmt: skip
def test_layers_in_a_plain_container(held: str, told: str | None) -> None:
    parts = "self.parts.values()" if held.startswith("{") else "self.parts"
    text = f"""\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = {held}
        def forward(self, x):
            for part in {parts}:
                x = part(x)  # here
            return x
    net = Net().to(GPU)
    net(dt.ones(2, 3, device=GPU))
    """
    space = source_files.names() | {"nn": nn, "GPU": GPU}
    error = source_files.run(text, space)
    if told is None:
        assert error is None
        return
    assert error.fix == f"part{TO}"
    assert told in "\n".join(error.__notes__)
    assert source_files.run(source_files.repaired(text, error), source_files.names() | {"nn": nn, "GPU": GPU}) is None
    inside = told.rpartition(": ")[2].partition(" = ")[2].replace("self.parts", held)
    assert source_files.run(text.replace(held, inside), source_files.names() | {"nn": nn, "GPU": GPU}) is None


@pytest.mark.parametrize("also", ["self.add_module('part0', self.parts[0])", "self.first = self.parts[0]"])
def test_layers_in_a_list_that_are_registered_too(also: str) -> None:
    text = f"""\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = [nn.Linear(3, 3)]
            {also}
        def forward(self, x):
            return self.parts[0](x)
    Net()(dt.ones(2, 3, device=GPU))  # here
    """
    error = source_files.run(text, source_files.names() | {"nn": nn, "GPU": GPU})
    assert "is a plain list" not in "\n".join(error.__notes__)


def test_layers_in_a_dictionary_by_number() -> None:
    text = """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = {1: nn.Linear(3, 3)}
        def forward(self, x):
            return self.parts[1](x)  # here
    Net().to(GPU)(dt.ones(2, 3, device=GPU))
    """
    error = source_files.run(text, source_files.names() | {"nn": nn, "GPU": GPU})
    assert "make it an nn.ModuleDict, whose keys are strings" in "\n".join(error.__notes__)


def test_parameters_in_a_plain_list() -> None:
    text = """\
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self._scales = [nn.Parameter(dt.ones(3))]
        def forward(self, x):
            return x * self._scales[0]  # here
    Net().to(GPU)(dt.ones(2, 3, device=GPU))
    """
    error = source_files.run(text, source_files.names() | {"nn": nn, "GPU": GPU})
    assert "make it an nn.ParameterList: self._scales = nn.ParameterList(self._scales)" in "\n".join(error.__notes__)


@pytest.mark.parametrize(("state", "fix"), [
    ("(dt.zeros(1, 2, 4), dt.zeros(1, 2, 4))", f"state = tuple(one{TO} for one in state)"),
    ("(dt.zeros(1, 2, 4, device=GPU), dt.zeros(1, 2, 4))", f"state = (*state[:1], state[1]{TO}, *state[2:])"),
])  # fmt: skip
def test_a_state_that_stayed_on_the_cpu(state: str, fix: str) -> None:
    text = f"""\
    lstm = nn.LSTM(3, 4, batch_first=True).to(GPU)
    state = {state}
    lstm(dt.ones(2, 5, 3, device=GPU), state)  # here
    """
    error = source_files.run(text, source_files.names() | {"nn": nn, "GPU": GPU})
    assert error.fix == fix
    assert source_files.run(source_files.repaired(text, error), source_files.names() | {"nn": nn, "GPU": GPU}) is None


def test_entries_of_a_tuple_counted_from_its_end() -> None:
    text = """\
    v, w = dt.ones(4, 2, device=GPU), dt.ones(2, device=GPU)
    s = (dt.zeros(2), w, dt.ones(2))
    nn.functional.batch_norm(v, s[0], s[-1], w, w, True)  # here
    """
    space = {"nn": nn, "GPU": GPU}
    error = source_files.run(text, source_files.names() | space)
    assert error.fix == f"s = (s[0]{TO}, s[1], s[2]{TO})"
    assert source_files.run(source_files.repaired(text, error), source_files.names() | space) is None


def test_what_a_layer_takes_is_told() -> None:
    text = """\
    layer = nn.Linear(12, 2)
    layer(dt.ones(2, 3, 4))  # here
    """
    error = source_files.run(text, source_files.names() | {"nn": nn})
    told = (
        "layer takes 12 features in the last dimension; dt.ones(2, 3, 4) has 4, and dt.ones(2, 3, 4).flatten(1) would"
    )
    assert told in "\n".join(error.__notes__)


@pytest.mark.parametrize("text", [
    "x + y", "dt.linear(x, y)", "dt.conv2d(dt.ones((1, 2, 4, 4)), dt.ones((3, 2, 3, 3)))", f"x.to('{GPU}') + g",
    "x @ m", "dt.cat([x, y])", "x + 1", "g.cpu().numpy()", "dt.from_numpy(np.ones(3)) + x", "x[0] = y[0]", "x += 1",
    "dt.where(x > 0, x, y)", "dt.addmm(dt.ones(2), x, m)", "x.double() + y", "g @ n", "dt.add(x, y, out=x)",
])  # fmt: skip
def test_correct_code_is_left_alone(text: str) -> None:
    assert source_files.run(textwrap.dedent(text)) is None
