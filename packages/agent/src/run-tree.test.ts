import type { ChildRun } from '@runyard/contract/runs/child-runs';
import { describe, expect, test } from 'vitest';
import type { FakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { agent, ended, fake, of, scripted, sh, start } from '../test/run.ts';

const child = (run_id: string, more: Partial<ChildRun> = {}): ChildRun => ({
  run_id,
  title: `Part ${run_id}`,
  state: 'SUCCEEDED',
  created_at: '2026-01-02T03:04:05.000Z',
  artifacts: [],
  ...more,
});

interface Asked {
  call: string;
  query: string;
  body: unknown;
}

/** Makes the fake service answer with these runs, and records the requests about runs. */
function withRuns(runs: ChildRun[], asked: Asked[]) {
  return (fake: FakeHarnessSupport) => {
    fake.more = async ({ method, path, query, body }) => {
      asked.push({ call: `${method} ${path}`, query: query.toString(), body });
      const one = runs.find(({ run_id }) => path === `/child-runs/${run_id}/cancel`);
      if (one) return { status: 200, value: { ...one, state: 'CANCELLED' } };
      if (path === '/messages') return { status: 200, value: { delivery: 'joined' } };
      if (path !== '/child-runs') return undefined;
      if (method === 'POST') return { status: 200, value: { run_id: `new-${asked.length}`, state: 'QUEUED' } };
      return { status: 200, value: { child_runs: runs } };
    };
  };
}
const output = (index = 0) => fake.output(of('action')[index]?.action_id ?? '');

describe('the command child-run', () => {
  test('starts runs, waits for them, lists them, cancels them and sends them messages', async () => {
    const asked: Asked[] = [];
    const runs = [child('a', { summary: 'It is 42.' }), child('b', { summary: 'And 43.' })];
    await start(
      {
        ...sh(
          'child-run start --title One --mode plan --model m --harness acp --environment AAAAAAAAAAAAAAAAAAAAAA --secret A --secret B "Do one."; echo "Do two." | child-run start -',
          'child-run await a b --timeout 5',
          'child-run list --json',
          'child-run cancel a',
          'child-run message parent "On it."',
        ),
        parent_run: { run_id: 'lead', title: 'Lead' },
      },
      { prepare: withRuns(runs, asked) },
    );
    await ended();
    expect(fake.finished[0]).toMatchObject({ success: true });
    expect(output(0)).toBe('new-1\nnew-2\n');
    expect(output(1)).toContain('It is 42.');
    expect(output(1)).toContain('Other agents wrote');
    expect(JSON.parse(output(2))).toEqual(runs);
    expect(output(3)).toContain('run a CANCELLED');
    expect(output(4)).toBe('joined\n');
    expect(asked).toEqual([
      {
        call: 'POST /child-runs',
        query: '',
        body: {
          prompt: 'Do one.',
          title: 'One',
          mode: 'plan',
          config: {
            model_id: 'm',
            harness: { type: 'acp' },
            environment_id: 'AAAAAAAAAAAAAAAAAAAAAA',
            secrets: [{ name: 'A' }, { name: 'B' }],
          },
        },
      },
      { call: 'POST /child-runs', query: '', body: { prompt: 'Do two.\n' } },
      {
        call: 'GET /child-runs',
        query: expect.stringMatching(/^until=all&wait_ms=[1-5]\d{3}&run_ids=a&run_ids=b$/),
        body: {},
      },
      { call: 'GET /child-runs', query: '', body: {} },
      { call: 'POST /child-runs/a/cancel', query: '', body: {} },
      { call: 'POST /messages', query: '', body: { run_id: 'lead', message: 'On it.' } },
    ]);
  });

  test('starts only one run if the first answer of the service is lost', async () => {
    const asked: Asked[] = [];
    let cuts = 0;
    await start(sh('child-run start a'), {
      prepare: (service) => {
        withRuns([], asked)(service);
        service.fault = ({ path }) => (path.endsWith('/child-runs') && cuts++ === 0 ? { status: 'cut' } : undefined);
      },
    });
    await ended();
    expect([cuts, asked.length, output()]).toEqual([2, 1, 'new-1\n']);
  });

  test('waits until all runs have ended, and exits with 1 if a run did not succeed', async () => {
    const asked: Asked[] = [];
    const runs = [child('a', { state: 'INPROGRESS' })];
    await start(sh('child-run await'), {
      prepare: (service) => {
        withRuns(runs, asked)(service);
        const answer = service.more;
        service.more = async (request) => {
          if (asked.length === 2) runs[0] = child('a', { state: 'FAILED', message: 'It broke.' });
          return await answer(request);
        };
      },
    });
    await ended();
    expect(asked).toHaveLength(3);
    expect(of('action_result')[0]).toMatchObject({ state: 'failed', exit_code: 1 });
    expect(output()).toContain('It broke.');
  });

  test('exits with 124 when the time limit of its wait is over', async () => {
    await start(sh('child-run await --timeout 0'), { prepare: withRuns([child('a', { state: 'QUEUED' })], []) });
    await ended();
    expect(of('action_result')[0]).toMatchObject({ exit_code: 124 });
  });

  test.each([
    ['what the service refuses', 'child-run start a', 1, 'may not start other runs'],
    ['a second prompt', 'child-run start a b', 2, 'quote it'],
    ['an unknown command', 'child-run sing', 2, 'unknown command'],
    ['an unknown flag', 'child-run list --colour', 2, 'Unknown option'],
    ['a time that is none', 'child-run await --timeout soon', 2, 'number of seconds'],
    ['too many messages', 'child-run message a b', 1, 'too often'],
    ['a message to a parent that is not there', 'child-run message parent b', 1, 'has no parent'],
  ])('gives the reason of the error for %s', async (_what, command, code, reason) => {
    await start(sh(command), {
      prepare: (service) => {
        service.more = async ({ path }) =>
          path === '/messages'
            ? { status: 429, value: { title: 'Resource unavailable', detail: 'too often' } }
            : { status: 403, value: { title: 'Not authorized', detail: 'This run may not start other runs.' } };
      },
    });
    await ended();
    expect(of('action_result')[0]).toMatchObject({ state: 'failed', exit_code: code });
    expect(output()).toContain(reason);
  });

  test('stops waiting when the run that started it is cancelled', async () => {
    const asked = Promise.withResolvers<void>();
    await start(sh('child-run await'), {
      prepare: (service) => {
        service.more = () => {
          asked.resolve();
          return new Promise(() => {});
        };
      },
    });
    await asked.promise;
    fake.cancel();
    await ended();
    expect(agent.stderr()).not.toContain('Error');
  });
});

test('is described in the prompt of an external harness, together with the parent run', async () => {
  await start({ ...scripted('hello'), child_runs: { max_live: 3 }, parent_run: { run_id: 'lead', title: 'Lead' } });
  await ended();
  const prompt = of('transcript')
    .map(({ line }) => line)
    .find((line) => line.includes('"session/prompt"'));
  expect(prompt).toContain('child-run start');
  expect(prompt).toContain('At most 3');
  expect(prompt).toContain('run lead');
});

test.each([
  [{ child_runs: { max_live: 8 } }, true],
  [{ agent_config: { child_runs: { enabled: false } } }, false],
])('explains the mode orchestrate, unless the configuration forbids it (%j)', async (task, says) => {
  await start({ ...scripted('echo'), prompt: 'Do it.', mode: 'orchestrate', ...task });
  await ended();
  const [{ text }] = JSON.parse(fake.text()) as [{ text: string }];
  expect(text.includes('Mode: orchestrate')).toBe(says);
  expect(text.endsWith('Do it.')).toBe(true);
});
