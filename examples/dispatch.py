#!/usr/bin/env python3
"""Dispatch command of oz-agent-worker for Runyard: starts the agent of a run on this machine, and reports its exit.

Set AGENT_PROGRAM (path of bin/runyard-agent) and RUNS_FOLDER in the environment of the command backend. docs/other-workers.md describes it.
"""

import json
import os
import subprocess
import sys

payload = json.load(sys.stdin)
attempt = os.path.join(os.environ["RUNS_FOLDER"], payload["execution_id"])
# An empty folder with the name of the run: the agent keeps its content for a continuation.
workspace = os.path.join(attempt, payload["run_id"])
os.makedirs(workspace, mode=0o700)
environment = {name: os.environ[name] for name in ("HOME", "PATH", "TMPDIR") if name in os.environ}
command = (
    '"$0" "$@"; "$0" harness-support --run-id "$TASK_ID" report-shutdown; '
    'folder=$PWD; cd /; rm -rf "$(dirname "$folder")"'
)
with open(attempt + ".log", "ab") as log:
    process = subprocess.Popen(
        ["/bin/sh", "-c", command, os.environ["AGENT_PROGRAM"], *payload["base_args"]],
        cwd=workspace,
        env={**environment, **payload["env"]},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
with open(os.path.join(attempt, "pid"), "w", encoding="utf-8") as file:
    file.write(str(process.pid))
