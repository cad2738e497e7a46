import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.core import duration

EXAMPLES = {
    "0": 0.0,
    "+0": 0.0,
    "-0": 0.0,
    "0s": 0.0,
    "1ns": 1e-9,
    "7us": 7e-6,
    "7µs": 7e-6,
    "7μs": 7e-6,
    "300ms": 0.3,
    "1.5s": 1.5,
    "+5s": 5.0,
    "-1s": -1.0,
    ".5s": 0.5,
    "5.s": 5.0,
    "1.5h": 5400.0,
    "2h45m": 9900.0,
    "1h15m30.918s": 4530.918,
    "1m30s": 90.0,
    "30s1m": 90.0,
    "1m1m": 120.0,
    "1ms500us": 0.0015,
    "0.9ns": 0.0,
    "2562047h47m16.854775807s": 9223372036.854775807,
}

NOT_DURATIONS = (
    *("", " ", "5", "-", "+", "s", ".s", ".", "-.s", "00", "1", "1.2.3s", "--1s", "+-1s", "1s-1s"),
    *("5 minutes", "5 m", " 5m", "5m ", "5m\n", "1d", "1S", "1e3s", "1_000s", "0x1s", "٣s", "infs"),
)


@pytest.mark.parametrize(("text", "seconds"), EXAMPLES.items())
def test_parse_accepts_go_durations(text: str, seconds: float) -> None:
    assert duration.parse(text) == seconds


@pytest.mark.parametrize("text", NOT_DURATIONS)
def test_parse_rejects_invalid_text_with_advice(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        duration.parse(text)
    assert str(caught.value) == (
        f'"{text}" is not a duration; write it like "5m", "1m30s" or "200ms"'
    )


@pytest.mark.parametrize("text", ["2562047h47m16.854775808s", "-9999999h", "9" * 40 + "h"])
def test_parse_rejects_durations_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="too long for a duration; the limit is about 292 years"):
        duration.parse(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-0.0, "0s"),
        (1e-12, "0s"),
        (1e-9, "1ns"),
        (1.5e-6, "1.5µs"),
        (0.3, "300ms"),
        (0.1 + 0.2, "300ms"),
        (0.0015, "1.5ms"),
        (1, "1s"),
        (1.5, "1.5s"),
        (59.9999999999, "1m0s"),
        (120, "2m0s"),
        (3600, "1h0m0s"),
        (4530.918, "1h15m30.918s"),
        (-90, "-1m30s"),
    ],
)
def test_render_is_short_and_exact(seconds: float, text: str) -> None:
    assert duration.render(seconds) == text


@given(st.integers(-(2**53), 2**53))
def test_whole_nanoseconds_survive_a_round_trip(nanoseconds: int) -> None:
    seconds = nanoseconds / 1e9
    assert duration.parse(duration.render(seconds)) == seconds


@given(st.floats(-9.2e9, 9.2e9))
def test_any_duration_survives_a_round_trip_to_the_nanosecond(seconds: float) -> None:
    assert duration.parse(duration.render(seconds)) == pytest.approx(seconds, rel=0, abs=1e-9)


@given(st.text())
def test_any_text_is_parsed_or_raises_value_error(text: str) -> None:
    try:
        seconds = duration.parse(text)
    except ValueError:
        return
    assert abs(seconds) < 2**34
