import type { EnvironmentLimits } from '@runyard/contract/environments/environments';
import { maxSetupOutputBytes } from '@runyard/contract/limits';
import { lastPart, shorten } from '@runyard/contract/wire/shorten';
import {
  imagesFeature,
  maxImageName,
  maxReportedHosts,
  type SandboxNetwork,
  type TaskAssignment,
  type WorkerMessage,
} from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';
import { askedHostsOf } from '../egress/asked-hosts.ts';
import type { Egress, ExecutionEgress } from '../egress/egress.ts';
import { checkProgram } from '../harnesses/check-program.ts';
import type { AdoptableSandbox } from '../sandboxes/backend-kind.ts';
import { lowerLimits, type ReportedLimits, type SandboxLimits, shapedLimits } from '../sandboxes/limits.ts';
import { type ImageStep, type Sandbox, type SandboxBackend, SandboxError } from '../sandboxes/sandbox.ts';
import type { Execution } from './execution.ts';
import { agentLaunch } from './launch.ts';
import {
  cancelledMessage,
  type ExecutionName,
  exitMessage,
  failureMessage,
  stoppedMessage,
  type TerminalMessage,
} from './outcome.ts';

export interface CarryOutOptions {
  readonly backend: SandboxBackend;
  /** Limits of every sandbox. The environment of a run may lower the limits of its sandbox. */
  readonly limits: SandboxLimits;
  /** Folder with the programs of harnesses. All sandboxes can read this folder. */
  readonly harnessDir: string | undefined;
  readonly egress: Egress;
  readonly serviceRoot: string;
  readonly send: (message: WorkerMessage) => void;
  readonly log: Logger;
}

/**
 * Runs one execution from its assignment to its end, and returns the message about the end. `arrivedAt` is the arrival time of the
 * assignment, from `performance.now()`. Never rejects.
 */
export async function carryOut(
  options: CarryOutOptions,
  execution: Execution,
  assignment: TaskAssignment['data'],
  arrivedAt: number,
): Promise<TerminalMessage> {
  const { backend, log } = options;
  const shape = assignment.instance_shape;
  const limits = shapedLimits(lowerLimits(options.limits, assignment.limits), shape);
  const { name } = execution;
  const launch = agentLaunch(assignment, options.serviceRoot);
  if (!launch.ok) return failureMessage(name, new Error(launch.problem));
  const hosts = assignment.allowed_hosts ?? [];
  const asked = askedHostsOf(assignment.task.agent_config_snapshot);
  if (asked.length > 0 && !isIsolated(backend)) return failureMessage(name, cannotHold(backend));
  const egress =
    hosts.length === 0
      ? undefined
      : options.egress.ofExecution(
          hosts,
          (denied) => options.send({ type: 'connections_denied', data: { ...name, ...denied } }),
          asked.length === 0
            ? undefined
            : { hosts: asked, serviceRoot: options.serviceRoot, runToken: launch.launch.runToken },
        );
  const network = egress && networkToReport(egress, backend);
  let sandbox: Sandbox | undefined;
  try {
    const { harness } = assignment.task.agent_config_snapshot;
    const isInImage = backend.describe().features.includes(imagesFeature);
    await checkProgram(harness, { harnessDir: options.harnessDir, memoryMb: limits.memoryMb, isInImage });
    sandbox = await backend.create(
      {
        executionId: name.execution_id,
        taskId: name.task_id,
        ...(execution.assignmentId === undefined ? {} : { assignmentId: execution.assignmentId }),
        limits,
        isLimited: isLimited(assignment),
        files: [],
        variables: launch.variables,
        ...(egress === undefined ? {} : { egress }),
        ...(network === undefined ? {} : { network }),
        ...(assignment.docker_image === undefined ? {} : { image: assignment.docker_image }),
        ...(assignment.system === undefined ? {} : { system: assignment.system }),
        ...(assignment.services === undefined ? {} : { services: assignment.services }),
        ...(shape === undefined ? {} : { vcpus: shape.vcpus }),
        onImage: (step) => options.send(imageMessage(name, step)),
        onService: ({ name: service, output, ended }) =>
          options.send({
            type: 'service_output',
            data: {
              ...name,
              name: service,
              output_tail: lastPart(output, maxSetupOutputBytes),
              ...(ended === undefined ? {} : { error: ended }),
            },
          }),
      },
      execution.creation.signal,
    );
    if (execution.ending !== undefined) return endedEarly(execution);
    execution.sandbox = sandbox;
    await sandbox.spawn(launch.launch);
    const spawnMs = Math.round((performance.now() - arrivedAt) * 10) / 10;
    execution.hasStarted = true;
    options.send(readyMessage(options, name, spawnMs, isLimited(assignment) ? limits : undefined, network));
    log.info({ ...name, sandbox: sandbox.id, spawn_ms: spawnMs }, 'sandbox started');
    // Kills the sandbox again if the execution was ended while the agent was being started, because the earlier kill found no agent.
    if (execution.ending !== undefined) sandbox.kill('kill');
    return await awaitEnd(options, execution, sandbox, limits);
  } catch (error) {
    if (sandbox === undefined && execution.ending !== undefined) return endedEarly(execution);
    log.error({ ...name, error: (error as Error).message }, 'the sandbox could not be started');
    return execution.ending === 'cancelled' ? cancelledMessage(name) : failureMessage(name, error);
  } finally {
    egress?.end();
    await sandbox?.dispose();
  }
}

