"""Commands show what a server of another make tells over gRPC, and say what is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from tests.unit.cli import another_make as peer
from tests.unit.cli.client.test_http_client import serve_reply

from cogwork.cli.main import main


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Terminal:
    def __init__(self, address: str, capture: pytest.CaptureFixture[str]) -> None:
        self._address = address
        self._capture = capture

    def run(self, *words: str) -> Result:
        code = main([*words, "--address", self._address])
        return Result(code, *self._capture.readouterr())


@pytest.fixture(autouse=True)
def without_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("COGWORK_API_KEY_ID", "COGWORK_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def answers() -> peer.Answers:
    return peer.ALL


@pytest.fixture
def terminal(answers: peer.Answers, capsys: pytest.CaptureFixture[str]) -> Iterator[Terminal]:
    with peer.serve(answers) as address:
        yield Terminal(address, capsys)


ONLY_NAMES = pytest.mark.parametrize("answers", [peer.NAMES])
LOCKED = pytest.mark.parametrize("answers", [peer.require_login(peer.ALL)])


@pytest.mark.parametrize("answers", [{**peer.ALL, **peer.OURS}])
def test_fault_of_our_own_server_is_not_hidden(terminal: Terminal) -> None:
    code, out, err = terminal.run("status")
    assert (code, out) == (2, "")
    assert "another make" not in err


def test_status_shows_states_and_version(terminal: Terminal) -> None:
    code, out, err = terminal.run("status")
    assert code == 1
    lines = out.splitlines()
    assert lines[0].startswith("running, 1 of 2 resources ready, configuration 7b3, applied ")
    assert lines[1] == "server rdk 0.99.0, API v0.1.577"
    assert lines[2].startswith("ready      rdk:component:motor/wheel")
    assert lines[3].startswith("unhealthy  rdk:component:camera/belt")
    assert lines[3].endswith("no such device")
    assert lines[4].startswith("unhealthy  module acme")
    assert lines[5].startswith("job  tidy  failed ")
    (line,) = err.splitlines()
    assert line.startswith("this is another make of server: it does not tell models, dependencies,")


def test_status_is_json_of_the_same_structure(terminal: Terminal) -> None:
    code, out, err = terminal.run("status", "--json")
    view = json.loads(out)
    assert (code, len(err.splitlines())) == (1, 1)
    assert view["version"] == {"platform": "rdk", "version": "0.99.0", "api_version": "v0.1.577"}
    assert (view["state"], view["revision"]) == ("running", "7b3")
    assert {each["name"]: each["state"] for each in view["resources"]} == {
        "rdk:component:motor/wheel": "ready",
        "rdk:component:camera/belt": "unhealthy",
    }
    assert "depends_on" not in view["resources"][0]
    assert "processes" not in view


@ONLY_NAMES
def test_server_without_a_status_lists_its_resources(terminal: Terminal) -> None:
    code, out, err = terminal.run("status")
    assert out.splitlines() == [
        "state unknown, 2 resources",
        "unknown  rdk:component:camera/belt",
        "unknown  rdk:component:motor/wheel",
    ]
    assert (code, "it does not tell states, models," in err) == (1, True)


def test_graph_has_the_resources(terminal: Terminal) -> None:
    code, out, err = terminal.run("graph")
    assert out.splitlines() == ["belt  camera  unhealthy: no such device", "wheel  motor  ready"]
    missing = "this is another make of server: it does not tell models and dependencies\n"
    assert (code, err) == (0, missing)


def test_graph_as_json_has_unknown_members_as_null(terminal: Terminal) -> None:
    code, out, _ = terminal.run("graph", "--json")
    assert code == 0
    assert json.loads(out)[1] == {
        "name": "rdk:component:camera/belt",
        "model": None,
        "state": "unhealthy",
        "reason": "no such device",
        "depends_on": [],
    }


def test_call_uses_the_descriptors_of_the_sdk(terminal: Terminal) -> None:
    code, out, err = terminal.run("call", "wheel", "is_powered")
    assert (code, json.loads(out)) == (0, {"is_on": True, "power_pct": 0.5})
    (line,) = err.splitlines()
    assert line.startswith("the machine does not describe viam.component.motor.v1.MotorService, so")
    unknown = terminal.run("call", "wheel", "fly")
    assert (unknown.code, 'has no method "fly"' in unknown.err) == (2, True)


def test_log_is_looked_for_elsewhere(terminal: Terminal) -> None:
    code, out, err = terminal.run("logs")
    assert (code, out) == (2, "")
    assert err == (
        "this is another make of server: it does not show its log; look where it was started, such "
        "as in its terminal or the journal, or in its cloud: cogwork fleet logs a-part\n"
    )


@ONLY_NAMES
def test_history_and_cloud_are_missing(terminal: Terminal) -> None:
    assert "or in its cloud" not in terminal.run("logs").err
    code, out, err = terminal.run("status", "--history")
    assert (code, out) == (2, "")
    assert err == "this is another make of server: it keeps no history; see its log\n"


@LOCKED
def test_login_is_asked_for_and_made_over_grpc(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (("status",), ("logs",)):
        code, out, err = terminal.run(*words)
        assert (code, out) == (2, "")
        assert err.startswith("authentication required; set COGWORK_API_KEY_ID")
    monkeypatch.setenv("COGWORK_API_KEY_ID", peer.KEY_ID)
    monkeypatch.setenv("COGWORK_API_KEY", "wrong")
    refused = terminal.run("status")
    assert (refused.code, "invalid credentials" in refused.err) == (2, True)
    monkeypatch.setenv("COGWORK_API_KEY", peer.KEY)
    assert "1 of 2 resources ready" in terminal.run("status").out
    assert json.loads(terminal.run("call", "wheel", "is_powered").out)["is_on"]


def test_key_for_a_server_without_login_is_not_needed(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COGWORK_API_KEY_ID", peer.KEY_ID)
    monkeypatch.setenv("COGWORK_API_KEY", peer.KEY)
    assert "1 of 2 resources ready" in terminal.run("status").out


@pytest.mark.parametrize("answers", [{}])
def test_other_grpc_server_is_no_machine(terminal: Terminal) -> None:
    code, out, err = terminal.run("status")
    assert (code, out) == (2, "")
    assert err == "the server at this address speaks gRPC, but is not a machine\n"


@pytest.mark.parametrize("command", ["status", "graph", "logs"])
def test_web_server_is_no_machine(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with serve_reply(404, "nothing", "text/html") as address:
        code, out, err = Terminal(address, capsys).run(command)
    assert (code, out) == (2, "")
    assert f"cannot reach a machine at {address} (HTTP 404: not a Cogwork server)" in err
