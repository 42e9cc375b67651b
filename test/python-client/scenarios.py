"""What a program does with the published Python client, against a service that runs. One JSON line for each scenario.

Usage: OZ_API_BASE_URL=http://127.0.0.1:4180/api/v1 WARP_API_KEY=… python scenarios.py
"""

import asyncio
import base64
import json
from datetime import datetime, timedelta, timezone

import httpx
import oz_agent_sdk as oz
from oz_agent_sdk._types import Omit
from oz_agent_sdk.pagination import SyncRunsCursorPage
from oz_agent_sdk.types import (
    AgentGetArtifactResponse,
    AgentListEnvironmentsResponse,
    AgentListResponse,
    AgentRunResponse,
    AgentSkill,
    CloudEnvironment,
)
from oz_agent_sdk.types.agent import (
    AgentResponse,
    ListAgentIdentitiesResponse,
    RunItem,
    RunListHandoffAttachmentsResponse,
    ScheduleDeleteResponse,
    ScheduledAgentItem,
    ScheduleListResponse,
)
from driving import agent, client, drive_all, nobody, outputs_of, raises, run_until, scenario, sh, until


@scenario("creates a run with all that its types know, and waits until it has ended")
def _() -> None:
    environment = client.api.post(
        "/agent/environments",
        body={"config": {"name": "python", "description": "For the client", "setup_commands": ["echo ready"]}},
        cast_to=CloudEnvironment,
    )
    client.check(CloudEnvironment)
    prompt = sh("cat attachments/note.txt") + sh(
        "printf made > made.txt && report-artifact made.txt --title Made --description 'A file'\n"
        "printf png > page.png && report-artifact page.png --type SCREENSHOT\n"
        "printf '# Steps' > plan.md && report-artifact plan.md --type PLAN --title Steps\n"
        "report-artifact --type PULL_REQUEST --url https://github.example/o/r/pull/1 --branch topic\n"
        "report-artifact --type EXTERNAL_REFERENCE --url https://tracker.example/7 --reference-type issue"
    )
    config = {
        "name": "python",
        "model_id": "runbook",
        "base_prompt": "Be brief.",
        "environment_id": environment.uid,
        "worker_host": "warp",
        "idle_timeout_minutes": 5,
        "computer_use_enabled": False,
        "credential_strategy": "CREATOR",
        "harness": {"type": "oz", "reasoning_level": "low"},
        "harness_auth_secrets": {"claude_auth_secret_name": "claude"},
        "inference_providers": {"aws": {"disabled": True}},
        "memory_stores": [{"uid": "store", "access": "read_only", "instructions": "Read it."}],
        "runner_id": environment.uid,
        "session_sharing": {"public_access": "VIEWER"},
    }
    created = agent.run(
        prompt=prompt,
        title="From Python",
        config=config,
        attachments=[
            {"file_name": "note.txt", "mime_type": "text/plain", "data": base64.b64encode(b"attached").decode()}
        ],
        metadata={"ticket": "R-1"},
        mode="normal",
        interactive=False,
        team=True,
    )
    client.check(AgentRunResponse)
    assert created.run_id == created.task_id
    run = run_until(created.run_id)
    assert (run.state, run.title, run.prompt) == ("SUCCEEDED", "From Python", prompt), run
    assert run.agent_config and run.agent_config.to_dict() == config, run.agent_config
    assert run.metadata == {"ticket": "R-1"} and run.source == "API" and run.execution_location == "REMOTE"
    assert run.started_at and run.created_at <= run.started_at <= run.updated_at
    assert run.created_at.utcoffset() == timedelta(0)
    assert "attached" in json.dumps(outputs_of(created.run_id))


