"""Regenerate the images of the guides with the `cogwork` command.

python scripts/guide_images.py
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np

from cogwork.cli.machine.ansi_image import render_ansi
from cogwork.media.image import decode

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
CELL_PIXELS = 6
"""Size in pixels of half a terminal cell."""
_GUIDE_MACHINE = re.compile(r'```json title="machine.json"\n(.*?)```', re.DOTALL)
_ESCAPE = re.compile(r"\x1b\[([34])8;2;(\d+);(\d+);(\d+)m|(▀)|\x1b\[0m(\n)?")


def main() -> int:
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        take_camera_images(Path(directory))
        take_boxes_image(Path(directory) / "demo")
    return 0


def take_camera_images(directory: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "cameras.md").read_text()
    found = _GUIDE_MACHINE.search(guide)
    assert found is not None
    config = json.loads(found[1]) | {"network": {"bind_address": "localhost:8099"}}
    file = directory / "machine.json"
    file.write_text(json.dumps(config))
    server = [sys.executable, "-m", "cogwork.server.main", "-config", str(file)]
    with subprocess.Popen(server, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if " applied in " in line:
                break
        try:
            for name in ("belt", "turned"):
                snap(name, IMAGES / f"{name}.jpg")
        finally:
            process.terminate()
    pixels = decode((IMAGES / "belt.jpg").read_bytes())
    cv2.imwrite(
        str(IMAGES / "watch.png"), render_terminal(render_ansi(pixels, 100, 36, truecolor=True))
    )


def take_boxes_image(directory: Path) -> None:
    command = [sys.executable, "-m", "cogwork.cli.main", "demo", str(directory)]
    subprocess.run([*command, "--seconds", "6", "--port", "8099"], check=True)
    shutil.copy(directory / "boxes.jpg", IMAGES / "boxes.jpg")


def snap(name: str, file: Path) -> None:
    command = [sys.executable, "-m", "cogwork.cli.main", "camera", "snap", name, "-o", str(file)]
    subprocess.run([*command, "--address", "localhost:8099"], check=True)


def render_terminal(text: str) -> np.ndarray:
    """Render half blocks like a terminal."""
    lines: list[list[tuple[list[int], list[int]]]] = [[]]
    colours = {"3": [0, 0, 0], "4": [0, 0, 0]}
    for match in _ESCAPE.finditer(text):
        if match[1]:
            colours[match[1]] = [int(match[4]), int(match[3]), int(match[2])]
        elif match[5]:
            lines[-1].append((colours["3"], colours["4"]))
        elif match[6]:
            lines.append([])
    cells = np.array(lines, np.uint8)  # lines, columns, halves, colors
    halves = cells.transpose(0, 2, 1, 3).reshape(2 * cells.shape[0], cells.shape[1], 3)
    return halves.repeat(CELL_PIXELS, axis=0).repeat(CELL_PIXELS, axis=1)


if __name__ == "__main__":
    sys.exit(main())
