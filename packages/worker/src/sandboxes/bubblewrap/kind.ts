import { makeRuntime } from '../../runtime/runtime.ts';
import { type BackendKind, type OpenRequest, optOut, unavailable } from '../backend-kind.ts';
import { openCgroup } from '../cgroups/group.ts';
import { listGroups, removeHierarchy } from '../cgroups/hierarchy.ts';
import type { SandboxBackend } from '../sandbox.ts';
import { bubblewrapBackend } from './backend.ts';
import { findBubblewrap } from './find-bubblewrap.ts';
import { findWorkerCgroups, makeGround } from './ground.ts';
import { probeBubblewrap } from './level.ts';
import { rehearseAgent } from './rehearse.ts';
import { openTemporaryGround } from './temporary-ground.ts';

/** Sandboxes by bubblewrap: a file system, processes, users and an empty network of their own. */
export const bubblewrap: BackendKind = {
  async probe(limits) {
    const found = await findProgram();
    if (!found.ok) return unavailable('bubblewrap', found.reason);
    const { ground, cgroups, close } = await openTemporaryGround({
      program: found.program,
      limits,
      log: { warn: () => {} },
    });
    try {
      return await probeBubblewrap(ground, cgroups);
    } finally {
      await close();
    }
  },
  open,
  async sweep({ owner, onSlow, log }) {
    const cgroups = await findWorkerCgroups(owner);
    if (!cgroups.ok) return 0;
    const names = await listGroups(cgroups.hierarchy);
    for (const name of names) {
      const group = await openCgroup(cgroups.hierarchy, name);
      await group.remove(onSlow).catch((error: Error) => {
        log.warn({ error: error.message }, 'an empty leftover cgroup could not be removed');
      });
    }
    return names.length;
  },
};

async function findProgram(): Promise<{ ok: true; program: string } | { ok: false; reason: string }> {
  if (process.platform !== 'linux') {
    const reason = `bubblewrap needs Linux, and this is ${process.platform}: run the worker on Linux, ${optOut}`;
    return { ok: false, reason };
  }
  const program = await findBubblewrap();
  if (program !== undefined) return { ok: true, program };
  const install = 'install it (Debian, Ubuntu, Fedora, Arch: package `bubblewrap`)';
  return { ok: false, reason: `bubblewrap is not installed: ${install}, ${optOut}` };
}

async function open({
  limits,
  harnessDir,
  state,
  instanceId,
  agentEntry,
  upstream,
  cache,
  log,
}: OpenRequest): Promise<SandboxBackend> {
  const found = await findProgram();
  if (!found.ok) throw new Error(found.reason);
  const { ground, cgroups } = await makeGround({
    program: found.program,
    stateRoot: state.folder,
    owner: state.owner,
    instanceId,
    limits,
    harnessDir,
    log,
  });
  try {
    const { ok, reasons, level } = await probeBubblewrap(ground, cgroups);
    if (!ok) throw new Error(`no sandbox: ${reasons.join('; ')}`);
    log.info({ features: level.features, missing: level.missing.map(({ feature }) => feature) }, 'sandbox probed');
    const runtime = await makeRuntime({
      stateRoot: state.folder,
      entry: agentEntry,
      rehearse: (folder) => rehearseAgent(ground, folder),
      log,
    });
    const backend = bubblewrapBackend(ground, level, runtime, upstream, cache);
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
