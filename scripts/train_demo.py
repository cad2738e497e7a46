"""Train the demo model on the conveyor of the fake camera and export it in every format.

    python -m scripts.train_demo [--quick] [--into FOLDER]

Requires the extras onnx, tensorflow, torch and camera, and the package onnx. With --quick it takes
a minute or two and writes to the temporary directory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from scripts.demo_model.data import Image, load_training_data
from scripts.demo_model.evaluation import Detect, Detections, evaluate, render_unseen
from scripts.demo_model.export_onnx import export_onnx
from scripts.demo_model.export_torch import Detector, export_torch
from scripts.demo_model.layers import Layer
from scripts.demo_model.metadata import LABELS_TEXT, NAME
from scripts.demo_model.training import train

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "src/cogwork/drivers/mlmodel/demo"
QUICK_FOLDER = Path(tempfile.gettempdir()) / "cogwork-demo-quick"
STEPS = 2000
SIZES = ((640, 480), (1280, 720))
QUALITIES = (None, 75)


def main(argv: Sequence[str] | None = None) -> None:
    options = _parse_options(argv)
    started = time.monotonic()
    seeds, moments, steps = (24, 6, 120) if options.quick else (500, 10, options.steps)
    pictures = load_training_data(seeds, moments)
    print(f"rendered {len(pictures)} images in {time.monotonic() - started:.0f}s", flush=True)
    network = train(pictures, steps, options.seed, options.threads)
    print(f"trained {network.parameter_count()} parameters in {time.monotonic() - started:.0f}s")
    layers = network.layers()
    into = options.into or (QUICK_FOLDER if options.quick else FOLDER)
    export(layers, into)
    print(f"wrote {into}", flush=True)
    for row in _evaluation_rows(_make_detector(layers), moments=2 if options.quick else 15):
        print(row, flush=True)


def _parse_options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="train on few images with few steps")
    parser.add_argument("--into", type=Path, help="output directory")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args(argv)


def export(layers: Sequence[Layer], folder: Path) -> None:
    # Import TensorFlow late, because its import takes seconds and starts threads during training.
    from scripts.demo_model.export_tensorflow import export_saved_model, export_tflite

    folder.mkdir(parents=True, exist_ok=True)
    export_onnx(layers, folder / f"{NAME}.onnx")
    export_torch(layers, folder / f"{NAME}.pt")
    export_saved_model(layers, folder / f"{NAME}_savedmodel")
    export_tflite(folder / f"{NAME}_savedmodel", folder / f"{NAME}.tflite")
    (folder / "labels.txt").write_text(LABELS_TEXT, encoding="utf-8")


def _make_detector(layers: Sequence[Layer]) -> Detect:
    module = Detector(layers).eval()

    def detect(image: Image) -> Detections:
        with torch.inference_mode():
            found = module(torch.from_numpy(image)[None])
        return Detections(*(found[name][0].numpy() for name in ("location", "category", "score")))

    return detect


def _evaluation_rows(detect: Detect, moments: int) -> Iterator[str]:
    yield "| image | precision | recall |"
    yield "|---|---|---|"
    for width, height in SIZES:
        for quality in QUALITIES:
            right = evaluate(detect, render_unseen(width, height, moments=moments, jpeg=quality))
            name = f"{width}x{height}, " + (f"JPEG {quality}" if quality else "raw")
            yield f"| {name} | {right.precision:.3f} | {right.recall:.3f} |"


if __name__ == "__main__":
    main()
