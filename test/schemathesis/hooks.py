"""Leaves out bodies that the document forbids in words, and, outside of a run of all cases, most cases of each operation."""

import atexit
import hashlib
import json
import os
from collections import Counter
from typing import Any

import schemathesis

RUNS_ALL_CASES = os.environ.get("TEST_LONG") == "1"

kept: Counter[tuple[str, str, str]] = Counter()
"""Cases that were kept, by operation, mode and phase. Mode: whether the request fits its schema."""

kinds: Counter[tuple[str, ...]] = Counter()
"""Cases of the coverage phase that were made, by kind."""


def is_storable(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value
    if isinstance(value, dict):
        return all(name != "__proto__" and is_storable(name) and is_storable(value[name]) for name in value)
    return all(is_storable(each) for each in value) if isinstance(value, list) else True


@schemathesis.hook
def filter_body(context: schemathesis.HookContext, body: Any) -> bool:
    return is_storable(body)


@schemathesis.hook
def filter_case(context: schemathesis.HookContext, case: schemathesis.Case) -> bool:
    """
    Keeps of the random cases one that fits the schema of its operation and one that does not. The coverage phase has no limit of its
    own: it makes a case of every kind for every member of every body. Of these it keeps some, else its time grows with each route.
    """
    if case.meta is None:
        return True
    mode = case.meta.generation.mode.value
    phase = case.meta.phase.name.value
    keeps = (
        RUNS_ALL_CASES
        or (phase == "coverage" and is_covering(case, mode))
        or (phase == "fuzzing" and kept[case.operation.label, mode, phase] == 0)
        or phase == "stateful"
    )
    if keeps:
        kept[case.operation.label, mode, phase] += 1
    return keeps


def is_covering(case: schemathesis.Case, mode: str) -> bool:
    """
    Keeps the first case of each operation and mode, of one in six kinds the first at each operation and place, and one in 48 of the
    others: so every kind meets many operations.
    """
    data = case.meta.phase.data
    kind = (case.operation.label, mode, case.method, str(data.parameter_location), str(data.scenario))
    kinds[kind] += 1
    return (
        kept[case.operation.label, mode, "coverage"] == 0
        or (kinds[kind] == 1 and is_drawn(str(kind), 6))
        or is_drawn(f"{kind} {data.parameter} {data.location} {data.description}", 48)
    )


def is_drawn(name: str, of: int) -> bool:
    """Draws one name of `of`, the same ones in each run."""
    return hashlib.sha256(name.encode()).digest()[0] % of == 0


@atexit.register
def write_kept() -> None:
    """Writes how many cases were kept: `schemathesis.test.ts` reads it."""
    with open("cases.json", "w", encoding="utf-8") as file:
        json.dump([[*key, count] for key, count in kept.items()], file)
