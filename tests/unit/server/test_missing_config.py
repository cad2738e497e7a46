from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.server.main import main
from cogwork.server.missing_config import describe_missing_file, is_missing


def test_missing_file_is_explained(tmp_path: Path) -> None:
    assert describe_missing_file(Path("m.json"), tmp_path / "viam.json") == (
        "m.json does not exist; check the path given with -config, or create the file"
    )


def test_configuration_of_the_existing_product_is_offered(tmp_path: Path) -> None:
    existing = tmp_path / "viam.json"
    existing.write_text("{}")
    assert describe_missing_file(Path("my machine.json"), existing) == (
        f"my machine.json does not exist; to make it from {existing}, run: "
        f"cogwork config migrate {existing} -o 'my machine.json'"
    )


def test_start_without_a_configuration_offers_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    existing = tmp_path / "viam.json"
    assert main([], viam_config=existing) == 2
    assert capsys.readouterr().err.splitlines() == [
        "cogwork-server: missing required option: -config FILE",
        "for help, run: cogwork-server -h",
    ]
    existing.write_text("{}")
    assert main([], viam_config=existing) == 2
    assert capsys.readouterr().err.splitlines() == [
        "cogwork-server: missing required option: -config FILE",
        f"to make a configuration from {existing}, run: "
        f"cogwork config migrate {existing} -o machine.json",
        "for help, run: cogwork-server -h",
    ]
    assert main(["-port", "x"], viam_config=existing) == 2
    assert "migrate" not in capsys.readouterr().err


def test_file_that_cannot_be_reached_is_not_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert is_missing(tmp_path / "none.json")
    assert not is_missing(tmp_path / "file" / "none.json")
