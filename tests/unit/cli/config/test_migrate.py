from __future__ import annotations

import io
import json
import stat
import sys
from pathlib import Path

import pytest

from cogwork.cli.main import main

OLD = """\
{
  "components": [
    // the belt
    {"name": "belt", "type": "motor", "model": "fake"},
    {"name": "eye", "type": "camera", "model": "unheard-of"}
  ],
  "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["id"], "id": "hunter22"}}]}
}
"""
NEW = OLD.replace('"type": "motor"', '"api": "rdk:component:motor"').replace(
    '"type": "camera"', '"api": "rdk:component:camera"'
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = Path("machine.json")
    file.write_text(OLD)
    return file


def migrate(file: Path | str, *options: str) -> int:
    return main(["config", "migrate", str(file), *options])


def test_copy_is_written_beside_the_file_and_reported(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert migrate(file) == 1  # because of the unknown model
    copy = Path("machine.migrated.json")
    assert (file.read_text(), copy.read_text()) == (OLD, NEW)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    changes, left = capsys.readouterr().out.split("\nleft for you:\n")
    assert changes == (
        'machine.json:4: replaced "type": "motor" by "api": "rdk:component:motor"; this is the '
        "current form\n"
        'machine.json:5: replaced "type": "camera" by "api": "rdk:component:camera"; this is the '
        "current form\n"
        "wrote machine.migrated.json: 2 changes; what runs is the same\n"
        "to run it: cogwork-server -config machine.migrated.json\n"
    )
    assert left.startswith('machine.migrated.json:5: unknown model "unheard-of"')


def test_second_run_is_the_same(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate(file) == 1
    first = capsys.readouterr()
    assert migrate(file) == 1
    assert capsys.readouterr() == first
    assert migrate("machine.migrated.json") == 1
    assert "machine.migrated.json needs no changes" in capsys.readouterr().out
    assert sorted(each.name for each in Path().iterdir()) == [
        "machine.json",
        "machine.migrated.json",
    ]


def test_different_file_is_not_overwritten_unasked(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Path("other.json")
    copy.write_text("{}")
    assert migrate(file, "-o", "other.json") == 2
    assert "add -y" in capsys.readouterr().err
    assert copy.read_text() == "{}"
    assert migrate(file, "-o", "other.json", "-y") == 1
    assert "overwriting other.json" in capsys.readouterr().err
    assert copy.read_text() == NEW


def test_file_itself_is_not_changed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("link.json").symlink_to(file)
    for output in ("machine.json", "./machine.json", "link.json"):
        assert migrate(file, "-o", output, "-y") == 2
        assert "machine.json is not changed in place" in capsys.readouterr().err
    assert file.read_text() == OLD


def test_copy_goes_to_standard_output(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert migrate(file, "-o", "-") == 1
    shown = capsys.readouterr()
    assert shown.out == NEW
    assert "machine.json:4: replaced" in shown.err
    assert "hunter22" not in shown.err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OLD.encode())))
    assert migrate("-") == 1
    assert capsys.readouterr().out == NEW
    assert [each.name for each in Path().iterdir()] == ["machine.json"]


def test_report_as_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate(file, "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["file"], printed["output"]) == ("machine.json", "machine.migrated.json")
    assert printed["changes"][0] == {
        "line": 4,
        "change": "replaced",
        "old": '"type": "motor"',
        "new": '"api": "rdk:component:motor"',
        "reason": "this is the current form",
    }
    assert [each["line"] for each in printed["left"]] == [5]
    assert migrate(file, "--json", "-o", "-") == 2
    assert "add -o FILE" in capsys.readouterr().err


def test_valid_file_needs_no_copy(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("{}")
    assert migrate(file) == 0
    assert capsys.readouterr().out == "machine.json needs no changes; use it as it is\n"
    assert [each.name for each in Path().iterdir()] == ["machine.json"]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot read machine.json: the file does not exist"),
        ("{ 1 }", "machine.json cannot be migrated; fix it first"),
        ('{"debug": ${NOT_SET_HERE}}', "the environment variable NOT_SET_HERE is not set"),
    ],
)
def test_file_that_cannot_be_read_is_refused(
    file: Path, text: str | None, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    assert migrate(file) == 2
    assert error in capsys.readouterr().err
    assert not Path("machine.migrated.json").exists()


def test_copy_is_written_through_a_symbolic_link(file: Path) -> None:
    Path("etc").mkdir()
    link, target = Path("link.json"), Path("etc/machine.json")
    link.symlink_to(target)
    assert migrate(file, "-o", str(link)) == 1
    assert (link.is_symlink(), target.read_text()) == (True, NEW)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


def test_place_that_cannot_be_written_is_named(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("directory").mkdir()
    assert migrate(file, "-o", "directory", "-y") == 2
    assert "cannot write directory: Is a directory; name another file with -o" in (
        capsys.readouterr().err
    )
