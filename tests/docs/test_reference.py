"""The examples and links of the reference pages work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from scripts import generate
from tests.support.paths import REPOSITORY

from cogwork.cli.command_tree import programs, walk
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.schema.codes import UNSUPPORTED
from cogwork.config.schema.json_schema import describe_model, machine_schema
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.text.json_reader import read_json
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry

PAGES = REPOSITORY / "docs" / "reference"
CONFIGURATION = (PAGES / "configuration.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```json\n(.*?)^```", CONFIGURATION, re.MULTILINE | re.DOTALL)
REGISTRY = Registry(builtin_models())


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_loads(text: str) -> None:
    environment = dict.fromkeys(re.findall(r"\$\{([A-Z0-9_]+)\}", text), "secret")
    loaded = load(text, LoadContext(REGISTRY, Path("/home/cog"), environment, lambda _: True))
    found = [fault.diagnostic for fault in loaded.diagnostics]
    # The page also shows what a later release will support, and says so.
    assert [each.message for each in found if each.code is not UNSUPPORTED] == []


@pytest.mark.parametrize("text", EXAMPLES)
def test_example_matches_the_schema(text: str) -> None:
    validator = Draft202012Validator(machine_schema(REGISTRY))
    assert not [error.message for error in validator.iter_errors(read_json(text).value)]


def test_every_example_is_on_the_page() -> None:
    assert [text.strip() for text in EXAMPLES] == list(generate.EXAMPLES.values())


@pytest.mark.parametrize("path", generate.INACTIVE_PARTS)
def test_inactive_parts_are_marked_as_later(path: str) -> None:
    parent, _, key = path.rpartition(".")
    assert re.search(rf"^\| `{key}` .*\*\(later\)\* \|$", read_section(parent), re.MULTILINE)
    assert path not in find_headings(CONFIGURATION) or generate.INACTIVE_PARTS[
        path
    ] in read_section(path)


def test_every_field_of_every_section_is_in_a_table() -> None:
    machine = describe_model(MachineConfig)
    shown = [find_fields(read_section(heading)) for heading in find_headings(CONFIGURATION)]
    for part in (machine, *machine["$defs"].values()):
        assert list(part.get("properties", ())) in shown


def read_section(heading: str) -> str:
    title = re.escape(heading or "Top level")
    found = re.search(rf"^#+ {title}\n(.*?)(?=^#|\Z)", CONFIGURATION, re.MULTILINE | re.DOTALL)
    assert found, heading
    return found[1]


def find_headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", page, re.MULTILINE)


def find_fields(text: str) -> list[str]:
    return re.findall(r"^\| `(.*?)` \|", text, re.MULTILINE)


@pytest.mark.parametrize("page", sorted(PAGES.glob("*.md")), ids=lambda page: page.stem)
def test_links_have_targets(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    anchors = {
        re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in find_headings(text)
    }
    for target in re.findall(r"\]\((?!https:)([^)]+)\)", text):
        path, _, anchor = target.partition("#")
        assert (page.parent / path).exists() if path else anchor in anchors, target


def test_every_command_is_on_the_page() -> None:
    page = (PAGES / "cli.md").read_text(encoding="utf-8")
    for program in programs():
        for command in walk(program):
            if not command.commands:
                assert f"# {command.name}\n" in page
                for argument in command.arguments:
                    assert f"- `{argument.usage}`" in page or "help" in argument.usage
