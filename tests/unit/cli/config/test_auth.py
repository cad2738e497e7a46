from __future__ import annotations

import json
import stat
import textwrap
from pathlib import Path
from typing import Any

import pytest

from cogwork.cli.demo.run import DemoEngine, write_config
from cogwork.cli.main import main
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.text.json_reader import read_json


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
    assert f"export COGWORK_API_KEY_ID={key_id} COGWORK_API_KEY={key}\n" in out
    assert 'RobotClient.at_address("localhost:9000", options)' in out
    assert "insecure = True" in out
    program = textwrap.dedent(out[out.index("  import asyncio") :])
    compile(program, "program", "exec")
    assert key not in program
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
    out = capsys.readouterr().out
    assert "insecure" not in out
    assert "disable_webrtc = True" in out


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (None, "cannot read"),
        ("{ 1 }", "not valid JSON; run: cogwork config check"),
        ("[]", "expected an object"),
        ('{"auth": []}', "unexpected form"),
        ('{"auth": {"handlers": [{"type": "api-key"}]}}', "unexpected form"),
        ('{"auth": {"handlers": ${HANDLERS}}}', "unexpected form"),
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


COMMENTED = """// The line at the door.
{
  "network": {"bind_address": "${ADDRESS:-:9000}", "no_tls": ${PLAIN:-true}},
  /* the camera */
  "components": [],
}
"""


def keys_of(file: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, str]]:
    capsys.readouterr()
    assert main(["auth", "list", str(file), "--json"]) == 0
    found: list[dict[str, str]] = json.loads(capsys.readouterr().out)
    return found


def remove(file: Path, key: str, *options: str) -> int:
    return main(["auth", "remove", str(file), key, *options])


