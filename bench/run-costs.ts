/** Measures the cost of trivial runs: processor time of each program, and memory of the sandboxes that wait for runs. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { hasEnded } from '../test/support/run-kinds.ts';
import { eventually, type System } from '../test/support/system.ts';
import { processesBelow } from './processes.ts';
import { memoryOf } from './report.ts';

/** The costs of one run in milliseconds of processor time, for each program, and the runs per second. */
export interface RunCosts {
  readonly all: number;
  readonly service: number;
  readonly worker: number;
  /** Processor time of supervisors, bwrap and agents. If the sandboxes are containers, this includes the programs of the container engine. */
  readonly sandbox: number;
  /** The part of `sandbox` that the supervisors themselves use, without the processes that they start. */
  readonly supervisor: number;
  readonly postgres: number;
  /** Processor time of one `node -e 0`, which does nothing; measured before and after the runs to show the speed of the machine. */
  readonly bareNode: number;
  readonly perSecond: number;
  /** Seconds from the first create until the agents of all runs have worked on their prompts: the last `agent_started` of all timelines. */
  readonly allAtWork: number;
}

const tickMs = 10;

/** Returns two processor times in milliseconds: that of a process itself, and that of its children that have ended. */
function timesOf(pid: number): { own: number; children: number } {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  const at = (index: number) => (fields[index] ?? Number.NaN) * tickMs;
  return { own: at(11) + at(12), children: at(13) + at(14) };
}

function parentOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return Number(text.slice(text.lastIndexOf(')') + 2).split(' ')[1]);
}

/** Returns the descendants of the processes `pids`. */
function descendants(pids: readonly number[]): number[] {
  const parents = readdirSync('/proc').flatMap((name) => {
    try {
      return [[Number(name), parentOf(Number(name))] as const];
    } catch {
      return [];
    }
  });
  const found: number[] = [];
  for (let level = [...pids]; level.length > 0; ) {
    level = parents.filter(([, parent]) => level.includes(parent)).map(([pid]) => pid);
    found.push(...level);
  }
  return found;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0);
const wholeTime = (pid: number): number => {
  try {
    const { own, children } = timesOf(pid);
    return own + children;
  } catch {
    return 0;
  }
};

/** Returns the milliseconds of processor time that all processes of the machine have used, except this process, which creates the runs. */
function timeOfMachine(): number {
  const [user = 0, nice = 0, kernel = 0, , , interrupts = 0, soft = 0] = readFileSync('/proc/stat', 'utf8')
    .replace(/^cpu\s+/, '')
    .split(' ', 7)
    .map(Number);
  const { user: ownUser, system: ownKernel } = process.cpuUsage();
  return (user + nice + kernel + interrupts + soft) * tickMs - (ownUser + ownKernel) / 1000;
}

/**
 * Returns the processor time that each program has used until now. The time of an ended process is counted with its parent, so each
 * process is counted once. With `inContainers`, the time of the sandboxes is the time of the whole machine minus the time of service,
 * worker and PostgreSQL, because containers and the programs that start them are not descendants of the worker.
 */
function spent(system: System, inContainers: boolean) {
  const service = system.service().pid ?? 0;
  const worker = system.worker().pid ?? 0;
  const times = timesOf(worker);
  const others = {
    service: timesOf(service).own,
    worker: times.own,
    postgres: sum(processesBelow(system.dataDir, 'postgres').map(wholeTime)),
  };
  const sandbox = inContainers
    ? timeOfMachine() - sum(Object.values(others))
    : times.children + sum(descendants([worker]).map(wholeTime));
  return { ...others, sandbox };
}

/**
 * Returns a function that returns the processor time of the system's supervisors. Call this function often: for a supervisor that has
 * ended, it can only count the time that it read at its last call before the end.
 */
function watchSupervisors(system: System): () => number {
  const worker = system.worker().pid ?? 0;
  const seen = new Map<number, number>();
  return () => {
    for (const pid of descendants([worker])) {
      try {
        if (parentOf(pid) === worker) seen.set(pid, timesOf(pid).own);
      } catch {
        // The supervisor has just ended.
      }
    }
    return sum([...seen.values()]);
  };
}

/** Returns the processor time in milliseconds of one `node -e 0`. */
function timeOfBareNode(): number {
  const times = 20;
  const before = timesOf(process.pid).children;
  for (let n = 0; n < times; n += 1) spawnSync(process.execPath, ['-e', '0']);
  return (timesOf(process.pid).children - before) / times;
}

