#!/usr/bin/env python3
"""Starts a run, shows its text while it works, answers its questions, and downloads its artifacts. Uses only the standard library.

    RUNYARD_BASE_URL=http://127.0.0.1:4180 RUNYARD_API_KEY=KEY python3 examples/run.py PROMPT_FILE FOLDER

Starts a failed run again, once. Exits with 0 if the run SUCCEEDED. It runs on Python 3.9 and newer.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
import uuid

URL = os.environ.get("RUNYARD_BASE_URL", "http://127.0.0.1:4180")
KEY = os.environ.get("RUNYARD_API_KEY", "")
TRIES = 5


def send(method, resource, body=None):
    """Sends a request and returns the open answer.

    Repeats the request if there was no answer, or if the answer is a problem that the service calls retryable. The idempotency key is the
    same in each repetition, so that a repetition has no second effect.
    """
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    if method == "POST":
        headers["Idempotency-Key"] = str(uuid.uuid4())
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(1, TRIES + 1):
        request = urllib.request.Request(f"{URL}/api/v1{resource}", data=data, headers=headers, method=method)
        # Without this, urllib would send the key to the signed address of an artifact too.
        request.add_unredirected_header("Authorization", request.headers.pop("Authorization"))
        wait = 0.25 * 2**attempt
        try:
            return urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            text = error.read().decode(errors="replace")
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {"retryable": error.code >= 500, "detail": text[:200]}
            if not problem.get("retryable") or attempt == TRIES:
                sys.exit(f"{method} {resource}: {problem.get('detail', error.code)}")
            wait = max(wait, float(error.headers.get("Retry-After") or 0))
        except OSError as error:
            if attempt == TRIES:
                sys.exit(f"{method} {resource}: {error}")
        time.sleep(wait)


def call(method, resource, body=None):
    with send(method, resource, body) as answer:
        return json.load(answer)


def events_of(run_id):
    """Yields the events of a run until the run has ended. Continues after the last event if the connection breaks."""
    last = None
    failures = 0
    while True:
        headers = {"Authorization": f"Bearer {KEY}", **({"Last-Event-ID": last} if last else {})}
        request = urllib.request.Request(f"{URL}/api/v1/agent/runs/{run_id}/events", headers=headers)
        try:
            with urllib.request.urlopen(request) as stream:
                for line in stream:
                    name, _, value = line.decode().rstrip("\n").partition(": ")
                    failures = 0
                    if name == "id":
                        last = value
                    elif name == "data":
                        yield json.loads(value)
            # The service ends the stream when the run has ended.
            return
        except OSError:
            failures += 1
            if failures == TRIES:
                raise
            time.sleep(0.25 * 2**failures)


def answer(run_id):
    """Asks the person at the terminal the question of the run. `y` approves an action; any other text is the answer."""
    question = call("GET", f"/agent/runs/{run_id}").get("blocked_on")
    if question is None:
        return
    print(f"? {question['title']}", flush=True)
    words = (sys.stdin.readline() or "n").strip()
    decision = {"y": {"decision": "approve"}, "n": {"decision": "deny"}}.get(words, {"message": words})
    call("POST", f"/agent/runs/{run_id}/followups", {**decision, "request_id": question["request_id"]})


def follow(run_id):
    """Shows a run until it has ended. Returns the run."""
    for item in events_of(run_id):
        if item["type"] == "state":
            print(f"[{item['state']}]", flush=True)
            if item["state"] == "BLOCKED":
                answer(run_id)
        elif item["type"] == "conversation":
            event = item["event"]
            if event["type"] == "text" and event["role"] == "assistant":
                print(event["text"], flush=True)
    return call("GET", f"/agent/runs/{run_id}")


def download(run, folder):
    os.makedirs(folder, exist_ok=True)
    for artifact in run.get("artifacts", []):
        data = artifact["data"]
        if "artifact_uid" not in data or "filename" not in data:
            continue
        # The name is untrusted: an agent chose it.
        file = os.path.join(folder, os.path.basename(data["filename"]))
        with send("GET", f"/agent/artifacts/{data['artifact_uid']}/download") as source, open(file, "wb") as target:
            while piece := source.read(65536):
                target.write(piece)
        print(f"saved {file}")


def main():
    if len(sys.argv) != 3:
        sys.exit("Usage: python3 examples/run.py PROMPT_FILE FOLDER")
    with open(sys.argv[1], encoding="utf-8") as file:
        prompt = file.read()
    created = call("POST", "/agent/runs", {"prompt": prompt, "config": {"approval_policy": "ask"}})
    run = follow(created["run_id"])
    if run["state"] in ("FAILED", "ERROR"):
        print(f"{run.get('status_message', {}).get('message', run['state'])} Starting it again.")
        run = follow(call("POST", f"/agent/runs/{run['run_id']}/rerun", {})["run_id"])
    download(run, sys.argv[2])
    newest = call("GET", "/agent/runs?limit=5")["runs"]
    print(f"newest runs: {', '.join(each['state'] for each in newest)}")
    return 0 if run["state"] == "SUCCEEDED" else 1


sys.exit(main())
