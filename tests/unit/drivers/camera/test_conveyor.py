from __future__ import annotations

import collections
import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from cogwork.drivers.camera.conveyor import Box, Conveyor, ConveyorPart, PartKind, Scene


def bare(conveyor: Conveyor, scene: Scene) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """The same belt, light and noise, and no parts."""
    return conveyor.render(replace(scene, parts=()))


def covered(conveyor: Conveyor, scene: Scene) -> NDArray[np.bool_]:
    """The pixels in which the depth shows a part."""
    different: NDArray[np.bool_] = conveyor.render(scene)[1] != bare(conveyor, scene)[1]
    return different


def within(box: Box) -> tuple[slice, slice]:
    return slice(box.y_min, box.y_max), slice(box.x_min, box.x_max)


def passing(conveyor: Conveyor, seconds: int) -> dict[int, ConveyorPart]:
    scenes = (conveyor.scene_at(float(second)) for second in range(seconds))
    return {part.number: part for scene in scenes for part in scene.parts}


def test_the_same_seed_gives_the_same_pictures() -> None:
    one, other = Conveyor(7, 320, 240), Conveyor(7, 320, 240)
    other.render(other.scene_at(99.0))
    assert one.scene_at(4.2) == other.scene_at(4.2)
    for picture, again in zip(
        one.render(one.scene_at(4.2)), other.render(other.scene_at(4.2)), strict=True
    ):
        np.testing.assert_array_equal(picture, again)


def test_another_seed_gives_another_scene() -> None:
    shapes = {
        tuple(part.appearance for part in Conveyor(seed).scene_at(0).parts) for seed in range(10)
    }
    assert len(shapes) == 10


def test_what_was_drawn_before_does_not_show_in_a_scene_with_the_same_part_numbers() -> None:
    one, other = Conveyor(7, 320, 240), Conveyor(8, 320, 240)
    own, foreign = one.scene_at(3), other.scene_at(3)
    assert {part.number for part in own.parts} & {part.number for part in foreign.parts}
    one.render(own)
    np.testing.assert_array_equal(one.render(foreign)[1], other.render(foreign)[1])


def test_pictures_are_fresh_and_have_the_layout_of_a_camera() -> None:
    conveyor = Conveyor(1)
    scene = conveyor.scene_at(2)
    color, depth = conveyor.render(scene)
    assert color.shape == (480, 640, 3)
    assert depth.shape == (480, 640)
    assert (color.dtype.name, depth.dtype.name) == ("uint8", "uint16")
    assert color.flags.c_contiguous
    assert depth.flags.c_contiguous
    kept = color.copy(), depth.copy()
    color[:], depth[:] = 0, 0
    for picture, again in zip(kept, conveyor.render(scene), strict=True):
        np.testing.assert_array_equal(picture, again)