def test_comments_and_format_of_the_file_are_kept(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(COMMENTED)
    assert add_key(file, "--name", "laptop", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["address"] == "localhost:9000"
    text = file.read_text()
    handler = f"""\
  "auth": {{
    "handlers": [
      {{
        "type": "api-key",
        "config": {{
          "keys": [
            "{printed["id"]}"
          ],
          "{printed["id"]}": "{printed["key"]}"
        }},
        "names": {{
          "{printed["id"]}": "laptop"
        }}
      }}
    ]
  }},
}}
"""
    assert text == COMMENTED.removesuffix("}\n") + handler
    assert add_key(file, "--role", "viewer", "--name", "display") == 0
    assert file.read_text().startswith(COMMENTED.removesuffix("}\n"))
    assert [(each["name"], each["role"]) for each in keys_of(file, capsys)] == [
        ("laptop", "owner"),
        ("display", "viewer"),
    ]
    assert remove(file, "display", "-y") == 0
    assert file.read_text() == text


def test_keys_are_found_in_any_letter_case(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    handler = {"Type": "api-key", "Config": {"keys": ["a"], "a": "letmein"}, "Names": {"a": "pi"}}
    written = json.dumps({"Network": {"BIND_ADDRESS": ":9000"}, "Auth": {"Handlers": [handler]}})
    file.write_text(written)
    assert add_key(file, "--role", "viewer", "--name", "display", "--json") == 0
    assert json.loads(capsys.readouterr().out)["address"] == "localhost:9000"
    assert [*json.loads(file.read_text())] == ["Network", "Auth"], "no second section"
    assert main(["config", "check", str(file)]) == 0
    assert [(each["name"], each["role"]) for each in keys_of(file, capsys)] == [
        ("pi", "owner"),
        ("display", "viewer"),
    ]
    assert remove(file, "pi", "-y") == 0
    assert "letmein" not in file.read_text()
    assert [each["name"] for each in keys_of(file, capsys)] == ["display"]


def test_edit_that_machines_would_refuse_is_not_made(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '{"auth": {"handlers": []}, "Auth": {"handlers": []}}'
    file.write_text(text)
    assert add_key(file) == 2
    assert 'the machine would refuse the result ("Auth" is ignored' in capsys.readouterr().err
    assert file.read_text() == text


def test_key_is_added_to_the_file_of_a_demo(tmp_path: Path) -> None:
    file = write_config(tmp_path, DemoEngine("", "onnx_cpu", "conveyor.onnx"), "localhost:8080")
    before = file.read_text()
    assert add_key(file, "--name", "laptop") == 0
    after = file.read_text()
    assert after.startswith(before.rstrip().removesuffix("}").rstrip())
    handlers = MachineConfig.model_validate(read_json(after).value).auth.handlers
    assert [*handlers[0].names.values()] == ["laptop"]


def test_list_names_keys_and_never_shows_them(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["auth", "list", str(file)]) == 0
    assert "has no API keys; add one with: cogwork auth add-key" in capsys.readouterr().out
    assert add_key(file, "--name", "laptop", "--role", "viewer", "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert main(["auth", "list", str(file)]) == 0
    out = capsys.readouterr().out
    assert out.split() == ["NAME", "ROLE", "ID", "laptop", "viewer", printed["id"]]
    assert keys_of(file, capsys) == [{"id": printed["id"], "name": "laptop", "role": "viewer"}]


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 61])
def test_name_must_be_printable(file: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = file.read_text()
    assert add_key(file, "--name", name) == 2
    assert "1 to 60 printable characters" in capsys.readouterr().err
    assert file.read_text() == before


def test_name_is_given_to_one_key_only(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add_key(file, "--name", "laptop") == 0
    before = file.read_text()
    assert add_key(file, "--name", "laptop") == 2
    assert 'has a key named "laptop"; choose another name' in capsys.readouterr().err
    assert file.read_text() == before


def test_key_is_removed_by_id_and_by_name(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.chmod(0o644)
    for name in ("one", "two", "three"):
        assert add_key(file, "--name", name, "--role", "operator") == 0
    assert add_key(file) == 0
    ids = [each["id"] for each in keys_of(file, capsys)]
    assert remove(file, ids[1], "--yes") == 0
    assert f"removed the key two ({ids[1]}) from {file}" in capsys.readouterr().out
    assert remove(file, "one", "-y") == 0
    assert [each["id"] for each in keys_of(file, capsys)] == ids[2:]
    text = file.read_text()
    assert not any(each in text for each in ids[:2])
    (handler,) = MachineConfig.model_validate(json.loads(text)).auth.handlers
    assert (handler.names, handler.roles) == ({ids[2]: "three"}, {ids[2]: "operator"})
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_removal_without_a_terminal_needs_yes(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add_key(file, "--name", "one") == 0
    assert add_key(file, "--name", "two") == 0
    before = file.read_text()
    assert remove(file, "one") == 2
    assert "add -y" in capsys.readouterr().err
    assert file.read_text() == before


def test_ambiguous_and_unknown_names_are_refused(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = {
        "type": "api-key",
        "config": {"keys": ["a", "b", "c"], "a": "1", "b": "2", "c": "3"},
        "names": {"a": "tablet", "b": "tablet"},
    }
    file.write_text(json.dumps({"auth": {"handlers": [handler]}}))
    assert remove(file, "tablet", "-y") == 2
    assert '"tablet" is the name of 2 keys; use the ID' in capsys.readouterr().err
    assert remove(file, "tablett", "-y") == 2
    assert 'there is no key "tablett"; did you mean "tablet"?' in capsys.readouterr().err
    assert remove(file, "b", "-y") == 0
    assert [each["id"] for each in keys_of(file, capsys)] == ["a", "c"]


def test_removal_of_the_last_owner_is_announced(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert add_key(file, "--name", "boss") == 0
    assert add_key(file, "--name", "display", "--role", "viewer") == 0
    assert remove(file, "boss", "-y") == 0
    assert "warning: no key of an owner is left" in capsys.readouterr().err


def test_only_login_is_not_removed(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert add_key(file, "--name", "boss") == 0
    before = file.read_text()
    assert remove(file, "boss", "-y") == 2
    assert "without it, no login would be required; first add another" in capsys.readouterr().err
    assert file.read_text() == before


def test_last_key_beside_another_login_is_removed(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = {"type": "robot-location-secret", "config": {"secret": "s"}}
    file.write_text(json.dumps({"auth": {"handlers": [secret]}}))
    assert add_key(file, "--name", "boss") == 0
    assert remove(file, "boss", "-y") == 0
    assert json.loads(file.read_text()) == {"auth": {"handlers": [secret]}}
