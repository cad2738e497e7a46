"""Durations in the notation of Go: "300ms", "1.5h", "2h45m"."""

import re
from decimal import Decimal
from fractions import Fraction

_SECOND = 1_000_000_000
_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5, the micro sign
    "μs": 1_000,  # U+03BC, the Greek letter
    "ms": 1_000_000,
    "s": _SECOND,
    "m": 60 * _SECOND,
    "h": 3600 * _SECOND,
}
# Accept the same range of durations as clients in Go, which store nanoseconds in 64 bits.
_MAX_NANOSECONDS = 2**63 - 1

_PART = re.compile(r"([0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(ns|us|µs|μs|ms|s|m|h)")
_DURATION = re.compile(rf"([-+]?)(0|(?:{_PART.pattern})+)")


def parse(text: str) -> float:
    """Parse the syntax of Go's ``time.ParseDuration``, and return seconds. Raise ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(
            f'"{text}" is not a duration; write it like "5m", "1m30s" or "200ms"',
        )
    sign, parts = match[1], match[2]
    nanoseconds = int(sum(_to_nanoseconds(*part) for part in _PART.findall(parts)))
    if nanoseconds > _MAX_NANOSECONDS:
        raise ValueError(f'"{text}" is too long for a duration; the limit is about 292 years')
    return (-nanoseconds if sign == "-" else nanoseconds) / _SECOND


def _to_nanoseconds(number: str, unit: str) -> Decimal:
    return Decimal(number) * _NANOSECONDS[unit]


def render(seconds: float) -> str:
    """Return the shortest exact text, to the nanosecond, that ``parse`` can read."""
    nanoseconds = round(Fraction(seconds) * _SECOND)
    sign = "-" if nanoseconds < 0 else ""
    return sign + _render_nanoseconds(abs(nanoseconds))


def _render_nanoseconds(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    if nanoseconds < _SECOND:
        unit = next(u for u in ("ms", "µs", "ns") if nanoseconds >= _NANOSECONDS[u])
        return _render_decimal(nanoseconds, unit)
    minutes, rest = divmod(nanoseconds, _NANOSECONDS["m"])
    hours, minutes = divmod(minutes, 60)
    larger = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return larger + _render_decimal(rest, "s")


def _render_decimal(nanoseconds: int, unit: str) -> str:
    whole, fraction = divmod(nanoseconds, _NANOSECONDS[unit])
    digits = len(str(_NANOSECONDS[unit])) - 1
    decimals = f".{fraction:0{digits}}".rstrip("0") if fraction else ""
    return f"{whole}{decimals}{unit}"
