import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { SandboxLevel } from '@runyard/contract/worker-protocol';
import { openRelay, type Upstream } from '../../relay/relay.ts';
import type { Relay } from '../../relay/socket-server.ts';
import type { ImageSupport } from '../../state/disk-image.ts';
import { type Cgroup, openCgroup } from '../cgroups/group.ts';
import type { CgroupHierarchy } from '../cgroups/hierarchy.ts';
import { usedInFolders, usedOnFileSystem } from '../disk/measure.ts';
import { processesBeside } from '../disk/unlinked-files.ts';
import { watchDisk } from '../disk-watch.ts';
import { makeFolders, removeFolders, type SandboxFolders } from '../folders.ts';
import { endMarked, logSlow } from '../markers.ts';
import {
  type AgentLaunch,
  type Sandbox,
  type SandboxBackend,
  SandboxError,
  type SandboxExit,
  type SandboxLimits,
  type SandboxVerdict,
} from '../sandbox.ts';
import { agentCommand, agentEnvironment } from './agent-command.ts';
import { bubblewrapOptions, commandSetting, initCommand, leastDataBytes, type SandboxView } from './arguments.ts';
import type { Identities } from './identities.ts';
import { type BubblewrapProcess, startBubblewrap } from './process.ts';

/** After an assignment, so that the new agent has the processor for its start. */
const refillMs = 150;
/** bwrap and init themselves, which count as processes of the sandbox's cgroup. */
const ownProcesses = 2;
const megabyte = 1024 * 1024;

/** What all sandboxes of a worker share. */
export interface BubblewrapGround {
  /** Path of bwrap. */
  readonly program: string;
  readonly stateRoot: string;
  /** Prefix of the label of each sandbox's process: names the data folder and the worker's process. */
  readonly labelPrefix: string;
  /** Prefix of the entry in the environment that marks what runs in a sandbox of this data folder. */
  readonly variablePrefix: string;
  readonly limits: SandboxLimits;
  /** Descriptors a process may open: 65,536, or less where the worker itself may not have so many. */
  readonly nofile: number;
  /** Options from `sharedFilesystem`. */
  readonly shared: readonly string[];
  /** Absent where the worker is not root: then all sandboxes run under its user. */
  readonly identities?: Identities;
  readonly cgroups?: CgroupHierarchy;
  /** Whether each sandbox has a disk of its own. */
  readonly disks: ImageSupport;
  readonly log: { warn(fields: object, message: string): void };
}

/** What is put into a sandbox beside workspace and home. */
export interface SandboxContents {
  /** Host folder that is /opt/runyard. */
  readonly runtime?: string;
  readonly writableCache?: SandboxView['writableCache'];
  /** Makes the relay's socket. Absent: the sandbox reaches nothing at all. */
  readonly relay?: (socketPath: string, uid: number | undefined) => Promise<Relay>;
}

/** A sandbox that can run any command; the backend runs the agent in it, the probe a script. */
export interface RawSandbox extends Sandbox {
  run(command: readonly string[], env: Readonly<Record<string, string>>, runToken?: string): BubblewrapProcess;
  /** False when its process ended, which only an outsider can do before it runs anything. */
  readonly isAlive: () => boolean;
}

