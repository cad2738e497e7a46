"""Conveyor belts for tests with several cameras."""

from __future__ import annotations

from tests.support.machine.running import Config


def make_belt(number: int, width: int, height: int, frame_rate: int) -> Config:
    return {
        "name": f"belt-{number}",
        "api": "rdk:component:camera",
        "model": "fake",
        "attributes": {
            "scene": "conveyor",
            "seed": number,
            "width": width,
            "height": height,
            "frame_rate": frame_rate,
        },
    }
