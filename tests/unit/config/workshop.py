"""Models that use every marker, and helpers to load a configuration with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from cogwork.config.check.diagnostics import Diagnostic
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema.fields import Attributes, Dependency, ExistingFile, OptionalDependency
from cogwork.config.text.positions import Position
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.graph.spec import Spec
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry

HOME = Path("/home/cog")
FILES = frozenset({"/bin/acme", "/etc/cert.pem", "/etc/key.pem", "/data/labels.txt"})


class CameraAttributes(Attributes):
    width: Annotated[int, Field(ge=1, le=4096)] = 640
    """Pixels of a row."""
    rate: float = 30.0
    mode: Literal["color", "depth"] = "color"
    password: str = ""
    port: int = 80

    @field_validator("password")
    @classmethod
    def _check_length(cls, password: str) -> str:
        if len(password) > 20:
            raise ValueError(f"{password} is too long")
        return password


class Region(Attributes):
    camera: Annotated[str, Dependency("rdk:component:camera")]


class VisionAttributes(Attributes):
    camera: Annotated[str, Dependency("rdk:component:camera")] | None = None
    extra_cameras: list[Annotated[str, Dependency("rdk:component:camera")]] = []
    helper: Annotated[str, OptionalDependency()] = ""
    lamp: Annotated[str, OptionalDependency("rdk:component:switch")] = ""
    label_path: Annotated[str, ExistingFile()] = ""
    regions: list[Region] = []


class BrokenAttributes(Attributes):
    size: int = 0

    @model_validator(mode="after")
    def _raise_key_error(self) -> BrokenAttributes:
        raise KeyError("size")


async def construct(name: ResourceName, attributes: object, dependencies: Dependencies) -> object:
    raise NotImplementedError


def model(
    api: str, name: str, attributes: type[Attributes], *, reconfigures: bool = False
) -> Model:
    return Model(Api.parse(api), ModelName.parse(name), attributes, construct, reconfigures)


REGISTRY = Registry(
    [
        *builtin_models(),
        model("rdk:component:camera", "test", CameraAttributes, reconfigures=True),
        model("rdk:service:vision", "test", VisionAttributes),
        model("rdk:service:generic", "broken", BrokenAttributes),
        model("rdk:component:switch", "fake", Attributes),
    ]
)


def load_context(
    environment: Mapping[str, str] | None = None, files: Collection[str] = FILES
) -> LoadContext:
    return LoadContext(
        REGISTRY,
        HOME,
        environment or {},
        lambda path: str(path) in files,
        lambda path: any(Path(file).is_relative_to(path) for file in files),
    )


def load_config(
    content: str | JsonValue,
    environment: Mapping[str, str] | None = None,
    files: Collection[str] = FILES,
) -> LoadedConfig:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return load(text, load_context(environment, files))


def diagnostics_of(load: LoadedConfig) -> list[Diagnostic]:
    return [fault.diagnostic for fault in load.diagnostics]


def codes_of(load: LoadedConfig) -> list[str]:
    return [diagnostic.code.id for diagnostic in diagnostics_of(load)]


def spec_of(load: LoadedConfig, name: str) -> Spec:
    return next(spec for spec in load.result.specs if spec.name.short == name)


def parse_markers(text: str, mark: str = "«") -> tuple[str, list[Position]]:
    """Remove the marks and return the text and the positions of the marks."""
    positions = []
    while (offset := text.find(mark)) >= 0:
        line_start = text.rfind("\n", 0, offset) + 1
        positions.append(Position(text.count("\n", 0, offset) + 1, offset - line_start + 1))
        text = text[:offset] + text[offset + len(mark) :]
    return text, positions


SENSOR: dict[str, JsonValue] = {"api": "rdk:component:sensor", "model": "fake"}


def sensor(name: str, **more: JsonValue) -> dict[str, JsonValue]:
    return {"name": name, **SENSOR, **more}
