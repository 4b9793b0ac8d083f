"""A fix stands where it can be typed: before the statement of the failing line, else in the place of an expression."""

from __future__ import annotations

import itertools

import pytest
import source_files
from source_files import GPU

from devtensor import nn

TO = f'.to("{GPU}")'
SPACE = {"nn": nn}

# (name, source, fix, the text that it replaces, or None where it is a statement of its own).
ROWS: list[tuple[str, str, str | None, str | None]] = [
    ("a statement of several lines", "z = dt.add(\n    x,\n    g)", f"x = x{TO}", None),
    ("below the first line of a statement", "z = dt.add(1 + 0 * x,\n    x + g)", f"x = x{TO}", None),
    ("behind if", "if True: x + g", f"x{TO}", "x"),
    ("elif", "w = g\nif x is None:\n    pass\nelif (x + w).any():\n    pass", f"x{TO}", "x"),
    ("else", "if x is None:\n    pass\nelse: x + g", f"x{TO}", "x"),
    ("except", "try:\n    1/0\nexcept Exception if (x + g).any() else ValueError:\n    pass", f"x{TO}", "x"),
    ("finally", "try:\n    pass\nfinally: x + g", f"x{TO}", "x"),
    ("with and body", "import contextlib\nwith contextlib.nullcontext(): x + g", f"x{TO}", "x"),
    ("bound by with",
     "import contextlib\nwith contextlib.nullcontext(x) as k, contextlib.nullcontext(k + g):\n    pass",
     f"k{TO}", "k"),
    ("case", "match 1:\n    case 1 if (x + g).any():\n        pass", f"x{TO}", "x"),
    ("decorator", "def same(a):\n    return lambda f: f\n@same(1)\n@same(x + g)\ndef f(): pass", f"x = x{TO}", None),
    ("default argument", "def f(a,\n      b=x + g): pass", f"x = x{TO}", None),
    ("class on one line", "class C: a = x + g", f"x{TO}", "x"),
    ("function on one line", "def f(x): return x + g\nf(x)", f"x{TO}", "x"),
    ("loop on one line", "for k in [x]: y = k + g", f"k{TO}", "k"),
    ("after a semicolon", "a = 1; z = x * 1; y = z + g", f"z{TO}", "z"),
    ("before a semicolon", "y = x + g; z = 3", f"x = x{TO}", None),
    ("continued line", "a = 1; \\\n    z = x + g", f"x{TO}", "x"),
    ("comprehension", "[x for k in (1, 2) if (x + g).any() or k]", f"x{TO} + g", "x + g"),
    ("lambda that reads it twice", "f = lambda a: a.shape and a + g\nf(x)", f"a{TO} + g", "a + g"),
    ("while that is not stored to", "k, n = x, 2\nwhile (k + g).sum() > 0 and n:\n    n -= 1", f"k = k{TO}", None),
    ("while that is stored to", "k, n = x, 2\nwhile (k + g).sum() > 0 and n:\n    n -= 1\n    k = y", f"k{TO}", "k"),
    ("call that stands twice", "def h(): return x\nprint(x is h(), h() + g)", f"h(){TO} + g", "h() + g"),
    ("op that stands twice", "def h(): return x\nprint(g + h(), g + h())", None, None),
    ("a name that words contain", "def exe(x): return max(x.ndim, 0), x + g\nexe(x)", f"x{TO} + g", "x + g"),
    ("Module behind if", "net = nn.Linear(3, 2)\nif True: net(g)", f"net{TO}", "net"),
    ("Module of a comprehension", "[net(g) for net in (nn.Linear(3, 2),)]", f"net{TO}", "net"),
    ("Module of a caller",
     "class N(nn.Linear):\n    def forward(self, a):\n        return F.linear(a, self.weight)\nnet = N(3, 2)\nnet(g)",
     f"net{TO}", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fix", "of"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_where(text: str, fix: str | None, of: str | None) -> None:
    name = f"<places {next(_numbers)}>"
    error = source_files.run(text, source_files.names() | SPACE, name)
    assert isinstance(error, RuntimeError), error
    assert (error.fix, error.fix_of) == (fix, of)
    assert error.fix_how == ("before" if of is None else "instead")
    if fix is not None:
        marked = text.splitlines()
        marked[line_of(error, name) - 1] += "  # here"
        after = source_files.run(repaired("\n".join(marked), error), source_files.names() | SPACE)
        assert after is None, after


_numbers = itertools.count()


def line_of(error: BaseException, filename: str) -> int:
    """The failing line: where the traceback leaves the program's own code."""
    trace, line = error.__traceback__, 0
    while trace is not None:
        line = trace.tb_lineno if trace.tb_frame.f_code.co_filename == filename else line
        trace = trace.tb_next
    return line


def repaired(text: str, error: BaseException) -> str:
    """The program with its fix; what ends in a backslash cannot be marked."""
    return source_files.repaired(text.replace("\\  # here", "\\"), error)


# A parameter takes no array: its Module is moved, or a converted copy used. (name, body of a Module, fix, replaced).
OWN: list[tuple[str, str, str, str | None]] = [
    ("device", "self.w = nn.Parameter(dt.ones(3))\n    def forward(self, a): \n        return a * self.w",
     f"self{TO}", None),
    ("dtype",
     "self.w = nn.Parameter(dt.ones(3, 2).double())\n    def forward(self, a):\n        return a.cpu() @ self.w",
     "self.float()", None),
    ("shape", "self.w = nn.Parameter(dt.ones(5, 3))\n    def forward(self, a):\n        return a.cpu() @ self.w",
     "self.w.T", "self.w"),
    ("buffer", "self.register_buffer('w', dt.ones(3))\n    def forward(self, a):\n        return a * self.w",
     f"self.w = self.w{TO}", None),
    ("layer within", "self.l = nn.Linear(3, 2)\n    def forward(self, a):\n        return F.linear(a, self.l.weight)",
     f"self.l{TO}", None),
    ("while it is made", "self.w = nn.Parameter(dt.ones(3))\n        self.w * G\n    def forward(self, a): return a",
     f"self{TO}", None),
    ("on one line", "self.w = nn.Parameter(dt.ones(3))\n    def forward(self, a): return a * self.w",
     f"self{TO}", "self"),
]  # fmt: skip


@pytest.mark.parametrize("use", ["N()(g)", "def make(): return N()\nmake()(g)"])
@pytest.mark.parametrize(("body", "fix", "of"), [row[1:] for row in OWN], ids=[row[0] for row in OWN])
def test_a_module_without_a_name(body: str, fix: str, of: str | None, use: str) -> None:
    text = f"class N(nn.Module):\n    def __init__(self):\n        super().__init__()\n        {body}\n{use}"
    name = f"<places {next(_numbers)}>"
    space = SPACE | {"G": source_files.names()["g"]}
    error = source_files.run(text, source_files.names() | space, name)
    assert (error.fix, error.fix_of) == (fix, of)
    marked = text.splitlines()
    marked[line_of(error, name) - 1] += "  # here"
    assert source_files.run(repaired("\n".join(marked), error), source_files.names() | space) is None
