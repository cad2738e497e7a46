from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.fleet.stored_login import (
    FleetLogin,
    LoginStore,
    find_login,
    parse_cloud_address,
)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("https://fleet.example.org", "https://fleet.example.org:443"),
        ("fleet.example.org", "https://fleet.example.org:443"),
        ("fleet.example.org:8443", "https://fleet.example.org:8443"),
        ("localhost", "localhost:8090"),
        ("127.0.0.1:7000", "127.0.0.1:7000"),
        ("http://fleet.example.org", "fleet.example.org:80"),
        ("https://localhost:1", "https://localhost:1"),
    ],
)
def test_address_uses_tls_unless_it_is_local(text: str, address: str) -> None:
    assert parse_cloud_address(text) == address


def test_login_is_kept_where_only_its_user_reads_it(tmp_path: Path) -> None:
    authority = tmp_path / "authority.pem"
    authority.write_text("certificate")
    store = LoginStore(tmp_path / "home")
    assert store.load() is None
    saved = store.save(FleetLogin("https://a:443", "id", "secret", authority))
    assert saved.authority is not None
    assert saved.authority.read_text() == "certificate"
    assert store.load() == saved
    assert "secret" not in repr(saved)
    for file in (store.path, saved.authority):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.save(FleetLogin("https://b:443", "id", "secret"))
    assert store.load() == FleetLogin("https://b:443", "id", "secret")
    assert store.delete()
    assert not store.delete()
    assert store.load() is None


def test_damaged_login_says_what_to_do(tmp_path: Path) -> None:
    store = LoginStore(tmp_path)
    store.path.parent.mkdir()
    store.path.write_text('{"address": ')
    with pytest.raises(CommandError, match="is damaged; log in again with: cogwork fleet login"):
        store.load()


def test_variables_come_before_the_stored_login_and_belong_together(tmp_path: Path) -> None:
    home = {"COGWORK_HOME": str(tmp_path)}
    with pytest.raises(CommandError, match="not logged in to a cloud; run `cogwork fleet login"):
        find_login(home)
    LoginStore(tmp_path).save(FleetLogin("https://stored:443", "id", "key"))
    assert find_login(home).address == "https://stored:443"
    partial = {**home, "COGWORK_FLEET_ADDRESS": "localhost:1", "COGWORK_FLEET_KEY_ID": "other"}
    with pytest.raises(CommandError, match="set COGWORK_FLEET_KEY, too"):
        find_login(partial)
    found = find_login({**partial, "COGWORK_FLEET_KEY": "k"})
    assert found == FleetLogin("localhost:1", "other", "k")


def test_key_is_not_sent_without_tls_to_another_computer(tmp_path: Path) -> None:
    environment = {
        "COGWORK_HOME": str(tmp_path),
        "COGWORK_FLEET_ADDRESS": "http://192.0.2.7:80",
        "COGWORK_FLEET_KEY_ID": "id",
        "COGWORK_FLEET_KEY": "key",
    }
    with pytest.raises(CommandError, match=r"not sending the key to 192\.0\.2\.7:80 without"):
        find_login(environment)
    find_login({**environment, "COGWORK_ALLOW_INSECURE_CREDS": "1"})
