import type { ChildRun, ChildRunRequest } from '@runyard/contract/runs/child-runs';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { monotonicMs } from '../builtin-modules.ts';
import { beforeSignals } from '../commands/processes.ts';
import { ServiceRefusal } from '../service/errors.ts';
import type { RunTree, RunWait } from './tree.ts';

/** A request of the command `child-run` to the agent. */
export type TreeRequest =
  | ({ op: 'start'; prompt: string; title?: string; mode?: RunMode } & ChildOptions)
  | { op: 'await'; run_ids?: string[]; until: 'all' | 'any'; timeout_seconds: number }
  | { op: 'list' }
  | { op: 'cancel'; run_id: string }
  | { op: 'message'; run_id: string; message: string };

/** Members of the configuration of a child. The service decides which of them the parent may set. */
export interface ChildOptions {
  readonly model_id?: string | undefined;
  readonly harness?: string | undefined;
  readonly environment_id?: string | undefined;
  /** Names of secrets of the parent that the child gets. */
  readonly secrets?: readonly string[] | undefined;
}

/** Returns the configuration of a child. */
export function childConfig({
  model_id,
  harness,
  environment_id,
  secrets = [],
}: ChildOptions): ChildRunRequest['config'] {
  const config = {
    ...(model_id ? { model_id } : {}),
    ...(harness ? { harness: { type: harness } } : {}),
    ...(environment_id ? { environment_id } : {}),
    ...(secrets.length > 0 ? { secrets: secrets.map((name) => ({ name })) } : {}),
  };
  return Object.keys(config).length === 0 ? undefined : config;
}

export type TreeAnswer =
  | { ok: true; run_id?: string; runs?: ChildRun[]; timed_out?: boolean; delivery?: string }
  | { ok: false; message: string };

const longestWaitSeconds = 7 * 24 * 3600;
/** Length of a pause in a wait for runs. During the pause, a command that got a signal can end. */
const pauseMs = 2_000;

/**
 * Waits for runs on behalf of a command. The worker freezes commands while they wait for a request, and a frozen command ignores signals.
 * So the agent ends the request to the service before it sends a signal. If the command still waits after a pause, the agent sends the
 * request again.
 */
async function waitForRuns(tree: RunTree, { timeoutMs, ...wait }: RunWait, signal: AbortSignal) {
  const deadline = monotonicMs() + timeoutMs;
  for (;;) {
    const pause = new AbortController();
    const endListening = beforeSignals(() => pause.abort());
    try {
      const remainingMs = Math.max(0, deadline - monotonicMs());
      return await tree.wait({ ...wait, timeoutMs: remainingMs }, AbortSignal.any([signal, pause.signal]));
    } catch (error) {
      if (!pause.signal.aborted || signal.aborted) throw error;
    } finally {
      endListening();
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs).unref());
    signal.throwIfAborted();
  }
}

/**
 * Answers a request of the command `child-run`. `signal` aborts when the command has exited. If the service refuses, returns the
 * refusal as the answer.
 */
export async function answerTreeRequest(
  tree: RunTree,
  request: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<TreeAnswer> {
  const text = (name: string) => (typeof request[name] === 'string' ? request[name] : '');
  const optional = (name: string) => (text(name) === '' ? {} : { [name]: text(name) });
  try {
    switch (request.op) {
      case 'start': {
        const secrets = Array.isArray(request.secrets) ? request.secrets.map(String) : [];
        const config = childConfig({
          model_id: text('model_id'),
          harness: text('harness'),
          environment_id: text('environment_id'),
          secrets,
        });
        // The mode is not checked here, because the service checks it.
        const child = {
          prompt: text('prompt'),
          ...optional('title'),
          ...optional('mode'),
          ...(config ? { config } : {}),
        };
        return { ok: true, run_id: (await tree.start(child, signal)).run_id };
      }
      case 'await': {
        const runIds = Array.isArray(request.run_ids) ? request.run_ids.map(String) : undefined;
        const seconds = Math.min(Math.max(0, Number(request.timeout_seconds) || 0), longestWaitSeconds);
        const until = request.until === 'any' ? 'any' : 'all';
        const { runs, timedOut } = await waitForRuns(tree, { runIds, until, timeoutMs: seconds * 1000 }, signal);
        return { ok: true, runs, timed_out: timedOut };
      }
      case 'list':
        return { ok: true, runs: await tree.list(signal) };
      case 'cancel':
        return { ok: true, runs: [await tree.cancel(text('run_id'), signal)] };
      case 'message':
        return { ok: true, delivery: await tree.send(text('run_id'), text('message'), signal) };
      default:
        return { ok: false, message: 'the request was not understood' };
    }
  } catch (error) {
    if (error instanceof ServiceRefusal) return { ok: false, message: error.detail };
    throw error;
  }
}
