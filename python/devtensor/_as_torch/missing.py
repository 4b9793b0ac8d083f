"""What a program written for PyTorch asks for and devtensor lacks: names, methods, keywords; by reading it alone."""

from __future__ import annotations

import ast
import difflib
import importlib.util
import inspect
import os
import pkgutil
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from devtensor import _C
from devtensor._as_torch.scopes import scopes, targets
from devtensor._names import refusals

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_FORGIVEN = {"ImportError", "ModuleNotFoundError", "AttributeError"}  # who catches these asks whether a name is there
_BROAD = {"Exception", "BaseException"}
# Ops whose result is no array, though others of the same name are methods.
_NO_ARRAYS = {"max", "min", "split", "chunk", "unbind", "numel", "size", "dim", "stride", "item", "tolist", "numpy",
              "backward", "data_ptr", "allclose", "equal", "is_contiguous", "register_hook", "retain_grad",
              "type", "tensor_split", "var_mean", "std_mean"}  # fmt: skip
# Methods of torch.Tensor that are called so nowhere else: what has one of these is an array.
_METHODS = frozenset(
    """
    abs_ absolute_ acos_ acosh_ add_ addbmm addbmm_ addcdiv addcdiv_ addcmul addcmul_ addmm_ addmv addmv_ addr addr_
    aminmax arccos_ arccosh_ arcsin_ arcsinh_ arctan2 arctan2_ arctan_ arctanh_ as_strided as_strided_
    as_strided_scatter as_subclass asin_ asinh_ atan2 atan2_ atan_ atanh_ baddbmm baddbmm_ bernoulli_ bfloat16
    bincount bitwise_and bitwise_and_ bitwise_left_shift bitwise_left_shift_ bitwise_not bitwise_not_ bitwise_or
    bitwise_or_ bitwise_right_shift bitwise_right_shift_ bitwise_xor bitwise_xor_ broadcast_to cauchy_ ccol_indices
    ceil_ cholesky_inverse cholesky_solve clamp_ clamp_max clamp_max_ clamp_min clamp_min_ clip_ coalesce
    col_indices conj_physical conj_physical_ const_data_ptr copy_ copysign_ cos_ cosh_ count_nonzero crow_indices
    cummax cummin cumprod_ cumsum_ data_ptr deg2rad deg2rad_ dense_dim detach_ diag_embed diagonal_scatter digamma
    digamma_ dim_order div_ divide_ element_size eq_ erf_ erfc erfc_ erfinv_ exp2 exp2_ exp_ expand_as expm1 expm1_
    exponential_ fill_ fill_diagonal_ fix_ float_power float_power_ floor_ floor_divide floor_divide_ fmod_ frac_
    frexp gcd_ ge_ geometric_ get_device grad_dtype grad_fn greater_ greater_equal greater_equal_ gt_ hash_tensor
    heaviside_ hypot_ i0 i0_ igamma_ igammac_ index_add index_add_ index_copy index_copy_ index_fill index_fill_
    index_put index_put_ index_reduce index_reduce_ index_select int_repr is_coalesced is_conj is_contiguous is_cpu
    is_cuda is_distributed is_floating_point is_inference is_ipu is_leaf is_maia is_meta is_mkldnn is_mps is_mtia
    is_neg is_nested is_nonzero is_pinned is_quantized is_same_size is_set_to is_signed is_sparse is_sparse_csr
    is_vulkan is_xla is_xpu kthvalue lcm_ ldexp_ le_ lerp lerp_ less_ less_equal less_equal_ lgamma lgamma_ log10
    log10_ log1p log1p_ log2 log2_ log_ log_normal_ log_softmax logaddexp2 logdet logical_and logical_and_
    logical_not logical_not_ logical_or logical_or_ logical_xor logical_xor_ logit_ lt_ lu_solve map2_ masked_fill
    masked_fill_ masked_scatter masked_scatter_ masked_select matrix_exp matrix_power module_load mul_ multiply_
    mvlgamma_ nan_to_num nan_to_num_ narrow narrow_copy ne_ neg_ negative_ new_empty new_empty_strided new_full
    new_ones new_tensor new_zeros nextafter_ nonzero_static normal_ not_equal not_equal_ pin_memory pinverse
    polygamma_ pow_ q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point rad2deg
    rad2deg_ random_ reciprocal_ record_stream register_hook register_post_accumulate_grad_hook relu_ remainder_
    renorm renorm_ repeat_interleave requires_grad requires_grad_ reshape_as resize_as resize_as_ resize_as_sparse_
    resolve_conj resolve_neg retain_grad retains_grad rot90 round_ row_indices rsqrt_ scatter_ scatter_add
    scatter_add_ scatter_reduce scatter_reduce_ select_scatter set_ sgn_ share_memory_ sigmoid_ sign_ sin_ sinc_
    sinh_ slice_inverse slice_scatter slogdet sparse_dim sparse_mask sparse_resize_ sparse_resize_and_clear_
    split_with_sizes sqrt_ square_ squeeze_ storage_offset storage_type sub_ subtract_ sum_to_size swapaxes_
    swapdims_ t_ take_along_dim tan_ tanh_ tensor_split to_mkldnn to_padded_tensor to_sparse to_sparse_bsc
    to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr topk transpose_ triangular_solve tril_ triu_ true_divide
    true_divide_ trunc_ type_as unfold uniform_ unique_consecutive unsafe_chunk unsafe_split unsafe_split_with_sizes
    unsqueeze_ untyped_storage view_as xlogy xlogy_ zero_
    """.split()
)