/** Creates the runs at once and waits for the end of the last run. With `inContainers`, no other work may run on the machine. */
export async function runCosts(system: System, runs: number, inContainers = false): Promise<RunCosts> {
  const bareBefore = timeOfBareNode();
  const timeOfSupervisors = watchSupervisors(system);
  const supervisorsBefore = timeOfSupervisors();
  const before = spent(system, inContainers);
  const began = performance.now();
  const beganAt = Date.now();
  const ids = await Promise.all(Array.from({ length: runs }, () => system.createRun('```sh\ntrue\n```')));
  // Wait for the last run first: the queue is in order, so this run is one of the last to end. Ask rarely, because each answer takes
  // processor time too.
  for (const id of ids.toReversed())
    while (!hasEnded(await system.run(id))) {
      timeOfSupervisors();
      await delay(200);
    }
  const seconds = (performance.now() - began) / 1000;
  // Wait until the last sandboxes are removed and the pool of waiting sandboxes is full again.
  await delay(1000);
  const after = spent(system, inContainers);
  const of = (name: keyof typeof after) => (after[name] - before[name]) / runs;
  const costs = { service: of('service'), worker: of('worker'), sandbox: of('sandbox'), postgres: of('postgres') };
  const bareNode = (bareBefore + timeOfBareNode()) / 2;
  const supervisor = (timeOfSupervisors() - supervisorsBefore) / runs;
  const starts: number[] = [];
  for (const id of ids) starts.push(await startOfAgent(system, id));
  const allAtWork = (Math.max(...starts) - beganAt) / 1000;
  return { ...costs, supervisor, all: sum(Object.values(costs)), bareNode, perSecond: runs / seconds, allAtWork };
}

/** Returns the time at which the agent of the run began to work, in milliseconds since 1970; NaN: the agent has not begun. */
async function startOfAgent(system: System, runId: string): Promise<number> {
  const { events } = await system.call<{ events: { event_type: string; occurred_at: string }[] }>(
    'GET',
    `/agent/runs/${runId}/timeline`,
  );
  return Date.parse(events.find(({ event_type }) => event_type === 'agent_started')?.occurred_at ?? '');
}

const pssOf = (pids: Iterable<number>): number =>
  sum(
    [...pids].map((pid) => {
      try {
        return memoryOf(pid).pssMb;
      } catch {
        return 0;
      }
    }),
  );

/**
 * Returns the proportional memory in MB that a run uses while it sleeps. `holders` returns processes that have sandboxes as descendants,
 * in addition to the worker. The function calls `holders` before and during the run.
 */
export async function memoryOfRun(system: System, holders: () => number[] = () => []): Promise<number> {
  const worker = system.worker().pid ?? 0;
  const now = () => pssOf([...holders(), ...descendants([worker, ...holders()])]);
  // Wait until the pool of waiting sandboxes is full and their agents have loaded their modules.
  const settleMs = 3000;
  await delay(settleMs);
  const before = now();
  const runId = await system.createRun('```sh\nsleep 600\n```');
  await eventually('start of the agent', async () => !Number.isNaN(await startOfAgent(system, runId)));
  await delay(settleMs);
  const added = now() - before;
  await system.call('POST', `/agent/runs/${runId}/cancel`);
  await system.until(runId, (run) => run.is_sandbox_running === false);
  return added;
}

/** Memory of a waiting sandbox in MB. */
export interface WaitingMemory {
  readonly all: number;
  readonly agent: number;
  /** The supervisor's memory divided by the number of its waiting sandboxes. */
  readonly supervisor: number;
}

/**
 * Returns the proportional memory of a sandbox whose agent waits for a run: the memory of the agent, of the sandbox's init and of
 * bwrap, and a share of the supervisor's memory. Waits until `count` agents wait. No other sandbox may run.
 */
export async function memoryOfWaiting(system: System, count: number): Promise<WaitingMemory> {
  const worker = system.worker().pid ?? 0;
  const waiting = () =>
    descendants([worker]).filter((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').join(' ').includes(' agent wait '),
    );
  while (waiting().length < count) await delay(200);
  await delay(2000);
  const pss = (pids: Iterable<number>) => pssOf(pids) / count;
  const agents = waiting();
  const own = new Set<number>();
  const supervisors = new Set<number>();
  for (const agent of agents) {
    let pid = agent;
    for (; parentOf(pid) !== worker; pid = parentOf(pid)) own.add(pid);
    supervisors.add(pid);
  }
  const supervisor = pss(supervisors);
  return { all: pss(own) + supervisor, agent: pss(agents), supervisor };
}
