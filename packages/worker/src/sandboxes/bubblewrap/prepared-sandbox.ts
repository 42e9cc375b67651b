import path from 'node:path';
import type { SandboxProxy, SandboxRelay } from '../../relay-thread/relay-thread.ts';
import { usedOnFileSystem } from '../../state/disk-image.ts';
import type { Cgroup } from '../cgroups/group.ts';
import { usedInFolders } from '../disk/measure.ts';
import { processesBelow, processesBeside } from '../disk/unlinked-files.ts';
import { watchDisk } from '../disk-watch.ts';
import type { SandboxFolders } from '../folders.ts';
import { filesOfProcess } from '../limits.ts';
import { type AgentLaunch, notPrepared, type SandboxExit, type SandboxVerdict } from '../sandbox.ts';
import { agentCommand, agentEnvironment } from './agent-command.ts';
import { bubblewrapOptions, commandSetting, inside, megabyte, type SandboxView } from './arguments.ts';
import type { BubblewrapGround } from './ground.ts';
import type { Identity } from './identities.ts';
import { containerStart } from './in-gvisor.ts';
import { type BubblewrapProcess, isOfAgent } from './process.ts';
import type { RawSandbox, SandboxContents } from './raw-sandbox.ts';
import { copySystem } from './system-tree.ts';

/** Maximum time from the start of an agent until the agent waits for its run. */
const longestStartMs = 30_000;

/** The parts of a sandbox that must be removed at its end. A part is undefined before it is prepared, or if the sandbox has no such part. */
export interface SandboxParts {
  readonly id: string;
  readonly label: string;
  /** `NAME=value` */
  readonly variable: string;
  readonly identity: Identity | undefined;
  readonly filter: Buffer | undefined;
  relay?: SandboxRelay | undefined;
  cgroup?: Cgroup | undefined;
  process?: BubblewrapProcess;
  egress?: SandboxProxy | undefined;
  /** Measures the disk while a run is in the sandbox. */
  watch?: { stop(): void };
}

interface Prepared {
  readonly parts: SandboxParts;
  readonly folders: SandboxFolders;
  /** bwrap, which waits for its options. */
  readonly started: BubblewrapProcess;
  readonly dispose: () => Promise<void>;
}

/** Returns the paths of the sockets of a sandbox on the machine. */
export const socketsIn = ({ top }: SandboxFolders) => ({
  relay: path.join(top, 'relay.sock'),
  egress: path.join(top, 'egress.sock'),
});

/** Returns the limits of each process of a sandbox. */
export const processLimits = ({ limits, nofile }: BubblewrapGround) => ({
  nproc: limits.processes,
  nofile: filesOfProcess(limits, nofile),
  fileBytes: limits.diskMb * megabyte,
});

/** Returns the sandbox of prepared parts. */
export function preparedSandbox(ground: BubblewrapGround, contents: SandboxContents, prepared: Prepared): RawSandbox {
  const { parts, folders, started, dispose } = prepared;
  const { relay, cgroup } = parts;
  const uid = parts.identity?.uid;
  let verdict: SandboxVerdict | undefined;
  let isWaiting = false;
  /** The runtime of the sandbox's own Debian. */
  let systemRuntime: string | undefined;
  const fail = (error: Error): never => {
    throw notPrepared(error);
  };
  const kill: RawSandbox['kill'] = (how) => {
    cgroup?.endFreeze();
    started.kill(how);
  };
  const begin = (command: readonly string[], env: Readonly<Record<string, string>>, text: string | undefined): void =>
    beginCommand(ground, prepared, viewOf(ground, contents, prepared, systemRuntime), { command, env, text });

  const watchOwnDisk = (): void => {
    parts.watch = watchDisk({
      measure: (signal) => usedBytes(ground, prepared, systemRuntime !== undefined, signal),
      limitMb: ground.limits.diskMb,
      onFull(full) {
        verdict = full;
        kill('kill');
      },
    });
  };

  const run: RawSandbox['run'] = (command, env, runToken = '') => {
    relay?.setRunToken?.(runToken);
    begin(command, env, runToken);
    watchOwnDisk();
    return started;
  };

  /** Sends the run to the waiting agent. */
  const handOver = (launch: AgentLaunch): void => {
    relay?.setRunToken?.(launch.runToken);
    started.give(JSON.stringify(launch));
    watchOwnDisk();
  };

  const ended = started.ended.then(async (end): Promise<SandboxExit> => {
    parts.watch?.stop();
    await parts.egress?.end();
    const outOfMemory = ((await cgroup?.oomKills()) ?? 0) > 0;
    return { ...end, outOfMemory, ...(verdict === undefined ? {} : { verdict }) };
  });

  return {
    id: parts.id,
    workspace: folders.workspace,
    run,
    async openEgress({ order, report }) {
      const socketPath = socketsIn(folders).egress;
      parts.egress = await contents.proxy?.({ ...order, socketPath, uid }, report).catch(fail);
    },
    async openSystem({ tree, runtime }) {
      await copySystem(tree, folders.system, uid).catch(fail);
      systemRuntime = runtime;
    },
    isAlive: started.isAlive,
    gone: started.ended,
    async startWaiting(serviceRoot, env = {}) {
      isWaiting = true;
      begin(agentCommand(['agent', 'wait', serviceRoot], ground.gvisor), agentEnvironment(env), undefined);
      await inTime(started.spoke(), longestStartMs).catch(fail);
    },
    async spawn(launch: AgentLaunch) {
      if (isWaiting) handOver(launch);
      else run(agentCommand(launch.args, ground.gvisor), agentEnvironment(launch.env), launch.runToken);
    },
    ended,
    rest(isResting, isFrozen = false) {
      cgroup?.rest(isResting);
      // A gVisor container is not frozen, because for the kernel the whole container, with the agent, is one process.
      if (ground.gvisor === undefined) cgroup?.freeze(isFrozen ? isOfAgent : null);
    },
    kill,
    dispose,
  };
}

