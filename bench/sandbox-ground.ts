/** A worker's ground for bubblewrap sandboxes in a temporary folder, without a worker. */
import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseSettings } from '../packages/contract/src/settings.ts';
import { makeRuntime } from '../packages/worker/src/runtime/runtime.ts';
import type { BubblewrapGround } from '../packages/worker/src/sandboxes/bubblewrap/backend.ts';
import { findBubblewrap, makeGround } from '../packages/worker/src/sandboxes/bubblewrap/ground.ts';
import { rehearseAgent } from '../packages/worker/src/sandboxes/bubblewrap/rehearse.ts';
import { type CgroupSearch, removeHierarchy } from '../packages/worker/src/sandboxes/cgroups/hierarchy.ts';
import { sandboxLimits } from '../packages/worker/src/sandboxes/probe.ts';

export interface OpenGround {
  readonly ground: BubblewrapGround;
  readonly cgroups: CgroupSearch;
  close(): Promise<void>;
}

const log = { info: () => {}, warn: (fields: object, message: string) => console.error(message, fields) };

/** With the limits that sandboxes have by default. Throws where there is no bubblewrap. */
export async function openGround(): Promise<OpenGround> {
  const program = await findBubblewrap();
  const parsed = parseSettings({});
  if (program === undefined || !parsed.ok) throw new Error('bubblewrap is not installed');
  const stateRoot = await mkdtemp(path.join(tmpdir(), 'runyard-bench-'));
  await chmod(stateRoot, 0o711);
  const { ground, cgroups } = await makeGround({
    program,
    stateRoot,
    owner: path.basename(stateRoot),
    instanceId: randomUUID(),
    limits: sandboxLimits(parsed.settings),
    log,
  });
  return {
    ground,
    cgroups,
    async close() {
      ground.identities?.close();
      if (cgroups.ok) await removeHierarchy(cgroups.hierarchy);
      await rm(stateRoot, { recursive: true, force: true });
    },
  };
}

/** The agent, bundled and rehearsed as the worker does it at its start. Gives its folder. */
export async function makeAgentRuntime(ground: BubblewrapGround): Promise<string> {
  const entry = path.resolve(import.meta.dirname, '../packages/agent/src/main.ts');
  return await makeRuntime({
    stateRoot: ground.stateRoot,
    entry,
    rehearse: (folder) => rehearseAgent(ground, folder),
    log,
  });
}
