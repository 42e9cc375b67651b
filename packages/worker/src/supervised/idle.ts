import type { SupervisorProcess } from './supervised.ts';

/** Supervisors without a sandbox that are kept. The others end. */
const mostIdle = 2;
/** Sandboxes that a supervisor holds, one after the other, before it ends: its memory grows a little with each. */
const mostSandboxes = 16;
/** Time for which an idle supervisor is kept. */
const idleMs = 10_000;

/** Supervisors whose sandbox has ended. The next sandbox takes one of them, because the start of another takes processor time. */
export interface IdleSupervisors {
  take(): SupervisorProcess | undefined;
  /** Keeps a supervisor whose sandbox has ended, or ends it. */
  add(supervisor: SupervisorProcess): void;
  /** Ends all. */
  close(): void;
}

export function keepIdleSupervisors(): IdleSupervisors {
  const idle = new Map<SupervisorProcess, NodeJS.Timeout>();
  const held = new WeakMap<SupervisorProcess, number>();
  let closed = false;
  const remove = (supervisor: SupervisorProcess): void => {
    clearTimeout(idle.get(supervisor));
    idle.delete(supervisor);
  };
  return {
    take() {
      const last = [...idle.keys()].at(-1);
      if (last !== undefined) remove(last);
      return last;
    },
    add(supervisor) {
      const count = (held.get(supervisor) ?? 0) + 1;
      held.set(supervisor, count);
      if (closed || idle.size >= mostIdle || count >= mostSandboxes) return supervisor.lines.close();
      const end = () => {
        remove(supervisor);
        supervisor.lines.close();
      };
      idle.set(supervisor, setTimeout(end, idleMs).unref());
      supervisor.lines.handle({ message: () => {}, closed: () => remove(supervisor) });
    },
    close() {
      closed = true;
      for (const supervisor of idle.keys()) supervisor.lines.close();
    },
  };
}
