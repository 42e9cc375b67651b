import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { ChildRun, ChildRunList, ChildRunRequest, ChildRunResponse } from '@runyard/contract/runs/child-runs';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { isSettled } from '@runyard/contract/runs/run-states';
import { monotonicMs } from '../builtin-modules.ts';
import { newId } from '../new-id.ts';
import type { AskOptions, ServiceClient } from '../service/client.ts';

/** The runs to wait for, and the time limit of the wait. */
export interface RunWait {
  /** Default: all runs that this run started. */
  readonly runIds?: readonly string[] | undefined;
  readonly until: 'all' | 'any';
  readonly timeoutMs: number;
}

/**
 * Functions that act on the other runs in the tree of this run: the run that started it, and the runs that it started. A call rejects with
 * a `ServiceRefusal` if the service refuses it. A call also rejects when `signal` aborts.
 */
export interface RunTree {
  /** Maximum number of runs that this run started and that are live at the same time; undefined: this run may not start runs. */
  readonly maxLive: number | undefined;
  /** The run that started this run. */
  readonly parent: { readonly run_id: string; readonly title: string } | undefined;
  start(request: ChildRunRequest, signal: AbortSignal): Promise<ChildRunResponse>;
  list(signal: AbortSignal): Promise<ChildRun[]>;
  /** Waits until the runs have ended or are BLOCKED, or until the time is over (`timedOut`), and returns them. */
  wait(wait: RunWait, signal: AbortSignal): Promise<{ readonly runs: ChildRun[]; readonly timedOut: boolean }>;
  cancel(runId: string, signal: AbortSignal): Promise<ChildRun>;
  /**
   * Sends a message to the run with this id, or to the parent run if the id is `parent`. Returns the service's word for how the message was
   * delivered.
   */
  send(runId: string, message: string, signal: AbortSignal): Promise<string>;
}

/** Longest wait in one request, so that proxies do not close the connection. */
const longestCallMs = 25_000;

/** The run tree that the turns of a run use. The mode of a turn can allow the run to start other runs. */
export interface OrchestratingRunTree extends RunTree {
  /**
   * Called with the mode of each turn. After a turn in the mode `orchestrate`, the run may start other runs if its configuration does not
   * forbid this.
   */
  orchestrate(mode: RunMode | undefined): void;
}

/** Returns the functions for the other runs in the tree of this task's run. */
export function runTree(client: Pick<ServiceClient, 'ask'>, task: AgentTask): OrchestratingRunTree {
  let maxLive = task.child_runs?.max_live;
  const list = async (query: string, options: AskOptions) =>
    (await client.ask<ChildRunList>('GET', `child-runs${query}`, options)).child_runs;
  return {
    get maxLive() {
      return maxLive;
    },
    parent: task.parent_run,
    orchestrate(mode) {
      if (mode !== 'orchestrate' || task.agent_config.child_runs?.enabled === false) return;
      maxLive ??= task.agent_config.child_runs?.max_live ?? 8;
    },
    // With the idempotency key, a repeated request does not start a second run if the first answer was lost.
    start: (body, signal) => client.ask('POST', 'child-runs', { body, idempotencyKey: newId(), signal }),
    list: (signal) => list('', { signal }),
    async wait({ runIds, until, timeoutMs }, signal) {
      const deadline = monotonicMs() + timeoutMs;
      const chosen = (runIds ?? []).map((id) => `&run_ids=${encodeURIComponent(id.toWellFormed())}`).join('');
      if (runIds?.length === 0) return { runs: [], timedOut: false };
      for (;;) {
        const remainingMs = Math.max(0, deadline - monotonicMs());
        const waitMs = Math.round(Math.min(longestCallMs, remainingMs));
        const options = { signal, idleTimeoutMs: waitMs + 15_000, lane: 'waits' } as const;
        const runs = await list(`?until=${until}&wait_ms=${waitMs}${chosen}`, options);
        const settled = runs.filter(({ state }) => isSettled(state)).length;
        if (settled === runs.length || (until === 'any' && settled > 0)) return { runs, timedOut: false };
        if (monotonicMs() >= deadline) return { runs, timedOut: true };
      }
    },
    // The service waits at most 20 s for a run that is PENDING.
    cancel: (runId, signal) =>
      client.ask('POST', `child-runs/${encodeURIComponent(runId.toWellFormed())}/cancel`, {
        body: {},
        signal,
        idleTimeoutMs: 40_000,
        lane: 'waits',
      }),
    async send(runId, message, signal) {
      const to = runId === 'parent' ? task.parent_run?.run_id : runId;
      if (to === undefined) throw new Error('this run has no parent');
      const body = { run_id: to, message };
      const options = { body, idempotencyKey: newId(), signal, finalStatuses: [429] };
      const { delivery } = await client.ask<{ delivery: string }>('POST', 'messages', options);
      return delivery;
    },
  };
}
