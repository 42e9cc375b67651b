import type { Settings } from '@runyard/contract/settings/settings';
import type { BackendSettings, ProbeResult } from '../sandboxes/backend-kind.ts';
import { sandboxLimits } from '../sandboxes/limits.ts';
import { backends } from './backends.ts';

export type SandboxSettings = Pick<Settings, 'RUNYARD_SANDBOX'> & Parameters<typeof sandboxLimits>[0] & BackendSettings;

/**
 * Starts a sandbox as a worker with these settings would, and returns how well it isolates. For `runyard doctor`: needs no data folder and
 * leaves no processes or files. `ok` false: a worker would refuse to start, for `reasons`.
 */
export async function probeSandbox(settings: SandboxSettings): Promise<ProbeResult> {
  return backends[settings.RUNYARD_SANDBOX].probe(sandboxLimits(settings), settings);
}
