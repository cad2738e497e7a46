from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from cogwork.cli.main import main
from cogwork.config.schema.machine import MachineConfig


def add_key(file: Path, *options: str) -> int:
    return main(["auth", "add-key", str(file), *options])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "machine.json"
    file.write_text('{"components": [], "network": {"bind_address": ":9000"}}')
    return file


def test_key_is_added_and_its_use_is_printed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.chmod(0o644)
    assert add_key(file, "--role", "operator") == 0
    config: dict[str, Any] = json.loads(file.read_text())
    (handler,) = MachineConfig.model_validate(config).auth.handlers
    ((key_id, key),) = handler.api_keys.items()
    assert handler.roles == {key_id: "operator"}
    out = capsys.readouterr().out
    assert f'RobotClient.Options.with_api_key("{key}", "{key_id}")' in out
    assert 'RobotClient.at_address("localhost:9000", options)' in out
    assert "insecure = True" in out
    assert f"COGWORK_API_KEY_ID={key_id}" in out
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_keys_add_up(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for role in ("owner", "viewer", "viewer"):
        assert add_key(file, "--role", role) == 0
    capsys.readouterr()
    assert add_key(file, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    (handler,) = MachineConfig.model_validate(json.loads(file.read_text())).auth.handlers
    assert len(handler.api_keys) == 4
    assert sorted(handler.roles.values()) == ["viewer", "viewer"]
    assert handler.api_keys[printed["id"]] == printed["key"]


def test_machine_with_tls_is_dialed_with_tls(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('{"network": {"tls_cert_file": "a", "tls_key_file": "b"}}')
    assert add_key(file) == 0
    assert "insecure" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot read"),
        ("{ // comment\n}", "only plain JSON can be edited"),
        ("[]", "expected an object"),
        ('{"auth": []}', "unexpected form"),
        ('{"auth": {"handlers": [{"type": "api-key"}]}}', "unexpected form"),
    ],
)
def test_file_that_cannot_be_edited_is_left_alone(
    file: Path, text: str | None, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
    assert add_key(file) == 2
    assert error in capsys.readouterr().err
    assert text is None or file.read_text() == text
