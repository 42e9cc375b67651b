import { dirname } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { maxSnapshotFiles } from '@runyard/contract/limits';
import { openAgentSocket } from './agent-socket/socket.ts';
import { createApprovals } from './approvals/approvals.ts';
import type { ArtifactRequest } from './artifacts/report.ts';
import type { RunChecks } from './checks/run-checks.ts';
import type { NetworkAccess } from './egress/forwarder.ts';
import type { AnswerOnGithub } from './github-answers/answer.ts';
import { githubToolsOf } from './github-answers/tools-of-task.ts';
import type { GrantedSecrets } from './granted-secrets/granted-secrets.ts';
import { changesReporter } from './handoff/changes-reporter.ts';
import { handoffFiles } from './handoff/handoff-files.ts';
import { conversationRecord } from './harness/conversation-record.ts';
import { executionHarness } from './harness/execution-harness.ts';
import { turnProgress } from './harness/turn-progress.ts';
import { type HarnessMcpServer, runMcp } from './mcp/servers.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { startReporter } from './reporting/reporter.ts';
import { deferredResult } from './results/deferred-result.ts';
import { resultFileVariable, returnsResult, runServerName } from './results/prompt-text.ts';
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

/** Opens the reporter of the execution, and the signals that end its work and its reports. */
function openReports(options: RunPartsOptions, onQuestionRefused: (requestId: string, reason: string) => void) {
  const position: TurnPosition = { turn: 1, stepId: '' };
  const progress = turnProgress();
  const stop = stopping();
  const reporting = new AbortController();
  const onSuperseded = () => {
    stop.stop('superseded');
    reporting.abort(new Superseded('superseded'));
  };
  const reporter = startReporter({
    client: options.client,
    redact: options.secrets.redact,
    onEmit: (event) => progress.observe(event),
    signal: reporting.signal,
    onSuperseded,
    onRefused: (event, reason) => {
      if (event.type === 'blocked') onQuestionRefused(event.request.request_id, reason);
    },
  });
  const notice = (name: string, data: unknown) =>
    reporter.emit({ type: 'notice', step_id: position.stepId, name, data });
  return { position, progress, stop, reporting, onSuperseded, reporter, notice, turn: () => position.turn };
}

type Reports = ReturnType<typeof openReports>;

/** Reports artifacts to the service, and the pull requests that the harness opens without a command of the agent. */
function openArtifacts({ client, workspace }: RunPartsOptions, signal: AbortSignal) {
  const report = async (request: ArtifactRequest, cwd: string, onProgress?: (line: string) => void) => {
    const artifacts = await import('./artifacts/report.ts');
    if (request.type === 'PULL_REQUEST' && request.url !== undefined) pullRequests.markReported(request.url);
    return artifacts.reportArtifact(request, { client, cwd, workspace, signal, onProgress });
  };
  const pullRequests = watchPullRequests(async (noticed) => {
    const result = await report({ type: 'PULL_REQUEST', ...noticed }, workspace);
    if (!result.ok) throw new Error(result.message);
  });
  return { report, pullRequests };
}

/** Opens the socket for the commands and tools of the sandbox, and creates what they use. The caller must close the socket. */
function openTools(options: RunPartsOptions, egressVariables: Readonly<Record<string, string>>, reports: Reports) {
  const { client, workspace } = options;
  const { reporting, stop, turn } = reports;
  const artifacts = openArtifacts(options, reporting.signal);
  const handoff = handoffFiles(workspace, maxSnapshotFiles);
  /** Functions for the other runs in the tree of this run. Undefined until the task has arrived. */
  let tree: OrchestratingRunTree | undefined;
  /** Names of the tools that belong to the run itself. Empty until the task has arrived. */
  let ownTools: readonly string[] = [];
  const answerOnGithub: AnswerOnGithub = async (tool, input, gone) => {
    const answers = await import('./github-answers/answer.ts');
    return await answers.answerOnGithub(client, reporting.signal)(tool, input, gone);
  };
  const result = deferredResult({
    client,
    folder: () => dirname(socket.path),
    reportArtifact: artifacts.report,
    turn,
    signal: reporting.signal,
    onOpened: (file) => addToEnv({ [resultFileVariable]: file }),
  });
  const socket = openAgentSocket({
    artifact: ({ artifact, cwd }, onProgress) => artifacts.report(artifact, cwd, onProgress),
    handoff: handoff.add,
    pullRequest: async (request, gone) => {
      const { openPullRequest } = await import('./pull-requests/open.ts');
      const answer = await openPullRequest(client, request, AbortSignal.any([gone, reporting.signal]));
      // Do not report this pull request again, because the service has already recorded it as an artifact.
      if (answer.ok) artifacts.pullRequests.markReported(answer.url);
      return answer;
    },
    result: result.submit,
    github: answerOnGithub,
    describe: async (names) => (await import('./github-answers/answer.ts')).describeGithubTools(names),
    tree: async (request, gone) => {
      if (tree === undefined) return { ok: false, message: 'the run has not begun' };
      const { answerTreeRequest } = await import('./run-tree/requests.ts');
      return await answerTreeRequest(tree, request, AbortSignal.any([gone, stop.signal]));
    },
  });
  const socketVariable = { RUNYARD_AGENT_SOCKET: socket.path };
  const env: Record<string, string | undefined> = { ...options.env, ...egressVariables, ...socketVariable };
  const addToEnv = (variables: Readonly<Record<string, string>>) => void Object.assign(env, variables);
  return {
    artifacts,
    handoff,
    socket,
    env,
    addToEnv,
    answerOnGithub,
    submitResult: result.submit,
    treeOf: (task: AgentTask): OrchestratingRunTree => {
      tree ??= runTree(client, task);
      return tree;
    },
    openResult: async (task: AgentTask) => {
      ownTools = [...(returnsResult(task) ? ['submit_result'] : []), ...githubToolsOf(task)];
      return await result.open(task);
    },
    /** The MCP server for the run's own tools. None if the run has no such tools. */
    ownServers: (): readonly HarnessMcpServer[] => {
      const [command, ...args] = agentProgram;
      const server = { name: runServerName, command, args: [...args, 'run-server', ...ownTools], env: socketVariable };
      return ownTools.length === 0 ? [] : [server];
    },
  };
}

