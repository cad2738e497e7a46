"""Prints a random sample of the project's texts, to check how they read.

python -m scripts.sample_texts --seed 15

The sample has docstrings and comments, error messages and log lines of `src/cogwork`, and guides.
The same seed draws the same sample from the same tree.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "cogwork"
GUIDES = ROOT / "docs" / "guides"
DEFAULT_SEED = 15

_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical", "log"})
_LOGGER = re.compile(r"_?log(ger)?$")
_DIAGNOSTICS = frozenset({"Diagnostic", "RelatedInfo"})
_DIRECTIVE = re.compile(r"(noqa|type: ignore|pragma|fmt:)\b")


class Text(NamedTuple):
    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}\n{_indent(self.text)}\n"


Collect = Callable[[Path, str], Iterator[Text]]
"""Yields the texts of one kind in a source file."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print a random sample of the project's texts.")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED)
    seed = parser.parse_args(argv).seed
    print_sample("Docstrings and comments", collect_prose, 60, seed)
    print_sample("Error messages", collect_errors, 30, seed)
    print_sample("Log lines", collect_log_lines, 30, seed)
    print_guides(3, seed)
    return 0


def print_sample(title: str, collect: Collect, count: int, seed: int) -> None:
    texts = [
        text
        for file in sorted(SOURCES.rglob("*.py"))
        for text in sorted(collect(file, file.read_text(encoding="utf-8")))
    ]
    # Use a generator for each kind, so that a new comment does not change which errors are drawn.
    drawn = random.Random(f"{seed} {title}").sample(texts, min(count, len(texts)))
    print(f"# {title} ({len(drawn)} of {len(texts)})\n")
    for number, text in enumerate(drawn, 1):
        print(f"{number}. {text}")


def print_guides(count: int, seed: int) -> None:
    guides = sorted(GUIDES.glob("*.md"))
    drawn = random.Random(f"{seed} Guides").sample(guides, min(count, len(guides)))
    print(f"# Guides ({len(drawn)} of {len(guides)})\n")
    for guide in drawn:
        print(Text(guide, 1, guide.read_text(encoding="utf-8")))


def collect_prose(file: Path, source: str) -> Iterator[Text]:
    """Yield docstrings, also of attributes, and comments. Adjacent comment lines count as one."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            text = node.value.value
            if isinstance(text, str):
                yield Text(file, node.lineno, "\n".join(map(str.strip, text.strip().splitlines())))
    yield from _collect_comments(file, source)


def _collect_comments(file: Path, source: str) -> Iterator[Text]:
    block: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _DIRECTIVE.match(token.string.lstrip("# ")):
            continue
        if block and not _continues(block[-1], token):
            yield _join_comments(file, block)
            block = []
        block.append(token)
    if block:
        yield _join_comments(file, block)


def _continues(before: tokenize.TokenInfo, token: tokenize.TokenInfo) -> bool:
    (line, column), (next_line, next_column) = before.start, token.start
    return next_line == line + 1 and next_column == column


def _join_comments(file: Path, block: Sequence[tokenize.TokenInfo]) -> Text:
    return Text(file, block[0].start[0], "\n".join(each.string.lstrip("# ") for each in block))


def collect_errors(file: Path, source: str) -> Iterator[Text]:
    """Yield the string arguments of raised exceptions and of diagnostics."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _collect_arguments(file, node.exc)
        elif isinstance(node, ast.Call) and _is_diagnostic(node):
            yield from _collect_arguments(file, node)


def _is_diagnostic(call: ast.Call) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _DIAGNOSTICS
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "add"
        and bool(call.args)
        and ast.unparse(call.args[0]).startswith("codes.")
    )


def collect_log_lines(file: Path, source: str) -> Iterator[Text]:
    """Yield the format strings of calls to loggers."""
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in _LEVELS
            and _LOGGER.search(ast.unparse(node.func.value))
        ):
            yield from _collect_arguments(file, node)


def _collect_arguments(file: Path, call: ast.Call) -> Iterator[Text]:
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        text = _render_string(argument)
        if text is not None and " " in text:
            yield Text(file, argument.lineno, text)


def _render_string(node: ast.expr) -> str | None:
    """Return the text of a string expression, with expressions in braces; None for other types."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_render_part, parts))
        case ast.IfExp(body=body, orelse=orelse):
            branches = [_render_string(body), _render_string(orelse)]
            return " | ".join(filter(None, branches)) or None
    return None


def _render_part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
    return ast.unparse(part)


def _indent(text: str) -> str:
    return "\n".join(f"   {line}".rstrip() for line in text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
