"""Every fuzz target over its seeds and a fixed number of mutations."""

from __future__ import annotations

import itertools
import random
import warnings

import pytest
from tests.fuzz.mutation import generate_mutations, stretch
from tests.fuzz.table import GROUPS, NAMES, load_target, targets_of
from tests.fuzz.target import run_within_budget
from tests.support.sizes import size

MUTATIONS = size(ci=200, full=5000)
STRETCHES = 2


@pytest.mark.parametrize("name", NAMES)
def test_parser_keeps_its_contract(name: str, request: pytest.FixtureRequest) -> None:
    generator = random.Random(name)
    with warnings.catch_warnings():
        # NumPy and ast warn about strange values, which are tested here.
        warnings.simplefilter("ignore")
        target = load_target(name)
        request.addfinalizer(target.close)
        seeds = target.seeds()
        stretched_seeds = (stretch(seed, target.stretched, generator) for seed in seeds[:STRETCHES])
        target.run(seeds[0])  # without a budget, because parsers import on demand
        mutations = itertools.islice(generate_mutations(target, generator), MUTATIONS)
        for data in (b"", *seeds, *stretched_seeds, *mutations):
            try:
                run_within_budget(target, data)
            except BaseException as error:
                error.add_note(f"input: {data[:300]!r}")
                raise


@pytest.mark.parametrize("group", GROUPS)
def test_table_lists_all_targets_of_the_group(group: str) -> None:
    listed = [f"{group}.{name}" for name in GROUPS[group]]
    assert [target.name for target in targets_of(group)] == listed
