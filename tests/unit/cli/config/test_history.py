"""`cogwork config history`, `show` and `restore` as a person or a program runs them."""

from __future__ import annotations

import getpass
import json
import os
import pty
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cogwork.cli.main import main
from cogwork.config.source.config_history import ConfigHistory, config_history_for
from cogwork.config.source.history_entry import Author, AuthorKind

FIRST = '{\n\t"debug": true\n}\n'
SECOND = """{
  "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["id1"], "id1": "canary-key"}}]},
  "components": [
    {"name": "cam", "attributes": {"url": "rtsp://admin:canary-pass@cam/"}}
  ]
}
"""


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfigHistory:
    """The history of machine.json, which has the second of two texts."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path / "home"))
    found = config_history_for(tmp_path / "home", tmp_path / "machine.json")
    now = time.time()
    found.record(FIRST, "r1", now - 3 * 86400)
    found.announce(SECOND, Author(AuthorKind.PAGE, "key\x1b[2J"), now - 300)
    found.record(SECOND, "r2", now - 300)
    file = tmp_path / "machine.json"
    file.write_text(SECOND)
    file.chmod(0o640)
    return found


@pytest.mark.usefixtures("history")
def test_history_lists_the_newest_entry_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "history"]) == 0
    head, newest, oldest = capsys.readouterr().out.splitlines()
    assert head.split() == ["ID", "AGE", "REVISION", "AUTHOR", "CHANGE"]
    assert newest.split() == [
        *("2", "5m", "r2", "page", "by", "key\\x1b[2J"),
        *("added", "auth,", "cam;", "removed", "debug"),
    ]
    assert oldest.split() == ["1", "3d", "r1", "file", "first", "entry"]


@pytest.mark.usefixtures("history")
def test_history_as_json_has_no_texts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "history", "--json", "--config", "./machine.json"]) == 0
    out = capsys.readouterr().out
    newest, oldest = json.loads(out)
    assert newest["author"] == {"kind": "page", "name": "key\x1b[2J", "restored": None}
    assert (oldest["id"], oldest["revision"], oldest["size"]) == (1, "r1", len(FIRST))
    assert "canary" not in out


@pytest.mark.usefixtures("history")
def test_show_masks_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "2"]) == 0
    out = capsys.readouterr().out
    assert '"name": "cam"' in out
    assert "canary" not in out


@pytest.mark.usefixtures("history")
def test_show_as_json_masks_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "show", "2", "--json"]) == 0
    entry = json.loads(capsys.readouterr().out)
    assert (entry["id"], '"name": "cam"' in entry["text"]) == (2, True)
    assert "canary" not in entry["text"]


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(("entry", "text"), [("1", FIRST), ("2", SECOND)])
def test_show_reveals_the_exact_text_on_request(
    entry: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "show", entry, "--reveal-secrets"]) == 0
    assert capsys.readouterr().out == text


@pytest.mark.parametrize("command", ["show", "restore"])
@pytest.mark.parametrize("entry", ["3", "0", "x", "1.config", "9" * 5000, "²"])
@pytest.mark.usefixtures("history")
def test_unknown_entry_is_an_error(
    command: str, entry: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", command, entry]) == 2
    expected = f'no entry "{entry}"; list them with: cogwork config history\n'
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("command", [["history"], ["show", "1"], ["restore", "1"]])
def test_missing_history_is_an_error_with_the_next_step(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path))
    assert main(["config", *command, "--config", "other.json"]) == 2
    assert capsys.readouterr().err == (
        f"{tmp_path} has no history of other.json; name the file of the server with --config, set "
        "COGWORK_HOME to the value that the server uses, or start the server once\n"
    )


def test_damaged_entry_is_reported_and_skipped(
    history: ConfigHistory, capsys: pytest.CaptureFixture[str]
) -> None:
    (history.directory / "2.config").write_text("no")
    assert main(["config", "history"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert len(err.splitlines()) == 1
    assert "2.config" in err


def test_restore_writes_the_text_and_names_its_author(
    history: ConfigHistory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "machine.json"
    assert main(["config", "restore", "1", "--yes"]) == 0
    out = capsys.readouterr().out
    assert '+   "debug": true' in out
    assert out.endswith("restored entry 1 to machine.json; a running machine reloads it\n")
    assert "canary" not in out
    assert file.read_text() == FIRST
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    history.record(FIRST, "r3", time.time())  # as the running machine does
    author = next(history.entries()).author
    assert author == Author(AuthorKind.RESTORE, getpass.getuser(), 1)


@pytest.mark.usefixtures("history")
def test_restore_of_the_current_text_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "restore", "2"]) == 0
    assert capsys.readouterr().out == "machine.json already has the text of entry 2\n"


@pytest.mark.usefixtures("history")
def test_restore_writes_a_missing_file_for_its_owner_only(tmp_path: Path) -> None:
    (tmp_path / "machine.json").unlink()
    assert main(["config", "restore", "2", "-y"]) == 0
    assert (tmp_path / "machine.json").read_text() == SECOND
    assert stat.S_IMODE((tmp_path / "machine.json").stat().st_mode) == 0o600


@pytest.mark.usefixtures("history")
def test_restore_follows_a_link(tmp_path: Path) -> None:
    file, target = tmp_path / "machine.json", tmp_path / "real.json"
    file.rename(target)
    file.symlink_to(target)
    assert main(["config", "restore", "1", "-y"]) == 0
    assert file.is_symlink()
    assert target.read_text() == FIRST


@pytest.mark.usefixtures("history")
def test_restore_without_a_terminal_needs_yes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "restore", "1"]) == 2
    assert capsys.readouterr().err == (
        "cannot ask without a terminal; to continue without a question, add -y\n"
    )
    assert (tmp_path / "machine.json").read_text() == SECOND


@pytest.mark.usefixtures("history")
def test_restore_to_a_directory_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "machine.json").unlink()
    (tmp_path / "machine.json").mkdir()
    assert main(["config", "restore", "1", "-y"]) == 2
    assert capsys.readouterr().err == "machine.json is not a regular file; check the path\n"


@pytest.mark.usefixtures("history")
@pytest.mark.parametrize(("answer", "code", "text"), [("y", 0, FIRST), ("", 1, SECOND)])
def test_restore_asks_on_a_terminal(answer: str, code: int, text: str, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "cogwork.cli.main", "config", "restore", "1"],
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            os.write(ours, f"{answer}\n".encode())
            out, _ = process.communicate(timeout=30)
    finally:
        os.close(ours)
        os.close(theirs)
    assert b"Restore entry 1 to machine.json? [y/N]" in out
    assert process.returncode == code
    assert (tmp_path / "machine.json").read_text() == text
