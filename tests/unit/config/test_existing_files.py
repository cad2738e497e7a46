"""Files that were written for viam-server run as far as possible, and every difference is named.

A key is silent if the machine neither reads it nor reports it. To find such keys, each leaf of a
file is looked up in the validated configuration and in the diagnostics.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel

from cogwork.cli.main import main
from cogwork.config.check.checker import CheckResult
from cogwork.config.check.diff import find_blocked
from cogwork.config.check.fix import FixKind
from cogwork.config.check.key_names import WrittenKeys
from cogwork.config.check.key_shapes import name_keys
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema import codes
from cogwork.config.schema.codes import Severity
from cogwork.config.schema.fields import is_zero
from cogwork.config.schema.machine import ResourceConfig
from cogwork.config.text.positions import Json, Pointer, format_pointer
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry

FOLDER = Path(__file__).parent / "existing"
REGISTRY = Registry(builtin_models())
RESOURCES = ("components", "services")
NAMELESS = ("log", "tags")
"""Lists whose items have no names."""
LEGACY_KEYS = ("namespace", "type")


class Case(NamedTuple):
    file: str
    running: set[str]
    errors: set[str]
    """The mistakes and what is missing on this computer, as `code pointer`."""


CASES = [
    Case(
        "mixed.json",
        {"cam", "sh"},
        {
            "E104 /components/4/attributes",  # one motor cannot turn two wheels apart
            "E403 /modules/2/reload_path",
            "E408 /modules/0",
            "E408 /modules/1",
        },
    ),
    Case(
        "vision_bench.json",
        {"bench-cam", "pattern", "stream", "overlay", "colors"},
        {"E408 /modules/0"},
    ),
    Case(
        "rover.json",
        {
            "bench-pins", "left", "right", "left-enc", "right-enc", "base", "gps", "odometry",
            "pad", "gripper-servo", "nav",
        },
        set(),
    ),
    Case(
        "arm_cell.json",
        {"arm", "gripper", "table", "wrist-cam", "rail", "builtin", "shell"},
        {"E408 /modules/1"},
    ),
    Case("capture_line.json", {"line-cam", "scale"}, set()),
    Case(
        "old_format.json",
        {"board", "wheel", "thermometer", "fake-wheel", "fake-enc", "builtin"},
        {"E103 /colour"},
    ),
]  # fmt: skip
IDS = [case.file for case in CASES]


@pytest.fixture
def context(tmp_path: Path) -> LoadContext:
    return LoadContext(REGISTRY, tmp_path, {})


def load_file(file: str, context: LoadContext) -> LoadedConfig:
    return load((FOLDER / file).read_text(encoding="utf-8"), context)


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_resources_run_as_far_as_possible(case: Case, context: LoadContext) -> None:
    loaded = load_file(case.file, context)
    assert not loaded.is_refused
    blocked = {step.name for step in find_blocked(loaded.result, REGISTRY, optimistic=False)}
    assert {spec.name.name for spec in loaded.result.specs if spec.name not in blocked} == (
        case.running
    )


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_only_mistakes_are_errors(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["config", "check", "--json", str(FOLDER / case.file)])
    report = json.loads(capsys.readouterr().out)
    assert code == (1 if case.errors else 0)
    found = report["diagnostics"]
    assert case.errors == {
        f"{each['code']} {each['pointer']}" for each in found if each["severity"] == Severity.ERROR
    }
    pointers = [each["pointer"] for each in found]
    assert len(set(pointers)) == len(pointers), "a difference is named twice"


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_nothing_is_ignored_silently(case: Case, context: LoadContext) -> None:
    loaded = load_file(case.file, context)
    document = json.loads((FOLDER / case.file).read_text(encoding="utf-8"))
    written = WrittenKeys()
    named = name_keys(document, REGISTRY, written, lambda _: None)
    reported = list(_reported_pointers(loaded))
    silent = [
        format_pointer(leaf)
        for leaf, value in _leaves(named, ())
        if not is_zero(value)
        and not any(written.find_pointer(leaf)[: len(at)] == at for at in reported)
        and not _is_read(leaf, named, loaded.result)
    ]
    assert silent == []


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_difference_without_effect_has_a_fix(case: Case, context: LoadContext) -> None:
    for each in load_file(case.file, context).diagnostics:
        found = each.diagnostic
        if found.code is codes.OTHER_CASE:
            assert found.fix is not None
            assert found.fix.kind is FixKind.RENAME
        elif found.message.startswith('"') and "has no effect here" in found.message:
            assert found.fix is not None
            assert found.fix.kind is FixKind.REMOVE


def test_silent_key_is_found(context: LoadContext) -> None:
    """The search for silent keys works."""
    loaded = load('{"components": [{"name": "s", "type": "sensor", "model": "fake"}]}', context)
    document: dict[str, Json] = {
        "tags": ["a"],
        "components": [
            {
                "name": "s",
                "type": "sensor",
                "attributes": {"start": {"delay": "1s"}, "speed": 3},
                "frame": {"id": "x"},
            }
        ],
    }
    silent = [
        format_pointer(leaf)
        for leaf, _ in _leaves(document, ())
        if not _is_read(leaf, document, loaded.result)
    ]
    assert silent == [
        "/tags/0",
        "/components/0/attributes/start/delay",
        "/components/0/attributes/speed",
        "/components/0/frame/id",
    ]


def _leaves(value: Json, at: Pointer) -> Iterator[tuple[Pointer, Json]]:
    members: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        members += value.items()
    elif isinstance(value, list):
        members += enumerate(value)
    if not members:
        yield at, value
    for key, member in members:
        yield from _leaves(member, (*at, key))


def _reported_pointers(loaded: LoadedConfig) -> Iterator[Pointer]:
    """Yield the pointers whose values the diagnostics cover."""
    for each in loaded.diagnostics:
        at = each.diagnostic.location.pointer
        if each.diagnostic.code in (codes.OTHER_CASE, codes.NO_REGISTRY, codes.NO_PACKAGE_SOURCE):
            continue  # the value is used
        # The attributes of a model that does not exist are not read.
        yield at[:2] if at[-1] == "model" and len(at) == 3 else at


def _is_read(leaf: Pointer, document: dict[str, Json], result: CheckResult) -> bool:
    section, *path = leaf
    content: Any = document[str(section)]
    if section in RESOURCES:
        return _is_read_in_resource(path, content, result)
    if isinstance(content, list):
        index, *path = path
        assert isinstance(index, int)
        kept = getattr(result.config, str(section), [])
        if section in NAMELESS:
            return len(kept) == len(content) and _is_set(kept[index], path)
        key = "id" if section == "processes" else "name"
        item = content[index]
        return item.get("disabled", False) or any(
            getattr(each, key) == item[key] and _is_set(each, path) for each in kept
        )
    return _is_set(result.config, leaf)


def _is_read_in_resource(path: list[str | int], content: Any, result: CheckResult) -> bool:
    index, key, *rest = path
    item = content[index]
    configs = [*result.config.components, *result.config.services]
    config = next(each for each in configs if _describes(each, item))
    if key in LEGACY_KEYS:
        return True
    if key != "attributes":
        return _is_set(config, [key, *rest])
    schema = REGISTRY.find(config.api, config.model)
    if schema is None:
        return _is_set(config, [key, *rest])  # passed on to the module
    settings = next(spec.settings for spec in result.specs if spec.name == config.full_name)
    return isinstance(settings, BaseModel) and _is_set(settings, rest)


def _describes(config: ResourceConfig, item: dict[str, Any]) -> bool:
    written = item.get("api", item.get("type"))
    subtype = written.get("subtype") if isinstance(written, dict) else written
    return (
        config.name == item.get("name", "builtin")
        and config.api.subtype == str(subtype).rpartition(":")[2]
    )


def _is_set(value: Any, path: Pointer | list[str | int]) -> bool:
    """Return whether a validated value contains what is at the path."""
    for index, key in enumerate(path):
        if isinstance(value, BaseModel):
            fields = {field.alias or name: name for name, field in type(value).model_fields.items()}
            name = fields.get(str(key))
            if name is None or name not in value.model_fields_set:
                return False
            value = getattr(value, name)
        elif isinstance(value, list):
            value = value[int(key)]
        elif isinstance(value, dict):
            if key not in value:
                return False
            value = value[key]
        else:
            # A value that was parsed, such as an API that is written as an object.
            return index > 0
    return True
