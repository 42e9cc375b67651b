import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type RelayThread, startRelayThread } from '../../relay-thread/relay-thread.ts';
import { placePortableNode } from '../../runtime/portable-node.ts';
import { makeRuntime } from '../../runtime/runtime.ts';
import { makeSupervisorProgram, type SupervisorProgram } from '../../runtime/supervisor-program.ts';
import { probeImages } from '../../state/disk-image.ts';
import {
  type BackendKind,
  type DockerSettings,
  type OpenRequest,
  type SweepRequest,
  unavailable,
} from '../backend-kind.ts';
import { inside } from '../bubblewrap/arguments.ts';
import { agentContents } from '../bubblewrap/contents.ts';
import { nofileLimit } from '../bubblewrap/ground.ts';
import { type Engine, type EngineAddress, findEngine, openEngine, socketOf } from '../engine/engine.ts';
import { containerLabels, containerName, removeContainers } from '../engine/names.ts';
import { ownerLabel, ownerVariable } from '../markers.ts';
import type { SandboxBackend } from '../sandbox.ts';
import { aboutEngine } from './about-engine.ts';
import { dockerBackend, type MakeContainerSandbox } from './backend.ts';
import { readCredentials } from './images/credentials.ts';
import { openImages } from './images/images.ts';
import { openPulledImages } from './images/pulled.ts';
import type { ContainerGround, ContainerPreparation } from './preparation.ts';
import { prepareContainer } from './prepare.ts';
import { probeContainers } from './probe.ts';

const megabyte = 1024 * 1024;

/** The backend whose sandboxes are containers of an engine on this machine. The environment of a run names the image of the container. */
export const docker: BackendKind = {
  async probe(limits, settings) {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'runyard-probe-'));
    try {
      const { engine, facts } = await findEngine(socketOf(settings.RUNYARD_DOCKER_HOST));
      await chmod(folder, 0o711);
      const runtime = path.join(folder, 'runtime');
      await mkdir(runtime, { mode: 0o755 });
      await placePortableNode(runtime, inside.runtime);
      const state = { folder, owner: path.basename(folder), because: '' };
      const ground = await makeGround({ state, harnessDir: undefined, settings, log: { warn: () => {} } }, engine);
      const result = await probeContainers({ engine, facts, ground, limits, runtime });
      return {
        ...result,
        about: [...aboutEngine(facts, settings.RUNYARD_DOCKER_RUNTIME), await aboutImages(engine, settings)],
      };
    } catch (error) {
      return unavailable('docker', (error as Error).message);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
  open,
  sweep,
};

/** Describes for a person how much space the images of the engine use, and how much space the worker keeps for images that it pulled. */
async function aboutImages(engine: Engine, { RUNYARD_DOCKER_PULLED_MB: kept }: DockerSettings): Promise<string> {
  const images = await engine.call<readonly { readonly Size?: number }[]>('GET', '/images/json');
  const sizeMb = Math.ceil(images.reduce((sum, { Size = 0 }) => sum + Size, 0) / megabyte);
  const rule =
    kept === 0
      ? 'the worker removes none (RUNYARD_DOCKER_PULLED_MB=0)'
      : `of those that it pulled, the worker keeps ${kept} MB (RUNYARD_DOCKER_PULLED_MB)`;
  return `images of the engine: ${images.length} with ${sizeMb} MB, layers of several images counted in each; ${rule}`;
}

type GroundRequest = Pick<OpenRequest, 'state' | 'harnessDir'> & {
  readonly settings: DockerSettings;
  readonly log: ContainerGround['log'];
};

async function makeGround(
  { state, harnessDir, settings, log }: GroundRequest,
  engine: Engine,
): Promise<ContainerGround> {
  const { folder, owner } = state;
  await mkdir(path.join(folder, 's'), { recursive: true, mode: 0o711 });
  return {
    engine: engine.address,
    ...(settings.RUNYARD_DOCKER_RUNTIME === undefined ? {} : { runtime: settings.RUNYARD_DOCKER_RUNTIME }),
    readsPrograms: false,
    stateRoot: folder,
    owner,
    ownUsers: process.getuid?.() === 0,
    disks: await probeImages(folder),
    ...(harnessDir === undefined ? {} : { harnessDir }),
    nofile: await nofileLimit(),
    log,
  };
}

/**
 * Path of the file that stores the address of the engine with the containers of this data folder. The file is needed because the settings
 * of a later worker may name another engine.
 */
