from __future__ import annotations

import json
from pathlib import Path

import pytest

from cogwork.cli.fleet.config.config_edit import make_editable
from cogwork.cli.fleet.config.config_plan import ConfigPlan, make_plan
from cogwork.config.check.diagnostic_format import paint_plain

MOTOR = '{"components": [{"name": "m", "api": "rdk:component:motor", "model": "rdk:builtin:fake"}]}'


def plan(before: str, after: str) -> ConfigPlan:
    return make_plan(before, after, Path("/nowhere"))


def test_plan_says_what_the_machine_would_do() -> None:
    made = plan("{}", MOTOR)
    assert not made.loaded.diagnostics
    assert made.format_steps() == (
        "build\n  rdk:component:motor/m: build, because it is not running yet\n1 built"
    )
    assert "close, because it is no longer configured" in plan(MOTOR, "{}").format_steps()
    assert plan(MOTOR, MOTOR).format_steps() == "nothing would change"


def test_faults_have_their_positions() -> None:
    made = plan("{}", '{\n  "debg": true\n}')
    (fault,) = made.format_faults("press.json", paint_plain)
    assert fault.startswith('press.json:2:3  error  unknown key "debg"')
    assert made.loaded.has_errors


def test_files_variables_and_logins_of_the_machine_are_not_expected_here() -> None:
    made = plan(
        "{}",
        '{"modules": [{"name": "acme", "executable_path": "/not/here/run"}],'
        ' "components": [{"name": "c", "api": "rdk:component:camera",'
        ' "model": "rdk:builtin:image_file", "attributes": {"color_image_file_path": "$NOT/c"}}],'
        ' "network": {"bind_address": ":8080"}}',
    )
    assert made.format_faults("f", paint_plain) == []


def test_modules_and_packages_of_the_cloud_are_not_expected_here() -> None:
    made = plan(
        "{}",
        '{"modules": [{"name": "a", "type": "registry", "module_id": "b:a", "version": "1.0.0"}],'
        ' "packages": [{"name": "p", "package": "b/p", "version": "1.2.3"}]}',
    )
    assert made.format_faults("f", paint_plain) == []


def test_what_fragments_may_add_is_left_to_the_cloud() -> None:
    text = json.dumps(
        {
            "Fragments": ["an ID"],
            "components": [{"name": "arm", "type": "arm", "model": "acme:arms:a1"}],
            "services": [
                {
                    "name": "ml",
                    "type": "mlmodel",
                    "model": "onnx_cpu",
                    "attributes": {"model_path": "${packages.ml_model.parts}/parts.onnx"},
                }
            ],
        }
    )
    assert not plan("{}", text).has_errors
    assert plan("{}", text.replace("Fragments", "tags")).has_errors
    assert plan("{}", text.replace("acme:arms:a1", "fakke")).has_errors


def test_registry_modules_and_variables_are_left_to_the_machine() -> None:
    text = json.dumps(
        {
            "modules": [{"name": "m", "type": "registry", "module_id": "acme:m", "version": "1"}],
            "components": [
                {
                    "name": "s",
                    "type": "sensor",
                    "model": "acme:m:s",
                    "attributes": {"path": "${environment.HOME}/data"},
                }
            ],
        }
    )
    assert plan("{}", text).format_faults("f", paint_plain) == []


def test_fragments_are_left_to_the_cloud() -> None:
    used = MOTOR.replace(
        '"components"', '"fragments": ["an ID"], "fragment_mods": [], "components"'
    )
    used = used.replace('"name": "m"', '"name": "m", "depends_on": ["of the fragment"]')
    made = plan("{}", used)
    assert made.format_faults("f", paint_plain) == []
    assert "and what its fragments change" in made.format_steps()
    assert "fragments" not in plan("{}", MOTOR).format_steps()
    (fault,) = plan("{}", used.replace('"fragments"', '"fragmets"', 1)).loaded.diagnostics
    assert "fragmets" in fault.diagnostic.message


def test_rejected_texts_have_no_steps() -> None:
    assert plan("{}", "{").format_steps() == "the machine would reject this configuration"
    assert "rejects its present configuration" in plan("{", "{}").format_steps()
    assert plan("{}", "{").as_json("f")["change"] is None


def test_secrets_are_masked_unless_revealed() -> None:
    keys = '{"auth": {"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "canary"}}]}}'
    made = plan("{}", keys)
    assert "canary" not in made.format_difference(reveal=False)
    assert "canary" in made.format_difference(reveal=True)


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("{}", "{}\n"),
        ('{"a": [1]}', '{\n  "a": [\n    1\n  ]\n}\n'),
        ('{\n "a": 1}\n', '{\n "a": 1}\n'),
        ("broken", "broken"),
    ],
)
def test_text_of_one_line_is_offered_on_several(text: str, offered: str) -> None:
    assert make_editable(text) == offered


def test_faults_at_another_make_are_warnings() -> None:
    text = '{\n  "debg": true,\n  "network": {"bind_address": 7}\n}'
    made = make_plan("{}", text, Path("/nowhere"), is_another_make=True)
    unknown, wrong = made.format_faults("press.json", paint_plain)
    assert unknown.startswith('press.json:2:3  warning  unknown key "debg"')
    assert wrong.startswith("press.json:3:31  warning  expected a string")
    assert not made.has_errors
    assert not made.is_refused
    assert made.format_steps().startswith("not known: its server is of another make")
    assert {each["severity"] for each in made.as_json("f")["diagnostics"]} == {"warning"}
    assert plan("{}", text).is_refused


@pytest.mark.parametrize("text", ["{", "[]"])
def test_text_that_no_server_can_read_is_an_error(text: str) -> None:
    made = make_plan("{}", text, Path("/nowhere"), is_another_make=True)
    assert (made.has_errors, made.is_refused) == (True, True)
    assert made.format_steps() == "the machine would reject this configuration"
