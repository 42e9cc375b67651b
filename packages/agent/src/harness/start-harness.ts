import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { AgentLink, LinkEvents } from '../acp/agent-link.ts';
import { asObject } from '../acp/tool-output.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { ArtifactRequest, ArtifactResult } from '../artifacts/report.ts';
import type { KeptOutputs } from '../commands/kept-output.ts';
import type { NetworkAccess } from '../egress/forwarder.ts';
import type { AnswerOnGithub } from '../github-answers/answer.ts';
import { githubToolsOf } from '../github-answers/tools-of-task.ts';
import type { HandoffResult } from '../handoff/handoff-files.ts';
import { imageLimits } from '../images/images.ts';
import type { RunMcp } from '../mcp/servers.ts';
import { aboutResult, returnsResult } from '../results/prompt-text.ts';
import type { SubmitValue } from '../results/run-result.ts';
import type { RunTree } from '../run-tree/tree.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';
import type { PlanGuard } from '../workspace/plan-guard.ts';
import { type Driver, driveHarness } from './driver.ts';
import type { HarnessProgram } from './external.ts';
import type { Forwarder } from './forwarder/forwarder.ts';
import { ozAgent } from './oz/agent.ts';
import { connectOz } from './oz/link.ts';
import { runbookEngine } from './oz/runbook.ts';
import type { Engine } from './oz/session.ts';
import { type HarnessKind, harnessProfile } from './profile.ts';
import type { TurnCheck } from './turn-check.ts';
import type { TurnProgress } from './turn-progress.ts';

