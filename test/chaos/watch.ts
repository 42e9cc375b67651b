/**
 * Watches the commands of all runs, and finds runs for which two sandboxes execute commands at the same time. Each command contains
 * the name of its run.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

/**
 * Returns a shell command that does nothing and names a run. Put it at the end of a script: the arguments of the shell then show the
 * name while the script runs.
 */
export const markOf = (name: string): string => `: chaos works on ${name}.`;

const pauseMs = 100;

export interface Watch {
  /** Returns the number of runs whose commands were seen. */
  seen(): number;
  /** Ends the watch. Returns a line for each run for which two sandboxes executed commands at the same time. */
  stop(): Promise<string[]>;
}

export function watchCommands(): Watch {
  const seen = new Set<string>();
  const doubles = new Set<string>();
  let isOver = false;
  const loop = (async () => {
    while (!isOver) {
      const found = commandsAtWork();
      for (const name of found.keys()) seen.add(name);
      for (const name of doublesOf(found)) doubles.add(`two sandboxes work on ${name}`);
      await delay(pauseMs);
    }
  })();
  return {
    seen: () => seen.size,
    stop: async () => {
      isOver = true;
      await loop;
      return [...doubles];
    },
  };
}

/** Tests the watch: returns whether it finds two commands with the same name in two process namespaces. */
export async function canSeeDoubles(): Promise<boolean> {
  const words = ['--pid', '--fork', '--kill-child', 'sh', '-c', `sleep 30; ${markOf('planted')}`];
  const children = [spawn('unshare', words), spawn('unshare', words)];
  let isSeen = false;
  for (let tries = 0; !isSeen && tries < 100; tries += 1) {
    await delay(50);
    isSeen = doublesOf(commandsAtWork()).includes('planted');
  }
  for (const child of children) {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  return isSeen;
}

type Process = readonly [pid: string, namespace: string];

/**
 * Returns, for the name of each run, the processes that execute commands of the run, and the process namespace of each process. Each
 * sandbox has its own process namespace.
 */
function commandsAtWork(): Map<string, Process[]> {
  const found = new Map<string, Process[]>();
  const own = namespaceOf(String(process.pid));
  for (const pid of readdirSync('/proc')) {
    if (!/^\d+$/.test(pid)) continue;
    const name = markedName(pid);
    const namespace = name === undefined ? undefined : namespaceOf(pid);
    if (name === undefined || namespace === undefined || namespace === own) continue;
    found.set(name, [...(found.get(name) ?? []), [pid, namespace]]);
  }
  return found;
}

/**
 * Returns the names that have living processes in two namespaces. Reads each process a second time, because the first sandbox may have
 * ended before the second one was found.
 */
function doublesOf(found: ReadonlyMap<string, readonly Process[]>): string[] {
  return [...found].flatMap(([name, processes]) => {
    const alive = processes.filter(([pid, namespace]) => namespaceOf(pid) === namespace && markedName(pid) === name);
    return new Set(alive.map(([, namespace]) => namespace)).size > 1 ? [name] : [];
  });
}

function markedName(pid: string): string | undefined {
  try {
    return /: chaos works on ([\w-]+)\./.exec(readFileSync(`/proc/${pid}/cmdline`, 'utf8'))?.[1];
  } catch {
    return undefined;
  }
}

function namespaceOf(pid: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return undefined;
  }
}
