"""Decide which values are secret, and mask them in texts and messages."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import unquote

from cogwork.config.text.positions import Pointer, Span

_SECRET_KEY = re.compile(
    r"secret|passw|passcode|passphrase|pwd|token|credential|payload|^key$|^psk$|^pass$"
    r"|(?:api|private|access|auth|encryption|signing|shared|ssh)[_-]?key(?![_-]?ids?\b)",
    re.IGNORECASE,
)
_SECRET_SECTIONS = frozenset({"auth", "cloud", "env"})
"""Sections whose values are all masked, because a mistyped key can also hold a secret."""


@functools.lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether the name of a key or a variable indicates a secret.

    Cached, because the same few keys occur in every resource.
    """
    return _SECRET_KEY.search(name) is not None


def is_secret(pointer: Pointer) -> bool:
    """Whether messages must not quote the value at the pointer. Keys count in any letter case."""
    pointer = tuple(part.lower() if isinstance(part, str) else part for part in pointer)
    if pointer[-2:] == ("api_key", "id"):
        return False
    if pointer[:1] == ("auth",):
        # The IDs of API keys, their roles and their names are not secret.
        return (
            pointer[-1] != "type"
            and pointer[-3:-1] != ("config", "keys")
            and pointer[-2:-1] not in (("roles",), ("names",))
        )
    if pointer[-1:] in (("auth",), ("cloud",)):
        return True
    return any(
        isinstance(part, str) and (is_secret_name(part) or part == "env") for part in pointer
    )


def is_masked(pointer: Pointer) -> bool:
    """Whether the value at the pointer is masked in every output.

    In `env`, only keys that look like secrets are masked: other values may be common words.
    """
    if any(isinstance(part, str) and part.lower() == "env" for part in pointer):
        return isinstance(pointer[-1], str) and is_secret_name(pointer[-1])
    return is_secret(pointer)


def is_named_secret(pointer: Pointer) -> bool:
    """Whether the nearest key marks the value as a secret, no matter how short it is."""
    keys = [part for part in pointer if isinstance(part, str)]
    return bool(keys) and is_secret_name(keys[-1])


def find_url_passwords(text: str) -> Iterator[str]:
    """Yield the passwords in URLs, both percent-encoded and decoded."""
    if "@" not in text:
        return
    for found in _URL_PASSWORD.finditer(text):
        yield found[1]
        yield unquote(found[1])


def secret_variable_values(text: str, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of the variables in a configuration whose names look like secrets, as in
    `"url": "rtsp://admin:${CAMERA_PASSWORD}@10.0.0.7/"`."""
    for found in _VARIABLE.finditer(text):
        name = found[1] or found[2]
        if is_secret_name(name) and (value := environment.get(name)):
            yield value


def mentions_secret_key(sentence: str) -> bool:
    """Whether the sentence contains a key whose value is secret."""
    return any(_is_secret_key(word) for word in re.findall(r"\w+", sentence))


def mask_secrets(text: str, others: Iterable[Span] = ()) -> str:
    """Replace each secret with asterisks of the same length, so that columns stay correct."""
    parts: list[str] = []
    done = 0
    for span in sorted([*_find_secret_spans(text), *others]):
        start, end = max(done, span.start), max(done, span.end)
        parts += text[done:start], re.sub(r"[^\n\r]", "*", text[start:end])
        done = end
    return "".join((*parts, text[done:]))


def find_variables(text: str) -> set[str]:
    """Return the names of the environment variables that the text uses."""
    return {match[1] or match[2] for match in _VARIABLE.finditer(text)}


def environment_scrubber(text: str, environment: Mapping[str, str]) -> Callable[[str], str]:
    """Return a function that replaces the values of the variables in the text by their names."""
    names = find_variables(text)
    values = {
        value: name
        for name in sorted(names)
        if len(value := environment.get(name, "")) >= _MIN_VALUE_LENGTH
        and value not in _JSON_LITERALS
    }
    if not values:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))))
    return lambda message: pattern.sub(lambda match: f"${values[match[0]]}", message)


_VARIABLE = re.compile(r"\$\{environment\.([\w:/-]+)\}|\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_MIN_VALUE_LENGTH = 4
"""Minimum length of a secret. Shorter values are not masked, because ordinary sentences contain
them, too."""
_JSON_LITERALS = frozenset({"true", "false", "null"})
_URL_PASSWORD = re.compile(r"://[^\s/?#:@]*:([^\s/?#@]+)@")

_TOKEN = re.compile(
    r"""(?P<opening>[{\[])|(?P<closing>[}\]])|(?P<comma>,)|(?P<colon>:)"""
    r"""|(?P<text>(?:"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|\$\{[^}\n]*+\}?"""
    r"""|[^\s"'{}\[\],:/$=]++)(?=(?P<before_colon>\s*+:)?))"""
    r"|(?P<comment>//[^\n]*+|/\*[^*]*+(?:\*++(?!/)[^*]*+)*(?:\*++/)?)"
)


def _find_secret_spans(text: str) -> Iterator[Span]:
    """Yield the spans of secrets, based on tokens alone, so that invalid JSON is masked, too.

    A single loop without function calls, for speed: it scans the whole file.
    """
    around: list[tuple[bool, bool]] = []
    in_list = all_secret = False
    secret = False  # whether the value of the last key is secret
    expects_key, expects_value, has_value = True, False, False
    for token in _TOKEN.finditer(text):
        kind = token.lastgroup
        if kind == "colon":
            expects_value = True
            continue
        if kind == "text":
            raw = token[0]
            is_key = not expects_value and (
                expects_key or (has_value and token["before_colon"] is not None)
            )
            if not is_key and (secret or all_secret):
                yield _span_inside_quotes(raw, token.start(), token.end())
            # A misplaced token may be a key or a value, so treat it as both.
            if is_key or (not expects_value and _is_secret_key(raw)):
                secret = _is_secret_key(_strip_quotes(raw))
            has_value = not is_key
            expects_key = expects_value = False
            continue
        if kind == "comment":
            if found := _SECRET_KEY.search(token[0]):
                yield Span(token.start() + found.end(), token.end())
            continue
        if kind == "opening":
            around.append((in_list, all_secret))
            in_list, all_secret = token[0] == "[", all_secret or secret
        elif kind == "closing" and around:
            in_list, all_secret = around.pop()
        secret = expects_value = False
        has_value = kind == "closing"
        expects_key = not has_value and not in_list


def _is_secret_key(key: str) -> bool:
    return key.lower() in _SECRET_SECTIONS or is_secret_name(key)


def _strip_quotes(raw: str) -> str:
    if "\\" in raw:
        try:
            return str(json.loads(raw))
        except ValueError:
            return raw
    return raw.strip("\"'")


def _span_inside_quotes(raw: str, start: int, end: int) -> Span:
    if raw[0] not in "\"'":
        return Span(start, end)
    closed = len(raw) > 1 and raw[-1] == raw[0]
    return Span(start + 1, end - 1 if closed else end)