@scenario("reads artifacts of all five types, and downloads them")
def _() -> None:
    run = agent.runs.list(name="python", limit=1).runs[0]
    client.check(SyncRunsCursorPage[RunItem])
    found = {artifact.artifact_type: artifact.data for artifact in run.artifacts or []}
    assert set(found) == {"FILE", "SCREENSHOT", "PLAN", "PULL_REQUEST", "EXTERNAL_REFERENCE"}, found
    assert (found["FILE"].filename, found["FILE"].filepath, found["FILE"].size_bytes) == ("made.txt", "made.txt", 4)
    for kind, content in (("FILE", "made"), ("SCREENSHOT", "png")):
        artifact = agent.get_artifact(found[kind].artifact_uid)
        client.check(AgentGetArtifactResponse)
        assert artifact.data.expires_at > datetime.now(timezone.utc)
        assert httpx.get(artifact.data.download_url).text == content
    plan = agent.get_artifact(found["PLAN"].artifact_uid)
    client.check(AgentGetArtifactResponse)
    assert (plan.data.content, plan.data.title) == ("# Steps", "Steps")
    client.api.post(f"/agent/artifacts/{plan.artifact_uid}/share", cast_to=object)
    anyone = agent.get_artifact(plan.artifact_uid, extra_headers={"Authorization": Omit()})
    assert anyone.data.content == "# Steps"
    transcript = client.api.get(f"/agent/runs/{run.run_id}/transcript", cast_to=httpx.Response).text
    assert all(json.loads(line) for line in transcript.splitlines()) and "made.txt" in transcript


@scenario("lists runs page after page, filtered, in order, also asynchronously")
def _() -> None:
    # No worker has this name: they stay queued, and nothing changes while they are listed.
    config = {"name": "listed", "worker_host": "nowhere"}
    made = [agent.run(prompt=f"Part {i}", config=config, metadata={"batch": "1"}).run_id for i in range(5)]
    hour = timedelta(hours=1)
    now = datetime.now(timezone.utc)
    page = agent.runs.list(
        name="listed",
        state=["QUEUED", "INPROGRESS"],
        metadata={"batch": "1"},
        created_after=now - hour,
        created_before=(now + hour).astimezone(timezone(timedelta(hours=5, minutes=30))),
        updated_after="2026-01-01T00:00:00Z",
        environment_id="empty-environment",
        sort_by="created_at",
        sort_order="asc",
        limit=2,
    )
    client.check(SyncRunsCursorPage[RunItem])
    assert len(page.runs) == 2 and page.has_next_page()
    assert [run.run_id for run in page] == made
    assert list(agent.runs.list(name="listed", metadata={"batch": "2"})) == []

    async def read() -> None:
        async with oz.AsyncOzAPI(
            api_key=client.key, base_url=client.base_url, _strict_response_validation=True
        ) as together:
            runs = together.agent.runs
            listed = runs.list(name="listed", sort_by="created_at", sort_order="asc", limit=2)
            assert [run.run_id async for run in listed] == made
            read = await asyncio.gather(*[runs.retrieve(run_id) for run_id in made])
            assert [run.prompt for run in read] == [f"Part {i}" for i in range(5)]

    asyncio.run(read())


@scenario("says more to a run, approves what one asks for, and goes on with a conversation")
def _() -> None:
    first = agent.run(prompt=sh("echo one"), config={"idle_timeout_minutes": 5}).run_id
    conversation_id = run_until(first).conversation_id
    assert conversation_id
    answer = agent.runs.submit_followup(first, message=sh("echo two"), mode="normal")
    assert answer["outcome"] == "live_session", answer
    until("the second turn", lambda: len(outputs_of(first)) == 2)
    assert run_until(first).state == "SUCCEEDED"
    asks = agent.run(prompt=sh("echo approved"), extra_body={"config": {"approval_policy": "ask"}}).run_id
    assert run_until(asks, "BLOCKED").state == "BLOCKED"
    agent.runs.submit_followup(asks, message="", extra_body={"decision": "approve"})
    assert run_until(asks).state == "SUCCEEDED"
    again = agent.run(prompt=sh("echo three"), conversation_id=conversation_id, parent_run_id=first).run_id
    child = run_until(again)
    assert (child.source, child.parent_run_id) == ("ORCHESTRATION", first)
    assert again in [run.run_id for run in agent.runs.list(ancestor_run_id=first)]


