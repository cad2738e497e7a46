"""`cogwork fleet` as people and scripts run it, against a real cloud."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import signal
import stat
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.cloud.fleet import Cloud, run_cloud
from tests.support.machine.commands import CommandResult, run_command, start_command
from tests.support.machine.running import DEADLINE, start_server
from viam.gen.app.v1.robot_pb2 import (
    AgentInfo,
    ConfigRequest,
    ConfigResponse,
    LogRequest,
    LogResponse,
)

from cogwork.cli.main import main
from cogwork.config.schema.cloud import CloudConfig
from cogwork.core.errors import CogworkError
from cogwork.core.versions.named_version import NAMED_VERSION
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.cloud_login import CloudLogin

CLOUD_PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")
FIRST = """{
  "components": [
    {"name": "motor", "api": "rdk:component:motor", "model": "rdk:builtin:fake"}
  ]
}
"""
SECOND = FIRST.replace('"motor"', '"wheel"').replace("\n", "\r\n") + "\t "
BROKEN = FIRST.replace("builtin:fake", "builtin:fakee")


@pytest.fixture
async def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cloud]:
    """A cloud in which the commands of this test are logged in as its owner."""
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path / "home"))
    for name in ("COGWORK_FLEET_ADDRESS", "COGWORK_FLEET_KEY_ID", "COGWORK_FLEET_KEY"):
        monkeypatch.delenv(name, raising=False)
    async with run_cloud(tmp_path / "cloud") as running:
        await log_in(running)
        yield running


async def log_in(cloud: Cloud) -> None:
    await fleet(
        "login", cloud.address, "--key-id", cloud.key_id, "--key-file", "-", typed=cloud.key
    )


async def run_fleet(*words: str, typed: str = "") -> CommandResult:
    """Run a command in a thread: starting a process for each would take most of the time."""
    return await asyncio.to_thread(_run_here, ["fleet", *words], typed)


def _run_here(words: list[str], typed: str) -> CommandResult:
    out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(typed)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdin = stdin
    return CommandResult(code, out.getvalue(), err.getvalue())


async def fleet(*words: str, typed: str = "") -> str:
    """Return the output of a command that succeeds."""
    result = await run_fleet(*words, typed=typed)
    assert result.code == 0, result
    return result.out


async def fleet_json(*words: str) -> Any:
    return json.loads(await fleet(*words, "--json"))


async def make_machine(file: Path, name: str = "press", location: str = "Hall 1") -> CloudConfig:
    """Return the cloud section of a new machine's file."""
    if location not in [each["name"] for each in await fleet_json("locations")]:
        await fleet("location", "create", location)
    await fleet("machine", "create", name, "--location", location, "-o", str(file))
    return CloudConfig.model_validate(json.loads(file.read_text())["cloud"])


async def test_login_is_checked_and_kept_for_the_user_only(cloud: Cloud, tmp_path: Path) -> None:
    stored = tmp_path / "home" / "fleet" / "login.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert (await fleet_json("orgs"))[0]["name"] == "Acme"
    before = stored.read_bytes()
    words = ("login", cloud.address, "--key-id", cloud.key_id)
    refused = await run_fleet(*words, "--key-file", "-", typed="wrong")
    assert (refused.code, refused.out) == (2, "")
    assert f"does not accept the key {cloud.key_id} (invalid credentials)" in refused.err
    assert stored.read_bytes() == before
    unasked = await run_fleet(*words)
    assert (unasked.code, unasked.err.partition(";")[0]) == (2, "cannot ask without a terminal")
    assert "logged out" in await fleet("logout")
    assert not stored.exists()
    result = await run_fleet("machines")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("not logged in to a cloud; run `cogwork fleet login URL`")


