"""The secret of a part that its cloud has replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.config.schema.cloud import ApiKey, CloudConfig
from cogwork.uplink.link_files import SECRET_FILE, link_directory
from cogwork.uplink.part_secret import read_current_cloud, store_secret

CLOUD = CloudConfig(id="part", secret="first", app_address="https://fleet.test")


def test_newer_secret_replaces_the_one_of_the_file(tmp_path: Path) -> None:
    directory = tmp_path / "joined"
    assert read_current_cloud(directory, CLOUD) == CLOUD
    store_secret(directory, "first", "second")
    assert read_current_cloud(directory, CLOUD).secret == "second"
    file = directory / SECRET_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    assert "first" not in file.read_text()


def test_owner_who_writes_another_secret_is_right(tmp_path: Path) -> None:
    store_secret(tmp_path, "first", "second")
    edited = CLOUD.model_copy(update={"secret": "third"})
    assert read_current_cloud(tmp_path, edited).secret == "third"


def test_secret_is_not_used_beside_a_key(tmp_path: Path) -> None:
    store_secret(tmp_path, "first", "second")
    keyed = CLOUD.model_copy(update={"api_key": ApiKey(id="k", key="s")})
    assert read_current_cloud(tmp_path, keyed) == keyed


@pytest.mark.parametrize("damage", ["", "[]", "{}", '{"replaces": 1}'])
def test_damaged_file_leaves_the_secret_of_the_machine(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / SECRET_FILE).write_text(damage)
    assert read_current_cloud(tmp_path, CLOUD) == CLOUD
    assert ("cannot be used" in caplog.text) is (damage != '{"replaces": 1}')


def test_each_part_of_each_cloud_has_a_directory(tmp_path: Path) -> None:
    others = [{"id": "other"}, {"app_address": "https://other.test"}, {"secret": "second"}]
    found = [link_directory(tmp_path, CLOUD.model_copy(update=other)) for other in others]
    assert len({link_directory(tmp_path, CLOUD), *found}) == 3
    assert found[2] == link_directory(tmp_path, CLOUD)
