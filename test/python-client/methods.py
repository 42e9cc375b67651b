"""Finds every method of the newest published client, and compares each answer with the types of the client."""

import inspect
import json
import os
import time
import traceback
import typing
from typing import Callable, TypeVar

import httpx
from pydantic import TypeAdapter
from warp_platform_sdk import DefaultHttpxClient, WarpClient
from warp_platform_sdk._response import BinaryAPIResponse
from warp_platform_sdk._resource import SyncAPIResource

last: list[httpx.Response] = []


def keep(response: httpx.Response) -> None:
    if not response.is_redirect:
        last[:] = [response]


# It reads WARP_BASE_URL and WARP_API_KEY itself.
client = WarpClient(
    http_client=DefaultHttpxClient(event_hooks={"response": [keep]}),
    max_retries=0,
    _strict_response_validation=True,
)
# Parameters that every method has.
common = {"self", "extra_headers", "extra_query", "extra_body", "timeout"}
parameters: dict[str, set[str]] = {}
passed: dict[str, set[str]] = {}


def find_methods(parent: object, path: str) -> None:
    for name in dir(type(parent)):
        if name.startswith("_"):
            continue
        if inspect.isfunction(inspect.getattr_static(type(parent), name)):
            if isinstance(parent, SyncAPIResource):
                watch(parent, name, path + name)
        else:
            member = getattr(parent, name)
            if isinstance(member, SyncAPIResource):
                find_methods(member, f"{path}{name}.")


def watch(resource: SyncAPIResource, name: str, path: str) -> None:
    """Records the parameters that the method gets, and compares each answer with the type that it declares."""
    method = getattr(resource, name)
    signature = inspect.signature(method)
    kind = typing.get_type_hints(method)["return"]
    parameters[path] = set(signature.parameters) - common
    passed[path] = set()

    def call(*args: object, **kwargs: object) -> object:
        passed[path].update(signature.bind(*args, **kwargs).arguments)
        answer = method(*args, **kwargs)
        if kind not in (type(None), object, BinaryAPIResponse):
            # A missing member, a number for a string or an unknown word fails.
            TypeAdapter(kind).validate_json(last[0].content, strict=True)
        return answer

    setattr(resource, name, call)


find_methods(client, "")

cases: list[tuple[str, Callable[[], None]]] = []


def case(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def add(function: Callable[[], None]) -> Callable[[], None]:
        cases.append((name, function))
        return function

    return add


Found = TypeVar("Found")


def until(what: str, probe: Callable[[], Found], seconds: float = 90) -> Found:
    started = time.monotonic()
    while (waited := time.monotonic() - started) < seconds:
        found = probe()
        if found:
            return found
        # Each request takes processor time from the run.
        time.sleep(min(max(waited / 5, 0.05), 0.4))
    raise AssertionError(f"{what} did not happen within {seconds} s")


def drive_all(not_yet: dict[str, str]) -> None:
    """
    Drives the cases in their order. Prints a line for each, `{case, error, not_yet}` where null is none, and at the end
    `{uncovered, unknown}`: methods and parameters (`method(parameter)`) without a case, and cases of no method.
    """
    for name, drive in cases:
        try:
            drive()
            error = None
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"case": name, "error": error, "not_yet": not_yet.get(name)}), flush=True)
    names = {name for name, _ in cases}
    uncovered = parameters.keys() - names
    for name in (parameters.keys() & names) - not_yet.keys():
        uncovered |= {f"{name}({parameter})" for parameter in parameters[name] - passed[name]}
    unknown = (names | not_yet.keys()) - parameters.keys()
    print(json.dumps({"uncovered": sorted(uncovered), "unknown": sorted(unknown)}))
