"""What must never be shown: which values are secret, and a text or a message without them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from cogwork.config.positions import Pointer, Span

_SECRET_KEY = re.compile(
    r"secret|passw|passphrase|pwd|token|credential|payload|^key$"
    r"|(?:api|private|access|auth|encryption|signing|shared|ssh)[_-]?key",
    re.IGNORECASE,
)
_ALL_SECRET = frozenset({"auth", "cloud", "env"})
"""Sections of which a text shows nothing but the keys: a mistyped key has a secret too."""


def is_secret(pointer: Pointer) -> bool:
    """Whether a message may not quote the value there."""
    if pointer[:1] == ("auth",):
        return pointer[-1] != "type"
    if pointer[-1:] in (("auth",), ("cloud",)):
        return True
    return any(
        isinstance(part, str) and (part == "env" or _SECRET_KEY.search(part)) for part in pointer
    )


def is_masked(pointer: Pointer) -> bool:
    """Whether no output may show the value there, whoever says it.

    Of `env`, only what is called a secret: any other value may be an everyday word.
    """
    if "env" in pointer:
        return isinstance(pointer[-1], str) and _SECRET_KEY.search(pointer[-1]) is not None
    return is_secret(pointer)


def names_secret(sentence: str) -> bool:
    """Whether a key is among its words of which the value would not be shown."""
    return any(_hides(word) for word in re.findall(r"\w+", sentence))


def without_secrets(text: str, others: Iterable[Span] = ()) -> str:
    """The text with each secret as stars, as long as before so that a caret stays right."""
    parts: list[str] = []
    done = 0
    for span in sorted([*_secret_spans(text), *others]):
        start, end = max(done, span.start), max(done, span.end)
        parts += text[done:start], re.sub(r"[^\n\r]", "*", text[start:end])
        done = end
    return "".join((*parts, text[done:]))


def without_environment(text: str, environment: Mapping[str, str]) -> Callable[[str], str]:
    """Puts the names of the variables that the text uses in the place of their values."""
    names = {match[1] or match[2] for match in _VARIABLE.finditer(text)}
    values = {
        value: name
        for name in sorted(names)
        if len(value := environment.get(name, "")) >= _SHORTEST and value not in _WORDS
    }
    if not values:
        return str
    pattern = re.compile("|".join(map(re.escape, sorted(values, key=len, reverse=True))))
    return lambda message: pattern.sub(lambda match: f"${values[match[0]]}", message)


_VARIABLE = re.compile(r"\$\{environment\.([\w:/-]+)\}|\$\{?([A-Za-z_][A-Za-z0-9_]*)")
_SHORTEST = 4
"""Shorter values are no secrets, and they occur in any sentence."""
_WORDS = frozenset({"true", "false", "null"})

_TOKEN = re.compile(
    r"""(?P<opening>[{\[])|(?P<closing>[}\]])|(?P<comma>,)|(?P<colon>:)"""
    r"""|(?P<text>(?:"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|\$\{[^}\n]*+\}?"""
    r"""|[^\s"'{}\[\],:/$=]++)(?=(?P<before_colon>\s*+:)?))"""
    r"|(?P<comment>//[^\n]*+|/\*[^*]*+(?:\*++(?!/)[^*]*+)*(?:\*++/)?)"
)


def _secret_spans(text: str) -> Iterator[Span]:
    """Goes by the tokens alone, so that it finds them also where the text is no JSON.

    One loop without calls: it passes over everything in the file.
    """
    around: list[tuple[bool, bool]] = []
    in_list = all_secret = False
    secret = False  # of the key that was last
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
                yield _inside_quotes(raw, token.start(), token.end())
            # One that is out of place is taken for a key and for a value.
            if is_key or (not expects_value and _hides(raw)):
                secret = _hides(_content(raw))
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


def _hides(key: str) -> bool:
    return key in _ALL_SECRET or _SECRET_KEY.search(key) is not None


def _content(raw: str) -> str:
    if "\\" in raw:
        try:
            return str(json.loads(raw))
        except ValueError:
            return raw
    return raw.strip("\"'")


def _inside_quotes(raw: str, start: int, end: int) -> Span:
    if raw[0] not in "\"'":
        return Span(start, end)
    closed = len(raw) > 1 and raw[-1] == raw[0]
    return Span(start + 1, end - 1 if closed else end)
