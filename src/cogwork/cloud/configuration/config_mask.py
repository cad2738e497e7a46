"""Masks the secrets of configurations for readers who do not own them.

Values are masked, not the text, so that the result is a configuration that can be read.
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
    """Return the configuration with every secret masked, wherever it stands."""
    redactor = Redactor()
    redactor.add_secrets(find_secret_values(config, {}))
    masked: Json = _mask(config, (), redactor.redact)
    return masked


def format_masked(config: Json) -> str:
    """Return the masked configuration as text."""
    return json.dumps(mask_config(config), indent=2, ensure_ascii=False)


def require_unmasked(config: Json, stored: Json) -> None:
    """Raise InvalidRequest if a masked text would be saved in place of its secrets.

    Stars that are stored already are no mask, and must not keep the owner from other changes.
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
            # Whether an item is hidden does not depend on its position.
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
    """Return the IDs of the keys beside them. What is not one of those may be a key itself."""
    return [redact(each) if isinstance(each, str) and each in keys else STARS for each in ids]


def _step(at: Pointer, key: str) -> Pointer:
    """Return where a value of an object is. An override names the place in a fragment."""
    is_override = at[:1] == (_OVERRIDES,) and len(at) == _OVERRIDE_DEPTH
    return tuple(key.split(".")) if is_override else (*at, key)


def _is_hidden(at: Pointer) -> bool:
    """Whether the value at the pointer is masked.

    What a fragment does with the value of a variable is not known here.
    """
    return is_secret(at) or (at[:1] == ("fragments",) and _VARIABLES in at[2:3])


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
