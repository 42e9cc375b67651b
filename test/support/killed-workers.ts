/** Executes many runs while their worker is killed again and again, for a short test and for the long measurement in `bench/worker-kills.ts`. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { hasEnded } from './run-kinds.ts';
import { runOfAgent } from './run-of-agent.ts';
import { killHard, type System } from './system.ts';

export interface KilledWorkers {
  readonly kills: number;
  /** Number of runs in progress at the moment of a kill. This is the sum over all kills. */
  readonly hit: number;
  readonly states: Readonly<Record<string, number>>;
  /** Messages of the runs that did not succeed, for the output of a failed test. */
  readonly failures: readonly string[];
  /** Runs whose agent started work more than once, or of which two sandboxes were seen at one time. */
  readonly twice: readonly string[];
  /** Runs in whose conversation a part of the output is missing. */
  readonly incomplete: readonly string[];
  /** Private memory of each supervisor process that supervises a sandbox with an agent, in MB. */
  readonly supervisorMb: readonly number[];
}

/**
 * Creates `runs` runs, each of about `seconds`, and waits until all of them have ended. Meanwhile kills the worker every `everyMs`, at
 * most `mostKills` times, and only when the worker is connected. If a worker dies before the sandbox of a run exists, the service
 * starts this run again, up to three times.
 */
export async function killWorkers(
  system: System,
  {
    runs,
    seconds,
    everyMs,
    mostKills = Number.POSITIVE_INFINITY,
  }: { runs: number; seconds: number; everyMs: number; mostKills?: number },
): Promise<KilledWorkers> {
  const prompt = `\`\`\`sh\necho one; sleep ${seconds / 2}\n\`\`\`\n\`\`\`sh\necho two; sleep ${seconds / 2}; echo three\n\`\`\``;
  const ids: string[] = [];
  for (let n = 0; n < runs; n++) ids.push(await system.createRun(prompt));
  const open = new Set(ids);
  const twice = new Set<string>();
  const supervisorMb: number[] = [];
  let kills = 0;
  let hit = 0;
  const namespaces = new Map<string, string>();
  const look = (): number => {
    const agents = agentsOf(open);
    for (const [runId, namespace] of agents) {
      const before = namespaces.get(runId);
      if (before !== undefined && before !== namespace) twice.add(runId);
      namespaces.set(runId, namespace);
    }
    return agents.length;
  };
  // Kill a worker only after it has connected. Otherwise, on a busy machine, no worker would live long enough to finish a run.
  const connections = async () => (await system.logs()).split('"msg":"connected to the service"').length;
  let connected = 0;
  let nextKill = performance.now() + everyMs;
  while (open.size > 0) {
    look();
    if (kills < mostKills && performance.now() >= nextKill && (await connections()) > connected) {
      connected = await connections();
      hit += look();
      supervisorMb.push(...memoryOfSupervisors());
      await killHard(system.worker());
      kills += 1;
      system.startWorker();
      nextKill = performance.now() + everyMs;
    }
    for (const runId of [...open].slice(0, 6)) if (hasEnded(await system.run(runId))) open.delete(runId);
    await delay(50);
  }
  return { kills, hit, supervisorMb, ...(await judge(system, ids, twice)) };
}

/** Returns the agents of these runs with the pid namespaces of their sandboxes. */
function agentsOf(runIds: ReadonlySet<string>): [string, string][] {
  return argumentsOfProcesses().flatMap(({ pid, args }): [string, string][] => {
    const runId = runOfAgent(args.join('\0'));
    if (runId === undefined || !runIds.has(runId)) return [];
    try {
      return [[runId, readlinkSync(`/proc/${pid}/ns/pid`)]];
    } catch {
      // The process ended while this function read the arguments.
      return [];
    }
  });
}

function memoryOfSupervisors(): number[] {
  const found = argumentsOfProcesses().filter(({ args }) => args.some((arg) => arg.startsWith('runyard-supervisor:')));
  return found.flatMap(({ pid }) => {
    try {
      const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
      const kb = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
      return [(kb('Private_Clean') + kb('Private_Dirty')) / 1024];
    } catch {
      return [];
    }
  });
}

function argumentsOfProcesses(): { pid: number; args: string[] }[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      return [{ pid: Number(pid), args: readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0') }];
    } catch {
      return [];
    }
  });
}

/** Checks the ended runs: counts their states, and finds runs whose work was done twice or is incomplete. */
export async function judge(
  system: Pick<System, 'run' | 'call'>,
  ids: readonly string[],
  seenTwice: ReadonlySet<string>,
) {
  const states: Record<string, number> = {};
  const failures: string[] = [];
  const twice = new Set(seenTwice);
  const incomplete: string[] = [];
  for (const runId of ids) {
    const { state, status_message: message } = await system.run(runId);
    states[state] = (states[state] ?? 0) + 1;
    if (state !== 'SUCCEEDED') failures.push(`${runId} ${state}: ${message?.message ?? ''}`);
    const { events } = await system.call<{ events: { event_type: string }[] }>('GET', `/agent/runs/${runId}/timeline`);
    if (events.filter(({ event_type }) => event_type === 'agent_started').length !== 1) twice.add(runId);
    if (events.filter(({ event_type }) => event_type === 'oz_run_done').length > 1) twice.add(runId);
    // The call fails for a run without a conversation, whose agent has sent no event.
    const conversation = await system.call('GET', `/agent/runs/${runId}/conversation`).catch(String);
    const said = JSON.stringify(conversation);
    if (!['one', 'two', 'three'].every((word) => said.includes(word))) incomplete.push(runId);
  }
  return { states, failures, twice: [...twice], incomplete };
}
