"""Names of a running machine are completed quickly, safely and silently."""

from __future__ import annotations

import http.server
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.machine.running import DEADLINE

from cogwork.cli import machine_names
from cogwork.cli.completion import complete, split_line

VIEW = {
    "state": "running",
    "resources": [
        {"name": name, "model": "fake", "state": state, "reason": None}
        for name, state in (
            ("rdk:component:motor/wheel", "ready"),
            ("rdk:component:camera/eye", "unhealthy"),
            ("rdk:component:sensor/twin", "ready"),
            ("rdk:component:motor/twin", "ready"),
            ("rdk:service:shell/sh", "ready"),
            ("rdk:component:motor/x; rm -rf ~", "ready"),
            ("rdk:component:motor/$(id)", "ready"),
            ("rdk:component:motor/-o", "ready"),
            ("rdk:remote:/board", "ready"),
        )
    ],
    "modules": [{"name": "lamps", "state": "ready"}, {"name": "a b", "state": "ready"}],
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        reply = json.dumps(VIEW).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        found = f"127.0.0.1:{server.server_port}"
        monkeypatch.setattr(machine_names, "DEADLINE", DEADLINE)
        monkeypatch.setenv("COGWORK_ADDRESS", found)
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def words(line: str) -> list[str]:
    return [each.word for each in complete(split_line(line))]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cogwork call w", ["wheel"]),
        ("cogwork call wheel set", ["set_power", "set_rpm"]),
        ("cogwork call wheel Set", ["SetPower", "SetRPM"]),
        ("cogwork call rdk:component:motor/twin IsM", ["IsMoving"]),
        ("cogwork call twin ", []),
        ("cogwork call nothing ", []),
        ("cogwork call wheel stop ", []),
        ("cogwork camera snap ", ["eye"]),
        ("cogwork camera watch e", ["eye"]),
        ("cogwork status --history w", ["wheel"]),
        ("cogwork status --history=e", ["eye"]),
        ("cogwork shell --name ", ["sh"]),
        ("cogwork module restart ", ["lamps"]),
        ("cogwork call --address localhost:1 ", []),
        ("cogwork call --address not:an:address ", []),
    ],
)
def test_names_are_candidates(address: str, line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_names_that_a_shell_would_run_are_left_out(address: str) -> None:
    assert words("cogwork call ") == [
        "wheel",
        "eye",
        "rdk:component:sensor/twin",
        "rdk:component:motor/twin",
        "sh",
    ]


def test_candidates_tell_what_they_are(address: str) -> None:
    about = {each.word: each.help for each in complete(["cogwork", "call", ""])}
    assert (about["wheel"], about["eye"]) == ("motor fake", "camera fake, unhealthy")
    methods = {each.word: each.help for each in complete(["cogwork", "call", "wheel", "G"])}
    assert methods["GoFor"] == "rpm, revolutions"


def test_machine_that_does_not_answer_is_given_up_soon() -> None:
    """The command must exit, although a thread of it still waits."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        began = time.monotonic()
        done = subprocess.run(
            [
                *(sys.executable, "-m", "cogwork.cli.main", "completion", "fish", "--words"),
                *("cogwork", "call", "--address", address, ""),
            ],
            capture_output=True,
            check=True,
            timeout=machine_names.DEADLINE + 8,
        )
    assert (done.stdout, done.stderr) == (b"", b"")
    assert time.monotonic() - began < 10  # the timeout of the HTTP client
