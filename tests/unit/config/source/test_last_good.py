import hashlib
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.source.last_good import DamagedCopy, LastGood, last_good_for
from cogwork.core.errors import CogworkError

SMALL = '{"components": [{"name": "größe"}]}\n'


@pytest.fixture
def last_good(tmp_path: Path) -> LastGood:
    return LastGood(tmp_path / "last-good" / "robot.json")


@pytest.fixture
def stored_bytes(last_good: LastGood) -> bytes:
    last_good.save(SMALL)
    return last_good.path.read_bytes()


def single_bit_flips(content: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def truncations(content: bytes) -> Iterator[bytes]:
    return (content[:length] for length in range(len(content)))


def assert_all_detected(last_good: LastGood, damaged: Iterator[bytes]) -> int:
    count = 0
    for content in damaged:
        last_good.path.write_bytes(content)
        with pytest.raises(DamagedCopy):
            last_good.read()
        count += 1
    return count


def test_read_returns_none_without_a_copy(last_good: LastGood) -> None:
    assert last_good.read() is None


def test_read_returns_the_last_saved_text(last_good: LastGood) -> None:
    last_good.save("first")
    last_good.save(SMALL)
    assert last_good.read() == SMALL


@given(st.text())
def test_any_text_is_read_back_unchanged(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        last_good = LastGood(Path(directory) / "robot.json")
        last_good.save(text)
        assert last_good.read() == text


@pytest.mark.parametrize("text", ["", "\n", "a\r\nb\rc\n", "\ufeff{}", "\x00", "\U0010ffff" * 9])
def test_text_is_stored_byte_for_byte(last_good: LastGood, text: str) -> None:
    last_good.save(text)
    assert last_good.read() == text
    assert last_good.path.read_bytes().partition(b"\n")[2] == text.encode()


def test_lone_surrogate_is_refused_and_the_old_copy_stays(last_good: LastGood) -> None:
    last_good.save(SMALL)
    with pytest.raises(ValueError) as caught:
        last_good.save("abc\udfff")
    assert str(caught.value) == (
        "the configuration cannot be stored: character 3 is U+DFFF, "
        "half of a surrogate pair, which UTF-8 cannot encode"
    )
    assert last_good.read() == SMALL


def test_copy_is_readable_only_by_the_owner(last_good: LastGood) -> None:
    last_good.save(SMALL)
    assert stat.S_IMODE(last_good.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(last_good.path.parent.stat().st_mode) == 0o700


def test_every_flipped_bit_is_detected(last_good: LastGood, stored_bytes: bytes) -> None:
    assert assert_all_detected(last_good, single_bit_flips(stored_bytes)) == 8 * len(stored_bytes)


def test_every_truncation_is_detected(last_good: LastGood, stored_bytes: bytes) -> None:
    assert assert_all_detected(last_good, truncations(stored_bytes)) == len(stored_bytes)


def test_every_appended_byte_is_detected(last_good: LastGood, stored_bytes: bytes) -> None:
    appended = (stored_bytes + bytes([byte]) * count for byte in range(256) for count in (1, 512))
    assert assert_all_detected(last_good, appended) == 512


def test_copy_with_another_format_number_is_damaged(
    last_good: LastGood, stored_bytes: bytes
) -> None:
    last_good.path.write_bytes(stored_bytes.replace(b" 1 ", b" 01 ", 1))
    with pytest.raises(DamagedCopy):
        last_good.read()


def test_damage_error_names_the_file_and_the_fix(last_good: LastGood, stored_bytes: bytes) -> None:
    last_good.path.write_bytes(stored_bytes[:-1])
    with pytest.raises(CogworkError) as caught:
        last_good.read()
    assert str(caught.value) == (
        f"the last good configuration in {last_good.path} cannot be used: checksum mismatch; "
        "delete it and fix the configuration file"
    )


def test_unreadable_copy_is_damaged(last_good: LastGood) -> None:
    last_good.path.mkdir(parents=True)
    with pytest.raises(DamagedCopy, match="reading failed"):
        last_good.read()


def test_damaged_copy_is_replaced_by_the_next_save(
    last_good: LastGood, stored_bytes: bytes
) -> None:
    last_good.path.write_bytes(stored_bytes[:-1])
    last_good.save("next")
    assert last_good.read() == "next"


def test_each_configuration_file_has_its_own_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    here = last_good_for(home, Path("robot.json"))
    assert here.path.parent == home / "last-good"
    assert here.path.match("robot-????????.json")
    assert here == last_good_for(home, tmp_path / "robot.json")
    assert here == last_good_for(home, Path("sub") / ".." / "robot.json")
    assert here != last_good_for(home, tmp_path / "other" / "robot.json")


def test_copy_path_of_a_configuration_file_is_stable() -> None:
    last_good = last_good_for(Path("/var/lib/cogwork"), Path("/etc/cogwork/robot.json"))
    assert last_good.path == Path("/var/lib/cogwork/last-good/robot-e5a0632b.json")


def test_copy_that_is_not_utf8_is_damaged(last_good: LastGood) -> None:
    body = b'{"a": "\xff"}'
    digest = hashlib.sha256(body).hexdigest()
    last_good.path.parent.mkdir(parents=True)
    last_good.path.write_bytes(f"cogwork-last-good 1 {len(body)} {digest}\n".encode() + body)
    with pytest.raises(DamagedCopy, match="not UTF-8 text"):
        last_good.read()
