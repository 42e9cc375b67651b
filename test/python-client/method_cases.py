"""Calls every method of the newest published client against a service that runs. One JSON line for each case, and one at the end.

Usage: WARP_BASE_URL=http://127.0.0.1:4180/api/v1 WARP_API_KEY=… python method_cases.py
"""

import contextlib
import functools
import json
from typing import Callable, Iterator

import httpx
import warp_platform_sdk as warp
from methods import case, client, drive_all, until
from warp_platform_sdk.types import EnvironmentConfig
from warp_platform_sdk.types.agent import RunItem

agent = client.agent
factories = client.factories
ended = ("SUCCEEDED", "FAILED", "ERROR", "CANCELLED")
nobody = "01900000-0000-7000-8000-000000000000"
day = {"created_after": "2026-01-01T00:00:00Z", "created_before": "2100-01-01T00:00:00Z"}

# Cases that do not pass, with the reason.
not_yet: dict[str, str] = {}


def sh(command: str) -> str:
    return f"```sh\n{command}\n```\n"


def post(path: str, body: object = None) -> dict:
    """For what the client has no method."""
    return client.post(path, body=body, cast_to=object)


def run_until(run_id: str, *states: str) -> RunItem:
    def probe() -> RunItem | None:
        # This is not checked: a case about another thing must not fail because of the run.
        run = RunItem.construct(**client.get(f"/agent/runs/{run_id}", cast_to=object))
        return run if run.state in (states or ended) else None

    return until(f"the end of run {run_id}", probe)


@contextlib.contextmanager
def working() -> Iterator[RunItem]:
    """A run that works meanwhile: a worker with little room ends the sandbox of a run that only waits for a follow-up."""
    run_id = agent.run(prompt=sh("sleep 300")).run_id
    try:
        yield run_until(run_id, "INPROGRESS")
    finally:
        agent.runs.cancel(run_id)


def refused(status: int, call: Callable[[], object]) -> None:
    try:
        call()
    except warp.APIStatusError as error:
        assert error.status_code == status, error
        return
    raise AssertionError(f"no answer {status}")


@functools.cache
def team_uid() -> str:
    return ended_run().scope.uid


@functools.cache
def ended_run() -> RunItem:
    """A run with a second turn possible, that has a conversation, artifacts of all types, and a snapshot."""
    commands = [
        "git config --global user.email a@b.example && git config --global user.name A && git init -q .",
        "git commit -q --allow-empty -m A && echo new > new.txt && git add new.txt",
        "printf made > made.txt && report-artifact made.txt --title Made",
        "printf png > page.png && report-artifact page.png --type SCREENSHOT",
        "printf '# Steps' > plan.md && report-artifact plan.md --type PLAN --title Steps",
        "report-artifact --type EXTERNAL_REFERENCE --url https://tracker.example/7 --reference-type issue",
    ]
    created = agent.run(
        prompt=sh("\n".join(commands)), title="All", metadata={"ticket": "1"}, config={"name": "all", "idle_timeout_minutes": 5}
    )
    run = run_until(created.run_id)
    assert run.state == "SUCCEEDED", run
    return run


@functools.cache
def environment_id() -> str:
    return post("/agent/environments", {"config": {"name": "newest", "setup_commands": ["echo ready"]}})["uid"]


@functools.cache
def factory_uid() -> str:
    return post("/factory", {"name": "Newest", "alias": "newest", "repositories": [{"owner": "acme", "repo": "site"}]})["uid"]


def artifact(kind: str):
    return next(found for found in ended_run().artifacts if found.artifact_type == kind).data


