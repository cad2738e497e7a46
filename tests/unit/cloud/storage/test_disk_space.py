"""The reserve of the disk that only records may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.cloud.storage.ballast import Ballast
from cogwork.cloud.storage.disk_space import DiskLow, DiskSpace, Space

MIB = 1 << 20
GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "reserve"),
    [(100 * MIB, 32 * MIB), (GIB, GIB // 10), (5 * GIB, GIB // 2), (4000 * GIB, GIB)],
)
def test_reserve_is_a_tenth_within_limits(total: int, reserve: int) -> None:
    assert Space(total, total).reserve == reserve


def test_share_sinks_from_twice_the_reserve_to_nothing() -> None:
    shares = [Space(1000 * MIB, free * MIB).share for free in (1000, 200, 150, 100, 50)]
    assert shares == [1.0, 1.0, 0.5, 0.0, 0.0]


def test_writes_stop_before_the_reserve(tmp_path: Path) -> None:
    space = Space(1000 * MIB, 300 * MIB)
    disk = DiskSpace(tmp_path, lambda _: space)
    disk.require(200 * MIB)
    with pytest.raises(DiskLow, match=r"300 MiB of 1,000 MiB are left, and 100 MiB are reserved"):
        disk.require(201 * MIB)
    disk.require_any()
    space = Space(1000 * MIB, 99 * MIB)
    disk.measure()
    with pytest.raises(DiskLow):
        disk.require_any()


def test_real_disk_is_measured(tmp_path: Path) -> None:
    space = DiskSpace(tmp_path).measure()
    assert 0 < space.free <= space.total


def test_ballast_takes_space_until_it_is_released(tmp_path: Path) -> None:
    file = tmp_path / "ballast"
    ballast = Ballast(file, MIB)
    assert not ballast.release()
    ballast.restore()
    ballast.restore()
    assert file.stat().st_blocks * 512 >= MIB
    assert file.stat().st_mode & 0o777 == 0o600
    assert ballast.release()
    assert not file.exists()
