import type { EnvironmentLimits } from '@runyard/contract/environments';
import type { Settings } from '@runyard/contract/settings';

/** Limits of one sandbox. */
export interface SandboxLimits {
  readonly memoryMb: number;
  /** Processes and threads together. */
  readonly processes: number;
  readonly tmpMb: number;
  /** Workspace and home together. */
  readonly diskMb: number;
}

type LimitSettings = Pick<
  Settings,
  'RUNYARD_SANDBOX_MEMORY_MB' | 'RUNYARD_SANDBOX_PROCESSES' | 'RUNYARD_SANDBOX_TMP_MB' | 'RUNYARD_SANDBOX_DISK_MB'
>;

/** Least memory of a sandbox, as in the settings. */
const leastMemoryMb = 128;

/** Returns the limits that the worker's settings give each sandbox. */
export function sandboxLimits(settings: LimitSettings): SandboxLimits {
  return {
    memoryMb: settings.RUNYARD_SANDBOX_MEMORY_MB,
    processes: settings.RUNYARD_SANDBOX_PROCESSES,
    tmpMb: settings.RUNYARD_SANDBOX_TMP_MB,
    diskMb: settings.RUNYARD_SANDBOX_DISK_MB,
  };
}

/** Returns the limits of the worker, lowered to those of the environment where it has lower ones. It cannot raise them. */
export function lowerLimits(limits: SandboxLimits, wanted: EnvironmentLimits | undefined): SandboxLimits {
  const least = (own: number, other: number | undefined) => Math.min(own, other ?? own);
  return {
    memoryMb: least(limits.memoryMb, wanted?.memory_mb),
    processes: least(limits.processes, wanted?.processes),
    // /tmp uses memory.
    tmpMb: least(limits.tmpMb, wanted?.memory_mb),
    diskMb: least(limits.diskMb, wanted?.disk_mb),
  };
}

/** Returns the limits of the worker, lowered to the memory of a machine of this shape. */
export function shapedLimits(limits: SandboxLimits, shape: { readonly memory_gb: number } | undefined): SandboxLimits {
  if (shape === undefined) return limits;
  return lowerLimits(limits, { memory_mb: Math.max(leastMemoryMb, Math.floor(shape.memory_gb * 1024)) });
}

/** Returns true if both set the same limits. */
export function sameLimits(one: SandboxLimits, other: SandboxLimits): boolean {
  return (
    one.memoryMb === other.memoryMb &&
    one.processes === other.processes &&
    one.tmpMb === other.tmpMb &&
    one.diskMb === other.diskMb
  );
}
