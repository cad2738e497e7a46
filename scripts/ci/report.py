"""Print what the steps of `.ci/run` took, and fail if tests were lost or needed luck.

`python -m scripts.ci.report` compares the tests that ran with tests/counts.json: more are fine, and
fewer are an error until the change that removes them lowers the number and says why.
`--update` writes the numbers of this run.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scripts.ci.record import Record, read_records
from scripts.ci.run_tests import MAX_SECOND_TRIES

COUNTS = Path("tests/counts.json")
COUNTED_ON = "x86_64"
"""Where the numbers are from: other computers skip tests of engines that they do not have."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"write {COUNTS}")
    update = parser.parse_args().update
    records = read_records()
    print(format_table(records))
    if update:
        COUNTS.write_text(format_counts(records))
        return 0
    counts = json.loads(COUNTS.read_text())
    mistakes = [*find_lost_tests(records, counts), *find_second_tries(records)]
    print(*mistakes, sep="\n")
    return any(mistake.startswith("error") for mistake in mistakes)


def format_table(records: Sequence[Record]) -> str:
    rows = [("step", "minutes", "ran", "skipped", "second tries")]
    rows += [_format_row(each) for each in records]
    total = sum(each.seconds for each in records)
    rows.append(("all", f"{total / 60:.1f}", "", "", ""))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(_align(row, widths) for row in rows)


def _format_row(record: Record) -> tuple[str, str, str, str, str]:
    minutes = f"{record.seconds / 60:.1f}"
    if not record.ran:
        return record.name, minutes, "", "", ""
    tries = str(len(record.second_tries) or "")
    return record.name, minutes, str(record.ran), str(record.skipped or ""), tries


def _align(row: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = (
        cell.rjust(width) if column else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join([first, *others]).rstrip()


def format_counts(records: Sequence[Record]) -> str:
    counts = {each.name: each.ran for each in records if each.ran}
    return json.dumps(counts, indent=2, sort_keys=True) + "\n"


def find_lost_tests(records: Sequence[Record], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each step that ran fewer tests than it should."""
    for record in (each for each in records if each.ran):
        expected = counts.get(record.name)
        present = record.ran if platform.machine() == COUNTED_ON else record.ran + record.skipped
        if expected is None:
            yield f'error: {COUNTS} has no number for "{record.name}"; set it to {record.ran}'
        elif present < expected:
            yield (
                f'error: "{record.name}" ran {present} tests, and {expected} are in {COUNTS}; find '
                f"out why {expected - present} did not run, or lower the number and say why"
            )


def find_second_tries(records: Sequence[Record]) -> Iterator[str]:
    """Yield the tests that passed at their second try only, and whether they are too many."""
    tries = [(test, why) for each in records for test, why in each.second_tries.items()]
    for test, why in tries:
        yield f"passed at its second try only: {test}\n  {why}"
    if len(tries) > MAX_SECOND_TRIES:
        yield f"error: {len(tries)} tests needed a second try; at most {MAX_SECOND_TRIES} may"


if __name__ == "__main__":
    sys.exit(main())