class Lack(NamedTuple):
    """One thing that is not there: its name with what belongs to it, and the place where it stands first."""

    name: str
    sentence: str
    filename: str
    lineno: int

    def __str__(self) -> str:
        return f"{self.filename}:{self.lineno}: {self.sentence}"


def lacking(path: str, source: bytes | None = None, root: str | None = None) -> list[Lack]:
    """What a script and the files that it imports ask for in vain: those in root, or beside it.

    source is the text of what is no file. A file that is no Python is left out: see not_python.
    """
    found: dict[str, Lack] = {}
    trees = _trees(path, source, root)
    folder = root or _folder(path, source)
    own = _defined(trees.values())
    for file, tree in trees.items():
        shown = "<stdin>" if file == "-" else os.path.relpath(file, folder) if file != path else os.path.basename(file)
        for lineno, name, text in sorted(_Reader(tree, own).wanting()):
            found.setdefault(name, Lack(name, text, shown, lineno))
    return list(found.values())


def not_python(path: str, source: bytes | None = None, root: str | None = None) -> list[Exception]:
    """Why a script and the files that it imports are not read, or do not compile: OSError, SyntaxError, ValueError."""
    errors: list[Exception] = []
    for file in _trees(path, source, root):
        try:
            text = source
            if text is None or file != path:
                with open(file, "rb") as opened:
                    text = opened.read()
            compile(text, "<stdin>" if file == "-" else file, "exec", dont_inherit=True)
        except (OSError, SyntaxError, ValueError, RecursionError) as error:
            errors.append(error)
    return errors


def _folder(path: str, source: bytes | None) -> str:
    return os.path.dirname(os.path.abspath(path)) if source is None else os.getcwd()


def _trees(path: str, source: bytes | None, root: str | None) -> dict[str, ast.AST]:
    files = [path]
    folders = [root or _folder(path, source)]
    trees: dict[str, ast.AST] = {}
    for file in files:  # grows
        tree = trees[file] = _tree(_read(file) if source is None or file != path else source)
        files += [beside for beside in _imported(tree, folders, file) if beside not in files]
    return trees


def sentence(name: str) -> str:
    """'torch.optim.LBFGS: devtensor does not provide it', with the nearest name that is there, or what to do."""
    owner, _, rest = name.partition(".")
    reason = refusals.METHODS.get(rest) if owner == "Tensor" else refusals.reason(rest)
    return f"{name}: devtensor does not provide it{_hint(name) if reason is None else f': {reason}'}"


