from __future__ import annotations

from cogwork.contracts.world_state_store import WorldStateStoreContract


class TestFake(WorldStateStoreContract):
    model = "fake"
    attributes = {"interval": "20ms", "lifetime": "100ms", "update_rate_hz": 100}
    changing = 100
