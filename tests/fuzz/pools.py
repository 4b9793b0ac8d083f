"""What arguments are drawn from: source text for each kind of parameter, most of it fitting, the rest hostile."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

from fuzz.signatures import Parameter, Target

FLOATS = ("float16", "bfloat16", "float32", "float64")
DTYPES = (*FLOATS, "int8", "int16", "int32", "int64", "uint8", "bool")
LAYOUTS = ("contiguous",) * 6 + ("transposed", "sliced", "expanded", "read-only", "pinned", "negative")

SMALL = ("0", "1", "2", "3", "-1", "-2")
NUMBERS = (
    *SMALL, "5", "8", "-9", "2**15", "2**31 - 1", "2**31", "2**62", "2**63 - 1", "2**63", "-2**63", "-2**63 - 1",
    "10**30", "nan", "inf", "-inf", "-0.0", "0.5", "2.5", "1e-45", "1e308", "True", "False", "1j", "Decimal('1.5')",
    "Fraction(1, 3)", "np.int64(2)", "np.int8(-1)", "np.float32(0.5)", "np.float16(nan)", "np.uint64(2**63)",
    "np.bool_(True)", "np.array(3)", "np.array([1, 2])", "np.array(2.5)", "np.longdouble(1)", "np.complex64(1)",
)  # fmt: skip
ODD = (
    "None", "''", "'cuda'", "'\\ud800'", "'x' * 1000", "b''", "b'\\xff'", "bytearray(8)", "memoryview(b'abcd')",
    "...", "NotImplemented", "object()", "int", "dt", "dt.DeviceArray", "dt.float32", "dt.device(D)", "(lambda: 1)",
    "slice(None)", "slice(0, 2**62, 2**61)", "slice(None, None, -1)", "slice(Acts(raise_mischief), 3)", "range(3)",
    "range(2**62)", "{}", "{1: 2}", "{3, 4}", "frozenset()", "set()", "[]", "()", "[[]]", "[None]", "[[1, 2], [3]]",
    "[[1, 2], 3]", "[1, 'a']", "deep(7)", "deep(9)", "deep(300)", "loop()", "giver([1, 2, 3], 1)",
    "giver([1, 2, 3], 9)", "iter([1, 2])", "raises()", "says(1)", "says(-1)", "says(2**63)", "says('x')",
    "says(None)", "says(1.5)", "says([])", "says(2)", "Acts(gc.collect, 1)", "Secretive()", "Masked()",
    "Unprintable()", "OddInt(2)", "OddStr('float32')", "OddStr('mean')", "Lies([1, 2], 2**62)", "Lies([1, 2], 0)",
    "Lies([1, 2], 3)", "Lies([], 1)", "Lies([1, 2], -1)", "Shrinking([1, 2, 3])", "trap([1, 2, 3], 0, 'clear')",
    "trap([2, 3, 4], 0, 'shrink')", "trap([1, 2], 0, 'append')", "trap([1, 2], 1, 'grow')",
    "trap([1, 2], 0, 'replace')", "trap([0, 1000, 2000], 0, 'clear')", "trap([2, 1000, 0], 0, 'shrink')",
    "Exports(__dlpack__=1)", "Exports(__cuda_array_interface__=3)", "Arrays(None)", "Arrays(np.ones(2))",
    "Arrays(Mischief('array'))", "np.ones((2, 3))", "np.ones(3)[::-1]", "np.array([None, 1])",
    "np.zeros((0, 3), dtype=np.float32)", "np.array(['a'])", "np.zeros(2, dtype='>f4')", "np.zeros(2, dtype='M8[s]')",
    "np.zeros(2, dtype=[('a', 'i4')])", "np.broadcast_to(np.float32(1), (2, 3))", "Exception('x')", "KeyError",
    "type('T', (), {})", "Ellipsis", "dt.Generator()", "math", "print",
)  # fmt: skip
ACTS = (
    "lambda: {x}.zero_()", "lambda: dt.set_default_dtype(dt.float64)", "lambda: dt.set_default_device('cuda:0')",
    "lambda: {x}.fill_(3)", "lambda: globals().clear()", "dt.cuda.empty_cache", "dt.cpu.empty_cache", "gc.collect",
    "lambda: dt.cuda.set_device(0)", "lambda: dt.ones(100, device=D)", "lambda: dt.add({x}, 1)", "raise_mischief",
    "lambda: dt.set_num_threads(1)", "lambda: dt.cuda.synchronize()",
)  # fmt: skip

WORDS = {
    "mode": ("'constant'", "'reflect'", "'replicate'"),
    "reduction": ("'mean'", "'sum'", "'none'"),
    "nonlinearity": ("'relu'", "'linear'", "'tanh'", "'leaky_relu'"),
    "padding_mode": ("'zeros'",),
    "approximate": ("'none'", "'tanh'"),
    "detail": ("'full'", "'short'", "'off'"),
    "spec": ("''", "'.3f'", "'>10'", "'d'"),
    "p": ("0", "1", "2", "0.5", "inf", "-1", "'fro'", "None"),
    "protocol": ("0", "2", "4", "5"),
    "memo": ("{}", "{id(x0): x0}"),
    "max_version": ("None", "(1, 0)", "(0, 8)", "(2, 0)"),
    "dl_device": ("None", "(1, 0)", "(2, 0)", "(3, 0)"),
    "stream": ("None",),
    "dim_order": ("None",),
}
INTEGRAL = ("index", "indices", "target")
INTEGRAL_TARGETS = ("cross_entropy", "nll_loss", "CrossEntropyLoss", "NLLLoss")
PAIRS = ("kernel_size", "stride", "padding", "dilation", "output_size")


class Pool:
    """Draws for one program: its arrays have dtypes and shapes that mostly fit each other."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.roots: dict[str, str] = {}  # which arrays share memory: the name of the first
        self.hostile = 0
        self.host_bound = False  # something is on one device whatever D is, so that devices may differ
        self.evil = rng.choice((0.0, 0.04, 0.15, 0.4))
        self.dtype = rng.choice(FLOATS if rng.random() < 0.6 else DTYPES)
        self.m, self.k, self.n, self.b = (rng.choice((1, 2, 3, 4, 0, 7)) for _ in range(4))
        self.shape = tuple(rng.choice((0, 1, 2, 3, 3, 5)) for _ in range(rng.choice((0, 1, 1, 2, 2, 2, 3, 4))))
        self.family = rng.choice(("elements", "elements", "product", "image"))
        self.kind = rng.choice(("small", "small", "positive", "special"))

    # ------------------------------------------------ arrays

    def array(self, name: str, target: Target) -> str:
        """The name of a new array, or of one there is."""
        rng = self.rng
        if self.roots and rng.random() < 0.12:
            return self.view(rng.choice(sorted(self.roots)))
        dtype, shape, kind = self.dtype, self.shaped(name, target), self.kind
        if name in INTEGRAL and (name != "target" or target.name in INTEGRAL_TARGETS):
            dtype, kind = "int64", rng.choice(("index", "zeros"))
        if name in ("mask", "condition"):
            dtype = "bool"
        if name in ("running_mean", "running_var"):
            kind = "positive"
        if rng.random() < 0.06:
            dtype = rng.choice(DTYPES)
        layout = rng.choice(LAYOUTS)
        self.host_bound |= layout in ("read-only", "pinned")
        device = "D"
        if rng.random() < 0.01 + self.evil / 8:
            device, self.host_bound = rng.choice(("'cpu'", "'cuda:0'", "'cuda'")), True
        return self.let(f"arr({dtype!r}, {shape!r}, {layout!r}, {kind!r}, {device})")

    def let(self, text: str, root: str = "") -> str:
        name = f"x{len(self.roots)}"
        self.lines.append(f"{name} = {text}")
        self.roots[name] = self.roots[root] if root else name
        return name

    def view(self, of: str) -> str:
        """The same array again, or one that shares its memory."""
        forms = ("{x}[:1]", "{x}[..., ::2]", "{x}[1:]", "{x}.T", "{x}.detach()", "{x}[None]", "{x}.reshape(-1)")
        if self.rng.random() < 0.4:
            return of
        return self.let(self.rng.choice(forms).format(x=of), of)

    def shaped(self, name: str, target: Target) -> tuple[int, ...]:
        """The shape of a parameter of this name."""
        m, k, n, b = self.m, self.k, self.n, self.b
        rng, own = self.rng, target.name
        if rng.random() < 0.08:
            return tuple(rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(4)))
        if "conv" in own or "pool" in own or "batch_norm" in own or self.family == "image" or "Conv" in own:
            length = (2 * m + 1,) if "1d" in own else (2 * m + 1, 5)
            sizes = {"weight": (n, k, *((2,) * len(length))), "bias": (n,), "input": (b, k, *length)}
            if "conv" not in own:
                channels = dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (k,))
                sizes = {**channels, "input": sizes["input"]}
            return sizes.get(name, sizes["input"])
        batch = name in ("batch1", "batch2") or own in ("bmm", "baddbmm")
        left = {"mat1": (m, k), "batch1": (m, k), "input": (m, k), "self": (m, k)}
        right = {
            "mat2": (k, n),
            "batch2": (k, n),
            "weight": (n, k),
            "bias": (n,),
            "vec": (k,),
            "vec2": (n,),
            "tensor": (m,),
        }
        if own in ("addmm", "baddbmm"):
            left["input"] = left["self"] = (m, n)
        if own in ("dot", "outer"):
            left["input"] = left["self"] = (m,)
        if own in ("matmul", "__matmul__"):
            right["other"] = right["value"] = (k, n)
        if own in ("cross_entropy", "nll_loss"):
            right = {"target": (m,), "weight": (k,)}
        if name in right or (name in left and (own in ("mm", "mv", "addmm", "linear", "dot", "outer") or batch)):
            shape = {**left, **right}[name]
            return (b, *shape) if batch else shape
        if self.family == "product" and name in left:
            return left[name]
        if rng.random() < 0.3:
            return tuple(1 if rng.random() < 0.4 else size for size in self.shape)[rng.randrange(len(self.shape) + 1) :]
        return self.shape

    # ------------------------------------------------ other kinds

    def number(self) -> str:
        return self.rng.choice(NUMBERS)

    def integer(self) -> str:
        return self.rng.choice(SMALL if self.rng.random() < 0.85 else NUMBERS)

    def integers(self) -> str:
        items = [self.integer() for _ in range(self.rng.choice((0, 1, 1, 2, 2, 3, 4)))]
        if self.rng.random() < 0.3:
            return self.integer()
        inner = ", ".join(items)
        return f"[{inner}]" if self.rng.random() < 0.3 else f"({inner}{',' if len(items) == 1 else ''})"

    def size(self) -> str:
        sizes = [self.rng.choice(("0", "1", "2", "3", "4", "-1")) for _ in range(self.rng.randrange(5))]
        if self.rng.random() < 0.15:
            return self.integers()
        return f"({', '.join(sizes)}{',' if len(sizes) == 1 else ''})"

    def one_of(self, *texts: str) -> str:
        return self.rng.choice(texts)

    def odd(self) -> str:
        """Something that hardly any parameter wants."""
        self.hostile += 1
        roll = self.rng.random()
        if roll < 0.3:
            return self.number()
        if roll < 0.4:
            name = self.rng.choice(sorted(self.roots)) if self.roots else "dt.ones(2)"
            value = self.rng.choice(("1", "0", "2.5", "(1, 2)", "None", "2**62", "'mean'"))
            return f"Acts({self.rng.choice(ACTS).format(x=name)}, {value})"
        if roll < 0.5 and self.roots:
            return self.rng.choice(sorted(self.roots))
        return self.rng.choice(ODD)

    def index(self) -> str:
        def item() -> str:
            roll = self.rng.random()
            if roll < 0.35:
                return self.integer()
            if roll < 0.6:
                parts = [self.integer() if self.rng.random() < 0.6 else "None" for _ in range(3)]
                return f"slice({', '.join(parts)})"
            if roll < 0.7:
                return self.one_of("...", "None", "True", "False")
            if roll < 0.85:
                return self.one_of(
                    "[0, 1]", "[0, 0]", "[-1, 0]", "[True, False]", "[]", "[[0], [1]]", "[2**62]", "[0, 99]"
                )
            shape = self.one_of("(2,)", "(0,)", "()", "(2, 1)", "(1,)")
            dtype = self.one_of("int64", "int64", "int32", "uint8", "bool", "float32")
            return self.let(f"arr({dtype!r}, {shape}, 'contiguous', 'index', D)")

        items = [item() for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 9)))]
        return items[0] if len(items) == 1 else f"({', '.join(items)})"

    # ------------------------------------------------ parameters

    def argument(self, parameter: Parameter, target: Target) -> str:
        """Source of a value for a parameter; lines before the call as needed."""
        if self.rng.random() < self.evil:
            return self.odd()
        if parameter.optional and not parameter.starred and self.rng.random() < 0.05:
            return "None"
        return self.fitting(parameter, target)

    def fitting(self, parameter: Parameter, target: Target) -> str:
        name, annotation = parameter.name, parameter.annotation
        text = annotation.replace(" | None", "")
        if name in WORDS:
            return self.rng.choice(WORDS[name])
        if name == "out":
            return self.array(name, target)
        if name in ("tensors", "datasets") or re.fullmatch(r"(Sequence|Iterable)\[DeviceArray\]", text):
            items = [self.array("input", target) for _ in range(self.rng.choice((0, 1, 2, 2, 3)))]
            return f"[{', '.join(items)}]"
        if name in ("size", "sizes", "shape", "normalized_shape") or (parameter.starred and "size" in name):
            return self.size()
        if name in PAIRS:
            return self.one_of("1", "2", "3", "(2, 1)", "0", "'same'", self.integers())
        if name in ("dim", "axis", "dims", "start_dim", "end_dim", "dim0", "dim1", "source", "destination"):
            return self.one_of("0", "-1", "1", self.integer(), self.integers() if "Int" in text or not text else "0")
        if name == "key" or "_Index" in text:
            return self.index()
        if name in ("data", "x", "object", "obj", "ndarray", "buffer"):
            return self.data()
        words = re.search(r"Literal\[(.*?)\]", text)
        if words and self.rng.random() < 0.8:
            return self.rng.choice([w.strip() for w in words.group(1).split(",")])
        if "DType" in text or name == "dtype" or text == "_dtype":
            name = self.rng.choice(DTYPES)
            return self.one_of(f"dt.{name}", f"{name!r}", f"dt.{self.dtype}")
        if "Device" in text.replace("DeviceArray", "") or name == "device" or "_device" in text:
            device = self.one_of("D", "D", "D", "dt.device(D)", "'cpu'", "0", "'cuda'", "'cuda:7'")
            self.host_bound |= "D" not in device
            return device
        if "DeviceArray" in text or "_Operand" in text or name in ("input", "tensor"):
            number = "_Operand" in text and self.rng.random() < 0.35
            return self.number() if number else self.array(name, target)
        if "Generator" in text:
            return self.one_of("dt.Generator(D)", "dt.Generator().manual_seed(3)", "None")
        if "Stream" in text or "Event" in text:
            kind = "Event" if "Event" in text else "Stream"
            return f"dt.cuda.{kind}()"
        if "bool" in text:
            return self.one_of("True", "False")
        if "Ints" in text or "Sequence[int]" in text:
            return self.integers()
        if "Int" in text or "int" in text:
            return self.integer()
        if "Number" in text or "float" in text:
            return self.one_of("0.5", "1", "-1", "2.5", self.number())
        return self.odd()

    def data(self) -> str:
        """Something to make an array of."""
        return self.one_of(
            "[1, 2, 3]", "[[1.5, 2], [3, 4]]", "7", "True", "[]", "np.arange(6.0).reshape(2, 3)", "np.ones(3)[::-1]",
            "bytearray(16)", "np.arange(4, dtype=np.int8)", "memoryview(bytearray(8)).cast('f')", "np.ones((2, 3)).T",
            "arr('float32', (2, 3), 'contiguous', 'small', D)",
            "[np.ones(2), np.zeros(2)]", "np.float32(2)", self.odd(),
        )  # fmt: skip

    def all(self, target: Target) -> list[str]:
        """Arguments for a signature, as they stand between the parentheses."""
        found: list[str] = []
        keywords = False
        for p in target.parameters:
            if p.starred:
                if not keywords:
                    found += [self.argument(p, target) for _ in range(self.rng.choice((0, 1, 1, 2)))]
                continue
            if p.optional and self.rng.random() < 0.5:
                keywords = True
                continue
            text = self.argument(p, target)
            keywords |= p.keyword_only or (not p.positional_only and self.rng.random() < 0.05)
            if p.positional_only and keywords:
                break
            found.append(f"{p.name}={text}" if keywords else text)
        if self.rng.random() < self.evil / 8:
            found.append(self.one_of("**{'evil': 1}", "**{'': 1}", "*[1] * 9", "**{'input': 1}", "**{'dim': 0}"))
        return found


def rooted(roots: dict[str, str], names: Sequence[str]) -> frozenset[str]:
    """All that shares memory with these."""
    wanted = {roots[n] for n in names if n in roots}
    return frozenset(n for n, root in roots.items() if root in wanted)
