from __future__ import annotations

from cogwork.contracts.audio_out import AudioOutContract


class TestFake(AudioOutContract):
    model = "fake"
