import { readFileSync } from 'node:fs';
import { DeniedConnections } from '@runyard/contract/egress/denied';
import { SandboxNetwork } from '@runyard/contract/workers/worker-protocol';
import { z } from 'zod';
import type { SandboxExit } from '../sandboxes/sandbox.ts';
import { filesOf } from './files.ts';

/** Schema of `SandboxTraces`. */
const Traces = z.object({
  id: z.string(),
  stateRoot: z.string(),
  label: z.string(),
  variable: z.string(),
  cgroups: z
    .object({ version: z.union([z.literal(1), z.literal(2)]), memory: z.string(), pids: z.string() })
    .optional(),
  container: z
    .object({ name: z.string(), engine: z.object({ socketPath: z.string(), version: z.string() }) })
    .optional(),
});

const Limits = z.object({ memoryMb: z.number(), processes: z.number(), tmpMb: z.number(), diskMb: z.number() });

/** The record of a sandbox in which an agent was started, and of its supervisor. */
export const SupervisorRecord = z.object({
  /** Id of the boot of the machine when the supervisor was started. Pids and start times are valid only until the next boot. */
  boot_id: z.string(),
  /** Id of the supervisor. It is not the id of the sandbox, because a supervisor may have several sandboxes. */
  supervisor: z.string().optional(),
  process: z.object({ pid: z.int(), start_ticks: z.number(), pid_namespace: z.string() }),
  execution: z.object({ task_id: z.string(), execution_id: z.string() }),
  assignment_id: z.string().optional(),
  limits: Limits,
  /** True if the environment of the run may lower the worker's limits. */
  limited: z.boolean(),
  /** Hosts to which the environment of the run allows connections. */
  network: SandboxNetwork.optional(),
  /** Milliseconds from the arrival of the assignment to the start of the agent. */
  spawn_ms: z.number(),
  workspace: z.string(),
  /** Folder that the sandbox sees as /opt/runyard. It must not be removed while the sandbox runs. */
  runtime: z.string(),
  traces: Traces,
});
export type SupervisorRecord = z.infer<typeof SupervisorRecord>;

const Exit = z.object({
  exitCode: z.int(),
  outOfMemory: z.boolean(),
  verdict: z.object({ reason: z.string(), message: z.string() }).optional(),
  outputTail: z.string(),
  denied: z.array(DeniedConnections).default([]),
});

/**
 * Returns the record in the folder. Returns undefined if there is no record, or if another version of the worker wrote it in another
 * format.
 */
export function readRecord(folder: string): SupervisorRecord | undefined {
  return read(filesOf(folder).record, SupervisorRecord);
}

/** The end of a sandbox, and the connections that its proxy denied. */
export interface RecordedEnd {
  readonly exit: SandboxExit;
  readonly denied: readonly DeniedConnections[];
}

/** Returns how the sandbox ended. Returns undefined if the folder has no valid report about the end. */
export function readEnd(folder: string): RecordedEnd | undefined {
  const end = read(filesOf(folder).end, Exit);
  if (end === undefined) return undefined;
  const { verdict, denied, ...rest } = end;
  return { exit: { ...rest, ...(verdict === undefined ? {} : { verdict }) }, denied };
}

function read<T>(file: string, schema: z.ZodType<T>): T | undefined {
  try {
    return schema.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data;
  } catch {
    return undefined;
  }
}

/** Returns the id of the current boot of the machine, or an empty text if /proc is missing. */
export function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
