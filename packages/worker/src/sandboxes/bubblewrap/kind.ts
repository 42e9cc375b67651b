import path from 'node:path';
import { type RelayThread, startRelayThread } from '../../relay-thread/relay-thread.ts';
import { agentNode } from '../../runtime/agent-program.ts';
import { makeRuntime } from '../../runtime/runtime.ts';
import { makeSupervisorProgram, type SupervisorProgram } from '../../runtime/supervisor-program.ts';
import {
  type BackendKind,
  type OpenRequest,
  optBack,
  optOut,
  type SweepRequest,
  unavailable,
} from '../backend-kind.ts';
import { openCgroup } from '../cgroups/group.ts';
import { listGroups, removeHierarchy } from '../cgroups/hierarchy.ts';
import { findGvisor, type Gvisor } from '../gvisor/find-gvisor.ts';
import type { SandboxBackend, SandboxSpecification } from '../sandbox.ts';
import type { SandboxSupervisors, SystemFiles } from '../supervisors.ts';
import { inside } from './arguments.ts';
import { bubblewrapBackend, type MakeSandbox } from './backend.ts';
import { agentContents } from './contents.ts';
import { findBubblewrap } from './find-bubblewrap.ts';
import { type BubblewrapGround, findWorkerCgroups, makeGround, openTemporaryGround } from './ground.ts';
import { probeBubblewrap } from './level.ts';
import type { BubblewrapPreparation } from './preparation.ts';
import { marksOf, newSandboxId, prepareSandbox } from './prepare.ts';
import { rehearseAgent } from './rehearse.ts';
import { systemTree } from './system-tree.ts';

const gvisorMissing = `gVisor is not installed: install runsc (https://gvisor.dev/docs/user_guide/install; Debian: package \`runsc\`), ${optBack}`;

/**
 * The backend that makes sandboxes with bubblewrap. Each sandbox has its own file system, processes and users, and a network without
 * connections.
 */
export const bubblewrap = kindOf('bubblewrap');

/** The backend that makes the same sandboxes, but programs in them run on gVisor, a separate kernel. */
export const gvisor = kindOf('gvisor');

function kindOf(backend: 'bubblewrap' | 'gvisor'): BackendKind {
  return {
    async probe(limits) {
      const found = await findPrograms(backend);
      if (!found.ok) return unavailable(backend, found.reason);
      const { ground, cgroups, close } = await openTemporaryGround({ ...found, limits, log: { warn: () => {} } });
      try {
        return await probeBubblewrap(ground, cgroups);
      } finally {
        await close();
      }
    },
    open: (request) => open(backend, request),
    sweep: backend === 'bubblewrap' ? sweep : async () => 0,
  };
}

/**
 * Removes leftover cgroups, with and without gVisor. gVisor leaves nothing else, because it keeps its state in the memory of the
 * sandbox.
 */
async function sweep({ owner, kept, onSlow, log }: SweepRequest): Promise<number> {
  const cgroups = await findWorkerCgroups(owner);
  if (!cgroups.ok) return 0;
  const names = (await listGroups(cgroups.hierarchy)).filter((name) => !kept.has(name));
  for (const name of names) {
    const group = await openCgroup(cgroups.hierarchy, name);
    await group.remove(onSlow).catch((error: Error) => {
      log.warn({ error: error.message }, 'an empty leftover cgroup could not be removed');
    });
  }
  return names.length;
}

type Programs = { ok: true; program: string; gvisor: Gvisor | undefined } | { ok: false; reason: string };

async function findPrograms(backend: 'bubblewrap' | 'gvisor'): Promise<Programs> {
  if (process.platform !== 'linux') {
    const reason = `bubblewrap needs Linux, and this is ${process.platform}: run the worker on Linux, ${optOut}`;
    return { ok: false, reason };
  }
  const program = await findBubblewrap();
  if (program === undefined) {
    const install = 'install it (Debian, Ubuntu, Fedora, Arch: package `bubblewrap`)';
    return { ok: false, reason: `bubblewrap is not installed: ${install}, ${optOut}` };
  }
  if (backend === 'bubblewrap') return { ok: true, program, gvisor: undefined };
  try {
    const gvisor = await findGvisor();
    return gvisor === undefined ? { ok: false, reason: gvisorMissing } : { ok: true, program, gvisor };
  } catch (error) {
    return { ok: false, reason: `runsc does not run on this machine: ${(error as Error).message}; ${optBack}` };
  }
}

