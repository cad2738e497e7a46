"""`cogwork explain CODE`: what a diagnostic means."""

from __future__ import annotations

import argparse

from cogwork.cli.terminal import FINE, USAGE, complain, paint
from cogwork.config.codes import CODES, Code
from cogwork.config.diagnose import did_you_mean


def explain(arguments: argparse.Namespace) -> int:
    if arguments.code is None:
        for code in CODES.values():
            print(f"{code.id}  {code.severity.value:7}  {code.title}")
        return FINE
    wanted = CODES.get(arguments.code.upper())
    if wanted is None:
        hint = did_you_mean(arguments.code, CODES) or "`cogwork explain` lists them all"
        complain(f"there is no diagnostic {arguments.code}; {hint}")
        return USAGE
    print(_page(wanted))
    return FINE


def _page(code: Code) -> str:
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
