"""Which expression of the caller's an error names: every form of a call, and None rather than a wrong guess."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import source_files

import devtensor as dt
from devtensor import _diagnosis

# (name, source, expression of each operand in order). x, y, m are on the cpu, g and n on a GPU.
FORMS: list[tuple[str, str, tuple[str | None, ...]]] = [
    ("function", "dt.add(x, g)", ("x", "g")),
    ("function, keywords", "dt.add(other=g, input=x)", ("x", "g")),
    ("function, one keyword", "dt.matmul(x, other=n)", ("x", "n")),
    ("alias of the package", "import devtensor as torch\ntorch.add(x, g)", ("x", "g")),
    ("alias of the function", "from devtensor import matmul as mul\nmul(x, n)", ("x", "n")),
    ("function held in a variable", "f = dt.add\nf(x, g)", ("x", "g")),
    ("function held in a dict", "ops = {'a': dt.add}\nops['a'](x, g)", ("x", "g")),
    ("starred", "pair = (x, g)\ndt.add(*pair)", ("pair[0]", "pair[1]")),
    ("starred list", "pair = [x, g]\ndt.add(*pair)", ("pair[0]", "pair[1]")),
    ("starred after one", "rest = [g]\ndt.add(x, *rest)", ("x", "rest[0]")),
    ("starred call", "dt.add(*reversed([g, x]))", (None, None)),
    ("double star", "given = {'input': x, 'other': g}\ndt.add(**given)", ("given['input']", "given['other']")),
    ("method", "x.add(g)", ("x", "g")),
    ("method, keyword", "x.add(other=g)", ("x", "g")),
    ("method in place", "x.mul_(g)", ("x", "g")),
    ("method of an attribute", "b = Box(x=x)\nb.x.add(g)", ("b.x", "g")),
    ("method of a result", "(x + 1).add(g)", ("x + 1", "g")),
    ("unbound method", "dt.DeviceArray.add(x, g)", ("x", "g")),
    ("chained methods", "x.abs().relu().add(g)", ("x.abs().relu()", "g")),
    ("chained methods, several lines", "(x.abs()\n .relu()\n .add(g))", ("x.abs().relu()", "g")),
    ("operator", "x + g", ("x", "g")),
    ("operator, inner", "z = (x + g) * 2 - 1", ("x", "g")),
    ("operator, right", "z = 2 * (1 - (x - g))", ("x", "g")),
    ("operator, left result", "z = x * 2 + g", ("x * 2", "g")),
    ("operator, right result", "z = x + g * 2", ("x", "g * 2")),
    ("operator, parentheses", "z = (x) + (g)", ("x", "g")),
    ("matrix product", "x @ n", ("x", "n")),
    ("power", "x ** g", ("x", "g")),
    ("comparison", "x < g", ("x", "g")),
    ("comparison in a condition", "if (x == g) is None: pass", ("x", "g")),
    ("comparison, chained", "(x + 1) > g", ("x + 1", "g")),
    ("bitwise", "(x > 0) & (g > 0)", ("x > 0", "g > 0")),
    ("augmented", "x += g", ("x", "g")),
    ("augmented attribute", "b = Box(x=x)\nb.x *= g", ("b.x", "g")),
    ("augmented entry", "xs = [x]\nxs[0] -= g", ("xs[0]", "g")),
    ("assignment to a part", "x[0] = g[0]", ("x[0]", "g[0]")),
    ("assignment to a slice", "x[:, 1] = g[:, 0]", ("x[:, 1]", "g[:, 0]")),
    ("assignment to two parts", "x[0] = y[0] = g[1]", ("x[0]", "g[1]")),
    ("attribute", "b = Box(w=g)\nx + b.w", ("x", "b.w")),
    ("deep attribute", "b = Box(c=Box(w=g))\nx + b.c.w", ("x", "b.c.w")),
    ("entry", "d = {'w': g}\nx + d['w']", ("x", "d['w']")),
    ("entry by a variable", "d, k = {'w': g}, 'w'\nx + d[k]", ("x", "d[k]")),
    ("entry from the end", "xs = [x, g]\nxs[0] + xs[-1]", ("xs[0]", "xs[-1]")),
    ("nested call", "dt.relu(dt.add(x, g))", ("x", "g")),
    ("calls given to a loss by name", "f = dt.ones_like\nF.mse_loss(target=f(g), input=f(x))", ("f(x)", "f(g)")),
    ("calls given to a loss of a Module", "f = dt.ones_like\ndt.nn.MSELoss()(f(x), f(g))", ("f(x)", "f(g)")),
    ("calls given to a loss in a variable", "f, l = dt.ones_like, dt.nn.MSELoss()\nl(f(x), f(g))", ("f(x)", "f(g)")),
    (
        "a call given to a Module",
        "f = dt.ones_like\nnet = dt.nn.LayerNorm(3)\nnet(f(g))",
        ("f(g)", "net.weight", "net.bias"),
    ),
    (
        "a call given to a chain of Modules",
        "f = dt.ones_like\nnet = dt.nn.Sequential(dt.nn.ReLU(), dt.nn.LayerNorm(3))\nnet(f(g))",
        (None, "net.1.weight", "net.1.bias"),
    ),
    ("call as argument", "dt.add(dt.relu(x), g)", ("dt.relu(x)", "g")),
    ("call as argument, keyword", "dt.add(x, other=dt.relu(g))", ("x", "dt.relu(g)")),
    ("two on a line", "a = x + y; b = x + g", ("x", "g")),
    ("two in a tuple", "a, b = x + y, x * g", ("x", "g")),
    ("two alike", "a = [x + x, x + y, x + g]", ("x", "g")),
    ("several lines", "z = dt.addmm(\n    x,\n    y,  # first\n    n,\n)", ("x", "y", "n")),
    ("argument over lines", "z = dt.add(x, g.abs(\n    ).relu(\n))", ("x", "g.abs().relu()")),
    ("function of a class", "class C:\n  def f(self):\n    self.w + g\nc = C(); c.w = x\nc.f()", ("self.w", "g")),
    ("private attribute", "class C:\n  def f(self):\n    self.__w = x\n    self.__w + g\nC().f()", ("self.__w", "g")),
    ("slots", "class C:\n  __slots__ = ('w',)\nc = C(); c.w = g\nx + c.w", ("x", "c.w")),
    ("named tuple", "import collections\nP = collections.namedtuple('P', 'w')\np = P(g)\nx + p.w", ("x", "p.w")),
    ("property", "class C:\n  @property\n  def w(self): return g\nc = C()\nx + c.w", ("x", "c.w")),
    ("argument of a function", "def f(a, b):\n  return a + b\nf(x, g)", ("a", "b")),
    ("closure", "def f():\n  a = x\n  def h():\n    return a + g\n  h()\nf()", ("a", "g")),
    ("cell of its own", "def f():\n  a = x\n  def h(): return a\n  a + g\nf()", ("a", "g")),
    ("lambda", "(lambda a: a + g)(x)", ("a", "g")),
    ("lambda with a call", "f = lambda a, *, b: dt.add(a, b)\nf(x, b=g)", ("a", "b")),
    ("list comprehension", "[a + g for a in (x, y)]", ("a", "g")),
    ("dict comprehension", "{i: dt.add(a, g) for i, a in enumerate([x])}", ("a", "g")),
    ("generator", "list(dt.add(a, g) for a in [x])", ("a", "g")),
    ("generator function", "def f():\n  yield x + g\nnext(f())", ("x", "g")),
    ("coroutine", "async def f():\n  return x + g\nf().send(None)", ("x", "g")),
    ("decorator", "def deco(a):\n  return lambda f: f\n@deco(x + g)\ndef f(): pass", ("x", "g")),
    ("default value", "def f(a=x + g): pass", ("x", "g")),
    ("class body", "class C:\n  a = x\n  b = a + g", ("a", "g")),
    ("assignment expression", "(z := x) + g", ("z := x", "g")),
    ("conditional", "z = x + g if True else x", ("x", "g")),
    ("conditional operand", "(x if True else y) + g", ("x if True else y", "g")),
    ("format", "f'{x + g}'", ("x", "g")),
    ("assert", "assert (x + g) is not None", ("x", "g")),
    ("return", "def f():\n  return (x + g).sum()\nf()", ("x", "g")),
    ("with", "with dt.no_grad():\n  x + g", ("x", "g")),
    ("try", "try:\n  x + g\nfinally:\n  pass", ("x", "g")),
    ("loop", "for a in [y, g]:\n  x + a", ("x", "a")),
    ("while", "while (x + g) is None: pass", ("x", "g")),
    ("match", "match 1:\n  case 1:\n    x + g", ("x", "g")),
    ("list", "dt.cat([x, y, g])", ("x", "y", "g")),
    ("list, keyword", "dt.cat(tensors=(x, g))", ("x", "g")),
    ("list in a variable", "xs = [x, g]\ndt.stack(xs)", ("xs[0]", "xs[1]")),
    ("list with a star", "xs = [x, y]\ndt.cat([*xs, g])", ("xs[0]", "xs[1]", "g")),
    ("list made in place", "dt.cat([a for a in (x, g)])", (None, None)),
    ("operator module", "import operator\noperator.add(x, g)", ("x", "g")),
    ("builtin sum", "sum([x, g])", (None, "g")),
    ("builtin pow", "pow(x, g)", ("x", "g")),
    ("map", "list(map(dt.add, [x], [g]))", (None, None)),
    ("reduce", "import functools\nfunctools.reduce(dt.add, [x, g])", ("x", "g")),
    ("partial", "import functools\nf = functools.partial(dt.add, x)\nf(g)", (None, "g")),
    ("partial without arguments", "import functools\nf = functools.partial(dt.add)\nf(x, g)", ("x", "g")),
    ("out", "dt.add(x, y, out=g)", ("x", "y", "g")),
    ("where", "dt.where(x > 0, y, g)", ("x > 0", "y", "g")),
    ("method where", "x.where(y > 0, g)", ("y > 0", "x", "g")),
    ("conv2d", "i = dt.ones((1, 2, 4, 4))\nw = dt.ones((1, 2, 3, 3), device=GPU)\ndt.conv2d(i, w, padding=1)",
     ("i", "w")),
    ("unicode before", "z = 'äöü', x + g", ("x", "g")),
    ("unicode names", "größe = g\nx + größe", ("x", "größe")),
    ("backslash", "z = x \\\n  + g", ("x", "g")),
    ("empty first line", "\ndef f(): return x + g\nf()", ("x", "g")),
    ("semicolons and tabs", "if True:\n\tz = 1; x + g", ("x", "g")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS])
def test_form(text: str, expected: tuple[str | None, ...]) -> None:
    error = source_files.run(text)
    assert isinstance(error, dt.DeviceMismatchError), error
    assert tuple(operand.expression for operand in error.operands) == expected


@pytest.mark.parametrize("name", ["x + g", "dt.add(x, g)", "x.add_(g)"])
def test_without_source(name: str) -> None:
    error = source_files.run(name, cached=False)
    assert [operand.expression for operand in error.operands] == ["x", "g"]
    assert error.fix is None
    assert [operand.name for operand in error.operands] == ["input", "other"]
    assert "Fix:" not in "\n".join(error.__notes__)


def test_another_source_than_that_of_the_code() -> None:
    """The text at the position is of other variables, which are seen not to be the operands."""
    import linecache

    text = "y + n\n"
    linecache.cache["<swapped>"] = (len(text), None, [text], "<swapped>")
    error = source_files.run("x + g", filename="<swapped>", cached=False)
    assert [operand.expression for operand in error.operands] == [None, None]
    assert error.fix is None


def test_a_file_that_changed_since_it_was_read(tmp_path: Any) -> None:
    """Calls cannot be looked up, so the file is compared with the code that runs."""
    path = tmp_path / "script.py"
    path.write_text("def f(): return x\ndef h(): return g\nf() + h()\n")
    error = source_files.run(path.read_text(), filename=str(path), cached=False)
    assert [operand.expression for operand in error.operands] == ["f()", "h()"]
    code = compile(path.read_text(), str(path), "exec")
    path.write_text("def f(): return x\ndef h(): return g\nh() + f()\n# changed\n")
    try:
        exec(code, source_files.names())
    except dt.DeviceMismatchError as caught:
        assert [operand.expression for operand in caught.operands] == [None, None]
        assert caught.fix is None
    path.unlink()


def test_a_notebook_cell() -> None:
    error = source_files.run("z = x + g", filename="<ipython-input-3-0123456789ab>")
    assert [operand.expression for operand in error.operands] == ["x", "g"]


def test_this_very_file() -> None:
    """Rewritten by pytest: the source is still found."""
    x, g = dt.ones(3), dt.ones(3, device=source_files.GPU)
    with pytest.raises(dt.DeviceMismatchError) as caught:
        assert (x + g) is not None
    assert [operand.expression for operand in caught.value.operands] == ["x", "g"]
    assert caught.value.fix == f'x = x.to("{source_files.GPU}")'


def test_in_a_huge_file() -> None:
    """Only the function, or the statement, is parsed."""
    filler = "def f{0}(a):\n    return [\n        a,\n    ]\n\n"
    text = "".join(filler.format(i) for i in range(1000))
    error = source_files.run(text + "def last(a, b):\n    c = '''\ntext\n'''\n    return dt.add(a, b)\nlast(x, g)\n")
    assert [operand.expression for operand in error.operands] == ["a", "b"]
    error = source_files.run(text + "z = dt.add(\n    x,\n    g)\n" + text)
    assert [operand.expression for operand in error.operands] == ["x", "g"]


def test_nothing_of_the_users_is_run() -> None:
    calls: list[str] = []

    class Loud:
        def __init__(self, w: Any) -> None:
            object.__setattr__(self, "w", w)

        def __getattribute__(self, name: str) -> Any:
            calls.append(name)
            return object.__getattribute__(self, name)

        def __repr__(self) -> str:
            raise ValueError("shown")

        def __eq__(self, other: object) -> bool:
            raise ValueError("compared")

        def __hash__(self) -> int:
            raise ValueError("hashed")

    space = source_files.names()
    space["loud"] = Loud(space["g"])
    error = source_files.run("def f(a):\n  keep = loud\n  return a + loud.w\nf(x)", space)
    assert calls == ["w"]
    assert [operand.expression for operand in error.operands] == ["a", "loud.w"]


def test_frames_of_devtensor_are_skipped() -> None:
    """The comparison is made by devtensor's own file: its variables are not spoken of."""
    space = source_files.names()
    exec(compile("def helper(a, b): return a + b", _diagnosis._OWN + "helper.py", "exec"), space)
    error = source_files.run("helper(x, g)", space)
    assert [operand.expression for operand in error.operands] == ["x", "g"]
    assert error.fix == f'x = x.to("{source_files.GPU}")'


