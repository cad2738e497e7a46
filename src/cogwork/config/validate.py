"""Validates parts of the configuration with pydantic, and turns its errors into diagnostics."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from cogwork.config import codes
from cogwork.config.codes import CODES
from cogwork.config.diagnose import Diagnostic, Effect, Place, Quote, did_you_mean
from cogwork.config.positions import Json, Pointer

_MOST_GUESSES = 100
"""A guess compares with every choice: a file of a thousand faults must not take seconds."""


class Validator:
    """Validates a part of the configuration, and goes on without what can be done without."""

    def __init__(self, kind: Any, dispensable: frozenset[str] = frozenset()) -> None:
        """Whatever is wrong inside a dispensable field, the field is left out and the rest used."""
        self._kind = kind
        self._adapter: TypeAdapter[Any] = TypeAdapter(kind)
        self._dispensable = dispensable

    def validate(
        self, value: Json, at: Pointer, effect: Effect, quote: Quote
    ) -> tuple[Any, list[Diagnostic]]:
        """The validated object, or None when it cannot be used; and everything found."""
        try:
            return self._adapter.validate_python(value), []
        except ValidationError as error:
            faults = error.errors(include_url=False)
        except Exception as error:
            # Rules of a plug-in run here too; its message may quote a secret.
            reason = f"checking it failed with {type(error).__name__}"
            return None, [Diagnostic(codes.BAD_VALUE, reason, Place(at), effect)]
        found = []
        dropped: list[Pointer] = []
        for fault in faults:
            without = self._without(fault)
            if without is None:
                found.append(self._diagnostic(fault, value, at, effect, quote))
            else:
                guess = len(dropped) < _MOST_GUESSES
                found.append(self._diagnostic(fault, value, at, Effect.IGNORED, quote, guess=guess))
                dropped.append(_real_location(without, value))
        rest = _without_all(value, dropped) if dropped else value
        if rest == value:
            return None, found
        # Rules over a whole object run only once its fields are sound.
        usable, more = self.validate(rest, at, effect, quote)
        seen = set(found)
        return usable, found + [late for late in more if late not in seen]

    def _without(self, fault: ErrorDetails) -> tuple[int | str, ...] | None:
        """What to leave out so that the rest can be used; None if it cannot."""
        location = fault["loc"]
        if fault["type"] == "extra_forbidden":
            return location
        if location and location[0] in self._dispensable:
            return location[:1]
        return None

    def _diagnostic(
        self,
        fault: ErrorDetails,
        value: Json,
        at: Pointer,
        effect: Effect,
        quote: Quote,
        *,
        guess: bool = True,
    ) -> Diagnostic:
        location = _real_location(fault["loc"], value)
        pointer = (*at, *location)
        kind = fault["type"]
        if kind == "missing":
            field = str(fault["loc"][-1])
            return Diagnostic(codes.MISSING_FIELD, f'"{field}" is missing', Place(pointer), effect)
        if kind == "extra_forbidden":
            return self._unknown_key(str(fault["loc"][-1]), location, pointer, guess=guess)
        message = _own_words(fault, pointer, quote)
        if kind in CODES:
            hint = None
            if CODES[kind] is codes.BAD_NAME and _is_written(fault["input"], pointer, quote):
                hint = _other_name(fault["input"])
            return Diagnostic(CODES[kind], message, Place(pointer), effect, hint)
        got = _got(fault["input"], pointer, quote)
        if kind in _EXPECTED:
            message = f"expected {_EXPECTED[kind]}, got {got}"
            hint = f"write [{got.partition(' ')[2].partition(' ')[2]}]" if _listed(fault) else None
            return Diagnostic(codes.WRONG_TYPE, message, Place(pointer), effect, hint)
        hint = None
        message = f"{_lower_first(message)}, got {got}"
        if kind == "literal_error" and isinstance(fault["input"], str):
            choices = [choice.strip(" '") for choice in _literals(fault)]
            message = f"expected {_alternatives(choices)}, got {got}"
            hint = did_you_mean(fault["input"], choices)
        return Diagnostic(codes.BAD_VALUE, message, Place(pointer), effect, hint)

    def _unknown_key(
        self, key: str, location: Pointer, pointer: Pointer, *, guess: bool
    ) -> Diagnostic:
        known = _fields_at(self._kind, location[:-1])
        hint = did_you_mean(key, known) if guess else None
        if hint is None and known:
            hint = f"known here: {', '.join(sorted(known))}" if len(known) <= 12 else None
        return Diagnostic(
            codes.UNKNOWN_KEY,
            f'unknown key "{key}"',
            Place(pointer, at_key=True),
            Effect.IGNORED,
            hint,
        )


_EXPECTED = {
    **dict.fromkeys(("string_type", "string_sub_type"), "a string"),
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(
        ("dict_type", "model_type", "model_attributes_type", "mapping_type"), "an object"
    ),
}


def _listed(fault: ErrorDetails) -> bool:
    """Whether a list with the value in it would do."""
    return fault["type"] == "list_type" and isinstance(fault["input"], str)


def _is_written(value: Any, pointer: Pointer, quote: Quote) -> bool:
    """Whether the file itself says so; another form of a secret would be one, too."""
    return isinstance(value, str) and quote(pointer, value) == json.dumps(value, ensure_ascii=False)


def _other_name(value: str) -> str | None:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", value).strip("-_")
    return f'for example "{name[:60]}"' if name and name != value else None


def _own_words(fault: ErrorDetails, pointer: Pointer, quote: Quote) -> str:
    message = str(fault["msg"])
    value = fault["input"]
    # A secret can only have got into the message as the value itself.
    if isinstance(value, str) and value and value in message and quote(pointer, value) is None:
        return message.replace(value, "***")
    return message


def _got(value: Any, pointer: Pointer, quote: Quote) -> str:
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


def _literals(fault: ErrorDetails) -> list[str]:
    expected = str(fault.get("ctx", {}).get("expected", ""))
    return expected.replace(" or ", ", ").split(", ")


def _alternatives(choices: list[str]) -> str:
    quoted = [f'"{choice}"' for choice in choices]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def _lower_first(text: str) -> str:
    text = text.removeprefix("Value error, ").removeprefix("Input ")
    return text[:1].lower() + text[1:]


def _real_location(location: tuple[int | str, ...], value: Json) -> Pointer:
    """Pydantic also names branches of a union; keep what exists in the value."""
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


def _without_all(value: Json, pointers: Iterable[Pointer]) -> Json:
    """A copy without the members that the pointers lead to."""
    rest = copy.deepcopy(value)
    for pointer in pointers:
        parent: Any = rest
        for part in pointer[:-1]:
            # What it was in may have been taken out already.
            parent = parent.get(part, {}) if isinstance(parent, dict) else parent[part]
        if pointer and isinstance(parent, dict):
            parent.pop(pointer[-1], None)
    return rest


def _fields_at(kind: Any, location: Pointer) -> set[str]:
    """The names of the fields of the model that a location leads to."""
    model = _model_in(kind)
    for part in location:
        if isinstance(part, str) and model is not None:
            field = next(
                (f for name, f in model.model_fields.items() if part in (name, f.alias)), None
            )
            model = _model_in(field.annotation) if field is not None else None
    if model is None:
        return set()
    return {field.alias or name for name, field in model.model_fields.items()}


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _model_in(argument)
        if model is not None:
            return model
    return None