@pytest.mark.parametrize(("width", "height"), [(64, 48), (240, 320), (480, 270)])
def test_boxes_are_tight(width: int, height: int) -> None:
    conveyor = Conveyor(3, width, height)
    for scene in map(conveyor.scene_at, (0.0, 1.7, 33.3)):
        everything = np.zeros((height, width), np.bool_)
        for part in scene.parts:
            seen = covered(conveyor, replace(scene, parts=(part,)))
            rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
            assert part.box == Box(columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
            assert 0 <= part.box.x_min < part.box.x_max <= width
            assert 0 <= part.box.y_min < part.box.y_max <= height
            everything |= seen
        np.testing.assert_array_equal(covered(conveyor, scene), everything)


@pytest.mark.parametrize("seed", range(4))
def test_parts_do_not_overlap(seed: int) -> None:
    conveyor = Conveyor(seed, 160, 120)
    for second in range(0, 60, 3):
        boxes = [part.box for part in conveyor.scene_at(second).parts]
        for one, other in itertools.combinations(boxes, 2):
            assert (
                one.x_max <= other.x_min
                or other.x_max <= one.x_min
                or one.y_max <= other.y_min
                or other.y_max <= one.y_min
            )


@pytest.mark.parametrize("seed", range(4))
def test_a_few_parts_are_in_sight_at_any_time(seed: int) -> None:
    conveyor = Conveyor(seed, 64, 48)
    counts = [len(conveyor.scene_at(second).ground_truth) for second in range(100)]
    assert min(counts) >= 2
    assert max(counts) <= 9
    assert 3 <= np.mean(counts) <= 7


def test_parts_move_with_the_belt_and_stay_what_they_are() -> None:
    conveyor = Conveyor(4)
    before = {part.number: part for part in conveyor.scene_at(10).parts}
    after = {part.number: part for part in conveyor.scene_at(10.5).parts}
    both = before.keys() & after.keys()
    assert both
    for number in both:
        old, new = before[number], after[number]
        assert new.x - old.x == pytest.approx(0.5 * conveyor.speed)
        assert (new.y, new.appearance) == (old.y, old.appearance)


def test_the_belt_moves_as_the_parts_do() -> None:
    conveyor = Conveyor(4)
    scene = conveyor.scene_at(10)
    shifted = replace(scene, scroll=scene.scroll + 30)
    still, moved = (bare(conveyor, each)[0].astype(int).mean(axis=2) for each in (scene, shifted))
    belt = slice(100, 380)
    noise = np.abs(moved[belt, 30:] - still[belt, :-30]).mean()
    assert noise < np.abs(moved[belt] - still[belt]).mean()


def test_a_part_comes_in_at_the_left_and_leaves_at_the_right() -> None:
    conveyor = Conveyor(2)
    number = max(part.number for part in conveyor.scene_at(0).parts) + 3
    scenes = (conveyor.scene_at(step / 20) for step in range(240))
    track = [(part, scene) for scene in scenes for part in scene.parts if part.number == number]
    (first, entry), (last, exit_) = track[0], track[-1]
    assert (first.box.x_min, last.box.x_max) == (0, 640)
    assert first.visible_share < 1 / 3 > last.visible_share
    assert first not in entry.ground_truth
    assert last not in exit_.ground_truth
    middle, seen = track[len(track) // 2]
    assert middle.visible_share == 1
    assert middle in seen.ground_truth


def test_the_visible_share_is_that_of_its_pixels() -> None:
    conveyor = Conveyor(2, 320, 240)
    shares = []
    for step in range(40):
        scene = conveyor.scene_at(step / 8)
        for part in scene.parts:
            if part.number == 5:
                seen = covered(conveyor, replace(scene, parts=(part,)))
                shares.append((part.visible_share, int(seen.sum())))
    whole = max(pixels for _, pixels in shares)
    assert {share < 1 for share, _ in shares} == {True, False}
    assert all(share == pixels / whole for share, pixels in shares)


@pytest.mark.parametrize("seed", range(3))
def test_depth_is_that_of_the_parts_top_and_of_the_belt_in_its_holes(seed: int) -> None:
    conveyor = Conveyor(seed)
    scene = conveyor.scene_at(5)
    _, depth = conveyor.render(scene)
    for part in scene.ground_truth:
        assert part.height_mm > 0
        levels = set(np.unique(depth[within(part.box)]).tolist())
        assert levels == {conveyor.belt_distance_mm, conveyor.belt_distance_mm - part.height_mm}
        if part.kind is not PartKind.BOLT and part.visible_share == 1:
            assert depth[round(part.y), round(part.x)] == conveyor.belt_distance_mm


def test_colour_covers_the_belt_where_depth_does() -> None:
    conveyor = Conveyor(12)
    scene = conveyor.scene_at(3)
    inside = covered(conveyor, scene)
    on_belt = conveyor.render(scene)[1] >= conveyor.belt_distance_mm
    other_belt = replace(scene, scroll=scene.scroll + 37)
    changes = (conveyor.render(scene)[0] != conveyor.render(other_belt)[0]).any(axis=2)
    assert not changes[shrunk(inside)].any()
    assert changes[shrunk(~inside) & on_belt].mean() > 0.8


def shrunk(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Without the pixels at its edge, where the colour of both sides is mixed."""
    steps = itertools.product((-1, 0, 1), repeat=2)
    inner: NDArray[np.bool_] = np.all([np.roll(mask, step, (0, 1)) for step in steps], axis=0)
    return inner


def test_the_light_drifts_slowly() -> None:
    conveyor = Conveyor(1, 64, 48)
    light = np.array([conveyor.scene_at(second / 4).light for second in range(240)])
    assert 0.05 < np.ptp(light) < 0.5
    assert np.abs(np.diff(light)).max() < 0.02


def test_noise_differs_from_picture_to_picture() -> None:
    conveyor = Conveyor(1)
    scene = conveyor.scene_at(1)
    other = replace(scene, noise_seed=conveyor.scene_at(1.001).noise_seed)
    first, second = (conveyor.render(each)[0].astype(int) for each in (scene, other))
    assert 1 < np.abs(first - second).mean() < 10


def test_intrinsics() -> None:
    view = Conveyor(1, 1280, 720).intrinsics
    assert (view.width, view.height) == (1280, 720)
    assert (view.focal_x, view.focal_y) == pytest.approx((1152, 1152))
    assert (view.center_x, view.center_y) == (640, 360)


def test_kinds_are_equally_likely_and_parts_vary() -> None:
    parts = passing(Conveyor(0, 64, 48), 600).values()
    kinds = collections.Counter(part.kind for part in parts)
    assert sum(kinds.values()) > 400
    assert all(kinds[kind] > 0.27 * len(parts) for kind in PartKind)
    assert len({part.appearance.tint for part in parts}) == 3
    assert len({part.angle for part in parts}) == len(parts)


@pytest.mark.parametrize(("width", "height"), [(64, 48), (3840, 2160), (64, 2160), (3840, 48)])
def test_the_smallest_and_the_largest_picture(width: int, height: int) -> None:
    conveyor = Conveyor(1, width, height)
    scene = conveyor.scene_at(0.5)
    color, depth = conveyor.render(scene)
    assert color.shape[:2] == depth.shape == (height, width)
    assert scene.ground_truth
    for part in scene.parts:
        assert (depth[within(part.box)] == conveyor.belt_distance_mm - part.height_mm).any()


def test_the_scene_is_the_same_at_every_size() -> None:
    small, large = Conveyor(6, 320, 240).scene_at(8), Conveyor(6, 640, 480).scene_at(8)
    kinds = [{part.number: part.kind for part in scene.ground_truth} for scene in (small, large)]
    shared = kinds[0].keys() & kinds[1].keys()
    assert len(shared) >= 3
    assert all(kinds[0][number] is kinds[1][number] for number in shared)


def test_a_late_scene_is_as_quick_as_an_early_one() -> None:
    conveyor = Conveyor(1)
    start = time.perf_counter()
    scene = conveyor.scene_at(36_000)
    assert time.perf_counter() - start < 0.5
    assert 2 <= len(scene.ground_truth) <= 9
    assert covered(conveyor, scene).any()


def test_threads_see_the_same_scenes() -> None:
    conveyor = Conveyor(1, 160, 120)
    seen: list[list[Scene]] = []

    def look() -> None:
        seen.append([conveyor.scene_at(second) for second in range(30)])

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    fresh = Conveyor(1, 160, 120)
    expected = [fresh.scene_at(second) for second in range(30)]
    assert seen == [expected] * 4
