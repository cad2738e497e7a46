"""Tests read no file from outside of the repository, but for what `make models` fetches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from scripts.models import cache
from tests.support.models import real_models
from tests.support.paths import REPOSITORY

FOLDERS = ("benchmarks", "docs", "examples", "packaging", "scripts", "src", "tests")
TEXTS = {".md", ".py", ".toml", ".json", ".sh"}
OUTSIDE = re.compile(r"shared\W+models", re.ASCII)


def test_nothing_reads_models_beside_the_repository() -> None:
    files = [REPOSITORY / "Makefile", REPOSITORY / ".ci" / "run", *REPOSITORY.glob("*.md")]
    for folder in FOLDERS:
        files += [each for each in (REPOSITORY / folder).rglob("*") if each.suffix in TEXTS]
    assert len(files) > 1000
    found = [
        str(each.relative_to(REPOSITORY)) for each in files if OUTSIDE.search(each.read_text())
    ]
    assert found == []


class TestAMissingFile:
    @pytest.fixture(autouse=True)
    def nothing_here(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv(cache.VARIABLE, str(tmp_path))

    def test_skips_the_test(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CI", raising=False)
        with pytest.raises(pytest.skip.Exception, match=r'^a is not here: run "make models"$'):
            real_models.model_path("a")

    def test_fails_the_test_in_ci(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CI", "true")
        with pytest.raises(
            pytest.fail.Exception, match=r'^photos/a is not here: run "make models"'
        ):
            real_models.photo_path("a")


def test_a_file_that_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path))
    assert not real_models.is_here("a")
    (tmp_path / "a").touch()
    assert real_models.is_here("a")
    assert real_models.model_path("a") == tmp_path / "a"
