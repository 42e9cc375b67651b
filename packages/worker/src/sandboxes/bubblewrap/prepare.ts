import { randomBytes } from 'node:crypto';
import path from 'node:path';
import type { SandboxProxy, SandboxRelay } from '../../relay-thread/relay-thread.ts';
import { usedOnFileSystem } from '../../state/disk-image.ts';
import { type Cgroup, openCgroup } from '../cgroups/group.ts';
import { usedInFolders } from '../disk/measure.ts';
import { processesBelow, processesBeside } from '../disk/unlinked-files.ts';
import { watchDisk } from '../disk-watch.ts';
import { makeFolders, removeFolders, type SandboxFolders } from '../folders.ts';
import { containerCommand, hostProcesses } from '../gvisor/command.ts';
import { filesOfProcess } from '../limits.ts';
import { endMarked, logSlow } from '../markers.ts';
import { type AgentLaunch, SandboxError, type SandboxExit, type SandboxVerdict } from '../sandbox.ts';
import { seccompFilter } from '../seccomp/filter.ts';
import { agentCommand, agentEnvironment } from './agent-command.ts';
import { bubblewrapOptions, commandSetting, initCommand, inside, leastDataBytes } from './arguments.ts';
import type { BubblewrapGround } from './ground.ts';
import { takeIdentity } from './identities.ts';
import { containerStart } from './in-gvisor.ts';
import { type BubblewrapProcess, isOfAgent, startBubblewrap } from './process.ts';
import type { RawSandbox, SandboxContents } from './raw-sandbox.ts';
import { copySystem } from './system-tree.ts';

/** The process limit of the cgroup is higher by two than the process limit of the run, because the cgroup also counts bwrap and init. */
const ownProcesses = 2;
const megabyte = 1024 * 1024;

/** Maximum time from the start of an agent until the agent waits for its run. */
const longestStartMs = 30_000;

/** Returns the id of a new sandbox. */
export const newSandboxId = (): string => randomBytes(6).toString('hex');

/**
 * Returns the marks by which the processes of a sandbox are found. The first processes have the label in their arguments, and all others
 * have the variable in their environment.
 */
export const marksOf = (ground: Pick<BubblewrapGround, 'labelPrefix' | 'variablePrefix'>, id: string) => ({
  label: `${ground.labelPrefix}${id}`,
  variable: `${ground.variablePrefix}${id}`,
});

