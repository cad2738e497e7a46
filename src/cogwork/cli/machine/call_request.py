"""The request of `cogwork call`: JSON to a message, and sentences about what is wrong with it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.json_format import ParseDict, ParseError
from google.protobuf.message_factory import GetMessageClass

from cogwork.cli.client.grpc_client import CommandError
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import position_at
from cogwork.core.sentences import join_names
from cogwork.wire.messages.resource_field import name_field

_MAX_QUOTED = 40
_MAX_LISTED = 12
_UNPARSABLE = (ValueError, ParseError, TypeError, AttributeError, RecursionError, SystemError)
"""What ParseDict raises for a value of the wrong type."""
_WELL_KNOWN = {
    "google.protobuf.Struct": "a JSON object",
    "google.protobuf.Value": "a JSON value",
    "google.protobuf.ListValue": "a list",
    "google.protobuf.Timestamp": 'a time such as "2026-11-15T14:02:00Z"',
    "google.protobuf.Duration": 'a duration in seconds such as "1.5s"',
}
"""The messages that JSON writes in a form of their own."""
_SCALARS = {
    FieldDescriptor.CPPTYPE_INT32: "a whole number of 32 bits",
    FieldDescriptor.CPPTYPE_UINT32: "a whole number of 32 bits, at least 0",
    FieldDescriptor.CPPTYPE_INT64: "a whole number",
    FieldDescriptor.CPPTYPE_UINT64: "a whole number, at least 0",
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_STRING: "a string",
}


def build_request(method: MethodDescriptor, name: str, text: str) -> Any:
    """Return the request that a JSON text describes, with the name of the resource.

    Raise CommandError if it is not JSON, or does not match the fields of the method.
    """
    content = _read_object(method, text)
    request = GetMessageClass(method.input_type)()
    try:
        # Encode the text first, which raises ValueError for a lone surrogate: ParseDict would raise
        # SystemError.
        json.dumps(content, ensure_ascii=False).encode()
        ParseDict(content, request)
    except _UNPARSABLE as error:
        fault = _find_fault(method, method.input_type, content, "") or str(error)
        raise CommandError(f"invalid request: {fault}") from error
    if (field := name_field(method.input_type)) is not None:
        setattr(request, field, getattr(request, field) or name)
    return request


def _read_object(method: MethodDescriptor, text: str) -> dict[str, Any]:
    example = shlex.quote(json.dumps(_make_example(method.input_type)))
    try:
        content = read_json(text).value
    except JsonSyntaxError as error:
        column = position_at(text, error.span.start).column
        hint = error.hint or f"write it as in {example}"
        raise CommandError(
            f"invalid request: {error.message} (at character {column}); {hint}"
        ) from error
    if not isinstance(content, dict):
        raise CommandError(f"invalid request: expected a JSON object, such as {example}")
    return content


def _make_example(message: Descriptor) -> dict[str, Any]:
    """Return an example of the first field that takes a number, a switch or a text."""
    for field in _own_fields(message):
        if field.cpp_type in _SCALARS and not field.is_repeated:
            is_text = field.cpp_type == FieldDescriptor.CPPTYPE_STRING
            is_switch = field.cpp_type == FieldDescriptor.CPPTYPE_BOOL
            return {field.name: "text" if is_text else True if is_switch else 1}
    return {}


def _find_fault(
    method: MethodDescriptor, message: Descriptor, content: Mapping[str, Any], path: str
) -> str | None:
    """Describe the first field that cannot be parsed.

    `path` leads to the field that contains the message; it is empty for the request.
    """
    fields = {name: each for each in message.fields for name in (each.json_name, each.name)}
    for key, value in content.items():
        field = fields.get(key)
        if field is None:
            return _describe_unknown(message, key, f'"{path}"' if path else method.name)
        if not _is_parsable(message, {key: value}):
            return _find_inner_fault(method, field, value, f"{path}.{key}".lstrip("."))
    return None


def _find_inner_fault(
    method: MethodDescriptor, field: FieldDescriptor, value: Any, path: str
) -> str:
    """Describe what is wrong inside a field, or with the field if it has no fields itself."""
    if isinstance(value, list) and field.is_repeated and not _is_map(field):
        for index, item in enumerate(value):
            if not _is_parsable(field.containing_type, {field.name: [item]}):
                return _find_item_fault(method, field, item, f"{path}[{index}]")
    if field.is_repeated:
        return _describe_mismatch(path, _describe_type(field), value)
    return _find_item_fault(method, field, value, path)


def _find_item_fault(
    method: MethodDescriptor, field: FieldDescriptor, value: Any, path: str
) -> str:
    message = field.message_type
    inner = None
    if isinstance(value, dict) and message is not None and message.full_name not in _WELL_KNOWN:
        inner = _find_fault(method, message, value, path)
    return inner or _describe_mismatch(path, _describe_item(field), value)


def _describe_unknown(message: Descriptor, key: str, owner: str) -> str:
    names = [each.name for each in _own_fields(message)]
    listed = join_names(
        [f"{each.name} ({_describe_type(each)})" for each in _own_fields(message)], _MAX_LISTED
    )
    hint = did_you_mean(key, names) or (f"its fields: {listed}" if names else "it has no fields")
    return f"{owner} has no field {_quote(key)}; {hint}"


def _describe_mismatch(path: str, expected: str, value: Any) -> str:
    return f'"{path}" must be {expected}, not {_quote(value)}'


def _describe_type(field: FieldDescriptor) -> str:
    """Return the type as an article and a noun: `a number`, `a list, each a string`."""
    if _is_map(field):
        return "a JSON object"
    described = _describe_item(field)
    return f"a list, each {described}" if field.is_repeated else described


def _describe_item(field: FieldDescriptor) -> str:
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "a string in base64"
    if field.enum_type is not None:
        return f"one of {', '.join(each.name for each in field.enum_type.values)}"
    if (message := field.message_type) is not None:
        names = join_names([each.name for each in message.fields], _MAX_LISTED)
        return _WELL_KNOWN.get(message.full_name) or f"an object with {names or 'no fields'}"
    return _SCALARS[field.cpp_type]


def _own_fields(message: Descriptor) -> list[FieldDescriptor]:
    """Return the fields but for the name of the resource, which the command sets."""
    name = name_field(message)
    return [each for each in message.fields if each.name != name]


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _is_parsable(message: Descriptor, content: dict[str, Any]) -> bool:
    try:
        json.dumps(content, ensure_ascii=False).encode()
        ParseDict(content, GetMessageClass(message)())
    except _UNPARSABLE:
        return False
    return True


def _quote(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value that is nested too deeply"
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}…"
