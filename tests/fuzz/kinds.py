"""What each fuzzer draws, apart from the calls of the API themselves."""

from __future__ import annotations

from random import Random

from fuzz.pools import DTYPES, Pool
from fuzz.programs import EVERYTHING, KINDS, Program
from fuzz.signatures import Parameter, Target

SIZES = ("0", "1", "2", "3", "-1", "8", "2**31", "2**32", "2**62", "2**63 - 1", "-2**63")
TYPES = ("|b1", "|u1", "|i1", "<i2", "<i4", "<i8", "<f2", "<f4", "<f8")
ANY = Target("any")
FLAGS = (0, 1, 4, 5, 8, 12, 0x18, 0x1C, 0x1D, 0x38, 0x58, 0x98, 0x118, 0x11D)  # of PyObject_GetBuffer
TYPED = {
    "bool": "|b1", "uint8": "|u1", "int8": "|i1", "int16": "<i2", "int32": "<i4", "int64": "<i8", "float16": "<f2",
    "float32": "<f4", "float64": "<f8",
}  # fmt: skip


def made(pool: Pool, call: str, path: str) -> Program:
    return Program(tuple(pool.lines), call, path, EVERYTHING, True)


def tuple_of(rng: Random, choices: tuple[str, ...], most: int) -> str:
    return f"[{', '.join(rng.choice(choices) for _ in range(rng.randrange(most + 1)))}]"


def capsules(rng: Random) -> Program:
    pool = Pool(rng)

    def sizes() -> str:
        tame = rng.random() < 0.6
        return tuple_of(rng, ("0", "1", "2", "3") if tame else SIZES, rng.choice((2, 4, 9, 12)))

    entries = {
        "strides": lambda: rng.choice((sizes(), "None", "[1]", "[3, 1]", "[-1]", "[0, 0]")),
        "ndim": lambda: rng.choice(("-1", "0", "1", "2", "9", "2**31 - 1", "-2**31", "64")),
        "null": lambda: "True",
        "dtype": lambda: (
            f"({rng.randrange(8)}, {rng.choice((0, 1, 8, 16, 32, 64, 128, 255))}, {rng.choice((0, 1, 1, 2, 65535))})"
        ),
        "device": lambda: f"({rng.choice((1, 1, 2, 3, 4, 7, 13, -1, 0, 99))}, {rng.choice((0, 0, 1, -1, 2**31 - 1))})",
        "byte_offset": lambda: rng.choice(("1", "2", "4", "64", "4095", "4096", "2**63", "2**64 - 4")),
        "flags": lambda: rng.choice(("0", "1", "2", "3", "2**64 - 1")),
        "version": lambda: rng.choice(("(0, 0)", "(1, 0)", "(1, 99)", "(2, 0)", "(2**32 - 1, 0)")),
        "name": lambda: rng.choice(("b'dltensor'", "b'dltensor_versioned'", "b'something else'")),
        "deleter": lambda: rng.choice(("'null'", "'raises'")),
        "says": lambda: rng.choice(
            ("(1, 0)", "(2, 0)", "(1,)", "None", "1", "'cpu'", "(1, 2**70)", "raises()", pool.odd())
        ),
    }
    shape = "None" if rng.random() < 0.05 else sizes()
    given = [f"{name}={make()}" for name, make in entries.items() if rng.random() < 0.25]
    if "name=b'dltensor_versioned'" in given and not any(text.startswith("flags") for text in given):
        given.append("flags=0")
    if "name=b'dltensor'" in given:
        given = [text for text in given if not text.startswith("flags")]
    how = [f"copy={rng.choice(('True', 'False', 'None'))}"] if rng.random() < 0.3 else []
    how += [f"device={rng.choice(('D', 'None', pool.odd()))}"] if rng.random() < 0.2 else []
    producer = f"Dlpack({', '.join([shape, *given])})"
    return made(pool, f"taken({', '.join([producer, *how])})", "capsules")