IMPLICIT = [
    ("if x: pass", "x"), ("if x > 0: pass", "x > 0"), ("if not x: pass", "x"), ("while x: pass", "x"),
    ("assert x", "x"),
    ("b = 1 if x else 2", "x"), ("a = x and y", None), ("0 < x < 1", None), ("bool(x)", "x"), ("any([x])", "x"),
    ("x in [y]", None), ("[x] == [y]", None), ("if [x] == [y]: pass", None), ("sorted([x, y])", None),
    ("max(x, y)", None),
    ("(lambda v: 1 if v else 2)(x)", "v"), ("for part in s: pass", "s"), ("[v for v in s]", "s"), ("q, w = s", "s"),
    ("list(s)", "s"), ("print(*s)", None), ("len(s)", "s"), ("float(x)", "x"), ("x[9]", "x"), ("x[0, 0, 0] = 1", "x"),
    ("x.sum(dim=7)", "x"), ("x.logsumexp(7)", "x"), ("range(x)", "x"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expression"), IMPLICIT)
def test_what_python_asks_of_an_array(text: str, expression: str | None) -> None:
    error = source_files.run(text, source_files.names() | {"s": dt.ones(())})
    assert type(error) in (RuntimeError, TypeError, ValueError, IndexError, dt.ShapeMismatchError) or error.code
    assert [operand.expression for operand in error.operands] == [expression]
    assert error.operands[0].origin.lineno > 0


def test_what_the_caller_raises_is_left_alone() -> None:
    text = """
    class Odd:
        def __index__(self):
            raise TypeError("mine")
    x[Odd()]
    """
    error = source_files.run(text)
    assert str(error) == "mine"
    assert not hasattr(error, "__notes__")


def test_what_stands_where_an_array_should() -> None:
    error = source_files.run("rows = [x]\ndt.linear(rows, weight=y)")
    assert type(error) is TypeError
    assert (error.op, error.code, error.culprit.expression) == ("linear", "invalid-argument", "rows")
    assert [(o.name, o.expression, o.shape) for o in error.operands] == [("input", "rows", ()), ("weight", "y", (2, 3))]
    assert error.__notes__[0].splitlines()[0].split() == ["input", "rows", "list", "<-", "the", "odd", "one"]


def test_warnings_of_the_users_come_once(recwarn: pytest.WarningsRecorder) -> None:
    """To explain an error changes no filter of warnings, which would make all of them appear once more."""
    text = """
    import warnings
    for i in range(3):
        warnings.warn("once")
        try:
            x + g
        except RuntimeError:
            pass
    """
    warnings.simplefilter("default")
    assert source_files.run(text) is None
    assert [str(one.message) for one in recwarn] == ["once"]


CALLED = """\
def model(x): return x
class Batch:
    def labels(self): return dt.zeros(3, dtype='int64')
batch = Batch()
"""


@pytest.mark.parametrize("text", [
    "F.cross_entropy(model(x), batch.labels())",
    "F.cross_entropy(target=batch.labels(), input=model(x))",
    "loss = dt.nn.CrossEntropyLoss()\nloss(model(x), batch.labels())",
])  # fmt: skip
def test_calls_given_to_a_function_of_ours(text: str) -> None:
    error = source_files.run(CALLED + text)
    assert isinstance(error, dt.ShapeMismatchError), error
    assert [operand.expression for operand in error.operands] == ["model(x)", "batch.labels()"]


@pytest.mark.parametrize("op", ["dt.kron", "dt.tensordot", "F.mse_loss"])
def test_calls_given_to_a_function_with_decorators(op: str) -> None:
    """out= and autocast stand around it."""
    error = source_files.run(f"{CALLED}with dt.autocast('cpu'):\n    {op}(model(x), model(g))")
    assert isinstance(error, dt.DeviceMismatchError), error
    assert [operand.expression for operand in error.operands] == ["model(x)", "model(g)"]


def test_a_parameter_that_is_given_another_value_is_not_what_was_passed() -> None:
    """Sequential gives its parameter to one Module after another."""
    text = CALLED + "net = dt.nn.Sequential(dt.nn.Flatten(0), dt.nn.Linear(3, 2))\nnet(model(x))"
    error = source_files.run(text)
    assert isinstance(error, dt.ShapeMismatchError), error
    assert error.operands[0].expression is None


def test_without_the_source_a_variable_is_named() -> None:
    """As in exec() and below a notebook's %%time; no fix is shown, as nothing says where it would stand."""
    names = source_files.names()
    with pytest.raises(dt.DeviceMismatchError) as caught:
        exec("z = x + g", names)
    assert [one.expression for one in caught.value.operands] == ["x", "g"] and caught.value.fix is None
    with pytest.raises(dt.DeviceMismatchError) as caught:
        exec("def f(p, q):\n    r = p\n    return p @ q.T\nf(x, g)", names)
    assert [one.expression for one in caught.value.operands] == [None, None]  # p or r
