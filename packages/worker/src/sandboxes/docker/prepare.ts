import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import type { SandboxEgress } from '../../egress/egress.ts';
import type { SandboxProxy, SandboxRelay } from '../../relay-thread/relay-thread.ts';
import { agentProgram, readableAgentProgram } from '../../runtime/agent-program.ts';
import { containerInit } from '../../runtime/container-init.ts';
import { usedOnFileSystem } from '../../state/disk-image.ts';
import { baseEnvironment, madeForSandbox } from '../base-environment.ts';
import { inside } from '../bubblewrap/arguments.ts';
import { takeIdentity } from '../bubblewrap/identities.ts';
import type { SandboxContents } from '../bubblewrap/raw-sandbox.ts';
import { usedInFolders } from '../disk/measure.ts';
import { watchDisk } from '../disk-watch.ts';
import { EngineError, openEngine } from '../engine/engine.ts';
import { containerLabels, containerName, removeContainer } from '../engine/names.ts';
import { makeFolders, removeFolders, type SandboxFolders } from '../folders.ts';
import { filesOfProcess } from '../limits.ts';
import { ownerVariable } from '../markers.ts';
import { type AgentLaunch, type Sandbox, SandboxError, type SandboxExit, type SandboxVerdict } from '../sandbox.ts';
import { containerRequest } from './container.ts';
import type { ContainerGround, ContainerPreparation } from './preparation.ts';
import { type RunningContainer, startContainer } from './running.ts';
import { serviceContainers } from './services.ts';
import { userFiles } from './user-files.ts';

/** The agent reads the run token from standard input, because this is the only input descriptor that engines pass to a container. */
const runTokenDescriptor = 0;

/** Returns the command of the agent program in a container. `readsPrograms`: see `ContainerGround`. */
const agentCommand = (args: readonly string[], readsPrograms: boolean): string[] => [
  ...(readsPrograms ? readableAgentProgram(inside.runtime) : agentProgram(inside.runtime)),
  ...args,
];

/** Returns `env` and the variables that every program expects. The variables of the image are not included. */
function agentEnvironment(env: Readonly<Record<string, string>>): Record<string, string> {
  return {
    ...baseEnvironment(inside.runtime, inside.home, harnessFolderInside),
    RUNYARD_RELAY_SOCKET: inside.relaySocket,
    RUNYARD_RUN_TOKEN_FD: String(runTokenDescriptor),
    ...madeForSandbox,
    ...env,
  };
}

/** Pause before the engine is asked again to kill a container. */
const killAgainMs = 1000;

/** A container that can run any command: the agent, or the script of the probe. */
export interface ContainerSandbox extends Sandbox {
  run(command: readonly string[], env: Readonly<Record<string, string>>, runToken?: string): Promise<RunningContainer>;
  /** Connects the sandbox to the proxy for the hosts of its environment. Must be called before `run`. */
  openEgress(egress: SandboxEgress): Promise<void>;
}

export type ContainerOrder = Pick<
  ContainerPreparation,
  'id' | 'executionId' | 'image' | 'limits' | 'vcpus' | 'runtime' | 'services'
>;

/**
 * Makes the folders, the user and the relay of a sandbox. The container is created later, when its command is known. If a step fails,
 * undoes all earlier steps.
 */
