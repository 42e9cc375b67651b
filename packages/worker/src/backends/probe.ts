import type { Settings } from '@runyard/contract/settings/settings';
import type { BackendSettings, ProbeResult } from '../sandboxes/backend-kind.ts';
import { sandboxLimits } from '../sandboxes/limits.ts';
import { backends } from './backends.ts';

export type SandboxSettings = Pick<Settings, 'RUNYARD_SANDBOX'> & Parameters<typeof sandboxLimits>[0] & BackendSettings;

/**
 * Starts a sandbox in the same way as a worker with these settings, and returns how well the sandbox is isolated. Used by `runyard
 * doctor`. Needs no data folder and leaves no processes or files. If `ok` is false, a worker would refuse to start because of
 * `reasons`.
 */
export async function probeSandbox(settings: SandboxSettings): Promise<ProbeResult> {
  return backends[settings.RUNYARD_SANDBOX].probe(sandboxLimits(settings), settings);
}