@case("agent.run")
def _() -> None:
    created = agent.run(
        prompt=sh("cat attachments/note.txt"),
        title="Newest",
        config={
            "name": "newest",
            "model_id": "runbook",
            "environment_id": environment_id(),
            "worker_host": "warp",
            "computer_use_enabled": False,
            "credential_strategy": "CREATOR",
            "harness": {"type": "oz", "reasoning_level": "low"},
            "idle_timeout_minutes": 5,
            "secrets": [],
            "session_sharing": {"public_access": "VIEWER"},
        },
        attachments=[{"file_name": "note.txt", "mime_type": "text/plain", "data": "YXR0YWNoZWQ="}],
        metadata={"ticket": "2"},
        mode="normal",
        interactive=False,
        team=True,
        team_uid=team_uid(),
    )
    run = run_until(created.run_id)
    assert (run.state, run.root_run_id, run.title) == ("SUCCEEDED", created.run_id, "Newest"), run
    assert run.finished_at and run.finished_at >= run.started_at, run
    again = agent.run(prompt=sh("echo again"), conversation_id=ended_run().conversation_id, parent_run_id=created.run_id)
    child = run_until(again.run_id)
    assert (child.parent_run_id, child.root_run_id) == (created.run_id, created.run_id), child
    made = agent.agent.create(name="Runs")
    as_agent = agent.run(prompt=sh("true"), agent_identity_uid=made.uid)
    assert run_until(as_agent.run_id).executor.uid == made.uid
    by_skill = agent.run(skill="acme/site:.claude/skills/deploy/SKILL.md")
    assert run_until(by_skill.run_id).agent_config.skill_spec == "acme/site:.claude/skills/deploy/SKILL.md"
    # Only agent keys whose identity allows it may use it.
    refused(403, lambda: agent.run(prompt="x", on_behalf_of="someone@example.com"))


@case("agent.list")
def _() -> None:
    listed = agent.list(
        repo="acme/site", refresh=True, include_malformed_skills=True, sort_by="name", team_uid=team_uid()
    )
    assert "deploy" in [skill.name for skill in listed.agents]


@case("agent.list_models")
def _() -> None:
    assert agent.list_models().models


@case("agent.list_environments")
def _() -> None:
    environments = agent.list_environments(sort_by="name", team_uid=team_uid()).environments
    assert environment_id() in [environment.uid for environment in environments]


@case("agent.get_artifact")
def _() -> None:
    for kind in ("FILE", "SCREENSHOT", "PLAN"):
        found = agent.get_artifact(artifact(kind).artifact_uid)
        assert found.artifact_type == kind


@case("agent.download_artifact")
def _() -> None:
    assert agent.download_artifact(artifact("FILE").artifact_uid).read() == b"made"


@case("agent.get_run_by_external_reference")
def _() -> None:
    assert agent.get_run_by_external_reference(url="https://tracker.example/7").run_id == ended_run().run_id


@case("agent.agent.create")
def _() -> None:
    made = agent.agent.create(
        name="Release",
        agent_type="CUSTOM",
        base_harness="",
        base_model="runbook",
        credential_strategy="EXECUTOR",
        default_runner_uid="",
        description="Releases",
        environment_id=environment_id(),
        factory_uid="",
        harness={"type": "oz"},
        harness_auth_secrets={},
        inference_providers={},
        mcp_servers={"docs": {"url": "https://mcp.example/docs"}},
        memory={"attached_stores": [], "auto_memory": {"enabled": False}},
        on_behalf_of_enabled=False,
        prompt="Be brief.",
        secrets=[],
        skills=[],
        worker_host="warp",
        team_uid=team_uid(),
    )
    assert (made.name, made.prompt, made.base_model) == ("Release", "Be brief.", "runbook"), made
    assert made.mcp_servers and made.mcp_servers["docs"].url == "https://mcp.example/docs", made
    assert made.environment_id == environment_id() and made.memory.attached_stores == []
    # The agents of a factory are in its definition.
    refused(400, lambda: agent.agent.create(name="Foreman", factory_uid=factory_uid()))


def identity(name: str):
    return next(found for found in agent.agent.list().agents if found.name == name)


@case("agent.agent.get")
def _() -> None:
    found = identity("Release")
    assert agent.agent.get(found.uid) == found


@case("agent.agent.list")
def _() -> None:
    assert [found.name for found in agent.agent.list(team_uid=team_uid()).agents if found.name == "Release"]
    for found in agent.agent.list(factory_uid=factory_uid()).agents:
        assert found.factory_uid == factory_uid(), found


