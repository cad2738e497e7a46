"""Redacts the secrets of a machine's configurations in all texts that may quote them.

Log lines, reasons, errors for clients and the history of the machine share one redactor. A text is
not redacted if it was created before a configuration contained the secret.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from cogwork.logs.secret_mask import SecretMask

MAX_SECRETS = 1000
"""Maximum number of secrets. If there are more, the newest are kept."""


class Redactor:
    def __init__(self) -> None:
        self._secrets: dict[str, None] = {}
        """Secrets, newest first."""
        self._mask = SecretMask()

    def add_secrets(self, secrets: Iterable[str]) -> None:
        """Add secrets. Keep earlier secrets, because earlier configurations may still be quoted."""
        newest = dict.fromkeys(secrets)
        if newest.keys() <= self._secrets.keys():
            return
        known = itertools.islice({**newest, **self._secrets}, MAX_SECRETS)
        self._secrets = dict.fromkeys(known)
        self._mask = SecretMask(self._secrets)

    def redact(self, text: str) -> str:
        return self._mask.hide(text)


def redact_value(value: Any, redact: Callable[[str], str]) -> Any:
    """Redact all strings, including keys, in a value of dicts, lists and scalars."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {
            redact_value(key, redact): redact_value(each, redact) for key, each in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_value(each, redact) for each in value]
    return value