@scenario("cancels a run that works, once")
def _() -> None:
    run_id = agent.run(prompt=sh("sleep 300")).run_id
    run_until(run_id, "INPROGRESS")
    # The answer is a JSON string, which this client hands on as it came.
    assert json.loads(agent.runs.cancel(run_id)) == run_id
    assert agent.runs.retrieve(run_id).state == "CANCELLED"
    raises(oz.BadRequestError, "invalid_request", lambda: agent.runs.cancel(run_id))
    until("the end of its sandbox", lambda: agent.runs.retrieve(run_id).is_sandbox_running is False)


@scenario("gets the files of a run to go on elsewhere, and where its session and conversation are")
def _() -> None:
    author = "git config user.email a@b.example && git config user.name A"
    setup = f"git init -q . && {author} && git commit -q --allow-empty -m A && echo new > new.txt && git add new.txt"
    run_id = agent.run(prompt=sh(setup), config={"idle_timeout_minutes": 5}).run_id
    run_until(run_id)

    def attachments() -> RunListHandoffAttachmentsResponse | None:
        listed = agent.runs.list_handoff_attachments(run_id)
        client.check(RunListHandoffAttachmentsResponse)
        return listed if listed.attachments else None

    patch = until("the snapshot", attachments).attachments[0]
    assert "new.txt" in httpx.get(patch.download_url).text
    # A worker with little room ends the sandbox of a run that only waits for a follow-up, so this one works.
    working_id = agent.run(prompt=sh("sleep 300")).run_id
    working = run_until(working_id, "INPROGRESS")
    assert working.is_sandbox_running and working.session_id and working.conversation_id
    assert agent.conversations.check_redirect(working.conversation_id).session_id == working.session_id
    assert agent.sessions.check_redirect(working.session_id).conversation_id is None
    agent.runs.cancel(working_id)
    gone_id = agent.run(prompt=sh("true"), config={"idle_timeout_minutes": 0}).run_id
    until("the end of its sandbox", lambda: run_until(gone_id).is_sandbox_running is False)
    gone = agent.runs.retrieve(gone_id)
    assert gone.session_id and gone.conversation_id
    assert agent.sessions.check_redirect(gone.session_id).conversation_id == gone.conversation_id
    assert agent.conversations.check_redirect(gone.conversation_id).session_id is None


@scenario("lists environments, and sees which one its last run failed to set up")
def _() -> None:
    config = {"name": "broken", "setup_commands": ["echo why >&2; exit 3"]}
    broken = client.api.post("/agent/environments", body={"config": config}, cast_to=CloudEnvironment)
    run = run_until(agent.run(prompt="Go.", config={"environment_id": broken.uid}).run_id)
    assert run.state == "FAILED" and run.status_message
    assert run.status_message.error_code == "environment_setup_failed" and "why" in run.status_message.message
    listed = agent.list_environments(sort_by="last_updated").environments
    client.check(AgentListEnvironmentsResponse)
    found = next(environment for environment in listed if environment.uid == broken.uid)
    assert found.setup_failed and found.last_task_created and found.last_task_created.id == run.run_id
    assert found.creator == found.last_editor == run.creator and found.scope == run.scope


