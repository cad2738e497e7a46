"""Masks secrets in a text, in all common encodings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from cogwork.logs.literal_matcher import LiteralMatcher

MIN_LENGTH = 3
"""Minimum length of a secret. Shorter secrets also occur in ordinary sentences, so they are not
masked."""
MIN_SUBSTRING_LENGTH = 6
"""Minimum length of a secret that is masked anywhere. Shorter secrets are masked only as whole
words."""
STARS = "***"

_STARS = STARS.encode()


class SecretMask:
    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = {stripped for each in secrets if len(stripped := each.strip()) >= MIN_LENGTH}
        long = {
            line
            for each in known
            for line in (each, *_split_lines(each))
            if len(line) >= MIN_SUBSTRING_LENGTH
        }
        short = {each for each in known if len(each) < MIN_SUBSTRING_LENGTH}
        self._matchers = [
            LiteralMatcher(
                (form for each in found for form in _encodings(each)), whole_words=whole_words
            )
            for found, whole_words in ((long, False), (short, True))
            if found
        ]

    def hide(self, text: str) -> str:
        if not self._matchers:
            return text
        data = masked = text.encode(errors="surrogatepass")
        for literals in self._matchers:
            masked = literals.replace(masked, _STARS)
        return text if masked is data else masked.decode(errors="surrogatepass")


def _split_lines(secret: str) -> Iterator[str]:
    """Yield the lines of a secret, because the output of programs is read line by line."""
    return (stripped for line in secret.splitlines() if (stripped := line.strip()))


def _encodings(secret: str) -> Iterator[bytes]:
    data = secret.encode(errors="surrogatepass")
    yield data
    yield repr(data)[2:-1].encode()
    yield from (form.encode() for form in (quote(data), quote(data, safe=""), quote_plus(data)))
    for form in (
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        # The form in the `repr` of a text that contains both kinds of quotes: single quotes are
        # escaped.
        repr(f'"{secret}')[2:-1],
    ):
        yield form.encode(errors="surrogatepass")
