from __future__ import annotations

import json

import pytest

from cogwork.cli.main import main
from cogwork.config.schema.codes import CODES, Code


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_explain_prints_every_code(code: Code, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", code.id]) == 0
    page = capsys.readouterr().out
    assert page.startswith(f"{code.id}  {code.severity.value}: {code.title}\n\n")
    assert code.explanation in page
    assert f"wrong:  {code.wrong}\n" in page
    assert f"right:  {code.right}\n" in page


def test_explain_accepts_lowercase_codes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "e103"]) == 0
    assert capsys.readouterr().out.startswith("E103  error: unknown key")


def test_explain_without_a_code_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CODES)
    assert lines[0] == "E001  error    invalid JSON"


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("E1033", 'did you mean "E103"?'),
        ("what", "`cogwork explain` lists all codes"),
        ("", "lists all"),
    ],
)
def test_explain_refuses_unknown_codes_with_a_hint(
    code: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", code]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"unknown diagnostic code {code}; ")
    assert hint in err


def test_severity_matches_the_letter_of_the_code() -> None:
    assert {code.id[0]: code.severity.value for code in CODES.values()} == {
        "E": "error",
        "W": "warning",
    }
    assert all(code.explanation.endswith(".") for code in CODES.values())


def test_explain_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "E103", "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert (page["code"], page["severity"]) == ("E103", "error")
    assert main(["explain", "--json"]) == 0
    assert page in json.loads(capsys.readouterr().out)
