import { dirname } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { maxSnapshotFiles } from '@runyard/contract/limits';
import { openAgentSocket } from './agent-socket/socket.ts';
import { createApprovals } from './approvals/approvals.ts';
import type { ArtifactRequest } from './artifacts/report.ts';
import type { RunChecks } from './checks/run-checks.ts';
import type { NetworkAccess } from './egress/forwarder.ts';
import type { AnswerOnGithub } from './github-answers/answer.ts';
import type { GrantedSecrets } from './granted-secrets/granted-secrets.ts';
import { changesReporter } from './handoff/changes-reporter.ts';
import { handoffFiles } from './handoff/handoff-files.ts';
import { conversationRecord } from './harness/conversation-record.ts';
import { executionHarness } from './harness/execution-harness.ts';
import { turnProgress } from './harness/turn-progress.ts';
import { runMcp } from './mcp/servers.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { startReporter } from './reporting/reporter.ts';
import { resultFileVariable, returnsResult, runServerName } from './results/prompt-text.ts';
import type { RunResult, SubmitValue } from './results/run-result.ts';
import { type OrchestratingRunTree, runTree } from './run-tree/tree.ts';
import type { ServiceClient } from './service/client.ts';
import { Superseded } from './service/errors.ts';
import { deferredServices } from './services/deferred-services.ts';
import { stopping } from './stopping.ts';
import type { TurnPosition } from './turns/turns-options.ts';
import { planGuard } from './workspace/plan-guard.ts';
import { deferredSaver } from './workspace-archive/deferred-saver.ts';

export interface RunPartsOptions {
  readonly client: ServiceClient;
  readonly secrets: GrantedSecrets;
  readonly workspace: string;
  readonly ownFolders: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Unix socket of the worker's proxy for the hosts that the environment allows. */
  readonly egressSocket: string | undefined;
  readonly harnessStartMs: number;
}

