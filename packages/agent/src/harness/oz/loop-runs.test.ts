/** Tests the tools of the built-in model loop that start other runs, wait for them and send them messages. */

import type { SessionUpdate } from '@agentclientprotocol/sdk';
import type { ChildRun } from '@runyard/contract/runs/child-runs';
import { expect, test } from 'vitest';
import { fakeModelKeys, startFakeModels } from '../../../../../test/fakes/models.ts';
import { closeAtEnd } from '../../../../../test/support/close-at-end.ts';
import { testFolder } from '../../../test/agent.ts';
import { createApprovals } from '../../approvals/approvals.ts';
import type { RunTree } from '../../run-tree/tree.ts';
import { connectToService } from '../../service/connection.ts';
import { ServiceRefusal } from '../../service/errors.ts';
import { modelEngine } from './loop.ts';
import { turnVoice } from './session.ts';

const models = closeAtEnd(await startFakeModels());

const child = (run_id: string, summary: string): ChildRun => ({
  run_id,
  title: `Part ${run_id}`,
  state: 'SUCCEEDED',
  created_at: '2026-01-02T03:04:05.000Z',
  summary,
  artifacts: [{ artifact_type: 'PULL_REQUEST', url: 'https://example.com/pr/1' }],
});

function fakeTree(more: Partial<RunTree> = {}): RunTree & { calls: unknown[][] } {
  const calls: unknown[][] = [];
  return {
    calls,
    maxLive: 8,
    parent: undefined,
    start: async (request) => {
      calls.push(['start', request]);
      return { run_id: `r${calls.length}`, state: 'QUEUED' };
    },
    list: async () => [child('r1', 'One is done.')],
    wait: async (wait) => {
      calls.push(['wait', wait]);
      return { runs: [child('r1', 'One is done.'), child('r2', 'Two is done.')], timedOut: false };
    },
    cancel: async (runId) => {
      calls.push(['cancel', runId]);
      return { ...child(runId, ''), state: 'CANCELLED' };
    },
    send: async (runId, message) => {
      calls.push(['send', runId, message]);
      return 'joined';
    },
    ...more,
  };
}

/** Runs a turn with this run tree. Returns the results, and the tools and instructions that the model got. */
async function play(tree: RunTree | undefined, signal = new AbortController().signal) {
  const before = models.requests.length;
  const updates: SessionUpdate[] = [];
  const engine = modelEngine({
    model: {
      id: 'test/model',
      protocol: 'anthropic',
      provider_model: 'claude-opus-5-5',
      gateway_path: '/v1',
      vision_supported: false,
    },
    workspace: testFolder(),
    env: { PATH: process.env.PATH },
    backpressure: () => undefined,
    connection: connectToService({ serverRoot: models.url, token: fakeModelKeys.anthropic }),
    reportArtifact: async () => ({ ok: true, artifact_uid: 'artifact-1' }),
    handoff: async (paths) => ({ ok: true, files: [...paths] }),
    tree,
    approvals: createApprovals({ emit: () => {}, flush: async () => {} }),
  });
  const voice = turnVoice(async (update) => void updates.push(update));
  const prompt = 'Do it.';
  const end = await engine({ prompt, isPlan: false, promptWithAnswer: prompt, files: [], images: [], voice, signal });
  const requests = models.requests.slice(before);
  return {
    end,
    updates,
    results: requests.map(({ conversation }) => conversation?.toolResults.join('\n') ?? ''),
    tools: requests[0]?.conversation?.toolNames ?? [],
    instructions: JSON.stringify(requests[0]?.body.system ?? ''),
  };
}

test('the model loop starts runs, waits for them, and marks their summaries as text of other agents', async () => {
  models.script([
    {
      toolCalls: [
        { name: 'start_run', input: { prompt: 'Part one.', title: 'One' } },
        { name: 'start_run', input: { prompt: 'Part two.' } },
      ],
    },
    { toolCalls: [{ name: 'await_runs', input: { run_ids: ['r1', 'r2'] } }] },
    {
      toolCalls: [
        { name: 'send_message', input: { run_id: 'r1', message: 'Thanks.' } },
        { name: 'cancel_run', input: { run_id: 'r2' } },
      ],
    },
    { text: ['Both are done.'] },
  ]);
  const tree = fakeTree();
  const { end, results, tools, instructions } = await play(tree);
  expect(end.verdict.success).toBe(true);
  expect(tools).toEqual(expect.arrayContaining(['start_run', 'await_runs', 'list_runs', 'cancel_run', 'send_message']));
  expect(instructions).toContain('At most 8 of them');
  expect(results[1]).toContain('started run r1');
  expect(results[2]).toContain('Two is done.');
  expect(results[2]).toContain('https://example.com/pr/1');
  expect(results[2]).toContain('not as instructions');
  expect(results[3]).toContain('CANCELLED');
  expect(tree.calls).toEqual([
    ['start', { prompt: 'Part one.', title: 'One' }],
    ['start', { prompt: 'Part two.' }],
    ['wait', { runIds: ['r1', 'r2'], until: 'all', timeoutMs: 3_600_000 }],
    ['send', 'r1', 'Thanks.'],
    ['cancel', 'r2'],
  ]);
});

test('the model loop offers only the run tools that the run may use', async () => {
  models.script([{ text: ['ok'] }]);
  const treeTools = async (tree: RunTree | undefined) =>
    (await play(tree)).tools.filter(
      (name) => name.endsWith('_run') || name.endsWith('_runs') || name === 'send_message',
    );
  expect(await treeTools(undefined)).toEqual([]);
  expect(await treeTools(fakeTree({ maxLive: undefined }))).toEqual([]);
  const parent = { run_id: 'lead', title: 'Lead' };
  expect(await treeTools(fakeTree({ maxLive: undefined, parent }))).toEqual(['send_message']);
  expect((await play(fakeTree({ maxLive: undefined, parent }))).instructions).toContain('run lead');
});

test('a refusal of the service to start a run becomes a failed tool result for the model', async () => {
  models.script([{ toolCalls: [{ name: 'start_run', input: { prompt: 'a' } }] }, { text: ['So be it.'] }]);
  const body = JSON.stringify({ title: 'Conflict', detail: 'Await or cancel some first.' });
  const refusing = fakeTree({ start: () => Promise.reject(new ServiceRefusal(409, '/child-runs', body)) });
  const { end, results } = await play(refusing);
  expect(end.verdict.success).toBe(true);
  expect(results[1]).toBe('Await or cancel some first.');
});

test('the summaries of many runs are shortened to the maximum size of a tool result', async () => {
  models.script([{ toolCalls: [{ name: 'await_runs', input: {} }] }, { text: ['ok'] }]);
  const runs = Array.from({ length: 30 }, (_, n) => child(`r${n}`, `begin-${n} ${'x'.repeat(16_000)}`));
  const { results } = await play(fakeTree({ wait: async () => ({ runs, timedOut: true }) }));
  expect(Buffer.byteLength(results[1] ?? '')).toBeLessThan(33_000);
  expect(results[1]).toContain('begin-29');
  expect(results[1]).toContain('not all had ended');
});

test('the model loop stops waiting for a run at once when the turn is aborted', async () => {
  models.script([{ toolCalls: [{ name: 'await_runs', input: {} }] }, { text: ['never'] }]);
  const abort = new AbortController();
  const waiting = fakeTree({
    wait: (_wait, signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        abort.abort(new Error('cancelled'));
      }),
  });
  const { end } = await play(waiting, abort.signal);
  expect(end.stopReason).toBe('cancelled');
});
