"""Host labels of parts: the first component of their host names."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

_MAX_LENGTH: Final = 50
"""Maximum length. `press-LOCATION.local` must fit into the 63 characters of a DNS label."""
_SUFFIX_LENGTH: Final = 6
_DEFAULT: Final = "machine"


def label_candidates(name: str, part_id: str) -> Iterator[str]:
    """Yield labels for a part with this name, the best first: `Press 4` becomes `press-4`.

    A name that is not ASCII always gets a suffix, so that its label does not depend on the order in
    which such parts were created. Other names get a suffix only if the label is taken. The sequence
    is endless, because any label may be taken.
    """
    plain, is_complete = _to_ascii(name)
    if is_complete:
        yield plain
    stem = plain[: _MAX_LENGTH - _SUFFIX_LENGTH - 1].rstrip("-") or _DEFAULT
    for attempt in itertools.count():
        yield f"{stem}-{_digest(part_id, attempt)}"


def _to_ascii(name: str) -> tuple[str, bool]:
    """Return the name as a label, and whether it keeps every letter and digit."""
    decomposed = unicodedata.normalize("NFKD", name)
    plain = re.sub(r"[^a-z0-9]+", "-", decomposed.encode("ascii", "ignore").decode().lower())
    plain = plain.strip("-")
    is_spelled = all(each.isascii() for each in decomposed if each.isalnum())
    return plain, is_spelled and 0 < len(plain) <= _MAX_LENGTH


def _digest(part_id: str, attempt: int) -> str:
    text = f"{part_id}/{attempt}" if attempt else part_id
    digest = hashlib.sha256(text.encode()).digest()
    return base64.b32encode(digest).decode().lower()[:_SUFFIX_LENGTH]