def _hint(name: str) -> str:
    if name.startswith("torch.utils.tensorboard"):
        return " without the package tensorboard: pip install tensorboard"
    parent, _, last = name.rpartition(".")
    for module, held in list(sys.modules.items()):
        if module.partition(".")[0] == "torch" and module != parent and last in _names(held):
            return f"; it has {module}.{last}"
    found: Any = sys.modules.get(parent)
    if found is None:
        found = _C.DeviceArray if parent == "Tensor" else None
    near = difflib.get_close_matches(last, _names(found), 1, 0.7) if found is not None else []
    return f"; the nearest name that it has is {parent}.{near[0]}" if near else ""


def _names(held: Any) -> list[str]:
    names = getattr(held, "__all__", None) if isinstance(held, types.ModuleType) else None
    return [name for name in names or dir(held) if not name.startswith("_")]


# ---------------------------------------------------------------- files


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def _tree(source: bytes) -> ast.AST:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return ast.Module([], [])


def _imported(tree: ast.AST, folders: list[str], file: str) -> Iterator[str]:
    """The files in some folders, and in packages in them, that a file imports."""
    for node in ast.walk(tree):
        starts = folders
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            if node.level:  # from .model import Net
                starts = [os.path.abspath(file)]
                for _ in range(node.level):
                    starts = [os.path.dirname(starts[0])]
            first = [node.module] if node.module else []
            names = [*first, *(".".join([*first, alias.name]) for alias in node.names)]
        else:
            continue
        for name in names:
            parts = name.split(".")
            for start in starts:
                for i in range(1, len(parts) + 1):
                    base = os.path.join(start, *parts[:i])
                    yield from (one for one in (f"{base}.py", os.path.join(base, "__init__.py")) if os.path.isfile(one))


def file_of_module(name: str) -> str | None:
    """The file that python -m runs for a module, or None. Nothing is imported to find it."""
    parts = name.split(".")
    try:
        spec = importlib.util.find_spec(parts[0]) if all(parts) else None  # without a dot it imports nothing
    except (ImportError, ValueError, AttributeError):
        return None
    for i in range(2, len(parts) + 1):
        spec = _spec_within(spec, ".".join(parts[:i]))
    if spec is not None and spec.submodule_search_locations is not None:
        spec = _spec_within(spec, f"{name}.__main__")
    return spec.origin if spec is not None else None


def _spec_within(parent: Any, name: str) -> Any:
    """The spec of a module in a package that is not imported; a namespace package has a list of places alone."""
    places: list[str] = []
    for entry in (parent.submodule_search_locations or ()) if parent is not None else ():
        finder: Any = pkgutil.get_importer(entry)
        spec = finder.find_spec(name) if finder is not None else None
        if spec is not None and spec.loader is not None:
            return spec
        places += (spec.submodule_search_locations or ()) if spec is not None else ()
    return types.SimpleNamespace(submodule_search_locations=places, origin=None) if places else None


# ---------------------------------------------------------------- names, methods, keywords


def _defined(trees: Any) -> set[str]:
    """The functions, methods and attributes that a program has itself."""
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
    return found