@scenario("creates, reads, changes, pauses, resumes, starts and deletes schedules")
def _() -> None:
    environment = client.api.post(
        "/agent/environments", body={"config": {"name": "scheduled", "description": None}}, cast_to=CloudEnvironment
    )
    created = agent.schedules.create(
        name="Zebra",
        cron_schedule="0 9 * * MON-FRI",
        prompt=sh("echo scheduled"),
        agent_config={"name": "by schedule", "environment_id": environment.uid},
        enabled=True,
        team=True,
    )
    client.check(ScheduledAgentItem)
    assert created.enabled and created.environment and created.environment.name == "scheduled"
    assert created.history and created.history.next_run and created.history.next_run > datetime.now(timezone.utc)
    assert created.history.next_run.weekday() < 5 and created.history.last_ran is None
    agent.schedules.create(name="Ant", cron_schedule="@every 90m", prompt="Wait.", enabled=False)
    client.check(ScheduledAgentItem)
    assert [schedule.name for schedule in agent.schedules.list().schedules] == ["Ant", "Zebra"]
    client.check(ScheduleListResponse)
    changed = agent.schedules.update(
        created.id, name="Yak", cron_schedule="@daily", prompt=sh("echo changed"), enabled=True
    )
    client.check(ScheduledAgentItem)
    assert changed.name == "Yak" and changed.agent_config and changed.agent_config.name == "by schedule"
    paused = agent.schedules.pause(created.id)
    client.check(ScheduledAgentItem)
    assert not paused.enabled and paused.history and paused.history.next_run is None
    assert agent.schedules.resume(created.id).enabled
    run_id = client.api.post(f"/agent/schedules/{created.id}/run", cast_to=AgentRunResponse).run_id
    run = run_until(run_id)
    assert (run.state, run.source) == ("SUCCEEDED", "SCHEDULED_AGENT"), run
    assert run.schedule and (run.schedule.schedule_id, run.schedule.schedule_name) == (created.id, "Yak"), run
    assert [listed.run_id for listed in agent.runs.list(schedule_id=created.id)] == [run_id]
    read = agent.schedules.retrieve(created.id)
    client.check(ScheduledAgentItem)
    assert read.history and read.history.last_ran and read.last_spawn_error is None
    for schedule in agent.schedules.list().schedules:
        assert agent.schedules.delete(schedule.id).success
        client.check(ScheduleDeleteResponse)
    raises(oz.NotFoundError, "resource_not_found", lambda: agent.schedules.retrieve(created.id))
    bad = lambda cron: lambda: agent.schedules.create(name="Bad", cron_schedule=cron, prompt="x")
    for cron in ("0 0 31 2 *", "* * * * * *", "@every 30s"):
        raises(oz.BadRequestError, "invalid_request", bad(cron))


@scenario("creates, reads, changes and deletes agents, and runs as one")
def _() -> None:
    identities = agent.agent
    environment = client.api.post(
        "/agent/environments", body={"config": {"name": "of an agent", "description": None}}, cast_to=CloudEnvironment
    )
    made = identities.create(
        name="Release",
        description="Releases",
        base_model="runbook",
        environment_id=environment.uid,
        secrets=[],
        skills=[],
        on_behalf_of_enabled=False,
    )
    client.check(AgentResponse)
    assert (made.name, made.description, made.available) == ("Release", "Releases", True), made
    assert made.environment_id == environment.uid and made.base_model == "runbook"
    assert made.on_behalf_of_enabled is False and made.memory.attached_stores == []
    assert identities.get(made.uid) == made
    # To this client, null is "leave it", and an empty text is "remove it".
    changed = identities.update(made.uid, name="Ship", description="", base_model=None, environment_id=None)
    client.check(AgentResponse)
    assert (changed.name, changed.description, changed.base_model) == ("Ship", None, "runbook"), changed
    assert changed.environment_id == environment.uid and changed.created_at == made.created_at
    assert changed in identities.list().agents
    client.check(ListAgentIdentitiesResponse)
    run = run_until(agent.run(prompt=sh("echo shipped"), agent_identity_uid=made.uid, team=True).run_id)
    assert run.state == "SUCCEEDED" and run.executor and run.executor.uid == made.uid, run
    assert run.agent_config and run.agent_config.environment_id == environment.uid, run.agent_config
    assert [listed.run_id for listed in agent.runs.list(executor=made.uid)] == [run.run_id]
    identities.delete(made.uid)
    raises(oz.NotFoundError, "resource_not_found", lambda: identities.get(made.uid))
    raises(oz.BadRequestError, "invalid_request", lambda: identities.create(name=" "))