@case("agent.agent.update")
def _() -> None:
    changed = agent.agent.update(
        identity("Release").uid,
        name="Ship",
        agent_type="CUSTOM",
        base_harness="",
        base_model="",
        credential_strategy="EXECUTOR",
        default_runner_uid="",
        description="",
        environment_id="",
        harness=None,
        harness_auth_secrets={},
        inference_providers={},
        mcp_servers={},
        memory={"attached_stores": []},
        on_behalf_of_enabled=False,
        prompt="",
        secrets=[],
        skills=[],
        worker_host="",
    )
    assert (changed.name, changed.description, changed.base_model, changed.prompt) == ("Ship", None, None, None), changed
    assert agent.agent.update(changed.uid, secrets_append=[]).secrets == []


@case("agent.agent.delete")
def _() -> None:
    uid = identity("Ship").uid
    agent.agent.delete(uid)
    refused(404, lambda: agent.agent.get(uid))


@case("agent.runs.retrieve")
def _() -> None:
    run = agent.runs.retrieve(ended_run().run_id)
    assert (run.root_run_id, run.submitted_prompt) == (run.run_id, run.prompt), run
    refused(404, lambda: agent.runs.retrieve(nobody))


@case("agent.runs.list")
def _() -> None:
    run = ended_run()
    root = agent.runs.list(
        **day,
        updated_after="2026-01-01T00:00:00Z",
        artifact_type="FILE",
        creator=run.creator.uid,
        executor=run.executor.uid,
        environment_id="empty-environment",
        execution_location="REMOTE",
        metadata={"ticket": "1"},
        name="all",
        q=run.run_id,
        sort_by="created_at",
        sort_order="asc",
        source=["API", "CLI"],
        state=["SUCCEEDED"],
        task_status=["complete"],
        team_uid=team_uid(),
        limit=1,
    )
    assert [found.run_id for found in root] == [run.run_id]
    page = agent.runs.list(limit=1)
    following = agent.runs.list(limit=1, cursor=page.page_info.next_cursor)
    assert page.runs[0].run_id != following.runs[0].run_id
    assert list(agent.runs.list(ancestor_run_id=run.run_id, model_id="none")) == []
    assert list(agent.runs.list(skill="acme/site:none", skill_spec="acme/site:none")) == []
    assert list(agent.runs.list(schedule_id=nobody)) == []
    assert list(agent.runs.list(automation_id=nobody)) == []
    assert list(agent.runs.list(factory_uid=[factory_uid(), "A" * 22], factory_only=True)) == []


@case("agent.runs.cancel")
def _() -> None:
    run_id = agent.run(prompt=sh("sleep 300")).run_id
    run_until(run_id, "INPROGRESS")
    # The answer is a JSON string, which this client hands on as it came.
    assert json.loads(agent.runs.cancel(run_id)) == run_id
    assert agent.runs.retrieve(run_id).state == "CANCELLED"


@case("agent.runs.interrupt")
def _() -> None:
    run_id = agent.run(prompt=sh("sleep 300"), config={"idle_timeout_minutes": 5}).run_id
    run_until(run_id, "INPROGRESS")
    agent.runs.interrupt(run_id)
    run_until(run_id, "SUCCEEDED")


@case("agent.runs.get_conversation")
def _() -> None:
    assert agent.runs.get_conversation(ended_run().run_id).steps


@case("agent.runs.get_transcript")
def _() -> None:
    lines = agent.runs.get_transcript(ended_run().run_id).read().splitlines()
    assert lines and all(json.loads(line) for line in lines)


@case("agent.runs.get_timeline")
def _() -> None:
    events = agent.runs.get_timeline(ended_run().run_id).events
    assert events[0].event_type == "oz_run_created", events


@case("agent.runs.get_harness_usage")
def _() -> None:
    usage = agent.runs.get_harness_usage(ended_run().run_id)
    # The built-in harness has no raw counters of its own.
    assert (usage.available, usage.run_id, usage.usage) == (False, ended_run().run_id, None), usage


