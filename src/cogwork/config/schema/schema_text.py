"""Types and defaults of a JSON Schema in words, for the reference and for commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

JsonSchema = Mapping[str, Any]

_NULL = {"type": "null"}
_ANY_JSON = "JsonValue"


def describe_type(
    member: JsonSchema,
    *,
    quote: Callable[[str], str] = str,
    link: Callable[[str], str] = lambda _: "object",
) -> str:
    """Return the type in words, such as `array of string`.

    `quote` formats literal values, and `link` the name of a definition.
    """

    def describe(inner: JsonSchema) -> str:
        return describe_type(inner, quote=quote, link=link)

    if "title" in member:
        return str(member["title"])
    if "enum" in member:
        return " or ".join(quote(json.dumps(choice)) for choice in member["enum"])
    if "const" in member:
        return quote(json.dumps(member["const"]))
    if "anyOf" in member:
        return " or ".join(describe(choice) for choice in member["anyOf"] if choice != _NULL)
    if "$ref" in member:
        name = _definition_name(member) or ""
        return "any" if name == _ANY_JSON else link(name)
    if member.get("type") == "array":
        return f"array of {describe(member['items'])}" if member.get("items") else "array"
    values = member.get("additionalProperties")
    if isinstance(values, Mapping) and "type" in values:
        return f"object of {describe(values)}"
    return str(member.get("type", "any"))


def find_default(member: JsonSchema) -> Any:
    """Return the default of an optional member; None if it has none."""
    is_object = "$ref" in member and _definition_name(member) != _ANY_JSON
    return member.get("default", {} if is_object else None)


def nested_objects(
    schema: JsonSchema, definitions: JsonSchema
) -> Iterator[tuple[str, JsonSchema, str]]:
    """Yield the members that are objects, or lists of objects: key, member, name of the object."""
    for key, member in schema.get("properties", {}).items():
        name = _definition_name(member)
        if name is not None and "properties" in definitions[name]:
            yield key, member, name


def _definition_name(member: JsonSchema) -> str | None:
    choices = [member, member.get("items", {}), *member.get("anyOf", ())]
    references = [choice["$ref"] for choice in choices if "$ref" in choice]
    return references[0].rpartition("/")[2] if references else None
