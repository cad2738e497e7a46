"""A cloud for each test, copied from one that is made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cloud.organization import OwnedOrganization
from tests.support.cloud.small_cloud import SmallCloud, create_template


@pytest.fixture(scope="session")
def cloud_template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The directory of a cloud, and the key of its owner."""
    path = tmp_path_factory.mktemp("template") / "cloud"
    return path, create_template(path)


@pytest.fixture
def small_cloud(cloud_template: tuple[Path, str], tmp_path: Path) -> SmallCloud:
    template, owner = cloud_template
    return SmallCloud(template, tmp_path / "small cloud", owner)


@pytest.fixture
def acme(small_cloud: SmallCloud) -> OwnedOrganization:
    """An organization with one of everything, whose owner makes the calls."""
    return OwnedOrganization(small_cloud, small_cloud.add_tenant("Acme"))
