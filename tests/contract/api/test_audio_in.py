from __future__ import annotations

from cogwork.contracts.audio_in import AudioInContract


class TestFake(AudioInContract):
    model = "fake"
    attributes = {"sample_rate_hz": 8000, "chunk": "20ms"}
    seconds = 0.1


class TestFakeBesideASpeaker(AudioInContract):
    model = "fake"
    attributes = {"hears": "speaker", "sample_rate_hz": 8000, "chunk": "20ms"}
    other_resources = ({"name": "speaker", "api": "rdk:component:audio_out", "model": "fake"},)
    seconds = 0.1
