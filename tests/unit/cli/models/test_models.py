"""`cogwork models` lists what a configuration can use, and examples that the server accepts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.machine.running import plug_in

from cogwork.cli.main import main
from cogwork.cli.models.example import make_example
from cogwork.cli.models.model_entry import ModelEntry, iter_models, search
from cogwork.resource.model import Extra

BUILT_IN = [each for each in iter_models() if each.source == "built-in"]


@pytest.fixture(autouse=True)
def no_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COGWORK_ADDRESS", "localhost:1")


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda each: f"{each.api} {each.name.short}")
def test_built_in_model_has_a_sentence_and_a_valid_example(entry: ModelEntry) -> None:
    assert entry.summary.endswith(".")
    example = make_example(entry.api, entry.name, entry.schema)
    assert entry.model is not None
    entry.model.load_attributes().model_validate(example.get("attributes", {}))


def test_models_are_listed_by_api(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "encoder"]) == 0
    assert capsys.readouterr().out == (
        "rdk:component:encoder\n"
        "  fake         A fake encoder that follows a motor or counts at a fixed rate.\n"
        "  incremental  An incremental encoder with two signals, which measures the direction.\n"
        "  single       An encoder with one signal, which cannot measure the direction.\n"
        "\n"
        "For the attributes of a model, name it, e.g.: cogwork models camera webcam\n"
    )


def test_one_model_is_shown_with_attributes_and_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["models", "servo", "gpio"]) == 0
    out = capsys.readouterr().out
    head, example = out.split('Add this to "components" in machine.json:\n')
    assert head.startswith("rdk:component:servo gpio\n  A hobby servo whose angle is set by")
    assert "\n  board: string, required\n      Board " in head
    assert "\n  min_angle_deg: number, default 0.0\n" in head
    assert json.loads(example) == {
        "name": "my-servo",
        "api": "rdk:component:servo",
        "model": "gpio",
        "attributes": {"board": "my-board", "pin": "GPIO17"},
    }


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["webcam"], ["webcam"]),
        (["rdk:builtin:webcam"], ["webcam"]),
        (["vision", "mlmodel"], ["mlmodel"]),
        (["wheel"], ["wheeled", "wheeled-odometry"]),
        (["sensor"], ["fake", "serial", "system"]),
        (["rdk:service:motion"], ["builtin", "fake"]),
        (["differential drive"], ["wheeled"]),
        (["FAKE", "arm"], ["fake"]),
        (["nothing"], []),
    ],
)
def test_words_select_models(words: list[str], names: list[str]) -> None:
    assert [each.name.short for each in search(BUILT_IN, words)] == names


def test_nothing_found_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "webcm"]) == 2
    assert capsys.readouterr().err == 'no model matches "webcm"; did you mean "webcam"?\n'
    assert main(["models", "zzzz"]) == 2
    assert capsys.readouterr().err == 'no model matches "zzzz"; `cogwork models` lists all\n'


def test_json_has_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert len(entries) == len(BUILT_IN)
    (pin,) = (
        attribute
        for entry in entries
        if (entry["api"], entry["model"]) == ("rdk:component:board", "gpio")
        for attribute in entry["attributes"]
        if attribute["name"] == "digital_interrupts[].pin"
    )
    assert pin == {
        "name": "digital_interrupts[].pin",
        "type": "string",
        "required": True,
        "default": None,
        "description": "GPIO pin to watch.",
    }


def test_missing_extra_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Extra("camera", ("no_such_library",)).find_missing() is not None
    monkeypatch.setattr(Extra, "find_missing", lambda extra: extra.name)
    main(["models", "gamepad"])
    advice = "install it with `pip install 'cogwork[gamepad]'`"
    assert f"\n  not installed: {advice}\n" in capsys.readouterr().out
    main(["models", "input_controller"])
    assert f"\n           not installed: {advice}\n" in capsys.readouterr().out


SOURCE = '''
"""Fans that spin. They are quiet."""

from cogwork.driver import Api, Attributes, Model, ModelName


class FanAttributes(Attributes):
    blades: int
    """Number of blades."""


async def new(name, attributes, dependencies):
    return object()


api, name = Api.parse("rdk:component:motor"), ModelName.parse("acme:fans:fan")
model = Model(api, name, FanAttributes, new)
'''


def test_model_of_a_package_is_listed(tmp_path: Path) -> None:
    environment = {**os.environ, **plug_in(tmp_path, SOURCE, "fan = {module}:model")}
    done = subprocess.run(
        [sys.executable, "-m", "cogwork.cli.main", "models", "acme", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    (entry,) = json.loads(done.stdout)
    assert entry == {
        "api": "rdk:component:motor",
        "model": "acme:fans:fan",
        "source": "package tests_plug_in",
        "summary": "Fans that spin.",
        "install": None,
        "attributes": [
            {
                "name": "blades",
                "type": "integer",
                "required": True,
                "default": None,
                "description": "Number of blades.",
            }
        ],
        "example": {
            "name": "my-motor",
            "api": "rdk:component:motor",
            "model": "acme:fans:fan",
            "attributes": {"blades": 1},
        },
    }


def test_machine_that_was_named_must_be_reachable(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "arm", "--address", "localhost:1"]) == 2
    assert capsys.readouterr().err.startswith("cannot reach a machine at localhost:1 (")