async def test_scripts_log_in_by_variables(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    await fleet("logout")
    monkeypatch.setenv("COGWORK_FLEET_ADDRESS", cloud.address)
    monkeypatch.setenv("COGWORK_FLEET_KEY_ID", cloud.key_id)
    monkeypatch.setenv("COGWORK_FLEET_KEY", cloud.key)
    assert await fleet_json("machines") == []


async def test_machine_from_nothing(cloud: Cloud, tmp_path: Path) -> None:
    missing = await run_fleet("machine", "create", "press")
    assert (missing.code, "cogwork fleet location create NAME" in missing.err) == (2, True)
    file = tmp_path / "press.json"
    section = await make_machine(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert section.app_address == f"http://{cloud.address}"
    (listed,) = await fleet_json("machines")
    assert (listed["name"], listed["location"]["name"]) == ("press", "Hall 1")
    assert [each["id"] for each in listed["parts"]] == [section.id]
    # The secret in the file is the one with which the machine logs in.
    await send_logs(section, "hello")
    again = await run_fleet("machine", "create", "saw", "-o", str(file))
    assert (again.code, "exists; choose another file" in again.err) == (2, True)
    double = await run_fleet("machine", "create", "press")
    assert (double.code, 'has a machine "press" already' in double.err) == (2, True)
    assert [each["name"] for each in await fleet_json("machines")] == ["press"]
    assert "renamed machine press to stamp" in await fleet("machine", "rename", "press", "stamp")
    table = (await fleet("parts", "stamp")).splitlines()
    assert table[1].startswith("press-main  main")
    assert "restarts when it next asks" in await fleet("restart", "stamp")
    undecided = await run_fleet("machine", "delete", "stamp")
    assert (undecided.code, "add -y" in undecided.err) == (2, True)
    await fleet("machine", "delete", "stamp", "-y")
    assert await fleet_json("machines") == []


async def test_secret_of_a_part_is_replaced(cloud: Cloud, tmp_path: Path) -> None:
    section = await make_machine(tmp_path / "press.json")
    client = await cloud.connect()
    await client.app_client.create_robot_part_secret(section.id)
    client.close()
    operator = await fleet_json("key", "create", "anna", "--machine", "press")
    await log_in(Cloud(cloud.address, operator["id"], operator["key"]))
    refused = await run_fleet("part", "rotate", "press", "-y")
    assert (refused.code, "requires the role owner" in refused.err) == (1, True)
    await log_in(cloud)
    await send_logs(section, "before")
    again = tmp_path / "again.json"
    replaced = await fleet_json("part", "rotate", "press", "-y", "-o", str(again))
    assert replaced == {"part": section.id, "name": "press-main", "file": str(again)}
    assert stat.S_IMODE(again.stat().st_mode) == 0o600
    # None of the former secrets is valid, also not the one that was waiting to be delivered.
    with pytest.raises(CogworkError, match="invalid credentials"):
        await send_logs(section, "too late")
    await send_logs(CloudConfig.model_validate(json.loads(again.read_text())["cloud"]), "after")
    lines = await fleet("logs", "press")
    assert ("before" in lines, "too late" in lines, "after" in lines) == (True, False, True)


@pytest.mark.usefixtures("cloud")
async def test_ambiguous_name_lists_the_ids(tmp_path: Path) -> None:
    one = await make_machine(tmp_path / "1.json", location="Hall 1")
    two = await make_machine(tmp_path / "2.json", location="Hall 2")
    result = await run_fleet("config", "show", "press")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith('"press" is the name of 2 parts; use the ID')
    assert one.id in result.err
    assert two.id in result.err
    assert await fleet("config", "show", two.id) == "{}"
    machine = (await fleet_json("machines"))[0]["id"]
    assert await fleet("config", "show", machine) == "{}"
    wrong = await run_fleet("logs", "prss")
    assert (wrong.code, wrong.err) == (2, 'there is no part "prss"; did you mean "press"?\n')


@pytest.mark.usefixtures("cloud")
async def test_configuration_is_checked_planned_saved_and_restored(tmp_path: Path) -> None:
    await make_machine(tmp_path / "press.json")
    file = tmp_path / "new.json"
    for text in (FIRST, SECOND):
        file.write_bytes(text.encode())
        out = await fleet("config", "edit", "press", "--file", str(file), "--yes")
        assert "build, because it is not running yet" in out
    assert "close, because it is no longer configured" in out
    file.write_text(BROKEN)
    refused = await run_fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert refused.code == 1
    assert 'new.json:3:62  error  unknown model "fakee"' in refused.out
    assert "nothing was saved; fix" in refused.err
    history = await fleet_json("config", "history", "press")
    assert [(each["revision"], each["change"]) for each in history] == [
        (2, "added wheel; removed motor"),
        (1, "added motor"),
        (0, "created"),
    ]
    assert "first owner" in await fleet("config", "history", "press")
    assert "+    {" in await fleet("config", "diff", "press")
    for number, text in ((1, FIRST), (0, "{}"), (2, SECOND)):
        await fleet("config", "restore", "press", str(number), "--yes")
        shown = await fleet_json("config", "show", "press")
        assert shown["config"] == text, "a restored revision is byte-identical"
    assert len(await fleet_json("config", "history", "press")) == 6
    unknown = await run_fleet("config", "restore", "press", "99", "--yes")
    assert (unknown.code, "the newest is 5" in unknown.err) == (2, True)


@pytest.mark.usefixtures("cloud")
async def test_part_of_another_make_is_checked_with_warnings(tmp_path: Path) -> None:
    section = await make_machine(tmp_path / "press.json")
    await report_version(section, "0.99.0")
    file = tmp_path / "new.json"
    file.write_text(BROKEN.replace("{", '{"network": {"bind_address": "x:y"},', 1))
    out = await fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert 'new.json:3:62  warning  unknown model "fakee"' in out
    assert "new.json:1:30  warning  " in out
    assert "not known: its server is of another make" in out
    assert (await fleet_json("config", "show", "press"))["config"] == file.read_text()
    file.write_text("{")
    refused = await run_fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert (refused.code, "nothing was saved; fix" in refused.err) == (1, True)
    await report_version(section, NAMED_VERSION)
    file.write_text(FIRST.replace("{", '{"network": {"bind_address": "x:y"},', 1))
    refused = await run_fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert (refused.code, "the machine would reject" in refused.out) == (1, True)


@pytest.mark.usefixtures("cloud")
async def test_two_collaborators_do_not_overwrite_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_machine(tmp_path / "press.json")
    theirs, mine = tmp_path / "theirs.json", tmp_path / "mine.json"
    theirs.write_text(FIRST)
    mine.write_text(FIRST.replace('"motor"', '"mine"'))
    editor = tmp_path / "editor.sh"
    # While I edit, someone else saves.
    save = f'"{sys.executable}" -m cogwork.cli.main fleet config edit press --file "{theirs}" --yes'
    editor.write_text(f'#!/bin/sh\n{save} >/dev/null && cat "{mine}" > "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = await run_command("fleet", "config", "edit", "press", "--yes")
    assert result.code == 1
    assert "someone else changed press-main in the meantime; nothing was saved" in result.err
    assert (await fleet_json("config", "show", "press"))["config"] == FIRST
    (kept,) = tmp_path.glob("cogwork-*/press-main.json")
    assert f"--file {kept}" in result.err
    assert kept.read_text() == mine.read_text()
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


@pytest.mark.usefixtures("cloud")
async def test_script_saves_only_what_it_has_read(tmp_path: Path) -> None:
    await make_machine(tmp_path / "press.json")
    read = (await fleet_json("config", "show", "press"))["last_updated"]
    file = tmp_path / "new.json"
    words = ("config", "edit", "press", "--file", str(file), "--yes", "--last-known-update", read)
    file.write_text(FIRST)
    await fleet(*words)
    file.write_text(SECOND)
    stale = await run_fleet(*words)
    assert (stale.code, "someone else changed press-main" in stale.err) == (1, True)


@pytest.mark.usefixtures("cloud")
async def test_unchanged_text_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_machine(tmp_path / "press.json")
    monkeypatch.setenv("VISUAL", "true")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert "no change" in (await run_command("fleet", "config", "edit", "press")).out
    assert not list(tmp_path.glob("cogwork-*"))
    monkeypatch.setenv("VISUAL", "false")
    failed = await run_command("fleet", "config", "edit", "press")
    assert (failed.code, "false ended with code 1; nothing was saved" in failed.err) == (2, True)


@pytest.mark.usefixtures("cloud")
async def test_secrets_of_a_configuration_are_masked(tmp_path: Path) -> None:
    await make_machine(tmp_path / "press.json")
    file = tmp_path / "new.json"
    handler = '{"type": "api-key", "config": {"keys": ["a"], "a": "canary"}}'
    file.write_text(f'{{"auth": {{"handlers": [{handler}]}}}}')
    saved = await fleet("config", "edit", "press", "--file", str(file), "--yes")
    masked = await run_fleet("config", "show", "press")
    assert "canary" not in saved + masked.out
    assert "secrets are masked" in masked.err
    assert "canary" in await fleet("config", "show", "press", "--reveal-secrets")


@pytest.fixture
async def fragment(cloud: Cloud, tmp_path: Path) -> AsyncIterator[str]:
    """A fragment that the machines press and saw use, and its ID."""
    connected = await cloud.connect()
    app = connected.app_client
    (organization,) = await app.list_organizations()
    made = await app.create_fragment(organization.id, "drive", json.loads(FIRST))
    for name in ("press", "saw"):
        section = await make_machine(tmp_path / f"{name}.json", name)
        await app.update_robot_part(section.id, f"{name}-main", {"fragments": [made.id]})
    yield made.id
    connected.close()


async def test_fragment_is_previewed_saved_and_restored(fragment: str, tmp_path: Path) -> None:
    (listed,) = await fleet_json("fragments")
    assert (listed["id"], listed["name"], listed["parts"]) == (fragment, "drive", 2)
    file = tmp_path / "new.json"
    file.write_text(SECOND)
    words = ("fragment", "edit", "drive", "--file", str(file))
    asked = await run_fleet(*words)
    assert (asked.code, "cannot ask without a terminal" in asked.err) == (2, True)
    dry_run = await run_fleet(*words, "--json")
    assert (dry_run.code, "nothing was saved; to save it, add --yes" in dry_run.err) == (1, True)
    preview = json.loads(dry_run.out)
    assert (preview["machines"], preview["saved"]) == (2, False)
    (change,) = preview["changes"]
    assert change["parts"] == ["press", "saw"]
    out = await fleet(*words, "--yes")
    assert "2 machines of your organization use this fragment" in out
    assert "On press, saw:" in out
    assert "rdk:component:motor/wheel: build, because it is not running yet" in out
    assert "saved drive" in out
    assert await fleet("fragment", "show", "drive") == SECOND
    assert [each["change"] for each in await fleet_json("fragment", "history", "drive")] == [
        "added wheel; removed motor",
        "created",
    ]
    await fleet("fragment", "restore", fragment, "1", "--yes")
    shown = await fleet_json("fragment", "show", "drive")
    assert json.loads(shown["config"]) == json.loads(FIRST)
    unknown = await run_fleet("fragment", "restore", "drive", "9", "--yes")
    assert (unknown.code, 'has no revision "9"' in unknown.err) == (2, True)


async def test_mistake_in_a_fragment_names_the_machines(fragment: str, tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    variable = {"$variable": {"name": "path"}}
    file.write_text(json.dumps({"components": [{"name": "camera", "attributes": variable}]}))
    result = await run_fleet("fragment", "edit", fragment, "--file", str(file), "--yes")
    assert result.code == 1
    assert "error: fragment" in result.out
    assert 'because the variable "path" has no value' in result.out
    assert "nothing was saved; it would be a mistake on these machines" in result.err
    assert len(await fleet_json("fragment", "history", "drive")) == 1


async def test_errors_of_a_fragment_are_shown_and_not_saved_unasked(
    fragment: str, tmp_path: Path
) -> None:
    file = tmp_path / "new.json"
    file.write_text(BROKEN)
    result = await run_fleet("fragment", "edit", fragment, "--file", str(file), "--yes")
    assert result.code == 1
    assert 'error: /components/0/model: unknown model "fakee"' in result.out
    assert 'did you mean "fake' in result.out
    assert "nothing was saved; it has errors" in result.err
    assert len(await fleet_json("fragment", "history", "drive")) == 1


async def test_configuration_that_uses_a_fragment_is_edited(fragment: str, tmp_path: Path) -> None:
    file = tmp_path / "new.json"
    file.write_text(json.dumps({"fragments": [fragment], "debug": True}))
    out = await fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert "and what its fragments change" in out
    assert json.loads(await fleet("config", "show", "press"))["fragments"] == [fragment]
    file.write_text(json.dumps({"fragments": ["missing"]}))
    refused = await run_fleet("config", "edit", "press", "--file", str(file), "--yes")
    assert (refused.code, "there is no such fragment" in refused.err) == (1, True)


async def call_as_machine(section: CloudConfig, method: str, request: Any, reply: Any) -> None:
    client = CloudClient(section.app_address, CloudLogin.from_config(section))
    try:
        await client.call(f"/viam.app.v1.RobotService/{method}", request, reply, DEADLINE)
    finally:
        await client.aclose()


async def report_version(section: CloudConfig, version: str) -> None:
    """Ask for the configuration as a machine with this version does."""
    info = AgentInfo(host="press.local", os="linux", version=version)
    request = ConfigRequest(id=section.id, agent_info=info)
    await call_as_machine(section, "Config", request, ConfigResponse)


async def send_logs(section: CloudConfig, *messages: str, level: str = "info") -> None:
    """Send lines as the machine does."""
    request = LogRequest(id=section.id)
    for message in messages:
        entry = request.logs.add(level=level, logger_name="rdk", message=message)
        entry.time.FromMicroseconds(int(time.time() * 1e6))
    await call_as_machine(section, "Log", request, LogResponse)


@pytest.mark.usefixtures("cloud")
async def test_logs_are_filtered_and_printed_oldest_first(tmp_path: Path) -> None:
    section = await make_machine(tmp_path / "press.json")
    await send_logs(section, *(f"line {number}" for number in range(120)))
    await send_logs(section, "belt stuck", level="error")
    lines = (await fleet("logs", "press")).splitlines()
    assert len(lines) == 100
    assert lines[0].endswith("line 21")
    assert lines[-1].endswith("belt stuck")
    assert len((await fleet("logs", "press", "--since", "1h")).splitlines()) == 121
    assert (await fleet("logs", "press", "-n", "2")).splitlines() == lines[-2:]
    assert (await fleet("logs", "press", "--level", "warn")).splitlines() == lines[-1:]
    found = await fleet("logs", "press", "--search", "LINE 119", "--json")
    assert json.loads(found)["message"] == "line 119"
    wrong = await run_fleet("logs", "press", "--since", "yesterday")
    assert (wrong.code, 'invalid time "yesterday"' in wrong.err) == (2, True)


@pytest.mark.usefixtures("cloud")
async def test_logs_are_followed_until_ctrl_c(tmp_path: Path) -> None:
    section = await make_machine(tmp_path / "press.json")
    await send_logs(section, "before")
    async with (
        asyncio.timeout(DEADLINE),
        start_command("fleet", "logs", "press", "-f", "--level", "info") as process,
    ):
        assert process.stdout is not None
        assert (await process.stdout.readline()).endswith(b"before\n")
        for number in range(3):
            await send_logs(section, f"quiet {number}", level="debug")
            await send_logs(section, f"news {number}")
            line = await process.stdout.readline()
            assert line.endswith(f"news {number}\n".encode())
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


async def test_keys_are_created_replaced_and_deleted(cloud: Cloud, tmp_path: Path) -> None:
    await make_machine(tmp_path / "press.json")
    both = await run_fleet("key", "create", "anna", "--machine", "press", "--location", "Hall 1")
    assert (both.code, "give one of --machine, --location, --org" in both.err) == (2, True)
    made = await fleet_json("key", "create", "anna", "--machine", "press")
    assert "anna" in await fleet("keys")
    assert "operator of machine press" in await fleet("keys")
    # An operator sees its machine, and changes nothing.
    await log_in(Cloud(cloud.address, made["id"], made["key"]))
    assert [each["name"] for each in await fleet_json("machines")] == ["press"]
    assert "created" in await fleet("config", "history", "press")
    refused = await run_fleet("machine", "delete", "press", "-y")
    assert (refused.code, "requires the role owner" in refused.err) == (1, True)
    await log_in(cloud)
    await fleet("key", "delete", "anna", "-y")
    assert "anna" not in await fleet("keys")
    # Replacing the key that one is logged in with does not lock one out.
    rotated = await fleet_json("key", "rotate", "first owner", "-y")
    assert rotated["key"] != cloud.key
    assert "first owner (yours)" in await fleet("keys")
    last = await run_fleet("key", "delete", "first owner", "-y")
    assert (last.code, "the last owner" in last.err) == (1, True)


@pytest.mark.usefixtures("cloud")
async def test_connection_is_explained(tmp_path: Path) -> None:
    await make_machine(tmp_path / "press.json")
    shown = await fleet_json("connect", "press")
    assert shown["name"].startswith("press-main.")
    assert shown["name"].endswith(".fleet.test")
    compile(shown["python"], "snippet", "exec")
    assert await fleet("connect", "press") == shown["python"]
    unresolved = await run_fleet("connect", "press", "--check")
    assert (unresolved.code, unresolved.out) == (1, "")
    assert "the name cannot be resolved" in unresolved.err


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("unshare") is None, reason="needs root and unshare"
)
async def test_unreachable_cloud_is_one_sentence(cloud: Cloud, tmp_path: Path) -> None:
    del cloud
    stored = tmp_path / "home" / "fleet" / "login.json"
    login = json.loads(stored.read_text())
    stored.write_text(json.dumps({**login, "address": "127.0.0.1:1"}))
    result = await run_fleet("machines")
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        "cannot reach a cloud at http://127.0.0.1:1 (Connection refused); check the address, or "
        "log in to another cloud with: cogwork fleet login URL\n"
    )


async def test_cloud_with_its_own_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real `cogwork-cloud` over TLS, from nothing."""
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path / "home"))
    certs, data = tmp_path / "certs", tmp_path / "cloud"
    made = await run_command("certs", "local", "localhost", "--directory", str(certs), "--json")
    assert made.code == 0, made
    async with start_server(["init", "--data", str(data)], program=CLOUD_PROGRAM) as init:
        key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
        key = (await init.out.wait_for(r"key: +(\S+)$"))[1]
        assert await init.exit_code() == 0
    certificate, private_key = find_pair(certs)
    arguments = ["serve", "--data", str(data), "--address", "localhost:0"]
    arguments += ["--tls-cert", str(certificate), "--tls-key", str(private_key)]
    async with start_server(arguments, program=CLOUD_PROGRAM) as server:
        await server.wait_until_serving()
        url = f"https://localhost:{server.port}"
        words = ("login", url, "--key-id", key_id, "--key-file", "-")
        untrusted = await run_fleet(*words, typed=key)
        assert (untrusted.code, untrusted.out) == (2, "")
        assert "the TLS handshake failed; log in again with --ca" in untrusted.err
        await fleet(*words, "--ca", str(certs / "ca.pem"), typed=key)
        file = tmp_path / "press.json"
        await fleet("location", "create", "Hall 1")
        created = await run_fleet("machine", "create", "press", "-o", str(file))
        assert json.loads(file.read_text())["cloud"]["app_address"] == url
        authority = os.environ["COGWORK_HOME"] + "/fleet/ca.pem"
        assert created.out.endswith(
            f"Copy {file} and {authority} to the machine, and run there:\n"
            "  SSL_CERT_FILE=ca.pem cogwork-server -config press.json\n"
        )
        assert [each["name"] for each in await fleet_json("machines")] == ["press"]
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0


def find_pair(certs: Path) -> tuple[Path, Path]:
    """Return the certificate of a server and its key, as `cogwork certs local` names them."""
    return certs / "cert.pem", certs / "key.pem"
