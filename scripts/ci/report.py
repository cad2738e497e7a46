"""Print the duration of each step of `.ci/run`, and fail if tests are missing or needed a retry.

`python -m scripts.ci.report` compares the number of tests with tests/counts.json. More tests are
fine. Fewer are an error until the commit that removes them lowers the number and explains why.
`--update` writes the numbers of the steps that ran.
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
"""The architecture that the numbers are from. Other computers skip tests of engines that they
lack."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--update", action="store_true", help=f"write {COUNTS}")
    update = parser.parse_args().update
    records = read_records()
    counts = json.loads(COUNTS.read_text())
    print(format_table(records))
    if update:
        if platform.machine() != COUNTED_ON:
            parser.error(f"the numbers are for {COUNTED_ON}")
        COUNTS.write_text(format_counts(records, counts))
        return 0
    print(*list_second_tries(records), sep="\n")
    mistakes = [*find_lost_tests(records, counts), *find_luck(records)]
    print(*(f"error: {each}" for each in mistakes), sep="\n")
    return bool(mistakes)


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


def format_counts(records: Sequence[Record], former: Mapping[str, int]) -> str:
    counts = {**former, **{each.name: each.ran for each in records if each.ran}}
    return json.dumps(counts, indent=2, sort_keys=True) + "\n"


def find_lost_tests(records: Sequence[Record], counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each step that ran fewer tests than expected."""
    for record in (each for each in records if each.ran or each.name in counts):
        expected = counts.get(record.name)
        present = record.ran if platform.machine() == COUNTED_ON else record.ran + record.skipped
        if expected is None:
            yield f'{COUNTS} has no number for "{record.name}"; set it to {record.ran}'
        elif present < expected:
            yield (
                f'"{record.name}" ran {present} tests, and {expected} are in {COUNTS}; find '
                f"out why {expected - present} did not run, or lower the number and say why"
            )


def list_second_tries(records: Sequence[Record]) -> list[str]:
    """Return the tests that passed only when retried, and the reasons of their first failures."""
    tries = (each for record in records for each in record.second_tries.items())
    return [f"passed at its second try only: {test}\n  {why}" for test, why in tries]


def find_luck(records: Sequence[Record]) -> Iterator[str]:
    if (tries := len(list_second_tries(records))) > MAX_SECOND_TRIES:
        yield f"{tries} tests needed a second try; at most {MAX_SECOND_TRIES} may"


if __name__ == "__main__":
    sys.exit(main())
