"""Drives the client that openapi-python-client generates. Prints one line of JSON: what it read.

Usage: RUNYARD_URL=http://127.0.0.1:4180/api/v1 RUNYARD_API_KEY=… PROMPT=… python3 drive.py, beside the folder of the client
"""

import json
import os
import time

from client import AuthenticatedClient
from client.api.conversations import get_run_conversation
from client.api.environments import create_environment, get_environment, list_environments
from client.api.keys import create_key, list_keys
from client.api.runs import create_run, get_run, get_run_timeline, list_runs
from client.models import (
    ConversationResponse,
    CreateEnvironmentRequest,
    CreateKeyRequest,
    CreateKeyResponse,
    Environment,
    GetRunTimelineResponse,
    KeyKind,
    ListEnvironmentsResponse,
    ListKeysResponse,
    ListRunsResponse,
    NamedEnvironmentConfig,
    RequestedAgentConfig,
    RunAgentRequest,
    RunAgentResponse,
    RunItem,
    RunState,
)

LONGEST_RUN_SECONDS = 120
ended = {RunState.SUCCEEDED, RunState.FAILED, RunState.ERROR, RunState.CANCELLED}

api = AuthenticatedClient(base_url=os.environ["RUNYARD_URL"], token=os.environ["RUNYARD_API_KEY"])


def expect(answer, kind):
    """Returns the answer; raises an error where it is a problem, or was not recognised."""
    if not isinstance(answer, kind):
        raise TypeError(f"{answer!r} is not a {kind.__name__}")
    return answer


def wait_for_end(run_id):
    deadline = time.monotonic() + LONGEST_RUN_SECONDS
    while time.monotonic() < deadline:
        run = expect(get_run.sync(run_id, client=api), RunItem)
        if run.state in ended:
            return run
        time.sleep(0.2)
    raise TimeoutError(f"run {run_id} has not ended")


config = NamedEnvironmentConfig(name="python", setup_commands=["echo ready"])
environment = expect(create_environment.sync(client=api, body=CreateEnvironmentRequest(config)), Environment)
request = RunAgentRequest(
    prompt=os.environ["PROMPT"],
    config=RequestedAgentConfig(name="python", model_id="runbook", environment_id=environment.uid),
)
created = expect(create_run.sync(client=api, body=request), RunAgentResponse)
run = wait_for_end(created.run_id)
listed = expect(list_runs.sync(client=api, name="python"), ListRunsResponse)
conversation = expect(get_run_conversation.sync(str(run.run_id), client=api), ConversationResponse)
timeline = expect(get_run_timeline.sync(str(run.run_id), client=api), GetRunTimelineResponse)
key_request = CreateKeyRequest(name="python", kind=KeyKind.PERSONAL)
key = expect(create_key.sync(client=api, body=key_request), CreateKeyResponse)
read_environment = expect(get_environment.sync(environment.uid, client=api), Environment)
environments = expect(list_environments.sync(client=api), ListEnvironmentsResponse)
keys = expect(list_keys.sync(client=api), ListKeysResponse)
print(
    json.dumps(
        {
            "state": run.state.value,
            "artifacts": sorted(each.artifact_type for each in run.artifacts),
            "listed": [str(each.run_id) for each in listed.runs] == [str(created.run_id)],
            "steps": len(conversation.steps),
            "timeline": timeline.events[0].event_type.value,
            "environment": read_environment.config.name,
            "environments": environment.uid in [each.uid for each in environments.environments],
            "keys": key.uid in [each.uid for each in keys.keys],
        }
    )
)
