import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { expect, test, vi } from 'vitest';
import { fakeTask } from '../../../../test/fakes/harness-support.ts';
import { signalGroup } from '../commands/processes.ts';
import type { AskOptions } from '../service/client.ts';
import { answerTreeRequest } from './requests.ts';
import { runTree } from './tree.ts';

const { signal } = new AbortController();
/** A service that gives the same answer to every request. */
const answering = (answer: unknown, asked: [string, AskOptions | undefined][] = []) => ({
  ask: async <T>(_method: 'GET' | 'POST', path: string, options?: AskOptions) => {
    asked.push([path, options]);
    return answer as T;
  },
});

test('the agent may start runs after a follow-up with the mode orchestrate, unless the configuration of the run forbids it', () => {
  const maxLive = (config: AmbientAgentConfig, ...modes: ('normal' | 'plan' | 'orchestrate' | undefined)[]) => {
    const tree = runTree(answering({}), fakeTask({ agent_config: config }));
    for (const mode of modes) tree.orchestrate(mode);
    return tree.maxLive;
  };
  expect(maxLive({}, undefined, 'plan')).toBeUndefined();
  expect(maxLive({}, 'orchestrate', 'normal')).toBe(8);
  expect(maxLive({ child_runs: { enabled: true, max_live: 3 } }, 'orchestrate')).toBe(3);
  expect(maxLive({ child_runs: { enabled: false } }, 'orchestrate')).toBeUndefined();
});

test('a wait for an empty list of runs returns at once, without a request', async () => {
  const asked: [string, AskOptions | undefined][] = [];
  const tree = runTree(answering({}, asked), fakeTask());
  expect(await tree.wait({ runIds: [], until: 'all', timeoutMs: 1000 }, signal)).toEqual({ runs: [], timedOut: false });
  expect(asked).toEqual([]);
});

test('the wait of a command pauses while the agent sends a signal, because a frozen command could not end', async () => {
  vi.useFakeTimers();
  const calls: AbortSignal[] = [];
  const client = {
    ask: <T>(_method: 'GET' | 'POST', _path: string, options?: AskOptions) => {
      const call = options?.signal ?? signal;
      calls.push(call);
      return new Promise<T>((resolve, reject) => {
        if (calls.length > 1) resolve({ child_runs: [{ state: 'SUCCEEDED' }] } as T);
        call.addEventListener('abort', () => reject(call.reason));
      });
    },
  };
  const request = { op: 'await', until: 'all', timeout_seconds: 100 };
  const answer = answerTreeRequest(runTree(client, fakeTask()), request, signal);
  expect(signalGroup(2 ** 30, 'SIGTERM')).toBe(false);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(calls.map(({ aborted }) => aborted)).toEqual([true]);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await answer).toMatchObject({ ok: true, timed_out: false });
  vi.useRealTimers();
});

test('ids of runs are escaped in the paths of requests', async () => {
  const asked: [string, AskOptions | undefined][] = [];
  const tree = runTree(answering({ child_runs: [] }, asked), fakeTask());
  await tree.cancel('../messages?x', signal);
  await tree.wait({ runIds: ['a&until=any'], until: 'all', timeoutMs: 0 }, signal);
  expect(asked.map(([path]) => path)).toEqual([
    'child-runs/..%2Fmessages%3Fx/cancel',
    'child-runs?until=all&wait_ms=0&run_ids=a%26until%3Dany',
  ]);
});
