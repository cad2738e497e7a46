"""Every method of the fleet API is served, or has a reason."""

from __future__ import annotations

from scripts.api_page import load_service

from cogwork.cloud.fleet.app_service import APP_SERVICE, served_methods
from cogwork.cloud.fleet.unserved_methods import UNSERVED_METHODS


def test_every_method_is_served_or_has_a_reason() -> None:
    methods = {method.name for method in load_service(APP_SERVICE).methods}
    assert set(served_methods()) | set(UNSERVED_METHODS) == methods
    assert set(served_methods()) & set(UNSERVED_METHODS) == set()
