from __future__ import annotations

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.net.local_address import (
    MAX_SOCKET_PATH,
    AddressTooLong,
    free_port,
    remove_socket,
    unix_address,
)

NAME = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)


def test_short_name_is_kept_in_full() -> None:
    assert unix_address(Path("/run/x"), "acme", "abcde") == "/run/x/acme-abcde.sock"


def test_long_name_is_truncated_with_a_hash() -> None:
    address = unix_address(Path("/run/x"), "a" * 200, "abcde")

    assert len(address) == MAX_SOCKET_PATH
    assert address.startswith("/run/x/aaaaa")
    assert address != unix_address(Path("/run/x"), "a" * 200, "other")
    assert address != unix_address(Path("/run/x"), "a" * 201, "abcde")
    assert address == unix_address(Path("/run/x"), "a" * 200, "abcde")


@given(NAME, st.integers(1, 85))
def test_address_fits_a_socket_path_for_any_name(name: str, depth: int) -> None:
    directory = Path("/" + "d" * depth)

    address = unix_address(directory, name, "abcde")

    assert len(address.encode()) <= MAX_SOCKET_PATH
    assert Path(address).parent == directory


def test_too_long_directory_raises() -> None:
    with pytest.raises(AddressTooLong, match="set TMPDIR to a shorter path"):
        unix_address(Path("/" + "d" * 100), "acme", "abcde")


def test_free_port_can_be_bound() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_port()))


def test_remove_socket_removes_paths_and_ignores_ports(tmp_path: Path) -> None:
    path = tmp_path / "a.sock"
    path.touch()

    remove_socket(str(path))
    remove_socket(str(path))
    remove_socket("127.0.0.1:80")

    assert not path.exists()