/** Makes the folders, the user, the cgroup and the relay of a sandbox, and starts bwrap. If a step fails, undoes all earlier steps. */
export async function prepareSandbox(
  ground: BubblewrapGround,
  contents: SandboxContents,
  id = newSandboxId(),
): Promise<RawSandbox> {
  const { limits, gvisor } = ground;
  const processLimits = {
    nproc: limits.processes,
    nofile: filesOfProcess(limits, ground.nofile),
    fileBytes: limits.diskMb * megabyte,
  };
  const processesOnHost = gvisor === undefined ? limits.processes : hostProcesses(gvisor, limits.processes);
  const { label, variable } = marksOf(ground, id);
  // With gVisor, bwrap gets no filter of system calls: gVisor itself needs system calls that the filter refuses (for mounts), and gVisor
  // has its own filter.
  const filter = gvisor === undefined ? seccompFilter() : undefined;
  const identity = ground.ownUsers ? await takeIdentity() : undefined;
  const uid = identity?.uid;
  let made = false;
  let folders: SandboxFolders | undefined;
  let relay: SandboxRelay | undefined;
  let egress: SandboxProxy | undefined;
  let cgroup: Cgroup | undefined;
  let process: BubblewrapProcess | undefined;
  let verdict: SandboxVerdict | undefined;
  let watch: { stop(): void } | undefined;
  let isWaiting = false;
  let systemRuntime: string | undefined;

  const dispose = async (): Promise<void> => {
    watch?.stop();
    cgroup?.endFreeze();
    process?.kill('kill');
    await process?.ended;
    const problems: string[] = [];
    const attempt = (what: string, work: Promise<unknown> | undefined): Promise<unknown> =>
      work?.catch((error: Error) => problems.push(`${what}: ${error.message}`)) ?? Promise.resolve();
    // Ends the processes of the sandbox that are left, because a killed bwrap can end before the processes in its sandbox.
    const onSlow = logSlow(ground.log, { sandbox: id });
    if (cgroup === undefined) await endMarked({ labels: [label], variable }, onSlow);
    await attempt('cgroup', cgroup?.remove(onSlow));
    await attempt('relay', relay?.close());
    await attempt('egress', egress?.close());
    await attempt('folders', made ? removeFolders(ground.stateRoot, id) : undefined);
    // If a step failed, processes of this user may still run, so no other sandbox may get this user.
    if (problems.length === 0) identity?.release();
    if (problems.length > 0)
      ground.log.warn(
        { sandbox: id, problems },
        'a sandbox could not be removed completely; the next start tries again',
      );
  };

  try {
    made = true;
    folders = await makeFolders(ground.stateRoot, id, {
      ...(uid === undefined ? {} : { uid }),
      ...(ground.disks.ok ? { diskMb: limits.diskMb } : {}),
    });
    [relay, cgroup] = await Promise.all([
      contents.relay?.(
        path.join(folders.top, 'relay.sock'),
        uid,
        async () => ({ oom_kills: (await cgroup?.oomKills()) ?? 0, memory_mb: limits.memoryMb }),
        // A sandbox with a disk gets a copy by mounts that are made while it runs, and gVisor does not see these.
        gvisor === undefined && ground.disks.ok === ground.ownUsers ? id : undefined,
      ),
      ground.cgroups &&
        openCgroup(ground.cgroups, id, {
          memoryMb: limits.memoryMb,
          processes: processesOnHost + ownProcesses,
          cpus: limits.cpus,
        }),
    ]);
    process = await startBubblewrap({
      program: ground.program,
      label,
      command:
        gvisor === undefined
          ? initCommand(
              label,
              {
                ...processLimits,
                ...(cgroup === undefined ? { dataBytes: Math.max(limits.memoryMb * megabyte, leastDataBytes) } : {}),
              },
              contents.runtime !== undefined,
            )
          : containerCommand(gvisor, label, ground.nofile),
      ...(uid === undefined ? {} : { uid }),
      ...(cgroup === undefined ? {} : { cgroup }),
      filter,
    });
  } catch (error) {
    await dispose();
    if (error instanceof SandboxError) throw error;
    throw notPrepared(error as Error);
  }
  const hostFolders = folders;
  const [variableName = '', variableValue = ''] = variable.split('=');
  const started = process;
  const egressSocket = path.join(hostFolders.top, 'egress.sock');

  /**
   * Starts the command. `text` is the whole input that the command reads from `runTokenDescriptor`. If `text` is undefined, the input
   * is sent later.
   */
  const begin = (command: readonly string[], env: Readonly<Record<string, string>>, text: string | undefined): void => {
    const view = {
      shared: ground.shared,
      folders: hostFolders,
      limits,
      ...(egress === undefined ? {} : { egressSocket }),
      ...(relay === undefined ? {} : { relaySocket: path.join(hostFolders.top, 'relay.sock') }),
      ...(contents.runtime === undefined ? {} : { runtime: systemRuntime ?? contents.runtime }),
      hasSystem: systemRuntime !== undefined,
      harnessDir: ground.harnessDir,
      ...(contents.writableCache === undefined ? {} : { writableCache: contents.writableCache }),
    };
    const marker = { [variableName]: variableValue };
    const known = { ...env, ...(egress === undefined ? {} : { RUNYARD_EGRESS_SOCKET: inside.egressSocket }) };
    if (gvisor === undefined) {
      if (text !== undefined) started.give(text);
      started.release(
        bubblewrapOptions({
          ...view,
          isFiltered: filter !== undefined,
          env: { ...known, ...commandSetting(command), ...marker },
        }),
      );
      return;
    }
    const marked = { ...known, ...marker };
    const outer = { gvisor, view, command, env: marked, outerEnv: marker, limits: processLimits };
    const { options, specification } = containerStart(outer);
    started.give(specification + (text ?? ''));
    started.release(options);
  };

  const watchOwnDisk = (): void => {
    watch = watchDisk({
      measure: async (signal) =>
        ground.disks.ok
          ? await usedOnFileSystem(hostFolders.workspace)
          : await usedInFolders(
              [hostFolders.workspace, hostFolders.home, ...(systemRuntime === undefined ? [] : [hostFolders.system])],
              async () => {
                const init = started.init();
                if (init === undefined) return [];
                return await (gvisor === undefined ? processesBeside(init) : processesBelow(init));
              },
              signal,
            ),
      limitMb: limits.diskMb,
      onFull(full) {
        verdict = full;
        cgroup?.endFreeze();
        started.kill('kill');
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
    watch?.stop();
    await egress?.end();
    const outOfMemory = ((await cgroup?.oomKills()) ?? 0) > 0;
    return { ...end, outOfMemory, ...(verdict === undefined ? {} : { verdict }) };
  });

  return {
    id,
    workspace: hostFolders.workspace,
    run,
    async openEgress(opening) {
      egress = await contents
        .proxy?.({ ...opening.order, socketPath: egressSocket, uid }, opening.report)
        .catch((error: Error) => {
          throw notPrepared(error);
        });
    },
    async openSystem({ tree, runtime }) {
      await copySystem(tree, hostFolders.system, uid).catch((error: Error) => {
        throw notPrepared(error);
      });
      systemRuntime = runtime;
    },
    isAlive: started.isAlive,
    gone: started.ended,
    async startWaiting(serviceRoot, env = {}) {
      isWaiting = true;
      begin(agentCommand(['agent', 'wait', serviceRoot], gvisor), agentEnvironment(env), undefined);
      await inTime(started.spoke(), longestStartMs).catch((error: Error) => {
        throw notPrepared(error);
      });
    },
    async spawn(launch: AgentLaunch) {
      if (isWaiting) handOver(launch);
      else run(agentCommand(launch.args, gvisor), agentEnvironment(launch.env), launch.runToken);
    },
    ended,
    rest(isResting, isFrozen = false) {
      cgroup?.rest(isResting);
      // A gVisor container is not frozen, because for the kernel the whole container, with the agent, is one process.
      if (gvisor === undefined) cgroup?.freeze(isFrozen ? isOfAgent : null);
    },
    kill(how) {
      cgroup?.endFreeze();
      process?.kill(how);
    },
    dispose,
  };
}

const notPrepared = (cause: Error): SandboxError =>
  new SandboxError('prepare', 'sandbox_not_prepared', `the sandbox could not be prepared: ${cause.message}`, { cause });

/** Returns the result of the promise. Rejects if the promise takes longer than `ms` milliseconds. */
function inTime<T>(promise: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = setTimeout(() => reject(new Error(`it took more than ${ms / 1000} s`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(late));
  });
}
