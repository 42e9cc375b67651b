/** The faults of a run of chaos and their times, all of them chosen by the seed. */
import { randomOf } from '../support/random-of.ts';
import { serviceNames, workerNames } from './installation.ts';

export const faultKinds = ['kill', 'stall', 'unplug', 'deafen', 'slow', 'full'] as const;
export type FaultKind = (typeof faultKinds)[number] | 'kill agent';

export interface Fault {
  readonly kind: FaultKind;
  /** Node of the fault. A fault of kind `kill agent` ignores it. */
  readonly node: string;
  /** For `deafen`: the node whose packets do not arrive. */
  readonly peer: string;
  /** Milliseconds since the load began. */
  readonly atMs: number;
  readonly forMs: number;
  /** A number from 0 to 1 that chooses one of the running agents. */
  readonly choice: number;
}

/** The database and the S3 server are hit less often than the others: while one of them is away, the faults of other nodes test little. */
const nodes = ['database', 's3', ...serviceNames, ...serviceNames, ...workerNames, ...workerNames];
const meanPauseMs = 4_000;

/** Returns the faults of `minutes`. Two of them never hit one node at one time. */
export function planFaults(seed: number, minutes: number): Fault[] {
  const random = randomOf(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  const endMs = minutes * 60_000;
  for (let atMs = 2_000; atMs < endMs; atMs += meanPauseMs * (0.3 + random() * 1.4)) {
    const kind: FaultKind = random() < 0.15 ? 'kill agent' : pick(faultKinds);
    const [node, peer] = [pick(nodes), pick(nodes)];
    // Most faults are short. One in six outlasts the lease of an execution.
    const forMs = Math.round(random() < 1 / 6 ? 15_000 + random() * 15_000 : 300 + random() ** 2 * 8_000);
    const fault = { kind, node, peer, atMs: Math.round(atMs), forMs, choice: random() };
    if (kind === 'deafen' && peer === node) continue;
    if (kind !== 'kill agent') {
      if ((busyUntil.get(node) ?? 0) > atMs) continue;
      busyUntil.set(node, atMs + forMs + 1_000);
    }
    faults.push(fault);
  }
  return faults;
}
