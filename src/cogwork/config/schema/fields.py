"""Field types of the configuration. Validation errors carry the code of their diagnostic."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    GetJsonSchemaHandler,
    JsonValue,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError

from cogwork.config.schema import codes
from cogwork.config.schema.codes import Code
from cogwork.config.schema.docstrings import field_docstrings
from cogwork.core import duration
from cogwork.core.errors import InvalidName
from cogwork.graph.name import BUILTIN_NAMESPACE, Api, ModelName, check_name
from cogwork.graph.public_apis import PUBLIC_APIS
from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern

T = TypeVar("T")

MAX_LONG_NAME = 200

DEPENDS_ON = "x-depends-on"
"""The keyword of a JSON Schema for an attribute that names a resource: the API of the resource, or
`*` for any. Editors offer the resources of this API."""


class DocumentedModel(BaseModel):
    """A model whose field docstrings become descriptions in its JSON Schema.

    Pydantic would read the source of every class at import; here the source is read on demand.
    """

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        made = handler(core_schema)
        members = handler.resolve_ref_schema(made).get("properties", {})
        docstrings = field_docstrings(cls)
        for name, field in cls.model_fields.items():
            member = members.get(field.alias or name)
            if member is not None and name in docstrings:
                member.setdefault("description", docstrings[name])
        return made

    @model_validator(mode="before")
    @classmethod
    def _drop_unset(cls, data: Any) -> Any:
        """Drop known keys with null, and zero values of fields marked with `UnsetIfZero`."""
        if not isinstance(data, dict) or all(data.values()):
            return data
        known, unset_keys = _known_keys(cls), _keys_unset_if_zero(cls)
        return {
            key: value
            for key, value in data.items()
            if not (value is None and key in known) and not (key in unset_keys and is_zero(value))
        }


@dataclass(frozen=True, slots=True)
class UnsetIfZero:
    """Marks a field that counts as not set if it is 0, an empty text, an empty list, or an object
    with only such values, because existing files contain these values for fields without one."""


def find_markers(field: FieldInfo) -> list[object]:
    """Return the metadata of a field, including nested metadata such as the marker in
    `list[Annotated[str, Dependency()]]`."""
    return [*field.metadata, *_nested_metadata(field.annotation)]


def _nested_metadata(annotation: object) -> Iterator[object]:
    if get_origin(annotation) is Annotated:
        yield from get_args(annotation)[1:]
    for argument in get_args(annotation):
        yield from _nested_metadata(argument)


@functools.cache
def _known_keys(kind: type[BaseModel]) -> frozenset[str]:
    return frozenset(field.alias or name for name, field in kind.model_fields.items())


@functools.cache
def _keys_unset_if_zero(kind: type[BaseModel]) -> frozenset[str]:
    return frozenset(
        field.alias or name
        for name, field in kind.model_fields.items()
        if any(isinstance(marker, UnsetIfZero) for marker in find_markers(field))
    )


def is_zero(value: object) -> bool:
    """Return whether a value is 0, empty, or an object with only such values."""
    if isinstance(value, dict):
        return all(map(is_zero, value.values()))
    return not value and not isinstance(value, bool)


class Section(DocumentedModel):
    """A section of the machine configuration: strict types, no unknown keys."""

    # Build validators on first use, so that a machine starts faster.
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True, defer_build=True
    )


class Attributes(DocumentedModel):
    """The `attributes` of one model. Numbers may be quoted, for compatibility."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)

    def ignored_values(self, written: Mapping[str, JsonValue]) -> tuple[IgnoredValue, ...]:
        """Return the values that are valid, but not used or not used completely.

        `written`: the attributes as they stand in the file.
        """
        del written
        return ()


@dataclass(frozen=True, slots=True)
class IgnoredValue:
    """A value in attributes that is not used, or not completely."""

    path: tuple[str | int, ...]
    message: str
    hint: str | None = None
    replacement: JsonValue | None = None
    """The part of the value that is used. With it, the same runs."""
    is_removable: bool = False
    """Whether the same runs without the value."""


@dataclass(frozen=True, slots=True)
class Dependency:
    """Marks an attribute that names a required dependency."""

    api: str | None = None

    def __post_init__(self) -> None:
        _check_api(self.api)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return _describe_dependency(self.api, handler(core_schema))


@dataclass(frozen=True, slots=True)
class OptionalDependency:
    """Marks an attribute that names an optional dependency."""

    api: str | None = None

    def __post_init__(self) -> None:
        _check_api(self.api)

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return _describe_dependency(self.api, handler(core_schema))


