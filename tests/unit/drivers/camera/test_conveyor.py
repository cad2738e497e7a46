from __future__ import annotations

import collections
import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.sizes import limit

from cogwork.drivers.camera.conveyor import Box, Conveyor, ConveyorPart, PartKind, Scene


def render_empty_belt(
    conveyor: Conveyor, scene: Scene
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Render the same belt, light and noise without parts."""
    return conveyor.render(replace(scene, parts=()))


def part_mask(conveyor: Conveyor, scene: Scene) -> NDArray[np.bool_]:
    """Return the pixels in which the depth shows a part."""
    different: NDArray[np.bool_] = (
        conveyor.render(scene)[1] != render_empty_belt(conveyor, scene)[1]
    )
    return different


def slices_of(box: Box) -> tuple[slice, slice]:
    return slice(box.y_min, box.y_max), slice(box.x_min, box.x_max)


def parts_within(conveyor: Conveyor, seconds: int) -> dict[int, ConveyorPart]:
    scenes = (conveyor.scene_at(float(second)) for second in range(seconds))
    return {part.number: part for scene in scenes for part in scene.parts}


def test_same_seed_renders_the_same_images() -> None:
    one, other = Conveyor(7, 320, 240), Conveyor(7, 320, 240)
    other.render(other.scene_at(99.0))
    assert one.scene_at(4.2) == other.scene_at(4.2)
    for picture, again in zip(
        one.render(one.scene_at(4.2)), other.render(other.scene_at(4.2)), strict=True
    ):
        np.testing.assert_array_equal(picture, again)


def test_different_seeds_give_different_scenes() -> None:
    shapes = {
        tuple(part.appearance for part in Conveyor(seed).scene_at(0).parts) for seed in range(10)
    }
    assert len(shapes) == 10


def test_rendering_is_independent_of_previously_rendered_scenes() -> None:
    one, other = Conveyor(7, 320, 240), Conveyor(8, 320, 240)
    own, foreign = one.scene_at(3), other.scene_at(3)
    assert {part.number for part in own.parts} & {part.number for part in foreign.parts}
    one.render(own)
    np.testing.assert_array_equal(one.render(foreign)[1], other.render(foreign)[1])


def test_images_are_fresh_arrays_with_the_layout_of_a_camera() -> None:
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
def test_boxes_fit_their_parts_tightly(width: int, height: int) -> None:
    conveyor = Conveyor(3, width, height)
    for scene in map(conveyor.scene_at, (0.0, 1.7, 33.3)):
        everything = np.zeros((height, width), np.bool_)
        for part in scene.parts:
            seen = part_mask(conveyor, replace(scene, parts=(part,)))
            rows, columns = np.flatnonzero(seen.any(axis=1)), np.flatnonzero(seen.any(axis=0))
            assert part.box == Box(columns[0], rows[0], columns[-1] + 1, rows[-1] + 1)
            assert 0 <= part.box.x_min < part.box.x_max <= width
            assert 0 <= part.box.y_min < part.box.y_max <= height
            everything |= seen
        np.testing.assert_array_equal(part_mask(conveyor, scene), everything)


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
def test_number_of_visible_parts_stays_in_range(seed: int) -> None:
    conveyor = Conveyor(seed, 64, 48)
    counts = [len(conveyor.scene_at(second).ground_truth) for second in range(100)]
    assert min(counts) >= 2
    assert max(counts) <= 9
    assert 3 <= np.mean(counts) <= 7


def test_parts_move_with_the_belt_and_keep_their_appearance() -> None:
    conveyor = Conveyor(4)
    before = {part.number: part for part in conveyor.scene_at(10).parts}
    after = {part.number: part for part in conveyor.scene_at(10.5).parts}
    both = before.keys() & after.keys()
    assert both
    for number in both:
        old, new = before[number], after[number]
        assert new.x - old.x == pytest.approx(0.5 * conveyor.speed)
        assert (new.y, new.appearance) == (old.y, old.appearance)


def test_belt_texture_moves_with_the_scroll_offset() -> None:
    conveyor = Conveyor(4)
    scene = conveyor.scene_at(10)
    shifted = replace(scene, scroll=scene.scroll + 30)
    still, moved = (
        render_empty_belt(conveyor, each)[0].astype(int).mean(axis=2) for each in (scene, shifted)
    )
    belt = slice(100, 380)
    noise = np.abs(moved[belt, 30:] - still[belt, :-30]).mean()
    assert noise < np.abs(moved[belt] - still[belt]).mean()


def test_part_enters_on_the_left_and_leaves_on_the_right() -> None:
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


def test_visible_share_matches_the_visible_pixels() -> None:
    conveyor = Conveyor(2, 320, 240)
    shares = []
    for step in range(40):
        scene = conveyor.scene_at(step / 8)
        for part in scene.parts:
            if part.number == 5:
                seen = part_mask(conveyor, replace(scene, parts=(part,)))
                shares.append((part.visible_share, int(seen.sum())))
    whole = max(pixels for _, pixels in shares)
    assert {share < 1 for share, _ in shares} == {True, False}
    assert all(share == pixels / whole for share, pixels in shares)


@pytest.mark.parametrize("seed", range(3))
def test_depth_shows_part_tops_and_the_belt_in_their_holes(seed: int) -> None:
    conveyor = Conveyor(seed)
    scene = conveyor.scene_at(5)
    _, depth = conveyor.render(scene)
    for part in scene.ground_truth:
        assert part.height_mm > 0
        levels = set(np.unique(depth[slices_of(part.box)]).tolist())
        assert levels == {conveyor.belt_distance_mm, conveyor.belt_distance_mm - part.height_mm}
        if part.kind is not PartKind.BOLT and part.visible_share == 1:
            assert depth[round(part.y), round(part.x)] == conveyor.belt_distance_mm


def test_color_and_depth_cover_the_same_pixels() -> None:
    conveyor = Conveyor(12)
    scene = conveyor.scene_at(3)
    inside = part_mask(conveyor, scene)
    on_belt = conveyor.render(scene)[1] >= conveyor.belt_distance_mm
    other_belt = replace(scene, scroll=scene.scroll + 37)
    changes = (conveyor.render(scene)[0] != conveyor.render(other_belt)[0]).any(axis=2)
    assert not changes[shrink_mask(inside)].any()
    assert changes[shrink_mask(~inside) & on_belt].mean() > 0.8


def shrink_mask(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Remove the pixels at the edge, where the colors of both sides are mixed."""
    steps = itertools.product((-1, 0, 1), repeat=2)
    inner: NDArray[np.bool_] = np.all([np.roll(mask, step, (0, 1)) for step in steps], axis=0)
    return inner


def test_light_drifts_slowly() -> None:
    conveyor = Conveyor(1, 64, 48)
    light = np.array([conveyor.scene_at(second / 4).light for second in range(240)])
    assert 0.05 < np.ptp(light) < 0.5
    assert np.abs(np.diff(light)).max() < 0.02


def test_noise_differs_between_images() -> None:
    conveyor = Conveyor(1)
    scene = conveyor.scene_at(1)
    other = replace(scene, noise_seed=conveyor.scene_at(1.001).noise_seed)
    first, second = (conveyor.render(each)[0].astype(int) for each in (scene, other))
    assert 1 < np.abs(first - second).mean() < 10


def test_intrinsics_match_the_image_size() -> None:
    view = Conveyor(1, 1280, 720).intrinsics
    assert (view.width, view.height) == (1280, 720)
    assert (view.focal_x, view.focal_y) == pytest.approx((1152, 1152))
    assert (view.center_x, view.center_y) == (640, 360)


def test_part_kinds_are_equally_likely_and_parts_vary() -> None:
    parts = parts_within(Conveyor(0, 64, 48), 600).values()
    kinds = collections.Counter(part.kind for part in parts)
    assert sum(kinds.values()) > 400
    assert all(kinds[kind] > 0.27 * len(parts) for kind in PartKind)
    assert len({part.appearance.tint for part in parts}) == 3
    assert len({part.angle for part in parts}) == len(parts)


@pytest.mark.parametrize(("width", "height"), [(64, 48), (3840, 2160), (64, 2160), (3840, 48)])
def test_smallest_and_largest_images_can_be_rendered(width: int, height: int) -> None:
    conveyor = Conveyor(1, width, height)
    scene = conveyor.scene_at(0.5)
    color, depth = conveyor.render(scene)
    assert color.shape[:2] == depth.shape == (height, width)
    assert scene.ground_truth
    for part in scene.parts:
        assert (depth[slices_of(part.box)] == conveyor.belt_distance_mm - part.height_mm).any()


def test_scene_is_the_same_at_every_image_size() -> None:
    small, large = Conveyor(6, 320, 240).scene_at(8), Conveyor(6, 640, 480).scene_at(8)
    kinds = [{part.number: part.kind for part in scene.ground_truth} for scene in (small, large)]
    shared = kinds[0].keys() & kinds[1].keys()
    assert len(shared) >= 3
    assert all(kinds[0][number] is kinds[1][number] for number in shared)


def test_late_scene_is_computed_as_fast_as_an_early_one() -> None:
    conveyor = Conveyor(1)
    start = time.perf_counter()
    scene = conveyor.scene_at(36_000)
    assert time.perf_counter() - start < limit(0.5)
    assert 2 <= len(scene.ground_truth) <= 9
    assert part_mask(conveyor, scene).any()


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
