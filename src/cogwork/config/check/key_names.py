"""Match keys in any letter case, as viam-server does, and under the names that it has for them.

The check works on a copy with the names as they are defined. Its diagnostics point to the keys as
they are written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.schema import codes
from cogwork.config.schema.key_shape import KeyShape
from cogwork.config.text.positions import Json, Pointer

_ATTRIBUTES = "attributes"
"""The key whose own keys depend on the other values of the object."""

FindInner = Callable[[Pointer, Mapping[str, Json], str], KeyShape | None]
Record = Callable[[Diagnostic], None]


@dataclass(slots=True)
class WrittenKeys:
    """The keys that the file writes in another way than they are defined."""

    _by_pointer: dict[Pointer, str] = field(default_factory=dict)

    def add(self, defined: Pointer, written: str) -> None:
        self._by_pointer[defined] = written

    def find_pointer(self, defined: Pointer) -> Pointer:
        """Return the pointer in the file for a pointer in the copy."""
        if not self._by_pointer:
            return defined
        return tuple(
            self._by_pointer.get(defined[: index + 1], part) for index, part in enumerate(defined)
        )

    def locate(self, found: Diagnostic) -> Diagnostic:
        if not self._by_pointer:
            return found
        return replace(
            found,
            location=self._locate(found.location),
            related=tuple(
                replace(each, location=self._locate(each.location)) for each in found.related
            ),
            fix=replace(found.fix, pointer=self.find_pointer(found.fix.pointer))
            if found.fix is not None
            else None,
        )

    def _locate(self, location: ConfigLocation) -> ConfigLocation:
        return ConfigLocation(self.find_pointer(location.pointer), location.at_key)


class KeyNames:
    """Gives the keys of a configuration their defined names."""

    def __init__(self, written: WrittenKeys, record: Record, find_inner: FindInner) -> None:
        """`record` takes the diagnostics. `find_inner` returns the keys of the value of a key."""
        self._written = written
        self._record = record
        self._find_inner = find_inner

    def apply(self, value: Json, shape: KeyShape, at: Pointer) -> Json:
        """Return the value, or a copy of it in which all keys have their defined names."""
        if isinstance(value, dict):
            return self._apply_to_object(value, shape, at)
        if isinstance(value, list):
            items = [self.apply(item, shape, (*at, index)) for index, item in enumerate(value)]
            return items if _any_new(items, value) else value
        return value

    def _apply_to_object(self, value: dict[str, Json], shape: KeyShape, at: Pointer) -> Json:
        named = value if shape.is_complete(value) else self._rename_keys(value, shape, at)
        changed: dict[str, Any] = {}
        for key in _put_last(_ATTRIBUTES, named):
            member = named[key]
            if not isinstance(member, dict | list):
                continue
            holder = {**named, **changed} if changed and key == _ATTRIBUTES else named
            inner = self._find_inner(at, holder, key) or shape.inside(key)
            if inner is None:
                continue
            applied = self.apply(member, inner, (*at, key))
            if applied is not member:
                changed[key] = applied
        return {**named, **changed} if changed else named

    def _rename_keys(self, value: dict[str, Json], shape: KeyShape, at: Pointer) -> dict[str, Json]:
        """Return a copy with the defined keys. A key that is written as defined comes first."""
        found: dict[str, Json] = {}
        for written, member in value.items():
            key = shape.find_key(written)
            if key is None or key == written:
                found[written] = member
            elif key in value or key in found:
                self._record(_duplicate(key, (*at, written)))
            else:
                found[key] = member
                self._written.add((*at, key), written)
                self._record(_renamed(key, (*at, key), written))
        return found


def _put_last(last: str, keys: Mapping[str, Json]) -> Iterable[str]:
    return [*(key for key in keys if key != last), last] if last in keys else keys


def _any_new(items: list[Json], before: list[Json]) -> bool:
    return any(item is not old for item, old in zip(items, before, strict=True))


def _renamed(key: str, defined: Pointer, written: str) -> Diagnostic:
    is_same_word = key.lower() == written.lower()
    return Diagnostic(
        codes.OTHER_CASE if is_same_word else codes.NOT_TAKEN_OVER,
        f'"{written}" is used as "{key}"'
        if is_same_word
        else f'"{written}" is called "{key}" here; it is used',
        ConfigLocation(defined, at_key=True),
        Effect.IGNORED,
        f'write "{key}"',
        fix=Fix(FixKind.RENAME, defined, key),
    )


def _duplicate(key: str, written: Pointer) -> Diagnostic:
    # A login that is ignored could leave the machine open.
    is_login = written[0] == "auth" or key == "auth"
    return Diagnostic(
        codes.DUPLICATE_KEY,
        f'"{written[-1]}" is ignored, because another key of the object is used as "{key}"',
        ConfigLocation(written, at_key=True),
        Effect.REFUSED if is_login else Effect.IGNORED,
        f'remove one of them, and write "{key}"',
        fix=None if is_login else Fix(FixKind.REMOVE, written),
    )
