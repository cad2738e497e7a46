"""Compare two texts of a configuration line by line, with or without their secrets."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from cogwork.config.text.secrets import mask_secrets
from cogwork.logs.secret_mask import STARS

MAX_LINES = 10_000
"""Maximum number of lines of a text that is compared. A longer text would take too long."""
_ASTERISKS = re.compile(r"\*{2,}")
_CHANGED_MARK = "  (secret changed)"


def diff_revealed(before: str, after: str) -> str:
    """Return the differences including secrets."""
    return _diff(before, after, lambda text: text.split("\n"))


def diff_masked(before: str, after: str, redact: Callable[[str], str]) -> str:
    """Return the differences with secrets masked; a changed secret is marked as changed."""
    return _diff(before, after, lambda text: [*map(redact, _mask_lines(text))])


def summarize_lines(before: str, after: str) -> str:
    """Return the numbers of added and removed lines. The time is linear in the size of the
    texts."""
    old, new = Counter(before.split("\n")), Counter(after.split("\n"))
    added, removed = (new - old).total(), (old - new).total()
    if not added and not removed:
        return "lines reordered" if before != after else "no change"
    changes = ((added, "added"), (removed, "removed"))
    return f"lines: {', '.join(f'{count} {verb}' for count, verb in changes if count)}"


def mask_text(text: str, redact: Callable[[str], str]) -> str:
    """Return the text with secrets masked."""
    return "\n".join(map(redact, _mask_lines(text)))


def _mask_lines(text: str) -> list[str]:
    # Hide the length of each secret, too. Masking keeps the line breaks, so the line numbers stay.
    return _ASTERISKS.sub(STARS, mask_secrets(text)).split("\n")


def _diff(before: str, after: str, show: Callable[[str], list[str]]) -> str:
    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > MAX_LINES:
        return f"(no comparison: the file has more than {MAX_LINES:,} lines)"
    return "\n".join(_format_diff(old, new, show(before), show(after)))


def _format_diff(
    old: Sequence[str], new: Sequence[str], shown_old: Sequence[str], shown_new: Sequence[str]
) -> Iterator[str]:
    """Compare `old` with `new`. Yield a unified diff that shows the lines of `shown_old` and
    `shown_new` instead."""
    yield from ("--- before", "+++ after")
    for group in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes():
        first, last = group[0], group[-1]
        yield f"@@ -{first[1] + 1},{last[2] - first[1]} +{first[3] + 1},{last[4] - first[3]} @@"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (f" {line}" for line in shown_old[start:end])
                continue
            yield from (f"-{line}" for line in shown_old[start:end])
            removed = set(shown_old[start:end])
            for line in shown_new[new_start:new_end]:
                # Mark an added line that looks like a removed line: they differ only in masked
                # values.
                yield f"+{line}{_CHANGED_MARK if line in removed else ''}"