def interfaces(rng: Random) -> Program:
    """Dictionaries of the CUDA array interface."""
    pool = Pool(rng)
    dtype, kind = rng.choice(sorted(TYPED.items()))
    shape = tuple(rng.choice((0, 1, 2, 3)) for _ in range(rng.randrange(1, 3)))
    array = pool.let(f"arr({dtype!r}, {shape!r}, 'contiguous', 'small', 'cuda:0')")
    act = rng.choice(("clear", "grow", "replace"))
    address = rng.choice(("0", "-1", "2**64", "1.5", "None", "raises()"))
    stream = rng.choice(("1", "int(str(2**40))"))
    small = tuple(f"{rng.randrange(size + 1)}" for size in shape)
    change = rng.choice(
        (
            f"lambda d: trap_dict(d, {rng.choice(('shape', 'strides', 'data', 'version'))!r}, {act!r})",
            f"lambda d: d.update({rng.choice(('shape', 'strides', 'data', 'typestr', 'version', 'stream', 'mask'))}="
            f"{pool.odd()})",
            f"lambda d: d.update(shape=({', '.join([*small, ''])}))",
            f"lambda d: d.update(shape=(Acts(d.clear, {small[0]}), {', '.join([*small[1:], ''])}))",
            f"lambda d: d.update(strides=(Acts(d.clear, 0), {', '.join(['0'] * (len(shape) - 1))}))",
            f"lambda d: d.update(typestr={rng.choice(TYPES)!r}, shape=(0,), strides=None)",
            f"lambda d: d.update(data=({address}, False), shape=(0,))",
            "lambda d: d.update(shape=(Acts(d.clear, 0), int('1000'), int('2000')), strides=None)",
            "lambda d: d.update(shape=(0, 7), strides=(Acts(d.clear, int('8000')), int('8000')))",
            f"lambda d: d.update(data=({array}.data_ptr(), Acts(d.clear, False)), stream={stream})",
            f"lambda d: d.update(stream={rng.choice(('0', '1', '2', '-1', 'None', '2**63', 'Acts(d.clear, 1)'))})",
            f"lambda d: d.pop({rng.choice(('shape', 'typestr', 'data', 'version'))!r}) and None",
            f"lambda d: {pool.odd()}",
        )
    )
    return made(pool, f"borrowed(Lent({array}, {kind!r}, {change}))", "interfaces")


def buffers(rng: Random) -> Program:
    pool = Pool(rng)
    formats = ("b", "B", "?", "h", "H", "i", "I", "l", "q", "Q", "e", "f", "d", "c", "n", "P")
    source = rng.choice(
        (
            f"memoryview(bytearray({rng.choice((0, 1, 8, 16, 24))})).cast({rng.choice(formats)!r})",
            f"memoryview(bytearray(24)).cast('{rng.choice('bBhfd')}', [{rng.choice(('1, 3', '3, 1', '24', '2, 3'))}])",
            f"array.array({rng.choice('bBhHiIlLqQfd')!r}, [1, 2, 3])",
            f"(ctypes.c_{rng.choice(('int', 'double', 'char', 'longlong', 'bool'))} * 3)()",
            f"((ctypes.c_int * {rng.randrange(3)}) * 2)()",
            f"np.zeros({rng.choice(('3', '(2, 3)', '(0, 2)', '()'))}, dtype={rng.choice(TYPES)!r})"
            f"{rng.choice(('', '[::-1]', '.T', '[..., None]', '[::2]'))}",
            "memoryview(b'abcdefgh')[::-1]", "memoryview(bytearray(16))[::2]", "memoryview(b'')",
            "mmap.mmap(-1, 64)", pool.odd(), pool.data(),
        )
    )  # fmt: skip
    keywords = [f"dtype={rng.choice([f'dt.{d}' for d in DTYPES])}"]
    for name in ("count", "offset"):
        if rng.random() < 0.6:
            keywords.append(f"{name}={pool.integer()}")
    x = pool.array("input", ANY)
    call = rng.choice(
        (
            f"dt.frombuffer({source}, {', '.join(keywords)})",
            f"dt.array({source})",
            f"dt.from_numpy({source})",
            f"dt.asarray({source}, device=D)",
            f"exported({x}, {rng.choice((*FLAGS, rng.randrange(512)))})",
            f"memoryview({x}){rng.choice(('.tobytes()', '.tolist()', '.cast(chr(66))', '[0]', '.format'))}",
            f"np.asarray({x}){rng.choice(('', '.sum()', '.flags.writeable', '.base is None'))}",
        )
    )
    return made(pool, call, "buffers")


def pickles(rng: Random) -> Program:
    pool = Pool(rng)
    x = pool.array("input", ANY)
    x = rng.choice((x, x, x, f"dt.nn.Parameter({x})", f"dt.nn.Buffer({x})", "dt.device(D)", "dt.float32"))
    roll = rng.random()
    if roll < 0.6:
        changes = [
            (rng.choice(("set", "set", "set", "cut", "put", "double")), rng.randrange(400), rng.randrange(256))
            for _ in range(rng.choice((1, 1, 2, 4, 9)))
        ]
        call = f"loaded(mutated(pickle.dumps({x}, {rng.choice((0, 2, 4, 5))}), {changes}))"
    elif roll < 0.85:
        call = f"rebuilt({x}, {rng.choice((2, 4, 5))}, {rng.randrange(8)}, {pool.odd()})"
    else:
        other = pool.array("input", ANY)
        value = rng.choice((pool.odd(), other, f"({other}, 1)", f"({other},)", "()", "(1, 2)", f"[{other}]"))
        call = f"copied_again({x}, {value})"
    return made(pool, call, "pickles")


