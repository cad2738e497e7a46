"""Field docstrings become descriptions in the JSON Schema when the source is available."""

from __future__ import annotations

import importlib
import py_compile
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from cogwork.config.schema.fields import Attributes, Section


class Engine(Section):
    power: float = 0.0
    """In watts.

    When it is new.
    """
    fuel: str = ""
    """What it burns."""
    label: Annotated[str, Field(alias="$label")] = ""
    """A name for people."""
    colour: Annotated[str, Field(description="As painted.")] = ""
    """Not this one."""
    weight: float = 0.0
    size: float = 0.0
    _taken: bool = False
    """Nobody configures it."""


class Diesel(Engine):
    fuel: str = "diesel"
    """It burns nothing else."""
    weight: float = 900.0
    """In kilograms."""

    class Part(Attributes):
        count: int = 1
        """How many."""


def descriptions(schema: dict[str, Any]) -> dict[str, str | None]:
    return {key: member.get("description") for key, member in schema["properties"].items()}


def test_field_docstring_becomes_its_description() -> None:
    assert descriptions(Engine.model_json_schema()) == {
        "power": "In watts.\n\nWhen it is new.",
        "fuel": "What it burns.",
        "$label": "A name for people.",
        "colour": "As painted.",
        "weight": None,
        "size": None,
    }


def test_subclass_docstring_overrides_the_description() -> None:
    assert descriptions(Diesel.model_json_schema()) == {
        **descriptions(Engine.model_json_schema()),
        "fuel": "It burns nothing else.",
        "weight": "In kilograms.",
    }


def test_nested_and_local_classes_are_described() -> None:
    class Local(Attributes):
        part: Diesel.Part = Diesel.Part()
        """The one it has."""

    made = Local.model_json_schema()
    assert descriptions(made) == {"part": "The one it has."}
    assert descriptions(made["$defs"]["Part"]) == {"count": "How many."}


SOURCE = """
from cogwork.config.schema.fields import Attributes

class Lamp(Attributes):
    watts: float = 5.0
    '''At full brightness.'''
"""


def test_class_without_source_works_without_descriptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "sourceless_lamps.py"
    source.write_text(SOURCE)
    py_compile.compile(str(source), str(source.with_suffix(".pyc")), doraise=True)
    source.unlink()
    monkeypatch.syspath_prepend(tmp_path)
    lamp = importlib.import_module(source.stem).Lamp
    try:
        assert lamp(watts=3).watts == 3
        assert descriptions(lamp.model_json_schema()) == {"watts": None}
    finally:
        del sys.modules[source.stem]
