/** Labels and variables by which this worker and the next worker of the same data folder find the processes of sandboxes. */
import { findProcesses, killUntilGone } from '../state/processes.ts';

/** Returns the prefix of the label in the arguments of the first processes of sandboxes. Programs in a sandbox cannot change this label. */
export function ownerLabel(owner: string): string {
  return `runyard-sandbox:${owner}:`;
}

/**
 * Returns the prefix of the environment variable that marks an agent. Child processes of the agent inherit the variable, unless they
 * remove it.
 */
export function ownerVariable(owner: string): string {
  return `RUNYARD_SANDBOX_OWNER=${owner}:`;
}

/** The log for warnings about processes that take long to end. */
export type SlowLog = { warn(fields: object, message: string): void };

/** Returns a function `onSlow` that logs a warning. `fields` are added to the log line and name the owner of the processes. */
export function logSlow(log: SlowLog, fields: object): (pids: readonly number[]) => void {
  return (pids) =>
    log.warn({ ...fields, pids }, 'processes of an ended sandbox are still there; waiting until they are gone');
}

/** Returns the prefix of the label in the arguments of supervisors. */
export function supervisorLabel(owner: string): string {
  return `runyard-supervisor:${owner}:`;
}

/** Returns the id of the sandbox, which is the end of a label or variable. */
const sandboxOf = (mark: string): string => mark.slice(mark.lastIndexOf(':') + 1);

/**
 * Ends all processes with one of these marks, except processes of sandboxes whose ids are in `kept`. Resolves when the last of them has
 * ended.
 */
export async function endMarked(
  marks: { readonly labels: readonly string[]; readonly variable: string; readonly kept?: ReadonlySet<string> },
  onSlow: (pids: readonly number[]) => void,
): Promise<void> {
  const counts = (mark: string) => marks.kept?.has(sandboxOf(mark)) !== true;
  await killUntilGone(async () => {
    const found = await findProcesses('environ', marks.variable, counts);
    for (const label of marks.labels) found.push(...(await findProcesses('cmdline', label, counts)));
    return [...new Set(found)];
  }, onSlow);
}
