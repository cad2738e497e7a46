"""Field types of the configuration. A fault carries the code of its diagnostic."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from cogwork.config import codes
from cogwork.config.apis import PUBLIC_APIS
from cogwork.config.codes import Code
from cogwork.config.docstrings import docstrings_of
from cogwork.core import duration
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_NAMESPACE, Api, ModelName, check_name
from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern

T = TypeVar("T")

LONG_NAME = 200


class Described(BaseModel):
    """The docstrings under its fields describe them in its JSON Schema.

    Pydantic would read the source of every class at import; here it is read when asked for.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(core_schema)
        members = handler.resolve_ref_schema(made).get("properties", {})
        docstrings = docstrings_of(cls)
        for name, field in cls.model_fields.items():
            member = members.get(field.alias or name)
            if member is not None and name in docstrings:
                member.setdefault("description", docstrings[name])
        return made


class Section(Described):
    """A part of the machine's own configuration: exact types, no unknown keys."""

    # Built when first used: a machine starts faster without what its file does not mention.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, data: Any) -> Any:
        if isinstance(data, dict) and None in data.values():
            return {key: value for key, value in data.items() if value is not None}
        return data


class Attributes(Described):
    """What one model reads from `attributes`. A number may also stand in quotes, as upstream."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


@dataclass(frozen=True, slots=True)
class Needs:
    """Marks an attribute that names a resource the model cannot do without."""

    api: str | None = None

    def __post_init__(self) -> None:
        _check_api(self.api)


@dataclass(frozen=True, slots=True)
class Wants:
    """Marks an attribute that names a resource the model uses when it is there."""

    api: str | None = None

    def __post_init__(self) -> None:
        _check_api(self.api)


def _check_api(text: str | None) -> None:
    """A slip of the author must not look like one of whoever writes the configuration."""
    api = Api.parse(text) if text is not None else None
    if api is not None and api.namespace == BUILTIN_NAMESPACE and api not in PUBLIC_APIS:
        raise InvalidName(f"there is no API {api}")


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """Marks an attribute that is the path of a file."""


def fault(code: Code, message: str) -> PydanticCustomError:
    # Braces would be read as a template.
    return PydanticCustomError(code.id, "{message}", {"message": message})


def _from_text(code: Code, read: Callable[[str], T]) -> Callable[[Any], T]:
    def validate(value: Any) -> T:
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "a string is wanted")
        try:
            return read(value)
        except ValueError as error:
            raise fault(code, str(error)) from None

    return validate


def _from_text_or_object(
    code: Code, read: Callable[[str], T], keys: tuple[str, str, str]
) -> Callable[[Any], T]:
    """The legacy form spells the three parts out as an object."""
    from_text = _from_text(code, read)

    def validate(value: Any) -> T:
        if not isinstance(value, dict):
            return from_text(value)
        parts = [part for key in keys if isinstance(part := value.get(key), str)]
        if set(value) - set(keys) or len(parts) < len(keys):
            raise fault(code, f"an object here has exactly the keys {', '.join(keys)}")
        return from_text(":".join(parts))

    return validate


def _named(longest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            return check_name(text, longest)
        except InvalidName as error:
            raise ValueError(str(error)) from None

    return read


_NAME_SCHEMA = {"type": "string", "pattern": "^[a-zA-Z0-9][-\\w]*$"}
_THREE = "^[\\w-]+:[\\w-]+:[\\w-]+$"


def _three_parts(pattern: str, *keys: str) -> dict[str, Any]:
    parts = {key: {"type": "string"} for key in keys}
    return {
        "anyOf": [
            {"type": "string", "pattern": pattern},
            {
                "type": "object",
                "properties": parts,
                "required": list(keys),
                "additionalProperties": False,
            },
        ]
    }


def _any_case(*words: str) -> str:
    """An expression of JSON Schema, which has no flag for it."""
    either = re.sub(r"[a-z]", lambda match: f"[{match[0]}{match[0].upper()}]", "|".join(words))
    return f"^\\s*({either})\\s*$"


_API_KEYS = ("namespace", "type", "subtype")
_MODEL_KEYS = ("namespace", "model_family", "name")

read_api = _from_text_or_object(codes.BAD_API, Api.parse, _API_KEYS)

ApiField = Annotated[
    Api,
    PlainValidator(read_api),
    WithJsonSchema(_three_parts(_THREE, *_API_KEYS)),
]
ModelField = Annotated[
    ModelName,
    PlainValidator(_from_text_or_object(codes.BAD_MODEL, ModelName.parse, _MODEL_KEYS)),
    WithJsonSchema(_three_parts("^[\\w-]+(:[\\w-]+:[\\w-]+)?$", *_MODEL_KEYS)),
]
ResourceNameField = Annotated[
    str,
    PlainValidator(_from_text(codes.BAD_NAME, _named(60))),
    WithJsonSchema({**_NAME_SCHEMA, "maxLength": 60}),
]
LongNameField = Annotated[
    str,
    PlainValidator(_from_text(codes.BAD_NAME, _named(LONG_NAME))),
    WithJsonSchema({**_NAME_SCHEMA, "maxLength": LONG_NAME}),
]
Duration = Annotated[
    float,
    PlainValidator(_from_text(codes.BAD_DURATION, duration.parse)),
    WithJsonSchema(
        {
            "title": "duration",
            "type": "string",
            "pattern": "^[-+]?(0|(\\d+(\\.\\d*)?|\\.\\d+)(ns|us|µs|μs|ms|s|m|h))+$",
        }
    ),
]
LevelField = Annotated[
    Level,
    PlainValidator(_from_text(codes.BAD_LEVEL, Level.parse)),
    WithJsonSchema(
        {
            "title": "log level",
            "anyOf": [
                {"enum": [level.name.lower() for level in Level]},
                {"type": "string", "pattern": _any_case("debug", "info", "warn(ing)?", "error")},
            ],
        }
    ),
]
PatternField = Annotated[
    Pattern,
    PlainValidator(_from_text(codes.BAD_PATTERN, Pattern.parse)),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
FileField = Annotated[str, ExistingFile()]
