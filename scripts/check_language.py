"""Find phrases that make a reader stop, and name what to write instead.

`make lint` runs it on the code and the documentation. Pass files to check only those.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[1]
PLACES: Final = (
    *("src", "scripts", "docs", "examples", "packaging", "benchmarks", "schemas", "web/src"),
    *(":(glob)*.md", "Makefile", ".ci"),
)
EXEMPT: Final = frozenset(
    {
        "CHANGELOG.md",  # history, and its old entries quote old texts
        "CONTRIBUTING.md",  # lists the phrases
        "scripts/check_language.py",
    }
)
ADVICE: Final = {
    "that of": "repeat the noun",
    "those of": "repeat the noun",
    "whoever": "name the person or the program",
    "what is no": 'write what it is, or "what is not a …"',
    "of its own accord": 'write "by itself"',
}
_GAP: Final = r"[\s#*/>|]+"
"""What may stand between two words of a comment that continues on the next line."""
_PHRASES: Final = re.compile(
    "|".join(rf"\b{_GAP.join(phrase.split())}\b" for phrase in ADVICE), re.IGNORECASE
)


class Finding(NamedTuple):
    line: int
    phrase: str


def main(argv: Sequence[str] | None = None) -> int:
    files = list(sys.argv[1:] if argv is None else argv) or list_files()
    count = 0
    for file in files:
        for finding in find_phrases((ROOT / file).read_text("utf-8", "replace")):
            count += 1
            print(f'{file}:{finding.line}: "{finding.phrase}": {ADVICE[finding.phrase]}')
    if count:
        print(f"{count} to reword; CONTRIBUTING.md says why", file=sys.stderr)
    return 1 if count else 0


def list_files() -> list[str]:
    """Return the text files under version control that the check covers."""
    # -I leaves out binary files; an empty pattern matches every line.
    listed = subprocess.run(
        ["git", "grep", "-I", "--files-with-matches", "--untracked", "", "--", *PLACES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [file for file in listed.stdout.splitlines() if file not in EXEMPT]


def find_phrases(text: str) -> Iterator[Finding]:
    for found in _PHRASES.finditer(text):
        words = re.sub(_GAP, " ", found[0]).lower()
        yield Finding(text.count("\n", 0, found.start()) + 1, words)


if __name__ == "__main__":
    sys.exit(main())