type View = Omit<SandboxView, 'env' | 'isFiltered'>;

/** Returns the folders, sockets and limits that the processes of the sandbox see. */
const viewOf = (
  { shared, limits, harnessDir }: BubblewrapGround,
  { runtime, writableCache }: SandboxContents,
  { parts: { relay, egress }, folders }: Prepared,
  systemRuntime: string | undefined,
): View => ({
  shared,
  folders,
  limits,
  ...(egress === undefined ? {} : { egressSocket: socketsIn(folders).egress }),
  ...(relay === undefined ? {} : { relaySocket: socketsIn(folders).relay }),
  ...(runtime === undefined ? {} : { runtime: systemRuntime ?? runtime }),
  hasSystem: systemRuntime !== undefined,
  harnessDir,
  ...(writableCache === undefined ? {} : { writableCache }),
});

interface Begun {
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** The whole input that the command reads from `runTokenDescriptor`. Undefined: the input is sent later. */
  readonly text: string | undefined;
}

/** Starts the command in the sandbox. */
function beginCommand(
  ground: BubblewrapGround,
  { parts, started }: Prepared,
  view: View,
  { command, env, text }: Begun,
): void {
  const { gvisor } = ground;
  const [variableName = '', variableValue = ''] = parts.variable.split('=');
  const marker = { [variableName]: variableValue };
  const known = { ...env, ...(parts.egress === undefined ? {} : { RUNYARD_EGRESS_SOCKET: inside.egressSocket }) };
  if (gvisor === undefined) {
    if (text !== undefined) started.give(text);
    const all = { ...known, ...commandSetting(command), ...marker };
    started.release(bubblewrapOptions({ ...view, isFiltered: parts.filter !== undefined, env: all }));
    return;
  }
  const marked = { ...known, ...marker };
  const outer = { gvisor, view, command, env: marked, outerEnv: marker, limits: processLimits(ground) };
  const { options, specification } = containerStart(outer);
  started.give(specification + (text ?? ''));
  started.release(options);
}

/** Measures the bytes that the sandbox has written. */
async function usedBytes(
  { disks, gvisor }: BubblewrapGround,
  { folders, started }: Prepared,
  hasSystem: boolean,
  signal: AbortSignal,
): Promise<number> {
  if (disks.ok) return await usedOnFileSystem(folders.workspace);
  const processes = async (): Promise<number[]> => {
    const init = started.init();
    if (init === undefined) return [];
    return await (gvisor === undefined ? processesBeside(init) : processesBelow(init));
  };
  const measured = [folders.workspace, folders.home, ...(hasSystem ? [folders.system] : [])];
  return await usedInFolders(measured, processes, signal);
}

/** Returns the result of the promise. Rejects if the promise takes longer than `ms` milliseconds. */
function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`it took more than ${ms / 1000} s`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(late));
  });
}