/** Creates the objects that work together in an execution, and connects them. The caller must close the socket. */
export async function openRunParts(options: RunPartsOptions) {
  const { client, secrets, workspace, ownFolders } = options;
  const egress = await openEgress(options.egressSocket);
  const withoutProxy = client.connection.relaySocket === undefined ? 'open' : 'none';
  const network: NetworkAccess = egress === undefined ? withoutProxy : 'allow_list';
  const position: TurnPosition = { turn: 1, stepId: '' };
  const progress = turnProgress();
  const stop = stopping();
  const reporting = new AbortController();
  const onSuperseded = () => {
    stop.stop('superseded');
    reporting.abort(new Superseded('superseded'));
  };
  const reporter = startReporter({
    client,
    redact: secrets.redact,
    onEmit: (event) => progress.observe(event),
    signal: reporting.signal,
    onSuperseded,
    onRefused: (event, reason) => {
      if (event.type === 'blocked') approvals.refused(event.request.request_id, reason);
    },
  });
  const notice = (name: string, data: unknown) =>
    reporter.emit({ type: 'notice', step_id: position.stepId, name, data });

  const reportArtifact = async (request: ArtifactRequest, cwd: string, onProgress?: (line: string) => void) => {
    const artifacts = await import('./artifacts/report.ts');
    if (request.type === 'PULL_REQUEST' && request.url !== undefined) pullRequests.markReported(request.url);
    return artifacts.reportArtifact(request, { client, cwd, workspace, signal: reporting.signal, onProgress });
  };
  const pullRequests = watchPullRequests(async (noticed) => {
    const result = await reportArtifact({ type: 'PULL_REQUEST', ...noticed }, workspace);
    if (!result.ok) throw new Error(result.message);
  });
  const record = conversationRecord();
  const handoff = handoffFiles(workspace, maxSnapshotFiles);

  /** Functions for the other runs in the tree of this run. Undefined until the task has arrived. */
  let tree: OrchestratingRunTree | undefined;
  const treeOf = (task: AgentTask) => {
    tree ??= runTree(client, task);
    return tree;
  };
  const socket = openAgentSocket({
    artifact: ({ artifact, cwd }, onProgress) => reportArtifact(artifact, cwd, onProgress),
    handoff: handoff.add,
    pullRequest: async (request, gone) => {
      const { openPullRequest } = await import('./pull-requests/open.ts');
      const answer = await openPullRequest(client, request, AbortSignal.any([gone, reporting.signal]));
      // Do not report this pull request again, because the service has already recorded it as an artifact.
      if (answer.ok) pullRequests.markReported(answer.url);
      return answer;
    },
    result: async (value) => await submitResult(value),
    github: async (tool, input, gone) => await answerOnGithub(tool, input, gone),
    describe: async (names) => (await import('./github-answers/answer.ts')).describeGithubTools(names),
    tree: async (request, gone) => {
      if (tree === undefined) return { ok: false, message: 'the run has not begun' };
      const { answerTreeRequest } = await import('./run-tree/requests.ts');
      return await answerTreeRequest(tree, request, AbortSignal.any([gone, stop.signal]));
    },
  });
  const answerOnGithub: AnswerOnGithub = async (tool, input, gone) => {
    const answers = await import('./github-answers/answer.ts');
    return await answers.answerOnGithub(client, reporting.signal)(tool, input, gone);
  };
  /** Names of the tools that belong to the run itself. Empty until the task has arrived. */
  let ownTools: readonly string[] = [];
  /** The result of the run. Undefined until the task has arrived, and if the run returns none. */
  let result: RunResult | undefined;
  const openResult = async (task: AgentTask): Promise<RunResult | undefined> => {
    ownTools = [
      ...(returnsResult(task) ? ['submit_result'] : []),
      ...Object.keys(task.environment?.config.github_tools ?? {}),
    ];
    if (result !== undefined || !returnsResult(task)) return result;
    const { runResult } = await import('./results/run-result.ts');
    result = runResult({
      client,
      folder: dirname(socket.path),
      reportArtifact,
      turn: () => position.turn,
      signal: reporting.signal,
    });
    addToEnv({ [resultFileVariable]: result.file });
    return result;
  };
  let checks: RunChecks | undefined;
  const openChecks = async (task: AgentTask): Promise<RunChecks | undefined> => {
    if (checks !== undefined || (task.agent_config.checks ?? []).length === 0) return checks;
    const { runChecks } = await import('./checks/run-checks.ts');
    checks = runChecks({
      task,
      workspace,
      env,
      client,
      emit: reporter.emit,
      handedOff: handoff.list,
      turn: () => position.turn,
      onChangesChecked: saver.keepSnapshot,
    });
    return checks;
  };
  const submitResult: SubmitValue = async (value) =>
    (await result?.submit(value)) ?? { ok: false, message: 'this run returns no result' };
  const env: Record<string, string | undefined> = {
    ...options.env,
    ...egress?.variables,
    RUNYARD_AGENT_SOCKET: socket.path,
  };
  const addToEnv = (variables: Readonly<Record<string, string>>) => void Object.assign(env, variables);
  /** `NAME=value` of `env` that marks every process of the run. */
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;

  const changes = changesReporter({
    ...{ client, workspace, ownFolders, env },
    // The checks of a run store snapshots themselves, and another snapshot would replace theirs.
    sendFiles: async () => (checks === undefined ? await saver.showFiles(position.turn) : undefined),
    signal: reporting.signal,
  });
  const saver = deferredSaver({
    client,
    workspace,
    ownFolders,
    env,
    signal: reporting.signal,
    handedOff: handoff.list,
    reportChanges: changes.report,
    session: () => harness.driver?.loadableSession,
    onLeftOut: (what, reason) => notice('handoff_left_out', { what, reason }),
    onNotSaved: (reason) => notice('workspace_not_kept', { reason }),
  });
  /** Begins to take checkpoints if the task asks for them. */
  const beginCheckpoints = async ({ checkpoint_seconds: seconds }: AgentTask): Promise<void> => {
    if (seconds === undefined || !ownFolders) return;
    const { startCheckpoints } = await import('./turns/checkpoints.ts');
    const onFailed = (reason: string) => notice('checkpoint_not_kept', { reason });
    const turn = () => position.turn;
    startCheckpoints({ seconds, progress, saver, reporter, turn, onFailed, signal: reporting.signal });
  };
  const approvals = createApprovals({
    emit: reporter.emit,
    flush: reporter.flush,
    // Save the workspace now, because the worker may die before the person answers.
    onWait: () => void saver.save(position.turn),
    onWaitEnd: () => saver.abort(),
  });
  const agentProgram = [process.execPath, process.argv[1] ?? ''] as const;
  const mcp = runMcp({
    agentProgram,
    connection: client.connection,
    workspace,
    env,
    network,
    startTimeoutMs: options.harnessStartMs,
  });
  const services = deferredServices();
  /** The MCP servers that the harness starts: those of the run, and the server for the run's own tools. */
  const forHarness = () => {
    if (ownTools.length === 0) return mcp.forHarness;
    const [command, ...args] = agentProgram;
    const own = { RUNYARD_AGENT_SOCKET: socket.path };
    return [...mcp.forHarness, { name: runServerName, command, args: [...args, 'run-server', ...ownTools], env: own }];
  };
  const harness = executionHarness({
    mcp: {
      get tools() {
        return mcp.tools;
      },
      get forHarness() {
        return forHarness();
      },
    },
    submitResult,
    answerOnGithub,
    services: services.processes,
    client,
    secrets,
    reporter,
    workspace,
    env,
    network,
    marker,
    emit: (event) => {
      reporter.emit(event);
      pullRequests.observe(event);
      record.add(event);
    },
    reportArtifact,
    handoff: handoff.add,
    treeOf,
    approvals,
    planGuard: planGuard(workspace, env.HOME),
    progress,
    notice,
    turn: () => position.turn,
    stop: stop.signal,
    reporting: reporting.signal,
    startTimeoutMs: options.harnessStartMs,
  });
  return {
    position,
    stop,
    reporting,
    onSuperseded,
    reporter,
    notice,
    pullRequests,
    record,
    treeOf,
    openResult,
    openChecks,
    socket,
    egress,
    network,
    proxyVariables: egress?.variables ?? {},
    env,
    addToEnv,
    marker,
    saver,
    changes,
    beginCheckpoints,
    approvals,
    mcp,
    services,
    harness,
  };
}

/** Opens the connection to the worker's proxy. The module of the connection is loaded only if an environment allows hosts. */
async function openEgress(proxySocket: string | undefined) {
  if (proxySocket === undefined) return undefined;
  const { startEgressForwarder } = await import('./egress/forwarder.ts');
  return await startEgressForwarder(proxySocket);
}