export async function prepareContainer(
  ground: ContainerGround,
  contents: Pick<SandboxContents, 'relay' | 'proxy'>,
  order: ContainerOrder,
): Promise<ContainerSandbox> {
  const { id, limits } = order;
  const engine = openEngine(ground.engine);
  const name = containerName(ground.owner, id);
  const identity = ground.ownUsers ? await takeIdentity() : undefined;
  const uid = identity?.uid;
  const [insideUid, insideGid] = [uid ?? process.getuid?.() ?? 0, uid ?? process.getgid?.() ?? 0];
  const labels = containerLabels(ground.owner, { 'runyard.sandbox': id, 'runyard.execution': order.executionId });
  const services =
    order.services === undefined
      ? undefined
      : serviceContainers({
          engine,
          sandbox: name,
          services: order.services,
          labels,
          runtime: ground.runtime,
          limits: { ...limits, cpus: limits.cpus > 0 ? limits.cpus : (order.vcpus ?? 0) },
          nofile: ground.nofile,
          uid: insideUid,
          gid: insideGid,
        });
  let folders: SandboxFolders | undefined;
  let files: Readonly<Record<string, string>> = {};
  let relay: SandboxRelay | undefined;
  let egress: SandboxProxy | undefined;
  let running: RunningContainer | undefined;
  let isMade = false;
  let isKilled = false;
  let isOver = false;
  let verdict: SandboxVerdict | undefined;
  let watch: { stop(): void } | undefined;
  const ended = Promise.withResolvers<SandboxExit>();

  const dispose = async (): Promise<void> => {
    watch?.stop();
    const problems: string[] = [];
    const attempt = (what: string, work: Promise<unknown> | undefined): Promise<unknown> =>
      work?.catch((error: Error) => problems.push(`${what}: ${error.message}`)) ?? Promise.resolve();
    // Kills the container before its removal, so that it ends even if the removal fails.
    if (isMade) kill('kill');
    await attempt('services', services?.remove());
    await attempt('container', isMade ? removeContainer(engine, name) : undefined);
    await running?.ended;
    isOver = true;
    await attempt('relay', relay?.close());
    await attempt('egress', egress?.close());
    await attempt('folders', removeFolders(ground.stateRoot, id));
    if (problems.length === 0) identity?.release();
    else
      ground.log.warn(
        { sandbox: id, problems },
        'a sandbox could not be removed completely; the next start tries again',
      );
  };

  try {
    folders = await makeFolders(ground.stateRoot, id, {
      ...(uid === undefined ? {} : { uid }),
      ...(ground.disks.ok ? { diskMb: limits.diskMb } : {}),
    });
    files = await writeUserFiles(folders.top, insideUid, insideGid);
    const memory = async () => ({ oom_kills: (await running?.oomKills()) ?? 0, memory_mb: limits.memoryMb });
    relay = await contents.relay?.(path.join(folders.top, 'relay.sock'), uid, memory, undefined, services?.ask);
  } catch (error) {
    await dispose();
    throw notPrepared(error as Error);
  }
  const hostFolders = folders;

  /**
   * Asks the engine to send a signal to the container. If the request for SIGKILL fails, repeats it until it succeeds, so that the
   * container ends in any case. A failed request for SIGTERM is not repeated.
   */
  const send = async (signal: 'SIGKILL' | 'SIGTERM'): Promise<void> => {
    for (let sent = false; !sent && !isOver; ) {
      sent = await engine.call('POST', `/containers/${name}/kill`, { query: { signal } }).then(
        () => true,
        async (error: Error) => {
          // 404 or 409: the container has ended, or has not started yet. In the second case, `run` kills it after the start.
          if (error instanceof EngineError && (error.status === 404 || error.status === 409)) return true;
          ground.log.warn({ sandbox: id, signal, error: error.message }, 'a container could not be signalled');
          if (signal === 'SIGKILL') await sleep(killAgainMs);
          return signal !== 'SIGKILL';
        },
      );
    }
  };
  const kill: Sandbox['kill'] = (how) => {
    if (!isMade) return;
    if (how === 'kill') isKilled = true;
    const signal = how === 'kill' ? 'SIGKILL' : 'SIGTERM';
    void send(signal);
  };

  const measure = async (signal: AbortSignal): Promise<number> =>
    ground.disks.ok
      ? await usedOnFileSystem(hostFolders.top)
      : await usedInFolders([hostFolders.workspace, hostFolders.home], async () => [], signal);

  const run: ContainerSandbox['run'] = async (command, env, runToken = '') => {
    relay?.setRunToken?.(runToken);
    const [variable = '', value = ''] = `${ownerVariable(ground.owner)}${id}`.split('=');
    const json = containerRequest({
      ...(ground.runtime === undefined ? {} : { runtime: ground.runtime }),
      image: order.image,
      labels,
      folders: hostFolders,
      runtimeFolder: order.runtime,
      harnessDir: ground.harnessDir,
      files,
      // A container runtime that must read programs cannot start the unreadable init.
      hasInit: !ground.readsPrograms && existsSync(path.join(order.runtime, containerInit)),
      hasRelay: relay !== undefined,
      hasEgress: egress !== undefined,
      uid: insideUid,
      gid: insideGid,
      nofile: filesOfProcess(order.limits, ground.nofile),
      limits,
      vcpus: order.vcpus,
      command,
      env: {
        ...env,
        ...(egress === undefined ? {} : { RUNYARD_EGRESS_SOCKET: inside.egressSocket }),
        [variable]: value,
      },
    });
    isMade = true;
    try {
      await engine.call('POST', '/containers/create', { query: { name }, json, answerMs: 0 });
      running = await startContainer(engine, name, runToken);
    } catch (error) {
      isOver = true;
      throw new SandboxError(
        'spawn',
        'container_not_started',
        `the container could not be started: ${(error as Error).message.slice(0, 1000)}`,
        { cause: error },
      );
    }
    void running.ended.then(() => {
      isOver = true;
    });
    if (isKilled) kill('kill');
    watch = watchDisk({
      measure,
      limitMb: limits.diskMb,
      onFull(full) {
        verdict = full;
        kill('kill');
      },
    });
    return running;
  };

  const follow = async (): Promise<void> => {
    const end = await running?.ended;
    watch?.stop();
    await egress?.end();
    if (end !== undefined) ended.resolve({ ...end, ...(verdict === undefined ? {} : { verdict }) });
  };

  return {
    id,
    workspace: hostFolders.workspace,
    run,
    async openEgress(opening) {
      const socketPath = path.join(hostFolders.top, 'egress.sock');
      egress = await contents.proxy?.({ ...opening.order, socketPath, uid }, opening.report).catch((error: Error) => {
        throw notPrepared(error);
      });
    },
    async spawn(launch: AgentLaunch) {
      try {
        await run(agentCommand(launch.args, ground.readsPrograms), agentEnvironment(launch.env), launch.runToken);
      } catch (error) {
        // The container did not start, so no program runs in it.
        ended.resolve({ exitCode: 125, outOfMemory: false, outputTail: '' });
        throw error;
      }
      void follow();
    },
    ended: ended.promise,
    kill,
    dispose,
  };
}

/**
 * Writes the files in which programs in the container look up their user. Returns for each path inside the container the path on the
 * machine.
 */
async function writeUserFiles(top: string, uid: number, gid: number): Promise<Record<string, string>> {
  const files: Record<string, string> = {};
  for (const [name, text] of Object.entries(userFiles(uid, gid))) {
    files[`/etc/${name}`] = path.join(top, name);
    await writeFile(path.join(top, name), text, { mode: 0o644 });
  }
  return files;
}

const notPrepared = (cause: Error): SandboxError =>
  new SandboxError('prepare', 'sandbox_not_prepared', `the sandbox could not be prepared: ${cause.message}`, { cause });
