import { existsSync } from 'node:fs';
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
import type { Identity } from '../bubblewrap/identities.ts';
import type { SandboxContents } from '../bubblewrap/raw-sandbox.ts';
import { usedInFolders } from '../disk/measure.ts';
import { watchDisk } from '../disk-watch.ts';
import { type Engine, EngineError } from '../engine/engine.ts';
import type { SandboxFolders } from '../folders.ts';
import { filesOfProcess } from '../limits.ts';
import { ownerVariable } from '../markers.ts';
import {
  type AgentLaunch,
  notPrepared,
  type Sandbox,
  SandboxError,
  type SandboxExit,
  type SandboxVerdict,
} from '../sandbox.ts';
import { containerRequest } from './container.ts';
import type { ContainerGround, ContainerPreparation } from './preparation.ts';
import { type RunningContainer, startContainer } from './running.ts';
import type { ServiceContainers } from './services.ts';

/** The agent reads the run token from standard input, because this is the only input descriptor that engines pass to a container. */
const runTokenDescriptor = 0;

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

/** The parts of a sandbox that must be removed at its end. */
export interface ContainerParts {
  readonly id: string;
  readonly engine: Engine;
  /** Name of the container. */
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly identity: Identity | undefined;
  /** User and group inside the container. */
  readonly inside: { readonly uid: number; readonly gid: number };
  readonly services: ServiceContainers | undefined;
  relay?: SandboxRelay | undefined;
  egress?: SandboxProxy | undefined;
  running?: RunningContainer;
  watch?: { stop(): void };
  /** True if the engine was asked to create the container. */
  isMade: boolean;
  isKilled: boolean;
  /** True if the container has ended. */
  isOver: boolean;
}

interface Prepared {
  readonly parts: ContainerParts;
  readonly folders: SandboxFolders;
  /** The files with the users of the container: the path on the machine for each path inside. */
  readonly files: Readonly<Record<string, string>>;
  readonly dispose: () => Promise<void>;
}

/** Returns the sandbox of prepared parts. `run` creates its container. */
export function preparedContainer(
  ground: ContainerGround,
  contents: Pick<SandboxContents, 'proxy'>,
  order: ContainerOrder,
  prepared: Prepared,
): ContainerSandbox {
  const { parts, folders, dispose } = prepared;
  let verdict: SandboxVerdict | undefined;
  const ended = Promise.withResolvers<SandboxExit>();
  const kill: Sandbox['kill'] = (how) => killContainer(ground, parts, how);

  const measure = async (signal: AbortSignal): Promise<number> =>
    ground.disks.ok
      ? await usedOnFileSystem(folders.top)
      : await usedInFolders([folders.workspace, folders.home], async () => [], signal);

  const run: ContainerSandbox['run'] = async (command, env, runToken = '') => {
    parts.relay?.setRunToken?.(runToken);
    const running = await createAndStart(parts, requestOf(ground, order, prepared, command, env), runToken);
    parts.running = running;
    void running.ended.then(() => {
      parts.isOver = true;
    });
    if (parts.isKilled) kill('kill');
    parts.watch = watchDisk({
      measure,
      limitMb: order.limits.diskMb,
      onFull(full) {
        verdict = full;
        kill('kill');
      },
    });
    return running;
  };

  const follow = async (running: RunningContainer): Promise<void> => {
    const end = await running.ended;
    parts.watch?.stop();
    await parts.egress?.end();
    ended.resolve({ ...end, ...(verdict === undefined ? {} : { verdict }) });
  };

  return {
    id: order.id,
    workspace: folders.workspace,
    run,
    async openEgress(opening) {
      const socketPath = path.join(folders.top, 'egress.sock');
      const proxyOrder = { ...opening.order, socketPath, uid: parts.identity?.uid };
      parts.egress = await contents.proxy?.(proxyOrder, opening.report).catch((error: Error) => {
        throw notPrepared(error);
      });
    },
    async spawn(launch: AgentLaunch) {
      const command = agentCommand(launch.args, ground.readsPrograms);
      const running = await run(command, agentEnvironment(launch.env), launch.runToken).catch((error: Error) => {
        // The container did not start, so no program runs in it.
        ended.resolve({ exitCode: 125, outOfMemory: false, outputTail: '' });
        throw error;
      });
      void follow(running);
    },
    ended: ended.promise,
    kill,
    dispose,
  };
}

/** Kills or terminates the container. A container that is just being started is killed when it runs. Does nothing before `run`. */
export function killContainer(ground: ContainerGround, parts: ContainerParts, how: 'terminate' | 'kill'): void {
  if (!parts.isMade) return;
  if (how === 'kill') parts.isKilled = true;
  void sendSignal(ground, parts, how === 'kill' ? 'SIGKILL' : 'SIGTERM');
}

/**
 * Asks the engine to send a signal to the container. If the request for SIGKILL fails, repeats it until it succeeds, so that the
 * container ends in any case. A failed request for SIGTERM is not repeated.
 */
async function sendSignal(
  { log }: ContainerGround,
  parts: ContainerParts,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<void> {
  const { id, engine, name } = parts;
  for (let sent = false; !sent && !parts.isOver; ) {
    sent = await engine.call('POST', `/containers/${name}/kill`, { query: { signal } }).then(
      () => true,
      async (error: Error) => {
        // 404 or 409: the container has ended, or has not started yet. In the second case, `run` kills it after the start.
        if (error instanceof EngineError && (error.status === 404 || error.status === 409)) return true;
        log.warn({ sandbox: id, signal, error: error.message }, 'a container could not be signalled');
        if (signal === 'SIGKILL') await sleep(killAgainMs);
        return signal !== 'SIGKILL';
      },
    );
  }
}

/** Creates the container and starts it. `input` is its standard input. */
async function createAndStart(parts: ContainerParts, json: object, input: string): Promise<RunningContainer> {
  const { engine, name } = parts;
  parts.isMade = true;
  try {
    await engine.call('POST', '/containers/create', { query: { name }, json, answerMs: 0 });
    return await startContainer(engine, name, input);
  } catch (error) {
    parts.isOver = true;
    throw new SandboxError(
      'spawn',
      'container_not_started',
      `the container could not be started: ${(error as Error).message.slice(0, 1000)}`,
      { cause: error },
    );
  }
}

/** Returns the request that creates the container with its command. */
function requestOf(
  ground: ContainerGround,
  order: ContainerOrder,
  { parts, folders, files }: Prepared,
  command: readonly string[],
  env: Readonly<Record<string, string>>,
) {
  const [variable = '', value = ''] = `${ownerVariable(ground.owner)}${order.id}`.split('=');
  return containerRequest({
    ...(ground.runtime === undefined ? {} : { runtime: ground.runtime }),
    image: order.image,
    labels: parts.labels,
    folders,
    runtimeFolder: order.runtime,
    harnessDir: ground.harnessDir,
    files,
    // A container runtime that must read programs cannot start the unreadable init.
    hasInit: !ground.readsPrograms && existsSync(path.join(order.runtime, containerInit)),
    hasRelay: parts.relay !== undefined,
    hasEgress: parts.egress !== undefined,
    ...parts.inside,
    nofile: filesOfProcess(order.limits, ground.nofile),
    limits: order.limits,
    vcpus: order.vcpus,
    command,
    env: {
      ...env,
      ...(parts.egress === undefined ? {} : { RUNYARD_EGRESS_SOCKET: inside.egressSocket }),
      [variable]: value,
    },
  });
}

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