const engineFile = (stateRoot: string): string => path.join(stateRoot, 'engine.json');

async function open(request: OpenRequest): Promise<SandboxBackend> {
  const { limits, state, agentEntry, supervisors, docker: settings, log } = request;
  const { engine, facts } = await findEngine(socketOf(settings.RUNYARD_DOCKER_HOST));
  await writeFile(engineFile(state.folder), JSON.stringify(engine.address), { mode: 0o600 });
  const runtime = await makeRuntime({
    stateRoot: state.folder,
    entry: agentEntry,
    portableIn: inside.runtime,
    inUse: supervisors?.runtimesInUse ?? [],
    log,
  });
  const tried = await makeGround({ ...request, settings, log }, engine);
  const { ok, reasons, level, readsPrograms } = await probeContainers({
    engine,
    facts,
    ground: tried,
    limits,
    runtime,
  });
  const ground = { ...tried, readsPrograms };
  if (!ok) throw new Error(`no sandbox: ${reasons.join('; ')}`);
  log.info({ features: level.features, missing: level.missing.map(({ feature }) => feature) }, 'sandbox probed');
  let checks = 0;
  const pulled = openPulledImages({
    engine,
    stateRoot: state.folder,
    maxBytes: settings.RUNYARD_DOCKER_PULLED_MB * megabyte,
    log,
    now: Date.now,
  });
  void pulled.tidy();
  const images = openImages({
    pulled,
    engine,
    facts,
    registries: settings.RUNYARD_DOCKER_REGISTRIES,
    maxBytes: settings.RUNYARD_DOCKER_IMAGE_MB * megabyte,
    credentialsFor: (registry) => readCredentials(settings.RUNYARD_DOCKER_CONFIG, registry),
    labels: containerLabels(state.owner),
    newContainerName: () => containerName(state.owner, `check-${process.pid}-${++checks}`),
  });
  // The supervisor uses the Node of this process, because the Node of the agents can run only inside containers.
  const program = await makeSupervisorProgram(state.folder, process.execPath);
  const place = supervisors ?? startRelayThread(program.entry);
  const make =
    'prepare' in place
      ? supervised(ground, runtime, request, place, program)
      : inThisProcess(ground, runtime, request, place);
  const backend = dockerBackend(level, images, settings.RUNYARD_DOCKER_IMAGE, make);
  return {
    ...backend,
    async close() {
      await backend.close();
      if (!('prepare' in place)) await place.close();
    },
  };
}

/** Returns the function that makes sandboxes which end together with this process. */
function inThisProcess(
  ground: ContainerGround,
  runtime: string,
  { serviceRoot, cacheSocket }: OpenRequest,
  relays: RelayThread,
): MakeContainerSandbox {
  const contents = agentContents(runtime, relays, { serviceRoot, cacheSocket });
  return (order) => prepareContainer(ground, contents, { ...order, runtime });
}

/** Returns the function that makes sandboxes which continue when this process ends, because each has a supervisor process. */
function supervised(
  { log: _, ...ground }: ContainerGround,
  runtime: string,
  { state, serviceRoot, cacheSocket, instanceId }: OpenRequest,
  supervisors: NonNullable<OpenRequest['supervisors']>,
  program: SupervisorProgram,
): MakeContainerSandbox {
  return (order) => {
    const preparation: ContainerPreparation = {
      backend: 'docker',
      ...order,
      ground,
      runtime,
      serviceRoot,
      ...(cacheSocket === undefined ? {} : { cacheSocket }),
    };
    const traces = {
      id: order.id,
      stateRoot: ground.stateRoot,
      label: `${ownerLabel(state.owner)}${instanceId.slice(0, 8)}:${order.id}`,
      variable: `${ownerVariable(state.owner)}${order.id}`,
      container: { name: containerName(state.owner, order.id), engine: ground.engine },
    };
    return supervisors.prepare({ program, traces, runtime, preparation });
  };
}

/** Removes the containers of this data folder, except those of adopted sandboxes. */
async function sweep({ owner, stateRoot, kept, log }: SweepRequest): Promise<number> {
  const known = await readFile(engineFile(stateRoot), 'utf8').catch(() => undefined);
  if (known === undefined) return 0;
  try {
    const engine = openEngine(JSON.parse(known) as EngineAddress);
    return await removeContainers(engine, owner, kept);
  } catch (error) {
    log.warn(
      { error: (error as Error).message },
      'leftover containers could not be removed; the next start tries again',
    );
    return 0;
  }
}
