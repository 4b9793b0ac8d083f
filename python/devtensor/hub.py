"""Models and weights that are on this machine already: torch.hub. devtensor downloads nothing."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import os
import re
import sys
from types import ModuleType
from typing import Any

from devtensor import _C
from devtensor._files.save_load import load as _load
from devtensor._types import Path

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]


def __dir__() -> builtins.list[str]:
    return __all__


HASH_REGEX = re.compile(r"-([a-f0-9]*)\.")
_SHOWN = {"tqdm": "tqdm", "urlparse": "urllib.parse"}
_chosen: str | None = None


def __getattr__(name: str) -> Any:
    """Other libraries' functions that PyTorch's module shows too."""
    if name in _SHOWN:
        return getattr(importlib.import_module(_SHOWN[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _get_torch_home() -> str:
    cache = os.path.join(os.getenv("XDG_CACHE_HOME", "~/.cache"), "torch")
    return os.path.expanduser(os.getenv("TORCH_HOME", cache))


def get_dir() -> str:
    """The folder where files are looked for: that of set_dir, else $TORCH_HOME/hub, else ~/.cache/torch/hub.

    >>> folder = dt.hub.get_dir()
    """
    if _chosen is not None:
        return _chosen
    return os.path.join(_get_torch_home(), "hub")


def set_dir(d: Path) -> None:
    """Look for files in the folder d.

    >>> dt.hub.set_dir(dt.hub.get_dir())
    """
    global _chosen
    _chosen = os.path.expanduser(os.fspath(d))


def load_state_dict_from_url(
    url: str,
    model_dir: str | None = None,
    map_location: Any = None,
    progress: bool = True,
    check_hash: bool = False,
    file_name: str | None = None,
    weights_only: bool = True,
) -> Any:
    """What load reads from the file of a URL, which must be on this machine: in model_dir, or get_dir()/checkpoints.

    The file has the name that the URL ends with, or file_name. check_hash compares the beginning of its SHA-256 with
    that in the name. progress is accepted. weights_only is that of load; PyTorch's default is False. Raises
    RuntimeError, with the place for the file, where it is not there, and for another hash; else what load raises.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> dt.save({"bias": dt.ones(1)}, f"{folder}/net.pth")
    >>> dt.hub.load_state_dict_from_url("https://example.com/net.pth", folder)
    {'bias': DeviceArray([1.], device='cpu', dtype=float32)}
    """
    op = "load_state_dict_from_url"
    from urllib.parse import urlparse  # which takes long to import

    name = file_name or os.path.basename(urlparse(_C._need_str(op, "url", url)).path)
    path = os.path.join(os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir, name)
    if not os.path.isfile(path):
        raise RuntimeError(f"{op}(): devtensor downloads nothing. Put the file of {url} at {path}")
    if _C._need_bool(op, "check_hash", check_hash):
        found = HASH_REGEX.search(name)
        with open(path, "rb") as file:
            import hashlib

            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if found is not None and not digest.startswith(found.group(1)):
            raise RuntimeError(f'invalid hash value (expected "{found.group(1)}", got "{digest}") of {path}')
    return _load(path, map_location, weights_only=weights_only)


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raises RuntimeError if there is no file dst yet: devtensor downloads nothing. hash_prefix, progress: accepted.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     dt.hub.download_url_to_file("https://example.com/net.pth", file.name)
    """
    op = "download_url_to_file"
    if not os.path.isfile(_C._need_str(op, "dst", dst)):
        raise RuntimeError(
            f"{op}(): devtensor downloads nothing. Put the file of {_C._need_str(op, 'url', url)} at {dst}"
        )


def _folder(op: str, repository: str, source: str) -> str:
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "local":
        return os.path.expanduser(_C._need_str(op, "repo_or_dir", repository))
    name, _, branch = _C._need_str(op, "repo_or_dir", repository).partition(":")
    owner, _, project = name.partition("/")
    branches = [branch] if branch else ["main", "master"]
    folders = [os.path.join(get_dir(), f"{owner}_{project}_{part.replace('/', '_')}") for part in branches]
    for folder in folders:
        if os.path.isdir(folder):
            return folder
    raise RuntimeError(f"{op}(): devtensor downloads nothing. Put the files of {repository} into {folders[0]}")


def _entries(op: str, repository: str, source: str) -> ModuleType:
    """The hubconf.py of a repository, run: it is a program of the user's choice."""
    folder = _folder(op, repository, source)
    path = os.path.join(folder, "hubconf.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{op}(): there is no {path}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{op}(): {path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def _entry(op: str, module: ModuleType, name: str) -> Any:
    entry = getattr(module, _C._need_str(op, "model", name), None)
    if not callable(entry):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return entry


def load(
    repo_or_dir: str,
    model: str,
    *args: Any,
    source: str = "github",
    trust_repo: Any = "check",
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs: Any,
) -> Any:
    """What the function model in the hubconf.py of a repository gives for the arguments.

    The repository is a folder (source="local"), or one of GitHub that is in get_dir() already. Its program is run. The
    other options are accepted. Raises RuntimeError, with the place for the files, where they are not there.

    >>> import pathlib, tempfile
    >>> before, folder = dt.hub.get_dir(), pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "me_nets_main").mkdir()
    >>> size = (folder / "me_nets_main" / "hubconf.py").write_text("def net(n):\\n    'A net.'\\n    return n")
    >>> dt.hub.set_dir(folder)
    >>> dt.hub.load("me/nets", "net", 3)
    3
    >>> dt.hub.set_dir(before)
    """
    return _entry("load", _entries("load", repo_or_dir, source), model)(*args, **kwargs)


def list(
    github: str,
    force_reload: bool = False,
    skip_validation: bool = False,
    trust_repo: Any = "check",
    verbose: bool = True,
) -> builtins.list[str]:
    """The functions in the hubconf.py of a repository in get_dir().

    >>> import pathlib, tempfile
    >>> before, folder = dt.hub.get_dir(), pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "me_nets_main").mkdir()
    >>> size = (folder / "me_nets_main" / "hubconf.py").write_text("def net(n):\\n    'A net.'\\n    return n")
    >>> dt.hub.set_dir(folder)
    >>> dt.hub.list("me/nets")
    ['net']
    >>> dt.hub.set_dir(before)
    """
    module = _entries("list", github, "github")
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(
    github: str, model: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: Any = "check"
) -> str | None:
    """The docstring of a function in the hubconf.py of a repository in get_dir().

    >>> import pathlib, tempfile
    >>> before, folder = dt.hub.get_dir(), pathlib.Path(tempfile.mkdtemp())
    >>> (folder / "me_nets_main").mkdir()
    >>> size = (folder / "me_nets_main" / "hubconf.py").write_text("def net(n):\\n    'A net.'\\n    return n")
    >>> dt.hub.set_dir(folder)
    >>> dt.hub.help("me/nets", "net")
    'A net.'
    >>> dt.hub.set_dir(before)
    """
    text: str | None = _entry("help", _entries("help", github, "github"), model).__doc__
    return text