/** Makes folders, user, cgroup and relay of a sandbox. What was made is removed again where a later step fails. */
export async function prepareSandbox(ground: BubblewrapGround, contents: SandboxContents): Promise<RawSandbox> {
  const id = randomBytes(6).toString('hex');
  const { limits } = ground;
  const label = `${ground.labelPrefix}${id}`;
  const variable = `${ground.variablePrefix}${id}`;
  const uid = ground.identities?.take();
  let made = false;
  let folders: SandboxFolders | undefined;
  let relay: Relay | undefined;
  let cgroup: Cgroup | undefined;
  let process: BubblewrapProcess | undefined;
  let verdict: SandboxVerdict | undefined;
  let watch: { stop(): void } | undefined;

  const dispose = async (): Promise<void> => {
    watch?.stop();
    process?.kill('kill');
    await process?.ended;
    const left: string[] = [];
    const attempt = (what: string, work: Promise<unknown> | undefined): Promise<unknown> =>
      work?.catch((error: Error) => left.push(`${what}: ${error.message}`)) ?? Promise.resolve();
    // bwrap that was killed ends before what runs in it.
    const onSlow = logSlow(ground.log, { sandbox: id });
    if (cgroup === undefined) await endMarked({ label, variable }, onSlow);
    await attempt('cgroup', cgroup?.remove(onSlow));
    await attempt('relay', relay?.close());
    await attempt('folders', made ? removeFolders(ground.stateRoot, id) : undefined);
    // A user whose processes may still live must not get another sandbox.
    if (uid !== undefined && left.length === 0) ground.identities?.give(uid);
    if (left.length > 0)
      ground.log.warn({ sandbox: id, left }, 'a sandbox could not be removed wholly; the next start tries again');
  };

  try {
    made = true;
    folders = await makeFolders(ground.stateRoot, id, {
      ...(uid === undefined ? {} : { uid }),
      ...(ground.disks.ok ? { diskMb: limits.diskMb } : {}),
    });
    [relay, cgroup] = await Promise.all([
      contents.relay?.(path.join(folders.top, 'relay.sock'), uid),
      ground.cgroups &&
        openCgroup(ground.cgroups, id, { memoryMb: limits.memoryMb, processes: limits.processes + ownProcesses }),
    ]);
    process = await startBubblewrap({
      program: ground.program,
      label,
      command: initCommand(label, {
        nproc: limits.processes,
        nofile: ground.nofile,
        fileBytes: limits.diskMb * megabyte,
        ...(cgroup === undefined ? { dataBytes: Math.max(limits.memoryMb * megabyte, leastDataBytes) } : {}),
      }),
      ...(uid === undefined ? {} : { uid }),
      ...(cgroup === undefined ? {} : { cgroup }),
    });
  } catch (error) {
    await dispose();
    if (error instanceof SandboxError) throw error;
    throw new SandboxError(
      'prepare',
      'sandbox_not_prepared',
      `the sandbox could not be prepared: ${(error as Error).message}`,
      {
        cause: error,
      },
    );
  }
  const place = folders;
  const [variableName = '', variableValue = ''] = variable.split('=');
  const waiting = process;

  const run: RawSandbox['run'] = (command, env, runToken) => {
    waiting.release(
      bubblewrapOptions({
        shared: ground.shared,
        folders: place,
        limits,
        env: { ...env, ...commandSetting(command), [variableName]: variableValue },
        ...(relay === undefined ? {} : { relaySocket: path.join(place.top, 'relay.sock') }),
        ...(contents.runtime === undefined ? {} : { runtime: contents.runtime }),
        ...(contents.writableCache === undefined ? {} : { writableCache: contents.writableCache }),
      }),
      runToken,
    );
    watch = watchDisk({
      measure: async (signal) =>
        ground.disks.ok
          ? await usedOnFileSystem(place.top)
          : await usedInFolders(
              [place.workspace, place.home],
              async () => {
                const init = waiting.init();
                return init === undefined ? [] : await processesBeside(init);
              },
              signal,
            ),
      limitMb: limits.diskMb,
      onFull(full) {
        verdict = full;
        waiting.kill('kill');
      },
    });
    return waiting;
  };

  return {
    id,
    workspace: place.workspace,
    run,
    isAlive: waiting.isAlive,
    async spawn(launch: AgentLaunch) {
      const running = run(agentCommand(launch.args), agentEnvironment(launch.env), launch.runToken);
      const ended = running.ended.then(async (end): Promise<SandboxExit> => {
        watch?.stop();
        const outOfMemory = ((await cgroup?.oomKills()) ?? 0) > 0;
        return { ...end, outOfMemory, ...(verdict === undefined ? {} : { verdict }) };
      });
      return { ended };
    },
    kill: (how) => process?.kill(how),
    dispose,
  };
}

/**
 * The bubblewrap backend. One sandbox is always kept ready, so that an assignment waits for neither folders nor sockets; it is
 * replaced a moment after it was taken, when the new agent has had the processor for its start.
 */
export function bubblewrapBackend(
  ground: BubblewrapGround,
  level: SandboxLevel,
  runtime: string,
  upstream: Upstream,
): SandboxBackend {
  const contents: SandboxContents = { runtime, relay: (socketPath, uid) => openRelay(socketPath, upstream, uid) };
  let ready: Promise<RawSandbox> | undefined;
  let closed = false;
  const keepReady = (): void => {
    if (closed || ready !== undefined) return;
    ready = prepareSandbox(ground, contents);
    // Reported by whoever takes it; here it must only not count as unhandled.
    ready.catch(() => {});
  };
  keepReady();
  return {
    describe: () => level,
    async prepare() {
      const taken = ready;
      ready = undefined;
      setTimeout(keepReady, refillMs).unref();
      // What failed ahead of time may work now: a full disk, a missing folder.
      const sandbox = await taken?.catch(() => undefined);
      if (sandbox?.isAlive()) return sandbox;
      void sandbox?.dispose();
      return prepareSandbox(ground, contents);
    },
    async close() {
      closed = true;
      await ready?.then((sandbox) => sandbox.dispose()).catch(() => {});
      ground.identities?.close();
    },
  };
}