async function open(kind: 'bubblewrap' | 'gvisor', request: OpenRequest): Promise<SandboxBackend> {
  const { limits, harnessDir, state, instanceId, agentEntry, supervisors, log } = request;
  const found = await findPrograms(kind);
  if (!found.ok) throw new Error(found.reason);
  const { ground, cgroups } = await makeGround({
    ...found,
    stateRoot: state.folder,
    owner: state.owner,
    instanceId,
    limits,
    harnessDir,
    log,
  });
  const { ok, reasons, level } = await probeBubblewrap(ground, cgroups);
  if (!ok) throw new Error(`no sandbox: ${reasons.join('; ')}`);
  log.info({ features: level.features, missing: level.missing.map(({ feature }) => feature) }, 'sandbox probed');
  const runtime = await makeRuntime({
    stateRoot: state.folder,
    entry: agentEntry,
    rehearse: (folder) => rehearseAgent(ground, folder),
    inUse: supervisors?.runtimesInUse ?? [],
    log,
  });
  // The supervisor uses the same file of Node as the agents, so that the machine needs the memory for Node's code only once.
  const program = await makeSupervisorProgram(state.folder, path.join(runtime, agentNode));
  const place = supervisors ?? startRelayThread(program.entry);
  const make =
    'prepare' in place
      ? supervised(ground, runtime, request, place, program)
      : inThisProcess(ground, runtime, request, place);
  // No agents wait in gVisor, because such an agent would need more memory than the pool of waiting agents expects.
  const warm = kind === 'bubblewrap' ? request.warmSandboxes : 0;
  const system = async (specification: SandboxSpecification): Promise<SystemFiles> => {
    const { onImage: report = () => {} } = specification;
    const tree = await systemTree({ stateRoot: state.folder, program: found.program, now: Date.now, report });
    const own = await makeRuntime({
      stateRoot: path.join(state.folder, 'system'),
      entry: agentEntry,
      portableIn: inside.runtime,
      // Supervisors of sandboxes name only the usual runtime.
      shared: true,
      log,
    });
    return { tree, runtime: own };
  };
  const backend = bubblewrapBackend({ limits, level, make, system: kind === 'gvisor' ? undefined : system, warm, log });
  return {
    ...backend,
    async close() {
      await backend.close();
      if (!('prepare' in place)) await place.close();
      if (cgroups.ok) await removeHierarchy(cgroups.hierarchy);
    },
  };
}

/** Returns the function that makes sandboxes which end together with this process. */
function inThisProcess(
  ground: BubblewrapGround,
  runtime: string,
  { serviceRoot, cacheSocket }: OpenRequest,
  relays: RelayThread,
): MakeSandbox {
  const contents = agentContents(runtime, relays, { serviceRoot, cacheSocket });
  return async (limits, isWarm) => {
    const sandbox = await prepareSandbox({ ...ground, limits }, contents);
    if (!isWarm) return sandbox;
    await sandbox.startWaiting(serviceRoot).catch(async (error: Error) => {
      await sandbox.dispose();
      throw error;
    });
    return sandbox;
  };
}

/** Returns the function that makes sandboxes which continue when this process ends, because each has a supervisor process. */
function supervised(
  { log: _, ...ground }: BubblewrapGround,
  runtime: string,
  { serviceRoot, cacheSocket }: OpenRequest,
  supervisors: SandboxSupervisors,
  program: SupervisorProgram,
): MakeSandbox {
  return (limits, isWarm) => {
    const id = newSandboxId();
    const preparation: BubblewrapPreparation = {
      id,
      ground: { ...ground, limits },
      runtime,
      isWarm,
      serviceRoot,
      ...(cacheSocket === undefined ? {} : { cacheSocket }),
    };
    const { cgroups, stateRoot } = ground;
    const traces = { id, stateRoot, ...marksOf(ground, id), ...(cgroups === undefined ? {} : { cgroups }) };
    return supervisors.prepare({ program, traces, runtime, preparation });
  };
}
