"""All fuzz targets, by group. The parsers of a group are imported when one of them is asked for."""

from __future__ import annotations

import importlib

from tests.fuzz.target import Target

GROUPS = {
    "config": (
        "json",
        "substitute",
        "placeholders",
        "secrets",
        "load",
        "schedule",
        "duration",
        "last_good",
    ),
    "names": ("resource", "address"),
    "logs": ("pattern", "query", "mask", "spool_line", "spool_entry", "file"),
    "messages": ("name", "fields", "tensors", "structs", "command", "window", "size"),
    "wire": ("http2", "headers", "proxy", "forwarded"),
    "webrtc": ("channel", "offer", "candidate", "grpcweb"),
    "discovery": ("query", "response"),
    "images": ("header", "pixels", "pcd"),
    "labels": ("file", "notes"),
    "kinematics": ("sva", "urdf"),
    "models": (
        "tflite",
        "tflite_metadata",
        "packed_files",
        "onnx",
        "torch",
        "torch_records",
        "torch_program",
    ),
    "devices": ("serial", "pcm", "gamepad"),
    "modules": ("meta", "tar", "bundle", "output", "journal", "description"),
    "commands": ("options", "request", "copy"),
    "cloud": ("machines", "agents", "fleet", "http"),
    "fragments": ("merge", "mask", "text"),
    "updates": ("manifest", "report", "source"),
}
NAMES = tuple(f"{group}.{name}" for group, names in GROUPS.items() for name in names)


def load_target(name: str) -> Target:
    return next(target for target in targets_of(name.partition(".")[0]) if target.name == name)


def targets_of(group: str) -> tuple[Target, ...]:
    targets: tuple[Target, ...] = importlib.import_module(f"tests.fuzz.targets.{group}").TARGETS
    return targets
