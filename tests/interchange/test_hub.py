"""dt.hub: files that are on this machine; nothing is downloaded."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import devtensor as dt
from devtensor import hub


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(hub, "_chosen", None)
    return tmp_path


def test_weights(home: Path) -> None:
    url = "https://example.com/models/net-0123abcd.pth?x=1"
    place = home / "hub" / "checkpoints" / "net-0123abcd.pth"
    with pytest.raises(
        RuntimeError, match=r"devtensor downloads nothing\. Put the file of https://example.* at "
    ) as caught:
        hub.load_state_dict_from_url(url)
    assert str(caught.value).endswith(str(place))
    place.parent.mkdir(parents=True)
    dt.save({"a": dt.ones(2)}, place)
    assert hub.load_state_dict_from_url(url, progress=False, map_location="cpu")["a"].tolist() == [1, 1]
    assert list(dt.utils.model_zoo.load_url(url)) == ["a"]
    with pytest.raises(RuntimeError, match='invalid hash value .expected "0123abcd"'):
        hub.load_state_dict_from_url(url, check_hash=True)
    digest = hashlib.sha256(place.read_bytes()).hexdigest()
    right = place.rename(place.with_name(f"net-{digest[:8]}.pth"))
    assert list(hub.load_state_dict_from_url(f"https://example.com/{right.name}", check_hash=True)) == ["a"]
    assert list(hub.load_state_dict_from_url("x", str(right.parent), file_name=right.name)) == ["a"]


def test_repositories(home: Path) -> None:
    with pytest.raises(RuntimeError, match="Put the files of someone/nets into .*someone_nets_main"):
        hub.load("someone/nets", "net")
    folder = home / "hub" / "someone_nets_v1"
    folder.mkdir(parents=True)
    (folder / "parts.py").write_text("factor = 3\n")
    text = 'from parts import factor\ndef net(n, pretrained=False):\n    "A net."\n    return n * factor, pretrained\n'
    (folder / "hubconf.py").write_text(text)
    assert hub.load("someone/nets:v1", "net", 2, pretrained=True, trust_repo=True) == (6, True)
    assert hub.load(str(folder), "net", 1, source="local") == (3, False)
    assert hub.list("someone/nets:v1") == ["net"] and hub.help("someone/nets:v1", "net") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load("someone/nets:v1", "other")
    with pytest.raises(ValueError, match="Unknown source"):
        hub.load("someone/nets:v1", "net", source="gitlab")


def test_the_folder(home: Path) -> None:
    assert hub.get_dir() == str(home / "hub")
    hub.set_dir(home / "other")
    assert hub.get_dir() == str(home / "other")
