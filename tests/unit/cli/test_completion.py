"""Completion candidates for the last word of a command line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cogwork.cli.completion import DIRECTORIES, FILES, SCRIPTS, complete, split_line
from cogwork.cli.main import main
from cogwork.config.schema.codes import CODES


@pytest.mark.parametrize(
    ("line", "candidates"),
    [
        ("cogwork con", ["config"]),
        ("cogwork config ", ["check", "diff", "migrate", "history", "show", "restore", "schema"]),
        ("cogwork config history --config ", [FILES]),
        ("cogwork config check ", [FILES]),
        ("cogwork config check machine.json ", []),
        ("cogwork config check --j", ["--json"]),
        ("cogwork config diff old.json n", [FILES]),
        ("cogwork demo ", [DIRECTORIES]),
        ("cogwork copy one two three ", [FILES]),
        ("cogwork graph --format ", ["text", "dot", "svg"]),
        ("cogwork graph --format=d", ["dot"]),
        ("cogwork graph --format dot --o", ["--output"]),
        ("cogwork graph --address localhost:8080 -o ", [FILES]),
        ("cogwork completion ", ["bash", "zsh", "fish"]),
        ("cogwork explain E101", ["E101"]),
        ("cogwork call ", []),
        ("cogwork config schema ", ["--help"]),
        ("cogwork status --history --j", ["--json"]),
        ("/opt/bin/cogwork-server -conf", ["-config"]),
        ("cogwork-server --conf", ["--config"]),
        ("cogwork-server -config ", [FILES]),
        ("cogwork-agent unin", ["uninstall"]),
        ("cogwork-cloud release res", ["resume"]),
        ("cogwork-server --config=mach", [FILES]),
        ("cogwork-server -debug -log", ["-log-file"]),
        ("cogwork", []),
        ("ls ", []),
        ("", []),
    ],
)
def test_candidates_for_command_lines(line: str, candidates: list[str]) -> None:
    assert [candidate.word for candidate in complete(split_line(line))] == candidates


def test_explain_completes_all_codes_with_help() -> None:
    offered = complete(["cogwork", "explain", ""])
    assert [candidate.word for candidate in offered] == [code.id for code in CODES.values()]
    assert all(candidate.help for candidate in offered)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cogwork ", ["cogwork", ""]),
        ("cogwork call", ["cogwork", "call"]),
        ("cogwork call 'two words' ", ["cogwork", "call", "two words", ""]),
        ('cogwork call "two wor', ["cogwork", "call", "two wor"]),
        ("cogwork call 'it ", ["cogwork", "call", "it "]),
        ("cogwork call back\\", ["cogwork", "call", "back\\"]),
        ("", []),
    ],
)
def test_split_line_returns_the_words(line: str, words: list[str]) -> None:
    assert split_line(line) == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_of_the_shell(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == (SCRIPTS / f"cogwork.{shell}").read_text()


@pytest.mark.parametrize(
    ("shell", "words", "printed"),
    [
        ("bash", ["cogwork graph --format d"], "dot\n"),
        ("zsh", ["cogwork", "config", "sch"], "schema:Print the JSON Schema of the "),
        ("zsh", ["cogwork", "config", "check", "m"], ":files\n"),
        ("fish", ["cogwork", "config", "sch"], "schema\tPrint the JSON Schema of the "),
        ("fish", ["cogwork", "graph", "--format", "d"], "dot\n"),
        ("fish", ["cogwork-server", "-conf"], "-config\t"),
    ],
)
def test_candidates_are_printed_in_the_format_of_each_shell(
    shell: str, words: list[str], printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell, "--words", *words]) == 0
    assert capsys.readouterr().out.startswith(printed)


def test_completion_imports_no_heavy_modules() -> None:
    code = (
        "import sys; from cogwork.cli.completion import complete; complete(['cogwork', '']); "
        "print([name for name in ('pydantic', 'grpc', 'viam') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
