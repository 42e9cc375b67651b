/** Chooses the faults of a chaos test and their times. The seed determines all of them. */
import { randomOf } from '../support/random-of.ts';
import { serviceNames, workerNames } from './installation.ts';

export const faultKinds = ['kill', 'stall', 'unplug', 'deafen', 'slow', 'full'] as const;
export type FaultKind = (typeof faultKinds)[number] | 'kill agent';

export interface Fault {
  readonly kind: FaultKind;
  /** Name of the node with the fault. Not used for `kill agent`. */
  readonly node: string;
  /** For `deafen`: the node whose packets do not arrive. */
  readonly peer: string;
  /** Milliseconds since the load began. */
  readonly atMs: number;
  readonly forMs: number;
  /** A number from 0 to 1 that chooses one of the running agents. */
  readonly choice: number;
}

/**
 * Services and workers are in the list twice, so they get more faults than the database and the S3 server. While the database or the
 * S3 server is down, faults of other nodes test little.
 */
const nodes = ['database', 's3', ...serviceNames, ...serviceNames, ...workerNames, ...workerNames];
const meanPauseMs = 4_000;

/** Returns the faults for a test of `minutes`. A node never has two faults at the same time. */
export function planFaults(seed: number, minutes: number): Fault[] {
  const random = randomOf(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  const endMs = minutes * 60_000;
  for (let atMs = 2_000; atMs < endMs; atMs += meanPauseMs * (0.3 + random() * 1.4)) {
    const kind: FaultKind = random() < 0.15 ? 'kill agent' : pick(faultKinds);
    const [node, peer] = [pick(nodes), pick(nodes)];
    // Most faults are short. One of six lasts longer than the lease of an execution.
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
