from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from cogwork.config.check.diagnostic_collector import CheckCancelled
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.source.config_editor import (
    CannotWrite,
    ConfigEditor,
    Edit,
    StaleEdit,
    WouldBeRefused,
)
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.text.file import Unreadable
from cogwork.core.clock import SystemClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.logs.redactor import Redactor
from cogwork.resource.registry import Registry


def config(*names: str, readings: int = 1) -> str:
    attributes = {"readings": {"value": readings}}
    sensor = {"api": "rdk:component:sensor", "model": "fake", "attributes": attributes}
    return json.dumps({"components": [{"name": name, **sensor} for name in names]})


RUNNING = config("a", "b")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "machine.json"
    path.write_text(RUNNING)
    return path


@pytest.fixture
def editor(file: Path) -> ConfigEditor:
    home = file.parent / "home"
    context = LoadContext(Registry(builtin_models()), home, {}).in_directory_of(file)
    running = load(RUNNING, context)
    history = ConfigHistory(home / "history")
    return ConfigEditor(file, history, context, lambda: running, str, SystemClock())


def never() -> bool:
    return False


def save(editor: ConfigEditor, text: str) -> str:
    return editor.save(Edit(text, editor.read().checksum, None), "key", never)


def test_preview_compares_with_the_running_configuration(editor: ConfigEditor) -> None:
    preview = editor.preview(config("a", "c", readings=2), never)
    steps = {step.resource.rpartition("/")[2]: (step.action, step.reason) for step in preview.plan}
    assert steps == {
        "b": ("remove", "it is no longer configured"),
        "a": ("reconfigure", "its attributes changed (attributes.readings)"),
        "c": ("build", "it is not running yet"),
    }
    assert (preview.diagnostics, preview.is_refused) == ([], False)


def test_preview_of_the_running_text_plans_nothing(editor: ConfigEditor) -> None:
    preview = editor.preview(RUNNING, never)
    assert (preview.plan, preview.settings) == ([], [])


def test_preview_finds_files_beside_the_configuration_file(
    editor: ConfigEditor, file: Path
) -> None:
    attributes = {"color_image_file_path": "belt.png"}
    camera = {"api": "rdk:component:camera", "model": "image_file", "attributes": attributes}
    text = json.dumps({"components": [{"name": "film", **camera}]})
    (found,) = editor.preview(text, never).diagnostics
    assert f"tried {file.parent}/belt.png and " in found["message"]
    (file.parent / "belt.png").touch()
    assert editor.preview(text, never).diagnostics == []


def test_preview_of_an_unreadable_text_is_refused(editor: ConfigEditor) -> None:
    preview = editor.preview(Unreadable("not UTF-8 text"), never)
    assert preview.is_refused
    assert preview.diagnostics[0]["message"] == "not UTF-8 text"


def test_full_disk_keeps_the_file_and_is_reported_in_a_sentence(
    editor: ConfigEditor, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as full:
        full.setattr(os, "write", fill)
        with pytest.raises(CannotWrite) as caught:
            save(editor, config("c"))
    assert str(caught.value) == (
        f"cannot write {file}: No space left on device: free some disk space; "
        "fix that and save again"
    )
    assert file.read_text() == RUNNING
    assert [path.name for path in file.parent.iterdir() if path.suffix == ".tmp"] == []


def test_history_that_cannot_be_written_does_not_prevent_a_save(
    editor: ConfigEditor, file: Path
) -> None:
    editor.history.directory.parent.write_text("not a directory")
    save(editor, config("c"))
    assert file.read_text() == config("c")


def test_unchanged_text_is_not_written(editor: ConfigEditor, file: Path) -> None:
    before = file.stat()
    assert save(editor, RUNNING) == editor.read().checksum
    assert file.stat().st_ino == before.st_ino
    assert not editor.history.directory.exists()


def test_refused_and_stale_edits_are_not_written(editor: ConfigEditor, file: Path) -> None:
    with pytest.raises(WouldBeRefused):
        save(editor, "{")
    with pytest.raises(StaleEdit):
        editor.save(Edit(config("c"), "0", None), "key", never)
    with pytest.raises(CheckCancelled):
        editor.save(Edit(config("c"), editor.read().checksum, None), "key", lambda: True)
    assert file.read_text() == RUNNING


def test_restore_is_attributed_only_with_the_text_of_the_entry(editor: ConfigEditor) -> None:
    editor.history.record(RUNNING, "1", 1.0)
    for text, kind in ((config("c"), "page"), (RUNNING, "restore")):
        editor.save(Edit(text, editor.read().checksum, 1), "key", never)
        editor.history.record(text, "2", 2.0)
        author = next(editor.history.entries()).author
        assert (author.kind, author.name) == (kind, "key")


def test_save_follows_a_link_and_keeps_the_mode(editor: ConfigEditor, file: Path) -> None:
    target = file.with_name("real.json")
    file.rename(target)
    target.chmod(0o644)
    file.symlink_to(target)
    save(editor, config("c"))
    assert file.is_symlink()
    assert target.read_text() == config("c")
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_file_in_a_directory_without_write_permission_is_not_editable(
    editor: ConfigEditor, file: Path
) -> None:
    file.parent.chmod(0o500)
    try:
        assert "the server may not write to" in editor.read().obstacle
    finally:
        file.parent.chmod(0o700)


def test_configuration_of_a_cloud_is_shown_without_secrets_and_not_edited(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    cloud = {"id": "part", "secret": "hidden-one", "app_address": "https://fleet.example.org"}
    file.write_text(json.dumps({"cloud": cloud}))
    context = LoadContext(Registry(builtin_models()), tmp_path, {})
    running = load(json.dumps({"cloud": cloud, "debug": True}), context)
    history = ConfigHistory(tmp_path / "history")
    redactor = Redactor()
    redactor.add_secrets(running.secrets)
    editor = ConfigEditor(file, history, context, lambda: running, redactor.redact, SystemClock())
    shown = editor.read()
    assert '"debug": true' in shown.text
    assert "hidden-one" not in shown.text
    assert shown.obstacle.startswith("the configuration of this machine comes from the cloud at")
    with pytest.raises(CannotWrite, match="edit it there: cogwork fleet config edit"):
        save(editor, "{}")
    assert json.loads(file.read_text()) == {"cloud": cloud}
