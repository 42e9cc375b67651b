import type { EnvironmentLimits } from '@runyard/contract/environments/environments';
import type { Settings } from '@runyard/contract/settings/settings';

/** Limits of one sandbox. */
export interface SandboxLimits {
  readonly memoryMb: number;
  /** Maximum number of processes and threads together. */
  readonly processes: number;
  readonly tmpMb: number;
  /** Maximum disk space of the workspace and the home folder together. */
  readonly diskMb: number;
  /** Maximum number of files that all processes together may have open. */
  readonly openFiles: number;
  /** Maximum number of processors; 0: all processors of the machine. */
  readonly cpus: number;
}

/** The limits that an environment can lower, and that the worker reports to the service. */
export type ReportedLimits = Omit<SandboxLimits, 'openFiles' | 'cpus'>;

type LimitSettings = Pick<
  Settings,
  | 'RUNYARD_SANDBOX_MEMORY_MB'
  | 'RUNYARD_SANDBOX_PROCESSES'
  | 'RUNYARD_SANDBOX_TMP_MB'
  | 'RUNYARD_SANDBOX_DISK_MB'
  | 'RUNYARD_SANDBOX_OPEN_FILES'
  | 'RUNYARD_SANDBOX_CPUS'
>;

/** A process may always open this number of files, because Node does not start with fewer. */
const leastFiles = 64;

/** Minimum memory of a sandbox. The settings have the same minimum. */
const leastMemoryMb = 128;

/** Returns the limits of each sandbox according to the settings of the worker. */
export function sandboxLimits(settings: LimitSettings): SandboxLimits {
  return {
    memoryMb: settings.RUNYARD_SANDBOX_MEMORY_MB,
    processes: settings.RUNYARD_SANDBOX_PROCESSES,
    tmpMb: settings.RUNYARD_SANDBOX_TMP_MB,
    diskMb: settings.RUNYARD_SANDBOX_DISK_MB,
    openFiles: settings.RUNYARD_SANDBOX_OPEN_FILES,
    cpus: settings.RUNYARD_SANDBOX_CPUS,
  };
}

/**
 * Returns for each limit the lower one of two values: the limit of the worker and the limit of the environment.
 */
export function lowerLimits(limits: SandboxLimits, wanted: EnvironmentLimits | undefined): SandboxLimits {
  const least = (own: number, other: number | undefined) => Math.min(own, other ?? own);
  return {
    ...limits,
    memoryMb: least(limits.memoryMb, wanted?.memory_mb),
    processes: least(limits.processes, wanted?.processes),
    // /tmp is in memory, so it cannot have more space than the sandbox has memory.
    tmpMb: least(limits.tmpMb, wanted?.memory_mb),
    diskMb: least(limits.diskMb, wanted?.disk_mb),
  };
}

/** Returns the limits of the worker, lowered to the memory and processors of a machine of this shape. */
export function shapedLimits(
  limits: SandboxLimits,
  shape: { readonly memory_gb: number; readonly vcpus: number } | undefined,
): SandboxLimits {
  if (shape === undefined) return limits;
  const { memory_gb, vcpus } = shape;
  const lowered = lowerLimits(limits, { memory_mb: Math.max(leastMemoryMb, Math.floor(memory_gb * 1024)) });
  return { ...lowered, cpus: limits.cpus === 0 ? vcpus : Math.min(limits.cpus, vcpus) };
}

/** The fewest processes of a service. */
const leastProcesses = 16;

/**
 * Returns the limits of each of `count` services from container images. They share limits as high as those of their sandbox, in equal
 * parts, so a run uses at most twice the limits of its sandbox.
 */
export function limitsOfServices(limits: SandboxLimits, count: number): SandboxLimits {
  const memoryMb = Math.floor(limits.memoryMb / count);
  return {
    ...limits,
    memoryMb,
    processes: Math.max(leastProcesses, Math.floor(limits.processes / count)),
    // Their writable folders are in memory.
    tmpMb: memoryMb,
    diskMb: Math.min(limits.diskMb, memoryMb),
    cpus: limits.cpus / count,
  };
}

/**
 * Returns how many files each process may open. The kernel has no limit for all processes of a sandbox together, so each process gets
 * an equal part of the sandbox's limit. `most`: the limit of the machine for a process.
 */
export const filesOfProcess = ({ openFiles, processes }: SandboxLimits, most: number): number =>
  Math.min(most, Math.max(leastFiles, Math.floor(openFiles / processes)));

/** Returns true if all limits are the same. */
export function sameLimits(one: SandboxLimits, other: SandboxLimits): boolean {
  return (
    one.memoryMb === other.memoryMb &&
    one.processes === other.processes &&
    one.tmpMb === other.tmpMb &&
    one.diskMb === other.diskMb &&
    one.openFiles === other.openFiles &&
    one.cpus === other.cpus
  );
}
