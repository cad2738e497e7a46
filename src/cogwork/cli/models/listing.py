"""`cogwork models`: the models that a configuration can use, and their attributes."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from cogwork.cli.client.http_client import Declined, Unreachable
from cogwork.cli.models.example import make_example
from cogwork.cli.models.model_entry import (
    BUILT_IN,
    AttributeRow,
    ModelEntry,
    iter_attributes,
    iter_models,
    merge_models,
    search,
)
from cogwork.cli.models.module_models import fetch_module_models
from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, print_error, print_json, print_text
from cogwork.config.check.diagnostics import did_you_mean


def models(arguments: argparse.Namespace) -> int:
    try:
        entries = merge_models([*iter_models(), *fetch_module_models(arguments.address)])
    except (Declined, Unreachable) as error:
        print_error(str(error))
        return EXIT_USAGE
    found = search(entries, arguments.words)
    if not found:
        print_error(_explain_nothing(arguments.words, entries))
        return EXIT_USAGE
    if arguments.json:
        print_json([each.to_json() for each in found])
    elif len(found) == 1:
        print_text("\n".join(_format_model(found[0])))
    else:
        print_text("\n".join(_format_list(found)))
    return EXIT_OK


def _explain_nothing(words: Sequence[str], entries: Sequence[ModelEntry]) -> str:
    known = {word for each in entries for word in (each.name.short, each.api.subtype)}
    hints = (did_you_mean(word, known) for word in words)
    hint = next(filter(None, hints), "`cogwork models` lists all")
    return f'no model matches "{" ".join(words)}"; {hint}'


def _format_list(entries: Sequence[ModelEntry]) -> Iterator[str]:
    width = max(len(each.name.short) for each in entries)
    for api, group in groupby(entries, key=lambda each: each.api):
        yield str(api)
        for each in group:
            yield f"  {each.name.short:{width}}  {each.summary}".rstrip()
            if each.advice is not None:
                yield f"  {'':{width}}  not installed: {each.advice}"
    yield ""
    yield "For the attributes of a model, name it, e.g.: cogwork models camera webcam"


def _format_model(entry: ModelEntry) -> Iterator[str]:
    yield f"{entry.api} {entry.name.short}"
    notes = [entry.summary]
    if entry.source != BUILT_IN and entry.source not in entry.summary:
        notes.append(entry.source)
    if entry.advice is not None:
        notes.append(f"not installed: {entry.advice}")
    yield from (f"  {note}" for note in notes if note)
    yield ""
    schema = entry.schema
    rows = list(iter_attributes(schema)) if schema is not None else []
    if schema is None:
        yield "Its code defines its attributes; see its documentation."
    elif rows:
        yield "Attributes:"
        for row in rows:
            yield from _format_attribute(row)
    else:
        yield "It has no attributes."
    yield ""
    yield f'Add this to "{entry.api.kind}s" in machine.json:'
    yield json.dumps(make_example(entry.api, entry.name, schema), indent=2, ensure_ascii=False)


def _format_attribute(row: AttributeRow) -> Iterator[str]:
    default = "none" if row.default is None else json.dumps(row.default, ensure_ascii=False)
    yield f"  {row.path}: {row.type}, {'required' if row.is_required else f'default {default}'}"
    if row.description:
        yield f"      {row.description}"