/** Waits until a running sandbox has ended, and returns the message about the end. */
async function awaitEnd(
  { log }: CarryOutOptions,
  execution: Execution,
  sandbox: Pick<Sandbox, 'ended'>,
  { memoryMb }: Pick<SandboxLimits, 'memoryMb'>,
): Promise<TerminalMessage> {
  const { name } = execution;
  const exit = await sandbox.ended;
  if (exit.outOfMemory)
    log.warn({ ...name, memory_mb: memoryMb }, 'the kernel ended a process of a sandbox whose memory was used up');
  if (exit.outputTail !== '') log.debug({ ...name, output: exit.outputTail.slice(-2000) }, 'end of the agent’s output');
  return exitMessage(name, exit, execution.ending, memoryMb);
}

/**
 * Waits for the end of an execution whose sandbox an earlier worker process started, and returns the message about the end. Never
 * rejects.
 */
export async function carryOn(
  options: CarryOutOptions,
  execution: Execution,
  { record, sandbox, lives }: AdoptableSandbox,
): Promise<TerminalMessage> {
  const { limits, limited, network, spawn_ms: spawnMs } = record;
  const { name } = execution;
  // Sends this message again, because the earlier worker may have died before the service confirmed it. The service records the message
  // once.
  if (lives) options.send(readyMessage(options, name, spawnMs, limited ? limits : undefined, network));
  sandbox.onDenied((denied) => options.send({ type: 'connections_denied', data: { ...name, ...denied } }));
  const message = await awaitEnd(options, execution, sandbox, limits);
  await sandbox.dispose();
  return message;
}

function readyMessage(
  { backend }: CarryOutOptions,
  name: ExecutionName,
  spawnMs: number,
  limits: ReportedLimits | undefined,
  network: SandboxNetwork | undefined,
): WorkerMessage {
  const { backend: kind } = backend.describe();
  return {
    type: 'sandbox_ready',
    data: {
      ...name,
      backend: kind,
      spawn_ms: spawnMs,
      ...(limits === undefined ? {} : { limits: limitsToReport(limits) }),
      ...(network === undefined ? {} : { network }),
    },
  };
}

/** Returns whether the assignment has limits that may be lower than the limits of the worker. */
const isLimited = ({ limits, instance_shape }: TaskAssignment['data']): boolean =>
  limits !== undefined || instance_shape !== undefined;

/** Returns the message about one step of downloading an image. */
const imageMessage = (name: ExecutionName, step: ImageStep): WorkerMessage => ({
  type: 'image_step',
  data: {
    ...name,
    step: step.step,
    image: step.image.slice(0, maxImageName),
    ...(step.step === 'progress' ? { downloaded_bytes: step.downloadedBytes, total_bytes: step.totalBytes } : {}),
    ...(step.step === 'finished' ? finishedStep(step) : {}),
  },
});

const finishedStep = ({ bytes, durationMs, error }: Extract<ImageStep, { step: 'finished' }>) => ({
  duration_ms: durationMs,
  ...(bytes === undefined ? {} : { bytes }),
  ...(error === undefined ? {} : { error: shorten(error, 2000) }),
});

const limitsToReport = ({ memoryMb, processes, diskMb }: ReportedLimits): EnvironmentLimits => ({
  memory_mb: memoryMb,
  processes,
  disk_mb: diskMb,
});

const isIsolated = (backend: SandboxBackend): boolean => backend.describe().features.includes('no-network');

const cannotHold = (backend: SandboxBackend): SandboxError =>
  new SandboxError(
    'prepare',
    'unsupported',
    `The run needs a sandbox whose network can be closed, because an approval rule names a host or the run is a check in a fresh sandbox, and the sandboxes of this worker (${backend.describe().backend}) are not isolated from the network. Remove the rule or the check, or use a worker with the backend bubblewrap, gvisor or docker.`,
  );

const networkToReport = ({ policy }: ExecutionEgress, backend: SandboxBackend): SandboxNetwork => ({
  allowed_hosts: policy.allowed.slice(0, maxReportedHosts),
  refused_hosts: policy.refused.slice(0, maxReportedHosts),
  is_enforced: isIsolated(backend),
});

function endedEarly({ name, ending }: Execution): TerminalMessage {
  return ending === 'cancelled' ? cancelledMessage(name) : stoppedMessage(name);
}
