"""Labels of parts: the first component of their host names."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_MAX_LENGTH: Final = 50
"""With the location, `press-LOCATION.local` must fit into the 63 characters of a DNS label."""
_SUFFIX_LENGTH: Final = 6
_DEFAULT: Final = "machine"


def label_candidates(name: str, part_id: str) -> Iterator[str]:
    """Yield the labels for a part with this name, the best one first: `Press 4` is `press-4`.

    A name that ASCII cannot spell gets a suffix at once, so that its label does not depend on which
    of several such parts was first. The others get one if the label is taken. There is no end,
    because anyone may give a part the name that another one would get.
    """
    plain, is_complete = _to_ascii(name)
    if is_complete:
        yield plain
    stem = plain[: _MAX_LENGTH - _SUFFIX_LENGTH - 1].rstrip("-") or _DEFAULT
    for attempt in itertools.count():
        yield f"{stem}-{_digest(part_id, attempt)}"


def _to_ascii(name: str) -> tuple[str, bool]:
    """Return the name as a label, and whether it has every letter and digit of the name."""
    decomposed = unicodedata.normalize("NFKD", name)
    plain = re.sub(r"[^a-z0-9]+", "-", decomposed.encode("ascii", "ignore").decode().lower())
    plain = plain.strip("-")
    is_spelled = all(each.isascii() for each in decomposed if each.isalnum())
    return plain, is_spelled and 0 < len(plain) <= _MAX_LENGTH


def _digest(part_id: str, attempt: int) -> str:
    text = f"{part_id}/{attempt}" if attempt else part_id
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_SUFFIX_LENGTH]
