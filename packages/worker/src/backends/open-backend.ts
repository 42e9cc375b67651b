import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings';
import type { Logger } from 'pino';
import type { Upstream } from '../relay/relay.ts';
import { makeRuntime } from '../runtime/runtime.ts';
import { bubblewrapBackend } from '../sandboxes/bubblewrap/backend.ts';
import { findBubblewrap, makeGround } from '../sandboxes/bubblewrap/ground.ts';
import { probeBubblewrap } from '../sandboxes/bubblewrap/level.ts';
import { rehearseAgent } from '../sandboxes/bubblewrap/rehearse.ts';
import { removeHierarchy } from '../sandboxes/cgroups/hierarchy.ts';
import { noneBackend } from '../sandboxes/none/backend.ts';
import type { SandboxBackend } from '../sandboxes/sandbox.ts';
import type { StateRoot } from '../state/state-root.ts';
import { bubblewrapMissing, dockerUnavailable, notLinux, sandboxLimits } from './probe.ts';

export interface BackendRequest {
  readonly settings: Settings;
  readonly state: StateRoot;
  readonly instanceId: string;
  readonly agentEntry: string;
  readonly upstream: Upstream;
  readonly log: Logger;
}

/** Opens the backend that the settings ask for, with the agent ready to run in it. Rejects with a reason and what to do where it does not work here. */
export async function openBackend(request: BackendRequest): Promise<SandboxBackend> {
  const { settings } = request;
  await access(request.agentEntry, constants.R_OK).catch(() => {
    throw new Error(
      `the agent program ${path.relative(process.cwd(), request.agentEntry)} is missing: the checkout is incomplete`,
    );
  });
  if (settings.RUNYARD_SANDBOX === 'docker') throw new Error(dockerUnavailable.reasons.join('; '));
  return settings.RUNYARD_SANDBOX === 'none' ? openNone(request) : openBubblewrap(request);
}

async function openNone({ settings, state, agentEntry, log }: BackendRequest): Promise<SandboxBackend> {
  log.warn('RUNYARD_SANDBOX=none: agents run UNPROTECTED, with every right of this user, its files and its network');
  const runtime = await makeRuntime({ stateRoot: state.folder, entry: agentEntry, log });
  return noneBackend({ stateRoot: state.folder, owner: state.owner, runtime, limits: sandboxLimits(settings), log });
}

async function openBubblewrap({
  settings,
  state,
  instanceId,
  agentEntry,
  upstream,
  log,
}: BackendRequest): Promise<SandboxBackend> {
  if (process.platform !== 'linux') throw new Error(notLinux.reasons.join('; '));
  const program = await findBubblewrap();
  if (program === undefined) throw new Error(bubblewrapMissing.reasons.join('; '));
  const { ground, cgroups } = await makeGround({
    program,
    stateRoot: state.folder,
    owner: state.owner,
    instanceId,
    limits: sandboxLimits(settings),
    log,
  });
  try {
    const probe = await probeBubblewrap(ground, cgroups);
    if (!probe.ok) throw new Error(`no sandbox: ${probe.reasons.join('; ')}`);
    log.info(
      { features: probe.level.features, missing: probe.level.missing.map(({ feature }) => feature) },
      'sandbox probed',
    );
    const runtime = await makeRuntime({
      stateRoot: state.folder,
      entry: agentEntry,
      rehearse: (folder) => rehearseAgent(ground, folder),
      log,
    });
    const backend = bubblewrapBackend(ground, probe.level, runtime, upstream);
    return {
      ...backend,
      async close() {
        await backend.close();
        if (cgroups.ok) await removeHierarchy(cgroups.hierarchy);
      },
    };
  } catch (error) {
    ground.identities?.close();
    throw error;
  }
}