class _Reader:
    """One file."""

    def __init__(self, tree: ast.AST, own: set[str]) -> None:
        self.tree, self.own = tree, own
        self.scopes = scopes(tree)
        self.others: set[str] = set()  # what else is imported
        self.forgiven: set[ast.AST] = set()  # what may fail
        self.caught: set[ast.AST] = set()  # what stands where any error is caught
        self.asked: set[str] = set()  # what hasattr asks for
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                self.others |= {name for name, target in targets(node) if target is None}
            elif isinstance(node, ast.Try):
                self._guard(node.body, [handler.type for handler in node.handlers if not _raises(handler)])
            elif isinstance(node, ast.With | ast.AsyncWith):
                self._guard(node.body, [one for item in node.items for one in _suppressed(item.context_expr)])
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
                self.forgiven |= {one for part in node.body for one in ast.walk(part)}
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                if node.func.id == "hasattr" or (node.func.id == "getattr" and len(node.args) == 3):
                    self.asked |= {str(one.value) for one in node.args if isinstance(one, ast.Constant)}
        # `try: from torch import xpu`: what then uses xpu is asked for already
        self.tried = {first_lack(name) for node in self.forgiven for _, name in self._names_at(node)}
        self.arrays = _Arrays(self)

    def _guard(self, body: list[ast.stmt], caught: list[ast.expr | None]) -> None:
        names = {name for one in caught for name in _class_names(one)}
        if names & (_FORGIVEN | _BROAD):
            inside = {one for part in body for one in ast.walk(part)}
            if names & _FORGIVEN:
                self.forgiven |= inside
            else:
                self.caught |= inside

    def full(self, node: ast.AST) -> str | None:
        """ "torch.nn.Linear" for nn.Linear."""
        if isinstance(node, ast.Name):
            scope = self.scopes.get(node)
            return scope.find(node.id) if scope is not None else None
        before = self.full(node.value) if isinstance(node, ast.Attribute) else None
        return f"{before}.{node.attr}" if before and isinstance(node, ast.Attribute) else None

    def wanting(self) -> Iterator[tuple[int, str, str]]:
        """(line, name, sentence) of all that is not there."""
        for node in ast.walk(self.tree):
            if node in self.forgiven:
                continue
            note = "; the program catches errors there" if node in self.caught else ""
            for lineno, name in self._names_at(node):
                lack = first_lack(name)
                if lack is not None and lack not in self.tried and lack.rpartition(".")[2] not in self.asked:
                    yield lineno, lack, sentence(lack) + note
            if isinstance(node, ast.Attribute):
                yield from ((lineno, name, text + note) for lineno, name, text in self._method(node))
            if isinstance(node, ast.Call):
                yield from ((lineno, name, text + note) for lineno, name, text in self._keywords(node))

    def _names_at(self, node: ast.AST) -> list[tuple[int, str]]:
        if isinstance(node, ast.Import):
            return [(node.lineno, alias.name) for alias in node.names if alias.name.partition(".")[0] == "torch"]
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").partition(".")[0] == "torch":
            whole = [(node.lineno, node.module or "")]
            return whole + [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names if alias.name != "*"]
        name = self.full(node) if isinstance(node, ast.Attribute) else None
        return [(node.lineno, name)] if name and isinstance(node, ast.Attribute) else []

    def _method(self, node: ast.Attribute) -> Iterator[tuple[int, str, str]]:
        name = node.attr
        there = hasattr(_C.DeviceArray, name) and name not in refusals.METHODS
        if there or name in self.asked | self.own or name.startswith("_") or self.full(node):
            return
        base = node.value
        while isinstance(base, ast.Attribute):
            base = base.value
        of_others = isinstance(base, ast.Name) and base.id in self.others
        if self.arrays.has(node.value) or (name in _METHODS and not of_others):
            yield node.lineno, f"Tensor.{name}", sentence(f"Tensor.{name}")

    def _keywords(self, node: ast.Call) -> Iterator[tuple[int, str, str]]:
        name = self.full(node.func)
        called: Any = None
        if name is not None and first_lack(name) is None:
            called = _held(name)
        elif isinstance(node.func, ast.Attribute) and self.arrays.has(node.func.value):
            name = f"Tensor.{node.func.attr}"
            called = getattr(_C.DeviceArray, node.func.attr, None)
        taken = _parameters(called) if called is not None else None
        for keyword in node.keywords if taken is not None else ():
            if keyword.arg is not None and keyword.arg not in (taken or ()):
                text = f"{name}({keyword.arg}=): devtensor does not provide this argument"
                near = difflib.get_close_matches(keyword.arg, sorted(taken or ()), 1, 0.7)
                yield (
                    keyword.value.lineno,
                    f"{name}({keyword.arg}=)",
                    text + (f"; the nearest that it has is {near[0]}=" if near else ""),
                )


