/** Prepares bubblewrap sandboxes in a temporary folder in the same way as a worker, but without starting a worker. */
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { makeRuntime } from '../packages/worker/src/runtime/runtime.ts';
import { findBubblewrap } from '../packages/worker/src/sandboxes/bubblewrap/find-bubblewrap.ts';
import {
  type BubblewrapGround,
  openTemporaryGround,
  type TemporaryGround,
} from '../packages/worker/src/sandboxes/bubblewrap/ground.ts';
import { rehearseAgent } from '../packages/worker/src/sandboxes/bubblewrap/rehearse.ts';
import type { Gvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { sandboxLimits } from '../packages/worker/src/sandboxes/limits.ts';
import type { SandboxSpecification } from '../packages/worker/src/sandboxes/sandbox.ts';

const log = { info: () => {}, warn: (fields: object, message: string) => console.error(message, fields) };

/** Prepares a temporary folder in which sandboxes with the default limits can be started. Throws if bubblewrap is missing. */
export async function openGround(gvisor?: Gvisor): Promise<TemporaryGround> {
  const program = await findBubblewrap();
  const parsed = parseSettings({});
  if (program === undefined || !parsed.ok) throw new Error('bubblewrap is not installed');
  return await openTemporaryGround({ program, gvisor, limits: sandboxLimits(parsed.settings), log });
}

/** Returns the specification of a sandbox, as the worker makes it for an assignment. */
export function specify(ground: BubblewrapGround): SandboxSpecification {
  return { executionId: 'bench', taskId: 'bench', limits: ground.limits, isLimited: false, files: [] };
}

/**
 * Makes the folder of the agent in the same way as a worker at its start: bundles the agent, and runs it once as a rehearsal. Returns the
 * folder's path.
 */
export async function makeAgentRuntime(ground: BubblewrapGround): Promise<string> {
  const entry = path.resolve(import.meta.dirname, '../packages/agent/src/main.ts');
  return await makeRuntime({
    stateRoot: ground.stateRoot,
    entry,
    rehearse: (folder) => rehearseAgent(ground, folder),
    log,
  });
}