def kernels(rng: Random) -> Program:
    """Launches of a kernel with arguments of any kind. Grids are small or refused: a large one takes its time."""
    pool = Pool(rng)

    def dims() -> str:
        if rng.random() < 0.15:
            return pool.odd()
        sizes = [
            rng.choice(("1", "1", "1", "2", "0", "-1", "2**31", "2**63", "says(1)", "1.5", "1025")) for _ in range(3)
        ]
        return rng.choice((sizes[0], f"({', '.join(sizes[: rng.randrange(5)])})", f"[{sizes[0]}]"))

    def number(*fits: str) -> str:
        return rng.choice(fits) if rng.random() < 0.8 else pool.odd()

    def array(dtype: str) -> str:
        if rng.random() < 0.15:
            return pool.odd()
        return pool.let(
            f"arr({dtype!r}, ({rng.randrange(4)},), {rng.choice(('contiguous', 'sliced'))!r}, 'small', 'cuda:0')"
        )

    given = [
        array("float32"), array("float64"), number("1", "-1", "2**31", "True"), number("0", "255", "256", "-1"),
        number("0.5", "1", "inf", "1e308"), number("2**62", "2**63", "1"), number("True", "0", "2"), array("int64"),
    ]  # fmt: skip
    if rng.random() < 0.1:
        given = given[: rng.randrange(9)] + given[: rng.randrange(2)]
    joined = ", ".join(given)
    form = rng.choice(
        ("kernel()[{g}, {b}]({a})", "kernel()({g}, {b}, [{a}])", "kernel()({g}, {b}, [{a}], shared_mem={s})")
    )
    call = form.format(g=dims(), b=dims(), a=joined, s=pool.integer())
    for large, small in (("2**31 - 1", "2**31"), ("2**15", "2**31")):
        call = call.replace(large, small)
    return made(pool, call, "kernels")


LOADER = (
    Parameter("dataset", "", False), Parameter("batch_size", "int", True), Parameter("shuffle", "bool", True),
    Parameter("sampler", "", True, keyword_only=True), Parameter("batch_sampler", "", True, keyword_only=True),
    Parameter("collate_fn", "", True, keyword_only=True), Parameter("pin_memory", "bool", True, keyword_only=True),
    Parameter("drop_last", "bool", True, keyword_only=True), Parameter("timeout", "float", True, keyword_only=True),
    Parameter("generator", "Generator", True, keyword_only=True),
    Parameter("prefetch_factor", "int", True, keyword_only=True),
)  # fmt: skip


def loaders(rng: Random) -> Program:
    """Data loaders, samplers and datasets, and their first items."""
    pool = Pool(rng)

    def dataset() -> str:
        one = pool.array("input", ANY)
        return rng.choice(
            (f"dt.data.TensorDataset({one})", f"dt.data.TensorDataset({one}, {one})", "[1, 2, 3, 4, 5]", "range(7)",
             one,
             "np.arange(6.0).reshape(3, 2)", f"dt.data.Subset({one}, [0, {pool.integer()}])", "[(1, 'a'), (2, 'b')]",
             f"dt.data.ConcatDataset([range(2), {one}])", "[{'a': 1}, {'a': 2}]", pool.odd())
        )  # fmt: skip

    given = [dataset()]
    for p in LOADER[1:]:
        if rng.random() < 0.2:
            fits = {
                "sampler": (f"dt.data.RandomSampler({given[0]})", "[0, 1, 99]", "[-1, 0]", pool.odd()),
                "batch_sampler": (
                    f"dt.data.BatchSampler({given[0]}, {pool.integer()}, False)",
                    "[[0], [1, 0]]",
                    pool.odd(),
                ),
                "collate_fn": ("list", "dt.data.default_convert", "None", pool.odd()),
            }
            given.append(f"{p.name}={rng.choice(fits[p.name]) if p.name in fits else pool.argument(p, ANY)}")
    return made(pool, f"items(dt.data.DataLoader({', '.join(given)}))", "loaders")


KINDS |= {
    "buffers": buffers,
    "capsules": capsules,
    "interfaces": interfaces,
    "kernels": kernels,
    "loaders": loaders,
    "pickles": pickles,
}
