"""`cogwork job run`: run a job of a machine now."""

from __future__ import annotations

import argparse

from cogwork.cli.client.http_client import Declined, Unreachable, run_job
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_USAGE,
    ProgressLine,
    print_error,
    print_json,
    print_text,
)
from cogwork.config.check.diagnostics import replace_unprintable


def run(arguments: argparse.Namespace) -> int:
    name = replace_unprintable(arguments.job)
    with ProgressLine() as progress:
        progress.show(f'running job "{name}"')
        try:
            outcome = run_job(arguments.address, arguments.job)
        except (Declined, Unreachable) as error:
            progress.clear()
            print_error(str(error))
            return EXIT_USAGE
    if arguments.json:
        print_json({"error": outcome.error, "seconds": outcome.seconds})
    elif outcome.error is None:
        print_text(f'job "{name}" succeeded in {outcome.seconds:.2g} s')
    else:
        reason = replace_unprintable(outcome.error)
        print_error(f'job "{name}" failed after {outcome.seconds:.2g} s: {reason}')
    return EXIT_OK if outcome.error is None else EXIT_FAILURE
