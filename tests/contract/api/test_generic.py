from __future__ import annotations

from cogwork.contracts.generic import GenericContract
from cogwork.contracts.generic_service import GenericServiceContract


class TestFake(GenericContract):
    model = "fake"


class TestFakeService(GenericServiceContract):
    model = "fake"