@case("agent.runs.list_handoff_attachments")
def _() -> None:
    listed = until("the snapshot", lambda: agent.runs.list_handoff_attachments(ended_run().run_id).attachments)
    assert "new.txt" in httpx.get(listed[0].download_url).text


def prepared(path: str) -> str:
    """The id of an attachment that is uploaded before the follow-up that names it."""
    answer = post(f"{path}/attachments/prepare", {"files": [{"filename": "late.txt", "mime_type": "text/plain"}]})
    (target,) = answer["attachments"]
    upload = target["upload_target"]
    assert upload["url"] == target["upload_url"]
    put = httpx.request(upload["method"], upload["url"], headers=upload["headers"], content=b"uploaded before")
    assert put.is_success, put.text
    return target["attachment_id"]


def outputs_of(run_id: str) -> str:
    return json.dumps(client.get(f"/agent/runs/{run_id}/conversation", cast_to=object))


@case("agent.runs.submit_followup")
def _() -> None:
    run = run_until(agent.run(prompt=sh("echo one"), config={"idle_timeout_minutes": 5}).run_id)
    file = {"attachment_id": prepared(f"/agent/runs/{run.run_id}"), "file_name": "renamed.txt"}
    sent = agent.runs.submit_followup(
        run.run_id, message=sh("cat attachments/renamed.txt"), mode="normal", attachments=[file]
    )
    assert sent.followup_id and sent.outcome in ("live_session", "handoff_execution"), sent
    until("the turn with the file", lambda: "uploaded before" in outputs_of(run.run_id))
    unknown = [{"attachment_id": nobody}]
    refused(422, lambda: agent.runs.submit_followup(run.run_id, message="Look.", attachments=unknown))
    refused(422, lambda: agent.runs.submit_followup(run.run_id, message="Look.", attachments=[file]))


@case("agent.conversations.submit_followup")
def _() -> None:
    conversation_id = run_until(agent.run(prompt=sh("echo one"), config={"idle_timeout_minutes": 5}).run_id).conversation_id
    file = {"attachment_id": prepared(f"/agent/conversations/{conversation_id}")}
    sent = agent.conversations.submit_followup(
        conversation_id, message=sh("cat attachments/late.txt"), mode="normal", attachments=[file]
    )
    until("the turn with the file", lambda: "uploaded before" in outputs_of(sent.run_id))
    refused(404, lambda: agent.conversations.submit_followup(nobody, message="Hello."))


@case("agent.conversations.interrupt")
def _() -> None:
    run_id = agent.run(prompt=sh("sleep 300"), config={"idle_timeout_minutes": 5}).run_id
    conversation_id = run_until(run_id, "INPROGRESS").conversation_id
    assert agent.conversations.interrupt(conversation_id).run_id == run_id
    run_until(run_id, "SUCCEEDED")


@case("agent.conversations.retrieve")
def _() -> None:
    assert agent.conversations.retrieve(ended_run().conversation_id).steps


@case("agent.conversations.get_transcript")
def _() -> None:
    # The built-in harness's conversation has no raw download.
    refused(400, lambda: agent.conversations.get_transcript(ended_run().conversation_id))
    command = {"type": "command", "command": ["sh", "-c", "cat"]}
    run = run_until(agent.run(prompt="Echo.", extra_body={"config": {"harness": command}}).run_id)
    assert b"Echo." in agent.conversations.get_transcript(run.conversation_id).read()


@case("agent.conversations.check_redirect")
def _() -> None:
    with working() as run:
        assert agent.conversations.check_redirect(run.conversation_id).session_id == run.session_id


@case("agent.conversations.download_screenshot")
def _() -> None:
    uid = artifact("SCREENSHOT").artifact_uid
    download = agent.conversations.download_screenshot
    assert download(uid, conversation_id=ended_run().conversation_id).read() == b"png"
    refused(404, lambda: download(artifact("FILE").artifact_uid, conversation_id=ended_run().conversation_id))
    refused(404, lambda: download(uid, conversation_id=nobody))


