/** How the processes of a worker's sandboxes are found again, by this worker and by the next one of the same data folder. */
import { findProcesses, killUntilGone } from '../state/processes.ts';

/** Label in the arguments of the first processes of sandboxes, which nothing inside can change; every one of the same data folder begins with it. */
export function ownerLabel(owner: string): string {
  return `runyard-sandbox:${owner}:`;
}

/** Entry in the environment of an agent and, unless they remove it, of all that it starts. */
export function ownerVariable(owner: string): string {
  return `RUNYARD_SANDBOX_OWNER=${owner}:`;
}

/** Tells that processes take long to die. */
export type SlowLog = { warn(fields: object, message: string): void };

/** For `killUntilGone` and `Cgroup.remove`; `fields` say whose processes they are. */
export function logSlow(log: SlowLog, fields: object): (pids: readonly number[]) => void {
  return (pids) =>
    log.warn({ ...fields, pids }, 'processes of an ended sandbox are still there; waiting until they are gone');
}

/** Ends all processes with one of these marks. Resolves when the last is gone. */
export async function endMarked(
  marks: { readonly label: string; readonly variable: string },
  onSlow: (pids: readonly number[]) => void,
): Promise<void> {
  await killUntilGone(async () => {
    const [labelled, marked] = [
      await findProcesses('cmdline', marks.label),
      await findProcesses('environ', marks.variable),
    ];
    return [...new Set([...labelled, ...marked])];
  }, onSlow);
}
