"""The API keys in a configuration file: list, add and remove them, and keep the rest as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cogwork.config.check.diagnostics import Effect
from cogwork.config.check.key_names import WrittenKeys
from cogwork.config.check.key_shapes import name_section_keys
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.config.source.file_replacement import replace_text
from cogwork.config.text.file import Unreadable, read_text
from cogwork.config.text.json_edit import Edit, InsertItem, Remove, SetValue, edit_json
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json, Pointer
from cogwork.config.text.substitution import hide_variables, substitute
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import write_reason

OWNER = "owner"
_API_KEY = "api-key"
_HANDLERS: Pointer = ("auth", "handlers")
_OTHER_LOGINS = ("tls_auth_entities", "external_auth_config")


class CannotEdit(CogworkError):
    """The file cannot be edited; the message explains why and what to do."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    id: str
    name: str
    """The name of the key; empty if it has none."""
    role: str

    def __str__(self) -> str:
        return f"{self.name} ({self.id})" if self.name else self.id


class KeyFile:
    def __init__(self, path: Path) -> None:
        """Read the file. Raise CannotEdit."""
        self.path = path
        self._written_keys = WrittenKeys()
        try:
            self._text = read_text(path)
        except Unreadable as error:
            raise CannotEdit(f"cannot read {path}: {error}") from None
        self._config = self._parse()

    @property
    def keys(self) -> list[KeyEntry]:
        handler = self._handler
        if handler is None:
            return []
        names, roles = (_map_of(handler[1], each) for each in ("names", "roles"))
        return [
            KeyEntry(each, str(names.get(each, "")), str(roles.get(each, OWNER)))
            for each in self._listed_ids(handler[1])
        ]

    @property
    def has_other_logins(self) -> bool:
        """Whether clients could also log in without an API key."""
        auth = self._config.get("auth") or {}
        return len(auth.get("handlers") or ()) > 1 or any(map(auth.get, _OTHER_LOGINS))

    def add(self, entry: KeyEntry, secret: str, context: LoadContext) -> None:
        """Write the file with one more key. Raise CannotEdit, also if a machine would refuse the
        result."""
        self._write([*self._find_additions(entry, secret)], context)

    def remove(self, entry: KeyEntry, context: LoadContext) -> None:
        """Write the file without the key. Raise CannotEdit, also if a machine would refuse the
        result."""
        found = self._handler
        assert found is not None  # the entry is from this file
        self._write([*self._find_removals(*found, entry.id)], context)

    def substituted(self, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Return the configuration with the variables of the environment; empty if it needs other
        variables."""
        substituted = substitute(self._text, environment)
        try:
            value = None if substituted.not_scalar else read_json(substituted.text).value
        except JsonSyntaxError:
            return {}
        return name_section_keys(value) if isinstance(value, dict) else {}

    def _parse(self) -> dict[str, Any]:
        try:
            value = read_json(hide_variables(self._text)).value
        except JsonSyntaxError:
            # The message would quote the file, which contains secrets.
            raise CannotEdit(
                f"cannot edit {self.path}: it is not valid JSON; run: cogwork config check "
                f"{self.path}"
            ) from None
        if not isinstance(value, dict):
            raise CannotEdit(f"cannot edit {self.path}: expected an object at the top level")
        return name_section_keys(value, self._written_keys)

    @property
    def _handler(self) -> tuple[int, dict[str, Any]] | None:
        """The handler of API keys and its number. Raise CannotEdit."""
        auth = self._config.get("auth")
        handlers = self._require(auth, dict).get("handlers") if auth is not None else None
        if handlers is None:
            return None
        for number, handler in enumerate(self._require(handlers, list)):
            if self._require(handler, dict).get("type") == _API_KEY:
                return number, handler
        return None

    def _listed_ids(self, handler: Mapping[str, Any]) -> list[str]:
        keys = self._require(handler.get("config"), dict).get("keys")
        listed = self._require(keys, list) if keys is not None else []
        return [self._require(each, str) for each in listed]

    def _require(self, value: Any, kind: type[Any]) -> Any:
        if not isinstance(value, kind):
            raise CannotEdit(
                f'the "auth" section of {self.path} has an unexpected form; check it with: '
                f"cogwork config check {self.path}"
            )
        return value

    def _find_additions(self, entry: KeyEntry, secret: str) -> Iterator[Edit]:
        about: dict[str, dict[str, Json]] = {
            "names": {entry.id: entry.name} if entry.name else {},
            "roles": {entry.id: entry.role} if entry.role != OWNER else {},
        }
        found = self._handler
        if found is None:
            config: dict[str, Json] = {"keys": [entry.id], entry.id: secret}
            optional = {section: members for section, members in about.items() if members}
            yield self._insert_handler({"type": _API_KEY, "config": config, **optional})
            return
        number, handler = found
        at: Pointer = (*_HANDLERS, number)
        listed = self._listed_ids(handler)
        if handler["config"].get("keys") is None:
            yield SetValue((*at, "config", "keys"), [entry.id])
        else:
            yield InsertItem((*at, "config", "keys", len(listed)), entry.id)
        yield SetValue((*at, "config", entry.id), secret)
        for section, members in about.items():
            if handler.get(section) is None and members:
                yield SetValue((*at, section), members)
            else:
                self._require(handler.get(section, {}), dict)
                yield from (SetValue((*at, section, key), value) for key, value in members.items())

    def _insert_handler(self, handler: Json) -> Edit:
        auth = self._config.get("auth")
        if auth is None:
            return SetValue(("auth",), {"handlers": [handler]})
        handlers = auth.get("handlers")
        if handlers is None:
            return SetValue(_HANDLERS, [handler])
        return InsertItem((*_HANDLERS, len(handlers)), handler)

    def _find_removals(self, number: int, handler: dict[str, Any], key_id: str) -> Iterator[Edit]:
        at: Pointer = (*_HANDLERS, number)
        listed = self._listed_ids(handler)
        if all(each == key_id for each in listed):
            yield Remove(at)
            return
        for index, each in enumerate(listed):
            if each == key_id:
                yield Remove((*at, "config", "keys", index))
        if key_id in handler["config"]:
            yield Remove((*at, "config", key_id))
        for section in ("names", "roles"):
            members = _map_of(handler, section)
            if key_id in members:
                yield Remove((*at, section) if len(members) == 1 else (*at, section, key_id))

    def _write(self, edits: list[Edit], context: LoadContext) -> None:
        find_pointer = self._written_keys.find_pointer
        in_file = (replace(each, pointer=find_pointer(each.pointer)) for each in edits)
        text = edit_json(self._text, in_file)
        self._require_usable(text, context)
        try:
            replace_text(self.path, text, is_private=True)
        except OSError as error:
            raise CannotEdit(f"cannot write {self.path}: {write_reason(error)}") from None

    def _require_usable(self, text: str, context: LoadContext) -> None:
        """Raise CannotEdit if a machine would refuse the text."""
        substituted = substitute(text, context.environment)
        if substituted.unset or substituted.not_scalar:
            return  # Only the machine has these variables.
        for each in load(text, context.in_directory_of(self.path)).result.diagnostics:
            if each.effect is Effect.REFUSED:
                raise CannotEdit(
                    f"cannot edit {self.path}: the machine would refuse the result "
                    f"({each.message}); check it with: cogwork config check {self.path}"
                )


def _map_of(handler: Mapping[str, Any], section: str) -> Mapping[str, Any]:
    found = handler.get(section)
    return found if isinstance(found, dict) else {}
