import type { AgentEventBody, AgentTask } from '@runyard/contract/agent-protocol';
import type { AgentLink, LinkEvents } from '../acp/agent-link.ts';
import type { Approvals } from '../approvals/approvals.ts';
import type { ArtifactRequest, ArtifactResult } from '../artifacts/report.ts';
import type { HandoffResult } from '../handoff/declared.ts';
import { imageLimits } from '../images/images.ts';
import type { RunTree } from '../run-tree/tree.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { SetupFailure } from '../setup-failure.ts';
import { type Driver, driveHarness } from './driver.ts';
import { ozAgent } from './oz/agent.ts';
import { connectOz } from './oz/link.ts';
import { runbookEngine } from './oz/runbook.ts';
import type { Engine } from './oz/session.ts';

export interface HarnessOptions {
  task: AgentTask;
  workspace: string;
  env: Readonly<Record<string, string | undefined>>;
  /** `NAME=value` in `env` by which all that the run started is found again. */
  marker: string;
  connection: ServiceConnection;
  emit: (event: AgentEventBody) => void;
  ready: () => Promise<void>;
  saturated: () => boolean;
  handoff: (paths: readonly string[]) => Promise<HandoffResult>;
  reportArtifact: (request: ArtifactRequest) => Promise<ArtifactResult>;
  tree: RunTree;
  approvals: Approvals;
  /** What `remember` was given last in an earlier execution. */
  memory?: string | undefined;
  /** Keeps the harness's memory of the conversation at the end of each turn, and before a person is asked (`requestId`). Never rejects. */
  remember: (memory: string, requestId?: string) => Promise<void>;
  startTimeoutMs?: number;
}

const builtinTypes: ReadonlySet<string> = new Set(['oz', 'builtin', '']);

export function isBuiltin(task: AgentTask): boolean {
  return builtinTypes.has(task.harness.type);
}

/** Name that the run's records carry. */
export function harnessName(task: AgentTask): string {
  return isBuiltin(task) ? 'oz' : task.harness.type;
}

/** Model that the run's records carry. */
export function modelId(task: AgentTask): string {
  return task.harness.model?.id ?? (isBuiltin(task) ? 'runbook' : (task.agent_config.model_id ?? task.harness.type));
}

/** Starts the run's harness and returns its driver. Modules that only one kind needs are loaded only for it. */
export async function startHarness(options: HarnessOptions): Promise<Driver> {
  const { task } = options;
  return driveHarness({
    harness: harnessName(task),
    builtin: isBuiltin(task),
    start: await (isBuiltin(task) ? builtinStarter(options) : childStarter(options)),
    emit: options.emit,
    ready: options.ready,
    config: task.agent_config,
    imageLimits: imageLimits(task.harness.model),
    approvals: options.approvals,
    ...(options.startTimeoutMs === undefined ? {} : { startTimeoutMs: options.startTimeoutMs }),
  });
}

type Starter = (events: LinkEvents) => AgentLink;

async function builtinStarter(options: HarnessOptions): Promise<Starter> {
  const engine = await builtinEngine(options);
  const seesImages = options.task.harness.model?.vision_supported === true;
  return (events) => connectOz(ozAgent(engine, { seesImages }), events);
}

/** The runbook comes with the program: each module file of its own would cost a short run time. */
async function builtinEngine(options: HarnessOptions): Promise<Engine> {
  const { task, workspace, env, approvals } = options;
  const backpressure = () => (options.saturated() ? options.ready() : undefined);
  const { model } = task.harness;
  if (model === undefined)
    return runbookEngine({ cwd: workspace, env, backpressure, approvals, earlier: task.decision });
  const { modelEngine } = await import('./oz/loop.ts');
  return modelEngine({
    model,
    reasoningLevel: task.harness.reasoning_level,
    basePrompt: task.agent_config.base_prompt,
    workspace,
    env,
    backpressure,
    connection: options.connection,
    reportArtifact: options.reportArtifact,
    handoff: options.handoff,
    tree: options.tree,
    approvals,
    memory: options.memory,
    remember: options.remember,
  });
}

async function childStarter({ task, workspace, env, marker }: HarnessOptions): Promise<Starter> {
  const [program, ...args] = task.harness.command ?? [];
  if (program === undefined) {
    throw new SetupFailure(
      `The harness ${task.harness.type} cannot be started: the run names no command for it. Give config.harness.command, or use the harness oz.`,
    );
  }
  const { startChildLink } = await import('./child-link.ts');
  return (events) => {
    try {
      return startChildLink({ command: [program, ...args], cwd: workspace, env, marker, events });
    } catch (error) {
      // The kernel refuses the arguments: spawn throws then, and tells of nothing later.
      const reason = error instanceof Error ? error.message : String(error);
      throw new SetupFailure(
        `The harness ${task.harness.type} cannot be started: ${reason}. Correct config.harness.command.`,
      );
    }
  };
}