type Tools = ReturnType<typeof openTools>;

/** Creates the parts that check, save and report the files of the workspace. */
function openFiles(
  options: RunPartsOptions,
  { env, handoff }: Tools,
  reports: Reports,
  session: () => string | undefined,
) {
  const { client, workspace, ownFolders } = options;
  const { notice, progress, reporter, reporting, turn } = reports;
  const { signal } = reporting;
  const changes = changesReporter({
    ...{ client, workspace, ownFolders, env, signal },
    // The checks of a run store snapshots themselves, and another snapshot would replace theirs.
    sendFiles: async () => (checks === undefined ? await saver.showFiles(turn()) : undefined),
  });
  const saver = deferredSaver({
    client,
    workspace,
    ownFolders,
    env,
    signal,
    handedOff: handoff.list,
    reportChanges: changes.report,
    session,
    onLeftOut: (what, reason) => notice('handoff_left_out', { what, reason }),
    onNotSaved: (reason) => notice('workspace_not_kept', { reason }),
  });
  let checks: RunChecks | undefined;
  return {
    changes,
    saver,
    /** Returns the checks of the task. Their code is loaded only if there are any. */
    openChecks: async (task: AgentTask): Promise<RunChecks | undefined> => {
      if (checks !== undefined || (task.agent_config.checks ?? []).length === 0) return checks;
      const { runChecks } = await import('./checks/run-checks.ts');
      const { emit } = reporter;
      const handedOff = handoff.list;
      checks = runChecks({ task, workspace, env, client, emit, handedOff, turn, onChangesChecked: saver.keepSnapshot });
      return checks;
    },
    /** Begins to take checkpoints if the task asks for them. */
    beginCheckpoints: async ({ checkpoint_seconds: seconds }: AgentTask): Promise<void> => {
      if (seconds === undefined || !ownFolders) return;
      const { startCheckpoints } = await import('./turns/checkpoints.ts');
      const onFailed = (reason: string) => notice('checkpoint_not_kept', { reason });
      startCheckpoints({ seconds, progress, saver, reporter, turn, onFailed, signal });
    },
  };
}

/** The command that starts this program. */
const agentProgram = [process.execPath, process.argv[1] ?? ''] as const;

/** Creates the objects that work together in an execution, and connects them. The caller must close the socket. */
export async function openRunParts(options: RunPartsOptions) {
  const { client, secrets, workspace, harnessStartMs: startTimeoutMs } = options;
  const egress = await openEgress(options.egressSocket);
  const withoutProxy = client.connection.relaySocket === undefined ? 'open' : 'none';
  const network: NetworkAccess = egress === undefined ? withoutProxy : 'allow_list';
  const proxyVariables = egress?.variables ?? {};
  const reports = openReports(options, (requestId, reason) => approvals.refused(requestId, reason));
  const { position, progress, stop, reporting, reporter, notice, turn } = reports;
  const tools = openTools(options, proxyVariables, reports);
  const { artifacts, env, socket } = tools;
  const files = openFiles(options, tools, reports, () => harness.driver?.loadableSession);
  const approvals = createApprovals({
    emit: reporter.emit,
    flush: reporter.flush,
    // Save the workspace now, because the worker may die before the person answers.
    onWait: () => void files.saver.save(position.turn),
    onWaitEnd: () => files.saver.abort(),
  });
  const mcp = runMcp({ agentProgram, connection: client.connection, workspace, env, network, startTimeoutMs });
  const services = deferredServices();
  const record = conversationRecord();
  /** `NAME=value` of `env` that marks every process of the run. */
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;
  const harness = executionHarness({
    mcp: {
      get tools() {
        return mcp.tools;
      },
      get forHarness() {
        return [...mcp.forHarness, ...tools.ownServers()];
      },
    },
    submitResult: tools.submitResult,
    answerOnGithub: tools.answerOnGithub,
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
      artifacts.pullRequests.observe(event);
      record.add(event);
    },
    reportArtifact: artifacts.report,
    handoff: tools.handoff.add,
    treeOf: tools.treeOf,
    approvals,
    planGuard: planGuard(workspace, env.HOME),
    progress,
    notice,
    turn,
    stop: stop.signal,
    reporting: reporting.signal,
    startTimeoutMs,
  });
  return {
    ...reports,
    ...files,
    pullRequests: artifacts.pullRequests,
    treeOf: tools.treeOf,
    openResult: tools.openResult,
    addToEnv: tools.addToEnv,
    record,
    socket,
    egress,
    network,
    proxyVariables,
    env,
    marker,
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
