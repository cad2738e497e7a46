import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.fault import writer
from tests.support.sizes import size
from tests.support.waiting import block

from cogwork.config.source.last_good import LastGood

KILLS = size(ci=60, full=500)
START_DEADLINE = 60.0
END_DEADLINE = 60.0


@pytest.mark.timeout(size(ci=240, full=900))
def test_killed_writer_leaves_a_complete_recent_configuration(tmp_path: Path) -> None:
    place = LastGood(tmp_path / "last-good" / "robot.json")
    started = time.monotonic()
    last, seen = 0, Counter[str]()
    for kill in range(KILLS):
        acknowledged = kill_writer(place, first=last + 1, at_start=kill % 10 == 0)
        newest = acknowledged[-1] if acknowledged else last
        last = read_kept_number(place, newest)
        seen["configurations"] += len(acknowledged)
        seen["kept but not yet reported"] += last == newest + 1
        seen["temporary files left"] += len(leftovers(place))
        assert len(leftovers(place)) <= 1, "the files of killed writers pile up"
    print(f"\n{KILLS} kills in {time.monotonic() - started:.1f} s: {dict(seen)}")
    assert seen["configurations"] > 0
    assert seen["temporary files left"] > 0, "no kill came while a file was being written"
    place.save("the end")
    assert leftovers(place) == []


def kill_writer(place: LastGood, first: int, *, at_start: bool) -> list[int]:
    """Return the numbers that a writer reported before it was killed."""
    command = [sys.executable, "-I", writer.__file__, str(place.path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            if not at_start:
                ready, _, _ = select.select([process.stdout], [], [], START_DEADLINE)
                assert ready, f"the writer did not start within {START_DEADLINE:g} s"
            block(random.uniform(0, 0.03))  # the moment is the input here
        finally:
            process.kill()
        output, _ = process.communicate(timeout=END_DEADLINE)
    assert process.returncode == -9, "the writer ended by itself"
    numbers = [int(line) for line in output.split() if line != b"ready"]
    assert numbers == list(range(first, first + len(numbers)))
    return numbers


def read_kept_number(place: LastGood, newest: int) -> int:
    """Return the newest reported configuration, or the one being written at the kill."""
    expected = {writer.configuration(number): number for number in (newest, newest + 1)}
    text = place.read()
    if text is None:
        assert newest == 0, f"configuration {newest} is gone"
        return 0
    assert text in expected, f"expected configuration {newest} or the next, found {text[:60]}"
    return expected[text]


def leftovers(place: LastGood) -> list[str]:
    if not place.path.parent.exists():
        return []
    return [e.name for e in place.path.parent.iterdir() if e != place.path]
