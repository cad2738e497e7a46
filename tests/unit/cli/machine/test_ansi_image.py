"""Images as text: every pixel in its place, and no color set twice."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cogwork.cli.machine.ansi_image import render_ansi
from cogwork.media.image import Pixels

# In OpenCV's channel order.
RED, GREEN, BLUE = (0, 0, 255), (0, 255, 0), (255, 0, 0)
GREY, WHITE, BLACK = (129, 128, 127), (255, 255, 255), (0, 0, 0)

SET = re.compile(r"\x1b\[([34])8;(2;\d+;\d+;\d+|5;\d+)m")
CELL = re.compile(rf"((?:{SET.pattern})*)▀")


small_pictures = st.tuples(st.integers(1, 4), st.integers(1, 6)).flatmap(
    lambda size: arrays.arrays(
        np.uint8, (2 * size[0], size[1], 3), elements=st.sampled_from([0, 7, 95, 255])
    )
)


def picture(*lines: list[tuple[int, int, int]]) -> Pixels:
    return np.array(lines, np.uint8)


def parse_cells(text: str) -> list[list[tuple[str, str]]]:
    """Return the upper and the lower color of each cell, as a terminal shows them."""
    shown = []
    for line in text.split("\n"):
        assert line.endswith("\x1b[0m")
        colors, cells = {"3": "", "4": ""}, []
        for cell in CELL.finditer(line):
            colors |= dict(SET.findall(cell[1]))
            cells.append((colors["3"], colors["4"]))
        shown.append(cells)
    return shown


def size(text: str) -> tuple[int, int]:
    lines = text.split("\n")
    (width,) = {line.count("▀") for line in lines}
    return width, len(lines)


class TestText:
    def test_truecolor_image_of_two_by_two(self) -> None:
        pixels = picture([RED, RED], [GREEN, GREY])
        assert render_ansi(pixels, 2, 1, truecolor=True) == (
            "\x1b[38;2;255;0;0m\x1b[48;2;0;255;0m▀\x1b[48;2;127;128;129m▀\x1b[0m"
        )

    def test_image_of_two_by_two_with_256_colors(self) -> None:
        pixels = picture([RED, RED], [GREEN, GREY])
        assert render_ansi(pixels, 2, 1, truecolor=False) == (
            "\x1b[38;5;196m\x1b[48;5;46m▀\x1b[48;5;244m▀\x1b[0m"
        )

    @pytest.mark.parametrize(
        ("color", "index"),
        [(BLACK, 16), (WHITE, 231), (BLUE, 21), ((8, 8, 8), 232), ((95, 135, 215), 173)],
    )
    def test_nearest_of_256_colors_is_used(self, color: tuple[int, int, int], index: int) -> None:
        text = render_ansi(picture([color], [color]), 1, 1, truecolor=False)
        assert parse_cells(text) == [[(f"5;{index}", f"5;{index}")]]

    def test_color_is_set_once_per_line(self) -> None:
        lines = render_ansi(np.full((40, 30, 3), 77, np.uint8), 30, 20, truecolor=True).split("\n")
        line = "\x1b[38;2;77;77;77m\x1b[48;2;77;77;77m" + 30 * "▀" + "\x1b[0m"
        assert lines == [line] * 20

    @given(data=st.data())
    def test_terminal_shows_the_pixels(self, data: st.DataObject) -> None:
        pixels = data.draw(small_pictures)
        lines, width = len(pixels) // 2, pixels.shape[1]
        shown = parse_cells(render_ansi(pixels, width, lines, truecolor=True))
        rows = [row for cells in shown for row in zip(*cells, strict=True)]
        assert rows == [
            tuple(f"2;{red};{green};{blue}" for blue, green, red in row) for row in pixels
        ]

    @pytest.mark.parametrize("truecolor", [True, False])
    @given(data=st.data())
    def test_color_is_not_set_again_while_it_is_active(
        self, truecolor: bool, data: st.DataObject
    ) -> None:
        pixels = data.draw(small_pictures)
        text = render_ansi(pixels, pixels.shape[1], len(pixels) // 2, truecolor)
        for line in text.split("\n"):
            for plane in "34":
                said = [code for which, code in SET.findall(line) if which == plane]
                assert all(one != other for one, other in pairwise(said))


class TestSize:
    @pytest.mark.parametrize(
        ("pixels", "cells", "fitted"),
        [
            ((640, 480), (200, 60), (160, 60)),
            ((640, 480), (80, 60), (80, 30)),
            ((1920, 1080), (80, 23), (80, 22)),
            ((64, 48), (200, 60), (160, 60)),
            ((480, 640), (80, 23), (34, 23)),
            ((1000, 1), (80, 23), (80, 1)),
            ((1, 1000), (80, 23), (1, 23)),
            ((64, 48), (1, 1), (1, 1)),
        ],
    )
    def test_image_fits_the_terminal_and_keeps_its_aspect_ratio(
        self, pixels: tuple[int, int], cells: tuple[int, int], fitted: tuple[int, int]
    ) -> None:
        width, height = pixels
        text = render_ansi(np.zeros((height, width, 3), np.uint8), *cells, truecolor=True)
        assert size(text) == fitted

    def test_shrinking_averages_colors(self) -> None:
        chequered = np.tile(np.array([[0, 200], [200, 0]], np.uint8), (4, 4))
        pixels = np.repeat(chequered[..., None], 3, axis=2)
        assert (
            parse_cells(render_ansi(pixels, 4, 2, truecolor=True))
            == [[("2;100;100;100",) * 2] * 4] * 2
        )


class TestDepth:
    def test_near_is_red_far_is_blue_and_missing_depth_is_black(self) -> None:
        depth = np.array([[500] * 4, [0] * 4, [4000] * 4, [4000] * 4], np.uint16)
        (near, nothing), *_ = parse_cells(render_ansi(depth, 4, 2, truecolor=True))[0]
        (far, _), *_ = parse_cells(render_ansi(depth, 4, 2, truecolor=True))[1]
        assert nothing == "2;0;0;0"
        red, _, blue = parse_channels(near)
        assert red > 3 * blue
        red, _, blue = parse_channels(far)
        assert blue >= red

    @pytest.mark.parametrize("distance", [0, 700, 65535])
    def test_uniform_depth_has_one_color(self, distance: int) -> None:
        text = render_ansi(np.full((6, 8), distance, np.uint16), 8, 3, truecolor=True)
        assert len({color for line in parse_cells(text) for cell in line for color in cell}) == 1

    def test_single_outlier_does_not_compress_the_color_range(self) -> None:
        depth = np.tile(np.linspace(500, 900, 20).astype(np.uint16), (20, 1))
        depth[0, 0] = 60_000
        cells = parse_cells(render_ansi(depth, 20, 10, truecolor=True))[5]
        assert len({color for cell in cells for color in cell}) > 15


def parse_channels(color: str) -> tuple[int, int, int]:
    _, red, green, blue = map(int, color.split(";"))
    return red, green, blue
