"""A cloud for each test, copied from one that is made once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.cloud.in_process_cloud import (
    CloudTemplate,
    InProcessCloud,
    TwoTenantCloud,
    create_cloud_template,
    open_empty,
    open_two_tenants,
)
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


@pytest.fixture(scope="session")
def in_process_template(tmp_path_factory: pytest.TempPathFactory) -> CloudTemplate:
    return create_cloud_template(tmp_path_factory.mktemp("in process"))


@pytest.fixture
async def cloud(
    in_process_template: CloudTemplate, tmp_path: Path
) -> AsyncIterator[TwoTenantCloud]:
    """A cloud with two organizations, whose services are called in this process."""
    async with open_two_tenants(in_process_template, tmp_path / "in process") as opened:
        yield opened


@pytest.fixture
async def empty_cloud(
    in_process_template: CloudTemplate, tmp_path: Path
) -> AsyncIterator[InProcessCloud]:
    """A cloud with the hosting organization only, and the clock of the computer."""
    async with open_empty(in_process_template, tmp_path / "cloud") as opened:
        yield opened
