"""Masks the secrets in configurations for readers who do not own them.

The values are masked, not the text, so the result is still a valid configuration.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from cogwork.config.check.log_rules import find_secret_values
from cogwork.config.text.positions import Pointer, format_pointer
from cogwork.config.text.secrets import is_secret
from cogwork.core.errors import InvalidRequest
from cogwork.logs.redactor import Redactor
from cogwork.logs.secret_mask import STARS

Json = dict[str, Any]

_LOGINS: Final = "auth"
_KEY_IDS: Final = "keys"
_VARIABLES: Final = "variables"
_OVERRIDES: Final = "fragment_mods"
_OVERRIDE_DEPTH: Final = len((_OVERRIDES, 0, "mods", 0, "$set"))


def mask_config(config: Json) -> Json:
    """Return the configuration with all secrets masked, wherever they are."""
    redactor = Redactor()
    redactor.add_secrets(find_secret_values(config, {}))
    masked: Json = _mask(config, (), redactor.redact)
    return masked


def format_masked(config: Json) -> str:
    """Return the masked configuration as text."""
    return json.dumps(mask_config(config), indent=2, ensure_ascii=False)


def require_unmasked(config: Json, stored: Json) -> None:
    """Raise InvalidRequest if the new text would replace secrets by masks.

    Stars that the stored configuration already has are not a mask, and must not prevent other
    changes.
    """
    found = dict(_find_stars(config, ()))
    if not found:
        return
    known = {text for _, text in _find_stars(stored, ())}
    for pointer, text in found.items():
        if text not in known:
            raise InvalidRequest(
                f'{format_pointer(pointer)} has "{STARS}", which stands for a secret that was '
                "masked; write the secret itself, or read the configuration again as an owner"
            )


def _mask(value: Any, at: Pointer, redact: Callable[[str], str]) -> Any:
    match value:
        case dict():
            return {
                redact(key): _mask_key_ids(each, value, redact)
                if at[:1] == (_LOGINS,) and key == _KEY_IDS and isinstance(each, list)
                else _mask(each, _step(at, key), redact)
                for key, each in value.items()
            }
        case list():
            # Hide either all scalar items of a list or none: their positions do not matter.
            is_hidden = _is_hidden((*at, 0))
            return [
                _mask(each, (*at, index), redact)
                if isinstance(each, dict | list)
                else _mask_scalar(each, redact, is_hidden=is_hidden)
                for index, each in enumerate(value)
            ]
        case _:
            return _mask_scalar(value, redact, is_hidden=_is_hidden(at))


def _mask_scalar(value: Any, redact: Callable[[str], str], *, is_hidden: bool) -> Any:
    if value is None or isinstance(value, bool) or value == "":
        return value
    if is_hidden:
        return STARS
    return redact(value) if isinstance(value, str) else value


def _mask_key_ids(ids: list[Any], keys: Json, redact: Callable[[str], str]) -> list[Any]:
    """Mask the entries of a list that are not the ID of a key, because they may be secrets."""
    return [redact(each) if isinstance(each, str) and each in keys else STARS for each in ids]


def _step(at: Pointer, key: str) -> Pointer:
    """Return the pointer to a member of an object. In an override, the key is a path."""
    is_override = at[:1] == (_OVERRIDES,) and len(at) == _OVERRIDE_DEPTH
    return tuple(key.split(".")) if is_override else (*at, key)


def _is_hidden(at: Pointer) -> bool:
    """Return whether the value at the pointer is masked.

    All variables of a fragment are masked, because the fragment may use them as secrets.
    """
    keys = tuple(part.lower() if isinstance(part, str) else part for part in at[:3])
    return is_secret(at) or (keys[:1] == ("fragments",) and _VARIABLES in keys[2:])


def _find_stars(value: Any, at: Pointer) -> Iterator[tuple[Pointer, str]]:
    if isinstance(value, str):
        if STARS in value:
            yield at, value
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _find_stars(each, (*at, index))
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from _find_stars(each, (*at, key))
