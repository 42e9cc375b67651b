"""What the scenarios share: the client, who waits for what, and how an outcome is told."""

import json
import os
import time
import traceback
from typing import Callable, TypeVar

import oz_agent_sdk as oz
from oz_agent_sdk.types.agent import RunItem
from strict import Strict

client = Strict(os.environ["OZ_API_BASE_URL"], os.environ["WARP_API_KEY"])
agent = client.api.agent
ended = ("SUCCEEDED", "FAILED", "ERROR", "CANCELLED")
nobody = "01900000-0000-7000-8000-000000000000"
scenarios: list[tuple[str, Callable[[], None]]] = []


def scenario(name: str):
    def add(function: Callable[[], None]) -> Callable[[], None]:
        scenarios.append((name, function))
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


def sh(command: str) -> str:
    return f"```sh\n{command}\n```\n"


def run_until(run_id: str, *states: str) -> RunItem:
    def probe() -> RunItem | None:
        run = agent.runs.retrieve(run_id)
        client.check(RunItem)
        return run if run.state in (states or ended) else None

    return until(f"end of run {run_id}", probe)


def outputs_of(run_id: str) -> list[dict]:
    """Results of the actions of its conversation, for which the client has no method."""
    conversation = client.api.get(f"/agent/runs/{run_id}/conversation", cast_to=object)
    messages = [message for step in conversation["steps"] for message in step["messages"]]
    blocks = [block for message in messages for block in message["content"]]
    return [block for block in blocks if block["type"] == "action_result"]


def raises(kind: type[oz.APIStatusError], code: str, call: Callable[[], object]) -> oz.APIStatusError:
    try:
        call()
    except kind as error:
        body = error.body
        assert isinstance(body, dict), body
        assert (body["status"], body["error_code"]) == (error.status_code, code), body
        assert {"type", "title", "instance", "error", "retryable", "trace_id"} <= body.keys(), body
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


def drive_all() -> None:
    """Drives the scenarios in their order, and tells of each: `{scenario, error}`, where null is no error."""
    for name, drive in scenarios:
        try:
            drive()
            error = None
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"scenario": name, "error": error}), flush=True)