def _describe_dependency(api: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {**schema, DEPENDS_ON: api or "*"}


def _check_api(text: str | None) -> None:
    """Reject an invalid marker at import, so that it is not reported as a configuration error."""
    api = Api.parse(text) if text is not None else None
    if api is not None and api.namespace == BUILTIN_NAMESPACE and api not in PUBLIC_APIS:
        raise InvalidName(f'unknown API "{api}"')


@dataclass(frozen=True, slots=True)
class ExistingFile:
    """Marks an attribute that holds the path of an existing file.

    A relative path refers to the directory of the configuration file, or else to the working
    directory. The driver gets the absolute path.
    """

    or_folder: bool = False
    """Whether the path may be a folder."""


@dataclass(frozen=True, slots=True, eq=False)
class ObjectKeys:
    """Marks an object whose keys are known, although its type does not name them."""

    keys: Mapping[str, ObjectKeys | None]
    """The keys, and the keys of their values; None for values without known keys."""


def fault(code: Code, message: str) -> PydanticCustomError:
    # Pydantic treats the second argument as a template. The message may contain braces, so pass it
    # as a value.
    return PydanticCustomError(code.id, "{message}", {"message": message})


def require_certificate_pair(pair: Mapping[str, object]) -> None:
    """Check the fields of a certificate and its key: both must be set, or neither."""
    missing = [name for name, value in pair.items() if not value]
    if len(missing) == 1:
        raise fault(
            codes.INCOMPLETE_PAIR,
            f'"{missing[0]}" is missing; a certificate and its key must be set together',
        )


def _text_validator(code: Code, read: Callable[[str], T]) -> Callable[[Any], T]:
    def validate(value: Any) -> T:
        if not isinstance(value, str):
            raise PydanticCustomError("string_type", "expected a string")
        try:
            return read(value)
        except ValueError as error:
            raise fault(code, str(error)) from None

    return validate


def _text_or_object_validator(
    code: Code, read: Callable[[str], T], keys: tuple[str, str, str]
) -> Callable[[Any], T]:
    """Return a validator that accepts text, or the legacy form: an object with the three `keys`."""
    from_text = _text_validator(code, read)

    def validate(value: Any) -> T:
        if not isinstance(value, dict):
            return from_text(value)
        parts = [part for key in keys if isinstance(part := value.get(key), str)]
        if set(value) - set(keys) or len(parts) < len(keys):
            raise fault(code, f"expected an object with exactly the keys {', '.join(keys)}")
        return from_text(":".join(parts))

    return validate


def _name_parser(longest: int) -> Callable[[str], str]:
    def read(text: str) -> str:
        try:
            return check_name(text, longest)
        except InvalidName as error:
            raise ValueError(str(error)) from None

    return read


_NAME_SCHEMA = {"type": "string", "pattern": "^[a-zA-Z0-9][-\\w]*$"}
_TRIPLET_PATTERN = "^[\\w-]+:[\\w-]+:[\\w-]+$"


def _triplet_schema(pattern: str, *keys: str) -> dict[str, Any]:
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


def _case_insensitive(*words: str) -> str:
    """Return a pattern that matches in any case. JSON Schema has no flag for this."""
    either = re.sub(r"[a-z]", lambda match: f"[{match[0]}{match[0].upper()}]", "|".join(words))
    return f"^\\s*({either})\\s*$"


_API_KEYS = ("namespace", "type", "subtype")
_MODEL_KEYS = ("namespace", "model_family", "name")

parse_api = _text_or_object_validator(codes.BAD_API, Api.parse, _API_KEYS)
parse_model = _text_or_object_validator(codes.BAD_MODEL, ModelName.parse, _MODEL_KEYS)

ApiField = Annotated[
    Api,
    PlainValidator(parse_api),
    ObjectKeys(dict.fromkeys(_API_KEYS)),
    WithJsonSchema(_triplet_schema(_TRIPLET_PATTERN, *_API_KEYS)),
]
ModelField = Annotated[
    ModelName,
    PlainValidator(parse_model),
    ObjectKeys(dict.fromkeys(_MODEL_KEYS)),
    WithJsonSchema(_triplet_schema("^[\\w-]+(:[\\w-]+:[\\w-]+)?$", *_MODEL_KEYS)),
]
ResourceNameField = Annotated[
    str,
    PlainValidator(_text_validator(codes.BAD_NAME, _name_parser(60))),
    WithJsonSchema({**_NAME_SCHEMA, "maxLength": 60}),
]
LongNameField = Annotated[
    str,
    PlainValidator(_text_validator(codes.BAD_NAME, _name_parser(MAX_LONG_NAME))),
    WithJsonSchema({**_NAME_SCHEMA, "maxLength": MAX_LONG_NAME}),
]
Duration = Annotated[
    float,
    PlainValidator(_text_validator(codes.BAD_DURATION, duration.parse)),
    UnsetIfZero(),
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
    PlainValidator(_text_validator(codes.BAD_LEVEL, Level.parse)),
    WithJsonSchema(
        {
            "title": "log level",
            "anyOf": [
                {"enum": [level.name.lower() for level in Level]},
                {
                    "type": "string",
                    "pattern": _case_insensitive("debug", "info", "warn(ing)?", "error"),
                },
            ],
        }
    ),
]
PatternField = Annotated[
    Pattern,
    PlainValidator(_text_validator(codes.BAD_PATTERN, Pattern.parse)),
    WithJsonSchema({"type": "string", "minLength": 1}),
]
FileField = Annotated[str, ExistingFile()]
FileOrFolderField = Annotated[str, ExistingFile(or_folder=True)]
