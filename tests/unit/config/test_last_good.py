import hashlib
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.config.last_good import DamagedCopy, LastGood, last_good_for
from cogwork.core.errors import CogworkError

SMALL = '{"components": [{"name": "größe"}]}\n'


@pytest.fixture
def place(tmp_path: Path) -> LastGood:
    return LastGood(tmp_path / "last-good" / "robot.json")


@pytest.fixture
def kept(place: LastGood) -> bytes:
    place.save(SMALL)
    return place.path.read_bytes()


def single_bit_flips(content: bytes) -> Iterator[bytes]:
    for bit in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        yield bytes(flipped)


def truncations(content: bytes) -> Iterator[bytes]:
    return (content[:length] for length in range(len(content)))


def assert_all_detected(place: LastGood, damaged: Iterator[bytes]) -> int:
    count = 0
    for content in damaged:
        place.path.write_bytes(content)
        with pytest.raises(DamagedCopy):
            place.read()
        count += 1
    return count


def test_nothing_kept_reads_as_none(place: LastGood) -> None:
    assert place.read() is None


def test_the_last_one_kept_is_read(place: LastGood) -> None:
    place.save("first")
    place.save(SMALL)
    assert place.read() == SMALL


@given(st.text())
def test_any_text_comes_back(text: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = LastGood(Path(directory) / "robot.json")
        place.save(text)
        assert place.read() == text


@pytest.mark.parametrize("text", ["", "\n", "a\r\nb\rc\n", "\ufeff{}", "\x00", "\U0010ffff" * 9])
def test_text_is_kept_byte_for_byte(place: LastGood, text: str) -> None:
    place.save(text)
    assert place.read() == text
    assert place.path.read_bytes().partition(b"\n")[2] == text.encode()


def test_a_lone_surrogate_is_refused_and_the_old_copy_stays(place: LastGood) -> None:
    place.save(SMALL)
    with pytest.raises(ValueError) as caught:
        place.save("abc\udfff")
    assert str(caught.value) == (
        "the configuration cannot be stored: character 3 is U+DFFF, "
        "half of a surrogate pair, which UTF-8 cannot encode"
    )
    assert place.read() == SMALL


def test_only_the_owner_can_read_it(place: LastGood) -> None:
    place.save(SMALL)
    assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700


def test_every_flipped_bit_is_detected(place: LastGood, kept: bytes) -> None:
    assert assert_all_detected(place, single_bit_flips(kept)) == 8 * len(kept)


def test_every_truncation_is_detected(place: LastGood, kept: bytes) -> None:
    assert assert_all_detected(place, truncations(kept)) == len(kept)


def test_every_appended_byte_is_detected(place: LastGood, kept: bytes) -> None:
    appended = (kept + bytes([byte]) * count for byte in range(256) for count in (1, 512))
    assert assert_all_detected(place, appended) == 512


def test_another_format_is_not_read_as_this_one(place: LastGood, kept: bytes) -> None:
    place.path.write_bytes(kept.replace(b" 1 ", b" 01 ", 1))
    with pytest.raises(DamagedCopy):
        place.read()


def test_the_damage_is_explained(place: LastGood, kept: bytes) -> None:
    place.path.write_bytes(kept[:-1])
    with pytest.raises(CogworkError) as caught:
        place.read()
    assert str(caught.value) == (
        f"the last good configuration in {place.path} cannot be used: checksum mismatch; "
        "delete it and fix the configuration file"
    )


def test_a_copy_that_cannot_be_read_is_damaged(place: LastGood) -> None:
    place.path.mkdir(parents=True)
    with pytest.raises(DamagedCopy, match="reading failed"):
        place.read()


def test_a_damaged_copy_is_replaced_by_the_next(place: LastGood, kept: bytes) -> None:
    place.path.write_bytes(kept[:-1])
    place.save("next")
    assert place.read() == "next"


def test_each_configuration_file_has_its_own_place(
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


def test_the_place_of_a_known_path_never_changes() -> None:
    place = last_good_for(Path("/var/lib/cogwork"), Path("/etc/cogwork/robot.json"))
    assert place.path == Path("/var/lib/cogwork/last-good/robot-e5a0632b.json")


def test_a_copy_that_is_whole_and_not_text_is_refused(place: LastGood) -> None:
    body = b'{"a": "\xff"}'
    digest = hashlib.sha256(body).hexdigest()
    place.path.parent.mkdir(parents=True)
    place.path.write_bytes(f"cogwork-last-good 1 {len(body)} {digest}\n".encode() + body)
    with pytest.raises(DamagedCopy, match="not UTF-8 text"):
        place.read()
