"""Masks the secrets of configurations in the output of commands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from cogwork.config.check.log_rules import find_secret_values
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.secrets import find_url_passwords, secret_variable_values
from cogwork.config.text.substitution import substitute
from cogwork.logs.redactor import Redactor


def make_redact(*texts: str) -> Callable[[str], str]:
    """Return a function that masks secrets, even where no key marks them as secret."""
    redactor = Redactor()
    for text in texts:
        redactor.add_secrets(_find_secrets(text))
    return redactor.redact


def _find_secrets(text: str) -> Iterator[str]:
    yield from find_url_passwords(text)
    yield from secret_variable_values(text, os.environ)
    try:
        value = read_json(substitute(text, os.environ).text).value
    except JsonSyntaxError:
        return
    yield from find_secret_values(value, os.environ)
