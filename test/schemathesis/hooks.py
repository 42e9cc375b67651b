"""Leaves out bodies that the document forbids in words, and all but some of the boundary values of each operation."""

import hashlib
import os
from collections import Counter
from typing import Any

import schemathesis

CASES_OF_A_KIND = 1
"""How many cases each operation gets of each kind, such as a text that is too long. No limit in a run of all cases."""

RUNS_ALL_CASES = os.environ.get("SCHEMATHESIS_ALL_CASES") == "1"

kept: Counter[tuple[str, str, str, str]] = Counter()


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
    Keeps the first case of each operation, method, kind and place, and one in 24 of the others. The coverage phase has no limit of
    its own: it makes a case of every kind for every member of every body, so its time grows with each route. Every kind meets every
    operation still, and most members of a schema; the schemas share most of their members.
    """
    if RUNS_ALL_CASES or case.meta is None or case.meta.phase.name.value != "coverage":
        return True
    data = case.meta.phase.data
    kind = (case.operation.label, case.method, str(data.scenario), str(data.parameter_location))
    kept[kind] += 1
    return kept[kind] <= CASES_OF_A_KIND or is_drawn(f"{kind} {data.parameter} {data.location} {data.description}")


def is_drawn(name: str) -> bool:
    """Draws one in 24 names, the same ones in each run."""
    return hashlib.sha256(name.encode()).digest()[0] % 24 == 0