def _class_names(node: ast.expr | None) -> set[str]:
    """The last names of the classes that an except names; one without a class catches all."""
    if node is None:
        return {"BaseException"}
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def _raises(handler: ast.ExceptHandler) -> bool:
    """Whether a handler ends as an error again."""
    return isinstance(handler.body[-1], ast.Raise)


def _suppressed(node: ast.expr) -> list[ast.expr]:
    """The classes of contextlib.suppress(...)."""
    if not isinstance(node, ast.Call):
        return []
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", None)
    return list(node.args) if name == "suppress" else []


class _Arrays:
    """Which expressions surely are arrays: what torch makes, and what is made of that."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.names: set[str] = set()
        stored: dict[str, list[ast.AST | None]] = {}
        for node in ast.walk(reader.tree):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                stored.setdefault(node.targets[0].id, []).append(node.value)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored.setdefault(node.id, []).append(None)  # also those above, once more
            elif isinstance(node, ast.arg):
                stored.setdefault(node.arg, []).append(node.annotation)
        for _ in range(3):  # what is made of what is made
            for name, values in stored.items():
                given = [value for value in values if value is not None]
                told = len(values) - len(given) <= sum(not self._is_annotation(value) for value in given)
                if given and told and all(self._is_annotation(value) or self.has(value) for value in given):
                    self.names.add(name)

    def _is_annotation(self, node: ast.AST) -> bool:
        return self.reader.full(node) == "torch.Tensor"

    def has(self, node: ast.AST) -> bool:
        """Whether an expression surely is an array."""
        if isinstance(node, ast.Name):
            return node.id in self.names
        if isinstance(node, ast.BinOp):
            return self.has(node.left) or self.has(node.right)
        if not isinstance(node, ast.Call):
            return False
        name = self.reader.full(node.func)
        last = node.func.attr if isinstance(node.func, ast.Attribute) else (name or "").rpartition(".")[2]
        if last in _NO_ARRAYS or last.startswith(("is_", "get_", "set_", "manual_")):
            return False
        if name is not None:
            return name == f"torch.{last}" and isinstance(getattr(_C, last, None), types.BuiltinFunctionType) and (
                hasattr(_C.DeviceArray, last) or last in _CREATES
            )  # fmt: skip
        return isinstance(node.func, ast.Attribute) and hasattr(_C.DeviceArray, last) and self.has(node.func.value)


_SYNONYMS = {"axis", "keepdims", "size", "shape"}  # taken wherever dim, keepdim, shape or size is
_CREATES = {"tensor", "zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace",
            "eye", "zeros_like", "ones_like", "rand_like", "randn_like", "full_like", "empty_like", "from_numpy",
            "as_tensor", "stack", "cat"}  # fmt: skip


# ---------------------------------------------------------------- what is there


def first_lack(name: str) -> str | None:
    """The shortest part of a dotted name that is not there, or None."""
    found: Any = sys.modules.get("torch")
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        module = sys.modules.get(".".join(parts[:i]))
        try:
            found = module if module is not None else getattr(found, part)
        except Exception:
            return ".".join(parts[:i])
        if isinstance(found, refusals.Refused):
            return ".".join(parts[:i])
        if not isinstance(found, types.ModuleType):
            return None  # what hangs on classes and values is seen when it is used
    return None


def _held(name: str) -> Any:
    found: Any = sys.modules.get("torch")
    parts = name.split(".")
    for i, part in enumerate(parts[1:], 2):
        module = sys.modules.get(".".join(parts[:i]))
        found = module if module is not None else getattr(found, part, None)
    return found


def _parameters(called: Any) -> set[str] | None:
    """The names that can be given by keyword; None where any can, or it is not known."""
    if not (inspect.isroutine(called) or isinstance(called, type)):
        return None
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return None
    return _SYNONYMS | {one.name for one in parameters if one.kind is not one.POSITIONAL_ONLY}