@scenario("lists skills, and starts a run that follows one")
def _() -> None:
    def listed() -> list[AgentSkill]:
        agents = agent.list(repo="acme/site", refresh=True, include_malformed_skills=True, sort_by="name").agents
        client.check(AgentListResponse)
        return agents

    found = {skill.name: skill.variants[0] for skill in listed()}
    deploy = found["deploy"]
    assert deploy.id == "acme/site:.claude/skills/deploy/SKILL.md" and not deploy.error, deploy
    assert deploy.source.owner == "acme" and deploy.base_prompt == sh("echo deployed").strip(), deploy
    assert [variant.error for variant in found.values() if variant.error], found
    created = agent.run(skill=deploy.id)
    run = run_until(created.run_id)
    assert run.state == "SUCCEEDED" and run.agent_config and run.agent_config.skill_spec == deploy.id, run
    assert "deployed" in json.dumps(outputs_of(run.run_id))
    again = {skill.name: skill.variants[0] for skill in listed()}
    assert again["deploy"].last_run_timestamp
    raises(oz.BadRequestError, "invalid_request", lambda: agent.list(repo="acme"))


@scenario("raises its own error class for each status, with the problem document")
def _() -> None:
    raises(oz.BadRequestError, "invalid_request", lambda: agent.run())
    raises(oz.BadRequestError, "invalid_request", lambda: agent.runs.list(limit=501))
    raises(oz.AuthenticationError, "authentication_required", client.api.copy(api_key="wrong").agent.runs.list)
    stranger = client.api.copy(default_headers={"X-Warp-Team-Uid": "someone-else"})
    raises(oz.PermissionDeniedError, "not_authorized", stranger.agent.runs.list)
    for call in (
        lambda: agent.runs.retrieve(nobody),
        lambda: agent.runs.retrieve("no id/at all"),
        lambda: agent.runs.submit_followup(nobody, message="Hello."),
        lambda: agent.get_artifact(nobody),
        lambda: agent.conversations.check_redirect(nobody),
    ):
        raises(oz.NotFoundError, "resource_not_found", call)
    elsewhere = agent.run(prompt="Wait.", config={"worker_host": "nowhere"}).run_id
    raises(oz.UnprocessableEntityError, "operation_not_supported", lambda: agent.runs.cancel(elsewhere))
    key = {"Idempotency-Key": "python-other-body"}
    agent.run(prompt="One.", config={"worker_host": "nowhere"}, extra_headers=key)
    conflict = raises(oz.ConflictError, "conflict", lambda: agent.run(prompt="Two.", extra_headers=key))
    assert conflict.response.headers["content-type"].startswith("application/problem+json")


@scenario("tries again when the answer is lost, and makes one run with one key")
def _() -> None:
    class Lossy(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if self.lost < 2:
                self.lost += 1
                response.read()
                raise httpx.ReadError("the connection broke behind the request", request=request)
            return response

    transport = Lossy()
    patient = client.api.copy(http_client=httpx.Client(transport=transport), max_retries=2)
    body = {"prompt": "Once.", "config": {"name": "once", "worker_host": "nowhere"}}
    created = patient.agent.run(**body, extra_headers={"Idempotency-Key": "python-lost-answer"})
    assert transport.lost == 2
    assert [run.run_id for run in agent.runs.list(name="once")] == [created.run_id]


@scenario("reads raw and streamed answers, and gives up when told to")
def _() -> None:
    run_id = agent.runs.list(limit=1).runs[0].run_id
    raw = agent.runs.with_raw_response.retrieve(run_id)
    assert raw.headers["x-request-id"] and raw.parse().run_id == run_id
    with agent.runs.with_streaming_response.retrieve(run_id) as streamed:
        assert json.loads(b"".join(streamed.iter_bytes()))["run_id"] == run_id
    try:
        # A stream that has no end.
        client.api.get("/agent/runs/events", cast_to=object, options={"timeout": 0.5})
    except oz.APITimeoutError:
        return
    raise AssertionError("the call did not time out")


drive_all()
