import { randomBytes } from 'node:crypto';
import { openCgroup } from '../cgroups/group.ts';
import { makeFolders, removeFolders, type SandboxFolders } from '../folders.ts';
import { containerCommand, hostProcesses } from '../gvisor/command.ts';
import { endMarked, logSlow } from '../markers.ts';
import { removeParts } from '../remove-parts.ts';
import { notPrepared, SandboxError } from '../sandbox.ts';
import { seccompFilter } from '../seccomp/filter.ts';
import { initCommand, leastDataBytes, megabyte } from './arguments.ts';
import type { BubblewrapGround } from './ground.ts';
import { takeIdentity } from './identities.ts';
import { preparedSandbox, processLimits, type SandboxParts, socketsIn } from './prepared-sandbox.ts';
import { type BubblewrapProcess, startBubblewrap } from './process.ts';
import type { RawSandbox, SandboxContents } from './raw-sandbox.ts';

/** The process limit of the cgroup is higher by two than the process limit of the run, because the cgroup also counts bwrap and init. */
const ownProcesses = 2;

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
  const identity = ground.ownUsers ? await takeIdentity() : undefined;
  const parts: SandboxParts = {
    id,
    ...marksOf(ground, id),
    identity,
    // With gVisor, bwrap gets no filter of system calls: gVisor itself needs system calls that the filter refuses (for mounts), and gVisor
    // has its own filter.
    filter: ground.gvisor === undefined ? seccompFilter() : undefined,
  };
  const dispose = () => removeSandbox(ground, parts);
  try {
    const folders = await prepareFolders(ground, parts);
    [parts.relay, parts.cgroup] = await Promise.all([
      prepareRelay(ground, contents, parts, folders),
      prepareCgroup(ground, parts),
    ]);
    const started = await prepareProcess(ground, contents, parts);
    parts.process = started;
    return preparedSandbox(ground, contents, { parts, folders, started, dispose });
  } catch (error) {
    await dispose();
    throw error instanceof SandboxError ? error : notPrepared(error as Error);
  }
}

const prepareFolders = (
  { stateRoot, disks, limits }: BubblewrapGround,
  { id, identity }: SandboxParts,
): Promise<SandboxFolders> =>
  makeFolders(stateRoot, id, {
    ...(identity === undefined ? {} : { uid: identity.uid }),
    ...(disks.ok ? { diskMb: limits.diskMb } : {}),
  });

const prepareRelay = (
  ground: BubblewrapGround,
  contents: SandboxContents,
  parts: SandboxParts,
  folders: SandboxFolders,
) =>
  contents.relay?.(
    socketsIn(folders).relay,
    parts.identity?.uid,
    async () => ({ oom_kills: (await parts.cgroup?.oomKills()) ?? 0, memory_mb: ground.limits.memoryMb }),
    // A sandbox with a disk gets a copy by mounts that are made while it runs, and gVisor does not see these.
    ground.gvisor === undefined && ground.disks.ok === ground.ownUsers ? parts.id : undefined,
  );

function prepareCgroup({ cgroups, gvisor, limits }: BubblewrapGround, { id }: SandboxParts) {
  const processes = gvisor === undefined ? limits.processes : hostProcesses(gvisor, limits.processes);
  const { memoryMb, cpus } = limits;
  return cgroups && openCgroup(cgroups, id, { memoryMb, processes: processes + ownProcesses, cpus });
}

/** Starts bwrap, which waits for its options. */
function prepareProcess(
  ground: BubblewrapGround,
  contents: SandboxContents,
  { label, identity, cgroup, filter }: SandboxParts,
): Promise<BubblewrapProcess> {
  const { program, gvisor, limits } = ground;
  const dataBytes = Math.max(limits.memoryMb * megabyte, leastDataBytes);
  const ofInit = { ...processLimits(ground), ...(cgroup === undefined ? { dataBytes } : {}) };
  return startBubblewrap({
    program,
    label,
    command:
      gvisor === undefined
        ? initCommand(label, ofInit, contents.runtime !== undefined)
        : containerCommand(gvisor, label, ground.nofile),
    ...(identity === undefined ? {} : { uid: identity.uid }),
    ...(cgroup === undefined ? {} : { cgroup }),
    filter,
  });
}

/** Ends the processes of a sandbox and removes its parts, also if not all parts were prepared. Never rejects. */
async function removeSandbox(ground: BubblewrapGround, parts: SandboxParts): Promise<void> {
  const { id, label, variable, identity, cgroup, relay, egress, process } = parts;
  parts.watch?.stop();
  cgroup?.endFreeze();
  process?.kill('kill');
  await process?.ended;
  // Ends the processes of the sandbox that are left, because a killed bwrap can end before the processes in its sandbox.
  const onSlow = logSlow(ground.log, { sandbox: id });
  if (cgroup === undefined) await endMarked({ labels: [label], variable }, onSlow);
  const isRemoved = await removeParts(
    id,
    {
      cgroup: () => cgroup?.remove(onSlow),
      relay: () => relay?.close(),
      egress: () => egress?.close(),
      folders: () => removeFolders(ground.stateRoot, id),
    },
    ground.log,
  );
  // If a step failed, processes of this user may still run, so no other sandbox may get this user.
  if (isRemoved) identity?.release();
}