export interface HarnessOptions {
  task: AgentTask;
  workspace: string;
  /** Folder of the workspace in which the harness works. */
  folder: string;
  env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` of `env` that marks every process of the run. */
  marker: string;
  connection: ServiceConnection;
  network: NetworkAccess;
  /** Returns the forwarder of the execution; starts it on the first call. */
  forwarder: () => Promise<Forwarder>;
  emit: (event: AgentEventBody) => void;
  ready: () => Promise<void>;
  saturated: () => boolean;
  handoff: (paths: readonly string[]) => Promise<HandoffResult>;
  reportArtifact: (request: ArtifactRequest) => Promise<ArtifactResult>;
  tree: RunTree;
  /** Submits the result of the run. Only called if the task has an output schema. */
  submitResult: SubmitValue;
  /** Writes on GitHub. Only called for tools that the environment of the task allows. */
  answerOnGithub: AnswerOnGithub;
  mcp: Pick<RunMcp, 'tools' | 'forHarness'>;
  turnCheck: TurnCheck;
  approvals: Approvals;
  /** Returns the processes of the services. */
  services: () => readonly number[];
  /** Finds changes of the workspace in turns with the mode `plan`. */
  planGuard: PlanGuard;
  /** Keeps the whole outputs of commands; absent: no outputs are kept. */
  kept?: KeptOutputs | undefined;
  /** Counts the commands that the runbook has run. */
  progress: Pick<TurnProgress, 'doneBlocks'>;
  /** Removes the secrets of the run from text for a model. */
  redact?: (text: string) => string;
  /** The memory that the last call of `remember` in an earlier execution saved. */
  memory?: string | undefined;
  /**
   * Saves the harness's memory of the conversation at the end of each turn, and before the harness asks a person (`requestId` is then the
   * id of the request). Never rejects.
   */
  remember: (memory: string, requestId?: string) => Promise<void>;
  startTimeoutMs?: number;
}

/** Starts a harness and connects to it. */
type HarnessStarter = (events: LinkEvents) => AgentLink;

/** Prepares the start of each kind of harness. A module that only one kind needs is loaded only for this kind. */
const starters: Readonly<Record<HarnessKind, (options: HarnessOptions) => Promise<HarnessStarter>>> = {
  runbook: async (options) => builtinStarter(options, runbook(options)),
  'model-loop': async (options) => builtinStarter(options, await modelLoop(options)),
  external: childStarter,
  command: commandStarter,
};

/** Starts the harness of a run and returns its driver. */
export async function startHarness(options: HarnessOptions): Promise<Driver> {
  const { task } = options;
  const profile = harnessProfile(task);
  return driveHarness({
    profile,
    start: await starters[profile.kind](options),
    emit: options.emit,
    ready: options.ready,
    mcpServers: (task.mcp_servers ?? []).map(({ name }) => name),
    mcp: options.mcp,
    imageLimits: imageLimits(task.harness.model),
    approvals: options.approvals,
    planGuard: options.planGuard,
    openOutput: profile.capabilities.ownProcess ? options.kept?.open : undefined,
    turnCheck: options.turnCheck,
    ...(options.startTimeoutMs === undefined ? {} : { startTimeoutMs: options.startTimeoutMs }),
  });
}

function builtinStarter(options: HarnessOptions, engine: Engine): HarnessStarter {
  const seesImages = options.task.harness.model?.vision_supported === true;
  return (events) => connectOz(ozAgent(engine, { seesImages }), events);
}

const backpressureOf =
  ({ saturated, ready }: HarnessOptions) =>
  () =>
    saturated() ? ready() : undefined;

/** The runbook engine is part of the main module, because loading another file would take time in a short run. */
function runbook(options: HarnessOptions): Engine {
  const { task, folder, approvals, progress } = options;
  const env = { ...options.env, ...task.harness.env };
  const backpressure = backpressureOf(options);
  // If a run starts other runs, only the first execution of the top run explains how to add a model.
  const isFirst = task.conversation === undefined && task.parent_run === undefined;
  const noModel = task.harness.no_model_configured ? (isFirst ? 'explain' : 'mention') : undefined;
  return runbookEngine({
    cwd: folder,
    env,
    backpressure,
    approvals,
    runKept: options.kept?.run,
    earlier: task.decision,
    loss: task.loss,
    endedAs: task.ended_as,
    progress,
    noModel,
    submitResult: returnsResult(task) ? options.submitResult : undefined,
  });
}

async function modelLoop(options: HarnessOptions): Promise<Engine> {
  const { task, workspace, folder, approvals } = options;
  const env = { ...options.env, ...task.harness.env };
  const { model } = task.harness;
  if (model === undefined) throw new Error('the model loop needs a model');
  const schema = asObject(task.agent_config.output_schema);
  const { modelEngine } = await import('./oz/loop.ts');
  return modelEngine({
    model,
    reasoningLevel: task.harness.reasoning_level,
    basePrompt: task.agent_config.base_prompt,
    workspace: folder,
    root: workspace,
    env,
    backpressure: backpressureOf(options),
    runKept: options.kept?.run,
    connection: options.connection,
    reportArtifact: options.reportArtifact,
    handoff: options.handoff,
    tree: options.tree,
    github: { names: githubToolsOf(task), answer: options.answerOnGithub },
    result: schema && { schema, submit: options.submitResult, about: aboutResult(task, 'tool') },
    approvals,
    memory: options.memory,
    redact: options.redact,
    remember: options.remember,
    mcp: () => options.mcp.tools,
  });
}

/** Prepares the run's program. Its command, variables and files depend on the run's model. */
async function programOf(options: HarnessOptions): Promise<HarnessProgram> {
  const { task, folder, env, network } = options;
  const { prepareProgram } = await import('./external.ts');
  const forwarder = task.harness.model === undefined ? undefined : await options.forwarder();
  return prepareProgram({ task, folder, env, forwarder, hasNoNetwork: network === 'none' });
}

async function childStarter(options: HarnessOptions): Promise<HarnessStarter> {
  const { task, folder, marker } = options;
  const program = await programOf(options);
  // If the agent has a relay socket, Runyard's own worker started it. The sandboxes of this worker always have separate processes.
  const hasOwnProcesses = options.connection.relaySocket !== undefined;
  const { startChildLink } = await import('./child-link.ts');
  return (events) => {
    try {
      return startChildLink({ ...program, cwd: folder, marker, events, hasOwnProcesses, spared: options.services });
    } catch (error) {
      // `spawn` throws an error if the kernel refuses the arguments.
      const reason = error instanceof Error ? error.message : String(error);
      throw new SetupFailure(
        `The harness ${task.harness.type} cannot be started: ${reason}. Correct config.harness.command.`,
      );
    }
  };
}

async function commandStarter(options: HarnessOptions): Promise<HarnessStarter> {
  const program = await programOf(options);
  const { connectCommand } = await import('./command/link.ts');
  return (events) => connectCommand({ ...program, cwd: options.folder, marker: options.marker, events });
}
