import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { maxSnapshotFiles } from '@runyard/contract/limits';
import { openAgentSocket } from './agent-socket/socket.ts';
import { createApprovals } from './approvals/approvals.ts';
import type { ArtifactRequest } from './artifacts/report.ts';
import type { NetworkAccess } from './egress/forwarder.ts';
import type { GrantedSecrets } from './granted-secrets/granted-secrets.ts';
import { changesReporter } from './handoff/changes-reporter.ts';
import { handoffFiles } from './handoff/handoff-files.ts';
import { conversationRecord } from './harness/conversation-record.ts';
import { executionHarness } from './harness/execution-harness.ts';
import { turnProgress } from './harness/turn-progress.ts';
import { runMcp } from './mcp/servers.ts';
import { watchPullRequests } from './pull-requests/watch.ts';
import { startReporter } from './reporting/reporter.ts';
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
    tree: async (request, gone) => {
      if (tree === undefined) return { ok: false, message: 'the run has not begun' };
      const { answerTreeRequest } = await import('./run-tree/requests.ts');
      return await answerTreeRequest(tree, request, AbortSignal.any([gone, stop.signal]));
    },
  });
  const env: Record<string, string | undefined> = {
    ...options.env,
    ...egress?.variables,
    RUNYARD_AGENT_SOCKET: socket.path,
  };
  const addToEnv = (variables: Readonly<Record<string, string>>) => void Object.assign(env, variables);
  /** `NAME=value` of `env` that marks every process of the run. */
  const marker = `RUNYARD_AGENT_SOCKET=${socket.path}`;

  const changes = changesReporter({ client, workspace, ownFolders, env, signal: reporting.signal });
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
  const mcp = runMcp({
    agentProgram: [process.execPath, process.argv[1] ?? ''],
    connection: client.connection,
    workspace,
    env,
    network,
    startTimeoutMs: options.harnessStartMs,
  });
  const services = deferredServices();
  const harness = executionHarness({
    mcp,
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
