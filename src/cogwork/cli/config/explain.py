"""`cogwork explain`: explain a diagnostic code."""

from __future__ import annotations

import argparse

from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, paint, print_error, print_json
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.config.schema.codes import CODES, Code


def explain(arguments: argparse.Namespace) -> int:
    if arguments.code is None:
        if arguments.json:
            print_json([_describe(code) for code in CODES.values()])
            return EXIT_OK
        for code in CODES.values():
            print(f"{code.id}  {code.severity.value:7}  {code.title}")
        return EXIT_OK
    wanted = CODES.get(arguments.code.upper())
    if wanted is None:
        hint = did_you_mean(arguments.code, CODES) or "`cogwork explain` lists all codes"
        print_error(f"unknown diagnostic code {arguments.code}; {hint}")
        return EXIT_USAGE
    if arguments.json:
        print_json(_describe(wanted))
    else:
        print(_format_page(wanted))
    return EXIT_OK


def _describe(code: Code) -> dict[str, str]:
    return {
        "code": code.id,
        "severity": code.severity.value,
        "title": code.title,
        "explanation": code.explanation,
        "wrong": code.wrong,
        "right": code.right,
    }


def _format_page(code: Code) -> str:
    return "\n".join(
        (
            f"{paint(code.id, 'bold')}  {code.severity.value}: {code.title}",
            "",
            code.explanation,
            "",
            f"  wrong:  {code.wrong}",
            f"  right:  {code.right}",
        )
    )
