"""Validate parts of the configuration with pydantic, and convert its errors to diagnostics."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect, Quote, Suggest
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.not_taken_over import not_taken_over
from cogwork.config.schema import codes
from cogwork.config.schema.codes import CODES
from cogwork.config.schema.existing_product.lookup import (
    NO_DIFFERENCES,
    Differences,
    find_difference,
)
from cogwork.config.text.positions import Json, Pointer


class Validator:
    """Validates a part of the configuration. Unknown keys and invalid optional fields are
    dropped."""

    def __init__(
        self,
        kind: Any,
        dispensable: frozenset[str] = frozenset(),
        differences: Differences = NO_DIFFERENCES,
    ) -> None:
        """If a field in `dispensable` is invalid, the field is dropped and the rest is used.

        `differences`: unknown keys that viam-server knows.
        """
        self._kind = kind
        self._differences = differences
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
        self._dispensable = dispensable

    def validate(
        self, value: Json, at: Pointer, effect: Effect, quote: Quote, suggest: Suggest
    ) -> tuple[Any, list[Diagnostic]]:
        """Return the validated object and its diagnostics. The object is None if it is unusable."""
        try:
            return self._adapter.validate_python(value), []
        except ValidationError as error:
            faults = error.errors(include_url=False)
        except Exception as error:
            # Omit the message: the error may come from the validator of a plug-in, and quote a
            # secret.
            reason = f"validation failed with {type(error).__name__}"
            return None, [Diagnostic(codes.BAD_VALUE, reason, ConfigLocation(at), effect)]
        found = []
        dropped: list[Pointer] = []
        for fault in faults:
            without = self._find_droppable(fault)
            if without is None:
                found.append(self._to_diagnostic(fault, value, at, effect, quote, suggest))
            else:
                found.append(self._to_diagnostic(fault, value, at, Effect.IGNORED, quote, suggest))
                dropped.append(_resolve_location(without, value))
        rest = _remove_all(value, dropped) if dropped else value
        if rest == value:
            return None, found
        # Validate again without the invalid parts: the validators of a whole object only run after
        # all of its fields are valid.
        usable, more = self.validate(rest, at, effect, quote, suggest)
        seen = set(found)
        return usable, found + [late for late in more if late not in seen]

    def _find_droppable(self, fault: ErrorDetails) -> tuple[int | str, ...] | None:
        """Return the location to drop so that the rest is usable; None if the rest is unusable."""
        location = fault["loc"]
        if fault["type"] == "extra_forbidden":
            return location
        if location and location[0] in self._dispensable:
            return location[:1]
        return None

    def _to_diagnostic(
        self,
        fault: ErrorDetails,
        value: Json,
        at: Pointer,
        effect: Effect,
        quote: Quote,
        suggest: Suggest,
    ) -> Diagnostic:
        location = _resolve_location(fault["loc"], value)
        pointer = (*at, *location)
        kind = fault["type"]
        if kind == "missing":
            field = str(fault["loc"][-1])
            return Diagnostic(
                codes.MISSING_FIELD, f'"{field}" is missing', ConfigLocation(pointer), effect
            )
        if kind == "extra_forbidden":
            return self._unknown_key_diagnostic(fault["input"], location, pointer, suggest)
        message = _redact_message(fault, pointer, quote)
        if kind in CODES:
            hint = None
            if CODES[kind] is codes.BAD_NAME and _is_literal(fault["input"], pointer, quote):
                hint = _suggest_name(fault["input"])
            return Diagnostic(CODES[kind], message, ConfigLocation(pointer), effect, hint)
        got = _describe_value(fault["input"], pointer, quote)
        if kind in _EXPECTED_TYPES:
            message = f"expected {_EXPECTED_TYPES[kind]}, got {got}"
            hint = (
                f"write [{got.partition(' ')[2].partition(' ')[2]}]"
                if _would_fit_in_list(fault)
                else None
            )
            return Diagnostic(codes.WRONG_TYPE, message, ConfigLocation(pointer), effect, hint)
        hint = None
        message = f"{_lower_first(message)}, got {got}"
        if kind == "literal_error" and isinstance(fault["input"], str):
            choices = [choice.strip(" '") for choice in _parse_choices(fault)]
            message = f"expected {_join_choices(choices)}, got {got}"
            hint = suggest(fault["input"], choices)
        return Diagnostic(codes.BAD_VALUE, message, ConfigLocation(pointer), effect, hint)

    def _unknown_key_diagnostic(
        self, value: Json, location: Pointer, pointer: Pointer, suggest: Suggest
    ) -> Diagnostic:
        difference = find_difference(self._differences, location)
        if difference is not None:
            return not_taken_over(difference, value, pointer)
        return unknown_key(pointer, _field_names_at(self._kind, location[:-1]), suggest)


def unknown_key(pointer: Pointer, known: Collection[str], suggest: Suggest) -> Diagnostic:
    hint = suggest(str(pointer[-1]), known)
    # Refuse unknown keys in "auth": a misspelled key could leave the machine without a login, or
    # give a client too many rights.
    effect = Effect.REFUSED if pointer[:1] == ("auth",) else Effect.IGNORED
    # Keep a key that may be a typo, so that its author can correct it.
    is_removable = hint is None and effect is Effect.IGNORED
    if hint is None and known:
        hint = f"known keys: {', '.join(sorted(known))}" if len(known) <= 12 else None
    return Diagnostic(
        codes.UNKNOWN_KEY,
        f'unknown key "{pointer[-1]}"',
        ConfigLocation(pointer, at_key=True),
        effect,
        hint,
        fix=Fix(FixKind.REMOVE, pointer) if is_removable else None,
    )


_EXPECTED_TYPES = {
    **dict.fromkeys(("string_type", "string_sub_type"), "a string"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "an integer"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "mapping_type"), "an object"
    ),
}


def _would_fit_in_list(fault: ErrorDetails) -> bool:
    """Whether a string was given instead of a list, so that a list with this string may be
    valid."""
    return fault["type"] == "list_type" and isinstance(fault["input"], str)


def _is_literal(value: Any, pointer: Pointer, quote: Quote) -> bool:
    """Whether the value appears literally in the file, and not as a secret or a variable."""
    return isinstance(value, str) and quote(pointer, value) == json.dumps(value, ensure_ascii=False)


def _suggest_name(value: str) -> str | None:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", value).strip("-_")
    return f'for example "{name[:60]}"' if name and name != value else None


def _redact_message(fault: ErrorDetails, pointer: Pointer, quote: Quote) -> str:
    message = str(fault["msg"])
    value = fault["input"]
    # A message that quotes the value always quotes all of it, so replacing the whole value is
    # enough.
    if isinstance(value, str) and value and value in message and quote(pointer, value) is None:
        return message.replace(value, "***")
    return message


def _describe_value(value: Any, pointer: Pointer, quote: Quote) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Mapping):
        return "an object"
    kind = "the string" if isinstance(value, str) else "the number"
    text = quote(pointer, value)
    return f"{kind} {text}" if text is not None else kind.replace("the", "a")


def _parse_choices(fault: ErrorDetails) -> list[str]:
    expected = str(fault.get("ctx", {}).get("expected", ""))
    return expected.replace(" or ", ", ").split(", ")


def _join_choices(choices: list[str]) -> str:
    quoted = [f'"{choice}"' for choice in choices]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _lower_first(text: str) -> str:
    text = text.removeprefix("Value error, ").removeprefix("Input ")
    return text[:1].lower() + text[1:]


def _resolve_location(location: tuple[int | str, ...], value: Json) -> Pointer:
    """Return the location without the names of union types that pydantic inserts."""
    real: list[str | int] = []
    current: Any = value
    for part in location:
        if isinstance(current, dict) and part in current:
            real.append(part)
            current = current[str(part)]
        elif isinstance(current, list) and isinstance(part, int) and part < len(current):
            real.append(part)
            current = current[part]
    return tuple(real)


def _remove_all(value: Json, pointers: Iterable[Pointer]) -> Json:
    """Return a copy without the members at the pointers."""
    rest = copy.deepcopy(value)
    for pointer in pointers:
        parent: Any = rest
        for part in pointer[:-1]:
            # Skip a pointer whose parent was already removed by an earlier pointer.
            parent = parent.get(part, {}) if isinstance(parent, dict) else parent[part]
        if pointer and isinstance(parent, dict):
            parent.pop(pointer[-1], None)
    return rest


def _field_names_at(kind: Any, location: Pointer) -> set[str]:
    """Return the field names of the model at the location."""
    model = _find_model(kind)
    for part in location:
        if isinstance(part, str) and model is not None:
            field = next(
                (f for name, f in model.model_fields.items() if part in (name, f.alias)), None
            )
            model = _find_model(field.annotation) if field is not None else None
    if model is None:
        return set()
    return {field.alias or name for name, field in model.model_fields.items()}


def _find_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _find_model(argument)
        if model is not None:
            return model
    return None
