/** Freezes all processes of a sandbox except its agent while the agent waits for other runs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Time between two searches for processes that the agent has started while the others are frozen. */
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
  /** Lets the processes continue, and freezes nothing any more. Version 1 of the kernel's freezer keeps a frozen process alive even after SIGKILL. */
  close(): void;
}

/** The groups of a freezer in the cgroup of its sandbox; each process is in one of them. */
export const freezerGroups = ['run', 'agent'] as const;

const read = (file: string): string => {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
};

/**
 * Makes the two groups in the folder of the sandbox. All processes are in `run`. To freeze them, the whole group `run` is frozen, and then
 * the agent is moved to `agent`. So a program cannot escape by starting new processes faster than they are moved.
 */
export async function openFreezer(version: 1 | 2, folder: string): Promise<Freezer> {
  const [run, agent] = freezerGroups.map((name) => path.join(folder, name)) as [string, string];
  for (const group of [run, agent]) await mkdir(group, { recursive: true });
  const [file, frozen, thawed] =
    version === 2 ? (['cgroup.freeze', '1', '0'] as const) : (['freezer.state', 'FROZEN', 'THAWED'] as const);
  const members = (group: string): number[] =>
    read(path.join(group, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
  /** Writes a control file. An error is ignored: a process that has ended cannot be moved. */
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
  /** Number of the agent's processes at the time when the others were frozen. */
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

  /** Moves processes that the agent has started since the last check. The agent is stopped meanwhile, so it starts no others. */
  async function look(stays: (pid: number) => boolean): Promise<void> {
    // If the agent has ended, the other processes must end too. They are thawed, because a frozen process cannot end.
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
