"""Masking of secrets in every form that programs write them in."""

from __future__ import annotations

import json
import random
import re
import string
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.logs.secret_mask import SecretMask

SECRETS = (
    "planted-plain-hunter2",
    'planted"quo\\ted-77',
    "planted-gehäim-密-88",
    "planted-line1\nplanted-line2",
    "planted  spaced\ttab-66",
    'it\'s "both"',
    " led by a space",
    "pl4nt",
    "#1!",
    "x'y",
    "\ud800surrogate",
)
FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": json.dumps,
    "readable JSON": lambda text: json.dumps(text, ensure_ascii=False),
    "repr": repr,
    "repr in a list": lambda text: repr([text, '"', "'"]),
    "repr of bytes": lambda text: repr(text.encode(errors="surrogatepass")),
    "URL": lambda text: quote(text.encode(errors="surrogatepass")),
    "URL parameter": lambda text: quote_plus(text.encode(errors="surrogatepass")),
    "expanded tabs": lambda text: text.expandtabs(4),
    "one line": lambda text: " ".join(text.split()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS)
def test_secret_is_masked_in_every_form(secret: str, form: str) -> None:
    written = FORMS[form](secret)
    masked = SecretMask([secret]).hide(f"cannot log in with {written} at rtsp://x/")
    assert "***" in masked
    assert written.strip("\"' ") not in masked
    assert masked.startswith("cannot log in with ")
    assert masked.endswith(" at rtsp://x/")


def test_multiline_secret_is_masked_line_by_line() -> None:
    mask = SecretMask(["planted-line1\n  planted-line2\nxy\n"])
    assert mask.hide("it says planted-line1") == "it says ***"
    assert mask.hide("planted-line2") == "***"
    assert mask.hide("xy") == "xy"


def test_short_secret_is_masked_only_as_a_whole_word() -> None:
    mask = SecretMask(["cat", "c-t"])
    assert mask.hide("cat, (cat) =cat; 'cat'\ncat") == "***, (***) =***; '***'\n***"
    assert mask.hide("category bobcat my_cat 1cat c-tx") == "category bobcat my_cat 1cat c-tx"
    assert mask.hide("c-t") == "***"


def test_secret_of_two_characters_is_not_masked() -> None:
    assert SecretMask(["ab", ""]).hide("ab") == "ab"


def test_longest_matching_secret_is_masked() -> None:
    mask = SecretMask(["hunter-22", "hunter-22-longer", "22-lon"])
    assert mask.hide("hunter-22-longer hunter-22 22-lon") == "*** *** ***"


secrets = st.lists(st.text(st.sampled_from('ab c\n-é"\\'), min_size=6, max_size=9), max_size=8)


@given(secrets, st.lists(st.text(st.sampled_from("ab c\n-é"), max_size=8)), st.randoms())
def test_no_secret_is_left_in_random_text(
    secrets: list[str], others: list[str], order: random.Random
) -> None:
    parts = [*secrets, *others]
    order.shuffle(parts)
    masked = SecretMask(secrets).hide("".join(parts))
    assert not [each for each in secrets if len(each.strip()) >= 6 and each.strip() in masked]


def test_masking_1000_secrets_is_faster_than_a_regex() -> None:
    rng = random.Random(1)
    letters = string.ascii_letters + string.digits + "-_/+="
    secrets = ["".join(rng.choices(letters, k=rng.randint(8, 40))) for _ in range(1000)]
    text = "".join(rng.choices(f"{letters}    ", k=32 << 10))
    alternation = re.compile("|".join(map(re.escape, secrets)))
    assert (
        _seconds(SecretMask(secrets).hide, text)
        < _seconds(partial(alternation.sub, "***"), text) / 4
    )


def _seconds(hide: Callable[[str], str], text: str) -> float:
    def once() -> float:
        started = time.perf_counter()
        hide(text)
        return time.perf_counter() - started

    return min(once() for _ in range(3))