@case("agent.sessions.check_redirect")
def _() -> None:
    with working() as run:
        assert agent.sessions.check_redirect(run.session_id).conversation_id is None


@case("agent.schedules.create")
def _() -> None:
    made = agent.schedules.create(
        name="Zebra",
        cron_schedule="0 9 * * MON-FRI",
        prompt=sh("echo scheduled"),
        agent_config={"name": "by schedule", "environment_id": environment_id()},
        agent_uid=agent.agent.create(name="Scheduled").uid,
        enabled=True,
        metadata={"ticket": "3"},
        mode="normal",
        team=True,
        team_uid=team_uid(),
    )
    assert made.enabled and made.environment and isinstance(made.environment, EnvironmentConfig), made


def schedule():
    return agent.schedules.list(team_uid=team_uid()).schedules[0]


@case("agent.schedules.list")
def _() -> None:
    assert schedule().name == "Zebra"


@case("agent.schedules.retrieve")
def _() -> None:
    assert agent.schedules.retrieve(schedule().id).name == "Zebra"


@case("agent.schedules.update")
def _() -> None:
    changed = agent.schedules.update(
        schedule().id,
        name="Yak",
        cron_schedule="@daily",
        prompt=sh("echo changed"),
        enabled=True,
        agent_config={"name": "changed"},
        agent_uid=schedule().agent_uid,
        metadata={"ticket": "4"},
        mode="normal",
    )
    assert (changed.name, changed.agent_config.name) == ("Yak", "changed"), changed


@case("agent.schedules.pause")
def _() -> None:
    assert not agent.schedules.pause(schedule().id).enabled


@case("agent.schedules.resume")
def _() -> None:
    assert agent.schedules.resume(schedule().id).enabled


@case("agent.schedules.delete")
def _() -> None:
    assert agent.schedules.delete(schedule().id).success


@case("factories.list")
def _() -> None:
    other = post("/factory", {"name": "Second"})["uid"]
    found = factories.list(search="e", limit=1, filter_team_uid=team_uid(), team_uid=team_uid())
    assert [factory.uid for factory in found] == [factory_uid(), other]
    page = factories.list(limit=1)
    assert factories.list(limit=1, cursor=page.page_info.next_cursor).factories[0].uid == other


@case("factories.get")
def _() -> None:
    factory = factories.get(factory_uid())
    assert (factory.name, factory.team_uid, factory.alias) == ("Newest", team_uid(), "newest"), factory
    assert factory.code_forge == "GITHUB" and factory.repositories[0].repo == "site", factory


@case("factories.runs.create")
def _() -> None:
    made = factories.runs.create(
        factory_uid(),
        prompt=sh("echo dispatched"),
        title="Dispatched",
        ticket_ref="linear:R-1",
        ticket_url="https://tracker.example/R-1",
    )
    assert (made.factory_uid, made.ticket_ref, made.foreman_agent) == (factory_uid(), "linear:R-1", "foreman"), made
    assert run_until(made.run_id).factory_uid == factory_uid()
    minted = factories.runs.create(factory_uid(), prompt=sh("true"))
    assert minted.ticket_ref.startswith("adhoc:"), minted


tree = [
    {"path": "factory.yaml", "content": "schemaVersion: v1alpha1\nname: Site\nrepositories: []\nagentDefaults:\n  model: runbook\n"},
    {"path": "agents/lead/agent.md", "content": "---\nagentType: FOREMAN\n---\nDispatch.\n"},
]


@case("factories.files.validate")
def _() -> None:
    answer = factories.files.validate(files=tree)
    assert answer.valid and answer.diagnostics == [] and answer.schema_version == "v1alpha1", answer
    wrong = [{"path": "factory.yaml", "content": "name: Site\nrepositores: []\n"}, tree[1]]
    faults = factories.files.validate(files=wrong).diagnostics
    assert ("factory.yaml", 2, 1) in [(fault.path, fault.line, fault.column) for fault in faults], faults


