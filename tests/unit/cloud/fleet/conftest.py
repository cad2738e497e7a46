"""An organization with one of everything, whose owner makes the calls."""

from __future__ import annotations

import pytest
from tests.support.organization import OwnedOrganization
from tests.support.small_cloud import SmallCloud


@pytest.fixture
def acme(small_cloud: SmallCloud) -> OwnedOrganization:
    return OwnedOrganization(small_cloud, small_cloud.add_tenant("Acme"))
