/** While the agent of a sandbox waits for other runs, freezes all processes of the sandbox except the agent. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Time between two searches for new processes that the agent has started while the other processes are frozen. */
const lookMs = 500;
/** Longest time for which the agent is stopped while its new processes are moved. */
const longestStopMs = 100;

/** The freezer of one sandbox. */
export interface Freezer {
  /** Adds a process to the group. Processes that it starts later are in the same group. */
  add(pid: number): void;
  /**
   * Freezes every process for which `stays` is false, including processes that start later. Does nothing if the processes are already
   * frozen, or after `close`.
   */
  freeze(stays: (pid: number) => boolean): void;
  /** Lets the processes continue. */
  thaw(): void;
  /**
   * Lets the processes continue, and freezes nothing any more. Must be called before processes are killed, because with version 1 of the
   * kernel's freezer a frozen process does not end even after SIGKILL.
   */
  close(): void;
}

/** Names of the two groups that a freezer makes in the cgroup of its sandbox. Each process of the sandbox is in one of these groups. */
export const freezerGroups = ['run', 'agent'] as const;

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

/**
 * Makes the two groups in the cgroup folder of the sandbox. All processes begin in `run`. To freeze them, the whole group `run` is
 * frozen first, and then the agent is moved to `agent`. In this order, a program cannot escape by starting processes faster than the
 * worker can move them.
 */
export async function openFreezer(version: 1 | 2, folder: string): Promise<Freezer> {
  const [run, agent] = freezerGroups.map((name) => path.join(folder, name)) as [string, string];
  for (const group of [run, agent]) await mkdir(group, { recursive: true });
  const [file, frozen, thawed] =
    version === 2 ? (['cgroup.freeze', '1', '0'] as const) : (['freezer.state', 'FROZEN', 'THAWED'] as const);
  const members = (group: string): number[] =>
    read(path.join(group, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
  /** Writes a control file. Ignores errors, because a process that has just ended cannot be moved. */
  const tryWrite = (to: string, text: string): void => {
    try {
      writeFileSync(to, text);
    } catch {}
  };
  const set = (group: string, state: string) => tryWrite(path.join(group, file), state);
  const move = (pid: number, group: string) => tryWrite(path.join(group, 'cgroup.procs'), String(pid));
  const isFrozen = (group: string): boolean =>
    version === 2
      ? /^frozen 1$/m.test(read(path.join(group, 'cgroup.events')))
      : read(path.join(group, file)).trim() === frozen;

  let looks: NodeJS.Timeout | undefined;
  let isLooking = false;
  /** Number of processes for which `stays` was true when the other processes were frozen. */
  let staying = 0;
  let isClosed = false;

  const thaw = (): void => {
    clearInterval(looks);
    looks = undefined;
    set(run, thawed);
    set(agent, thawed);
    // Moves the agent back to `run`, so that the programs that it starts from now on are in `run` too.
    for (const pid of members(agent)) move(pid, run);
  };

  /**
   * Moves processes that the agent has started since the last check to the frozen group. Stops the agent during the move, so that it
   * starts no further processes.
   */
  async function look(stays: (pid: number) => boolean): Promise<void> {
    // If the agent has ended, its sandbox ends, and all other processes are killed. They are thawed here, because a frozen process cannot
    // end.
    if (members(agent).filter(stays).length < staying) return thaw();
    if (isLooking || members(agent).every(stays)) return;
    isLooking = true;
    try {
      set(agent, frozen);
      const end = performance.now() + longestStopMs;
      while (!isFrozen(agent) && performance.now() < end) await sleep(1);
      if (looks !== undefined) for (const pid of members(agent)) if (!stays(pid)) move(pid, run);
    } finally {
      set(agent, thawed);
      isLooking = false;
    }
  }

  return {
    add: (pid) => writeFileSync(path.join(run, 'cgroup.procs'), String(pid)),
    freeze(stays) {
      if (looks !== undefined || isClosed) return;
      set(run, frozen);
      for (const pid of members(run)) if (stays(pid)) move(pid, agent);
      staying = members(agent).length;
      looks = setInterval(() => void look(stays), lookMs);
      looks.unref();
    },
    thaw,
    close() {
      isClosed = true;
      thaw();
    },
  };
}