@case("factories.files.schemas.list")
def _() -> None:
    listed = factories.files.schemas.list()
    assert listed.current_version == "v1alpha1" and listed.versions[0].schema_url.startswith("/"), listed
    raw = factories.files.schemas.with_raw_response.list()
    refused(304, lambda: factories.files.schemas.list(if_none_match=raw.headers["etag"]))


@case("factories.files.schemas.retrieve")
def _() -> None:
    bundle = factories.files.schemas.retrieve("v1alpha1")
    assert "factory.schema.json" in bundle.documents, bundle
    raw = factories.files.schemas.with_raw_response.retrieve("v1alpha1")
    refused(304, lambda: factories.files.schemas.retrieve("v1alpha1", if_none_match=raw.headers["etag"]))
    refused(404, lambda: factories.files.schemas.retrieve("v0"))


@case("factories.files.schemas.get_document")
def _() -> None:
    get_document = factories.files.schemas.get_document
    bundle = factories.files.schemas.retrieve("v1alpha1")
    for name, document in bundle.documents.items():
        assert get_document(name, schema_version="v1alpha1") == document
    refused(404, lambda: get_document("none.schema.json", schema_version="v1alpha1"))


@functools.cache
def task():
    conversation_id = run_until(factories.runs.create(factory_uid(), prompt=sh("echo task")).run_id).conversation_id
    return factories.tasks.get_by_conversation(factory_uid(), conversation_id=conversation_id)


@case("factories.tasks.get_by_conversation")
def _() -> None:
    assert task().factory_uid == factory_uid()


@case("factories.tasks.get_by_run")
def _() -> None:
    assert factories.tasks.get_by_run(factory_uid(), run_id=task().run_id).uid == task().uid


@case("factories.tasks.get")
def _() -> None:
    assert factories.tasks.get(task().uid, uid=factory_uid()).uid == task().uid


@case("factories.tasks.create")
def _() -> None:
    made = factories.tasks.create(
        factory_uid(),
        conversation_id=ended_run().conversation_id,
        title="By hand",
        description="A task",
        stage="SPEC",
    )
    assert (made.title, made.description, made.stage) == ("By hand", "A task", "SPEC"), made


@case("factories.tasks.update")
def _() -> None:
    changed = factories.tasks.update(task().uid, uid=factory_uid(), title="Named", description="", stage="REVIEW")
    assert (changed.title, changed.stage, changed.description) == ("Named", "REVIEW", None), changed


@case("factories.tasks.list")
def _() -> None:
    found = factories.tasks.list(
        factory_uid(),
        **day,
        updated_after="2026-01-01T00:00:00Z",
        full_list=True,
        include_current_run=True,
        limit=1,
        q="named",
        sort_by="updated_at",
        sort_order="desc",
        stage=["REVIEW", "SPEC"],
    )
    assert [listed.uid for listed in found] == [task().uid]
    assert list(factories.tasks.list(factory_uid(), created_by=["nobody@example.com"])) == []
    page = factories.tasks.list(factory_uid(), limit=1)
    following = factories.tasks.list(factory_uid(), limit=1, cursor=page.page_info.next_cursor)
    assert page.tasks[0].uid != following.tasks[0].uid


@case("factories.tasks.cancel")
def _() -> None:
    made = factories.runs.create(factory_uid(), prompt=sh("sleep 300"))
    run_until(made.run_id, "INPROGRESS")
    working = factories.tasks.get_by_run(factory_uid(), run_id=made.run_id)
    assert factories.tasks.cancel(working.uid, uid=factory_uid()).stage == "CANCELLED"
    assert agent.runs.retrieve(made.run_id).state == "CANCELLED"


@case("factories.tasks.delete")
def _() -> None:
    factories.tasks.delete(task().uid, uid=factory_uid())
    refused(404, lambda: factories.tasks.get(task().uid, uid=factory_uid()))


@case("networking.get_egress_ranges")
def _() -> None:
    ranges = client.networking.get_egress_ranges(team_uid=team_uid())
    assert ranges.cidrs == ["192.0.2.0/24", "2001:db8::/32"], ranges


drive_all(not_yet)
