from __future__ import annotations

from cogwork.drivers.navigation.costmap import (
    KEEPOUT_COST,
    MAX_CELLS,
    SLOW_COST,
    CostmapArea,
    build_costmap,
)
from cogwork.drivers.navigation.polygon import Polygon


def test_zones_are_drawn_at_their_cells() -> None:
    pit, street = (
        Polygon.from_box((0.25, 0.25), (0.3, 0.3), 0),
        Polygon.from_box((0.5, 0.5), (2, 0.4), 0),
    )
    costs = build_costmap(CostmapArea((0.0, 0.0), (1.0, 0.8)), 2, [street], [pit])
    assert (costs.origin, costs.width, costs.height) == ((0.0, 0.0), 10, 8)
    rows = [costs.data[start : start + 10] for start in range(0, 80, 10)]
    free, slow, kept = bytes(10), bytes([SLOW_COST]) * 10, bytes([KEEPOUT_COST]) * 3
    mixed = free[:1] + kept + free[4:]
    covered = slow[:1] + kept + slow[4:]
    assert rows == [free, mixed, mixed, covered, slow, slow, slow, free]


def test_large_map_has_a_coarser_resolution() -> None:
    costs = build_costmap(CostmapArea((-5000.0, 0.0), (5000.0, 10.0)), 1, [], [])
    assert (costs.width, costs.height, costs.resolution) == (MAX_CELLS, 1, 50)


def test_zones_are_clipped_at_the_edges() -> None:
    costs = build_costmap(
        CostmapArea((0.0, 0.0), (1.0, 1.0)), 2, [], [Polygon.from_box((0.5, 0.5), (100, 100), 0)]
    )
    assert costs.data == bytes([KEEPOUT_COST]) * 100
