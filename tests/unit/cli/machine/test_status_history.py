"""`cogwork status --history` of a resource without events."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from cogwork.cli.machine import status
from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("wanted", "code", "said"),
    [
        ("belt", EXIT_OK, "no history of belt yet\n"),
        ("rdk:component:motor/belt", EXIT_OK, "no history of rdk:component:motor/belt yet\n"),
        ("", EXIT_OK, "no history of this machine yet\n"),
        ("blet", EXIT_USAGE, 'the machine has no resource "blet"; did you mean "belt"?\n'),
        (
            "x",
            EXIT_USAGE,
            'the machine has no resource "x"; `cogwork status` lists the resources\n',
        ),
    ],
)
def test_misspelled_name_is_told_from_a_resource_without_events(
    wanted: str,
    code: int,
    said: str,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    view: dict[str, Any] = {"resources": [{"name": "rdk:component:motor/belt"}]}
    monkeypatch.setattr(status, "fetch_history", lambda *_: [])
    monkeypatch.setattr(status, "fetch_status", lambda _: view)
    asked = argparse.Namespace(history=wanted, json=as_json, address="x")
    assert status.status(asked) == code
    out, err = capsys.readouterr()
    assert out + err == ("[]\n" if as_json and code == EXIT_OK else said)
