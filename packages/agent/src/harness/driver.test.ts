import { fileURLToPath } from 'node:url';
import type { AgentEventBody } from '@runyard/contract/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import { afterEach, describe, expect, test } from 'vitest';
import { createApprovals } from '../approvals/approvals.ts';
import { eventually, isRunning, testFolder } from '../test-agent.ts';
import { startChildLink } from './child-link.ts';
import { type Driver, driveHarness } from './driver.ts';
import { imageLimits, type PromptImage } from './images.ts';

const fixture = fileURLToPath(new URL('./fixtures/scripted-agent.mjs', import.meta.url));
let driver: Driver | undefined;
afterEach(async () => {
  await driver?.kill();
  driver = undefined;
});

interface Options {
  command?: [string, ...string[]];
  config?: AmbientAgentConfig;
  startTimeoutMs?: number;
  ready?: () => Promise<void>;
  home?: string;
}

function drive(mode: string, options: Options = {}) {
  const cwd = testFolder();
  const emitted: AgentEventBody[] = [];
  const waiters: (() => void)[] = [];
  const emit = (event: AgentEventBody) => {
    emitted.push(event);
    for (const waiter of waiters) waiter();
  };
  const approvals = createApprovals({ emit, flush: async () => {} });
  approvals.begin(options.config?.approval_policy, undefined);
  const started = driveHarness({
    harness: 'acp',
    builtin: false,
    start: (events) =>
      startChildLink({
        command: options.command ?? [process.execPath, fixture, mode],
        cwd,
        env: { PATH: process.env.PATH, HOME: options.home ?? cwd, RUNYARD_AGENT_SOCKET: cwd },
        marker: `RUNYARD_AGENT_SOCKET=${cwd}`,
        events,
      }),
    emit,
    ready: options.ready ?? (() => Promise.resolve()),
    config: options.config ?? {},
    imageLimits: imageLimits(undefined),
    approvals,
    startTimeoutMs: options.startTimeoutMs ?? 20_000,
  });
  driver = started;
  const run = (images: readonly PromptImage[] = [], load?: string) =>
    started.run({
      cwd,
      stepId: 'step',
      prompt: (loaded) => [{ type: 'text', text: loaded ? 'Go on.' : 'Do it.' }],
      load,
      images,
      onStarted: () => emitted.push({ type: 'turn_started', step_id: 'step', prompt: 'Do it.' }),
      onEnded: () => emitted.push({ type: 'turn_finished', step_id: 'step' }),
    });
  const of = <T extends AgentEventBody['type']>(type: T) =>
    emitted.filter((event): event is Extract<AgentEventBody, { type: T }> => event.type === type);
  const text = () =>
    of('text')
      .map((event) => event.text)
      .join('');
  const until = async (condition: () => boolean) => {
    while (!condition()) await new Promise<void>((resolve) => waiters.push(resolve));
  };
  return { driver: started, run, approvals, events: emitted, of, text, until };
}

const image = (size: number, path = 'attachments/a.png'): PromptImage => ({
  path,
  type: 'image/png',
  bytes: Buffer.alloc(size, 7),
});

describe('a session of an earlier process', () => {
  const home = testFolder();
  const before = async (mode: string) => {
    const first = drive(mode, { home });
    await first.run();
    await first.driver.kill();
    return first.driver.loadableSession;
  };

  test('goes on where the harness loads sessions; what it repeats is not told again', async () => {
    const session = await before('remembers');
    expect(session).toMatch(/^s\d/);
    const { run, text, of, driver } = drive('remembers', { home });
    expect((await run([], session)).kind).toBe('succeeded');
    expect(text()).toBe('I remember "Do it."\n"Go on."\n');
    expect(driver.loadableSession).toBe(session);
    expect(of('notice')).toEqual([]);
    expect(JSON.stringify(of('transcript'))).not.toContain('replayed');
  });

  test('is begun anew where loading it fails, with a notice', async () => {
    const session = await before('remembers');
    const { run, text, of, driver } = drive('load-fails', { home });
    expect((await run([], session)).kind).toBe('succeeded');
    expect(text()).toBe('I remember "Do it."\n');
    expect(driver.loadableSession).not.toBe(session);
    expect(of('notice').map(({ name, data }) => [name, data])).toEqual([
      ['session_not_loaded', { reason: expect.stringContaining('the session is damaged') }],
    ]);
    expect(JSON.stringify(of('transcript'))).toContain('I remember');
  });

  test('is not named where the harness does not load sessions', async () => {
    expect(await before('remembers-not')).toBeUndefined();
  });
});

describe('images', () => {
  test('go behind the prompt to a harness that takes them', async () => {
    const { run, text } = drive('echo-images');
    await run([image(3)]);
    expect(JSON.parse(text())).toEqual([
      { type: 'text', text: 'Do it.' },
      { type: 'image', mimeType: 'image/png', data: Buffer.alloc(3, 7).toString('base64') },
    ]);
  });

  test('are not sent to one that does not say so, and a notice names each', async () => {
    const { run, text, of } = drive('echo');
    await run([image(3)]);
    expect(JSON.parse(text())).toEqual([{ type: 'text', text: 'Do it.' }]);
    expect(of('notice').map(({ name, data }) => [name, data])).toEqual([
      ['image_not_sent', { path: 'attachments/a.png', reason: expect.stringContaining('does not take images') }],
    ]);
  });

  test('that are too large are left out, the others are sent', async () => {
    const { run, text, of } = drive('echo-images');
    await run([image(4 * 1024 * 1024, 'attachments/big.png'), image(3)]);
    expect(JSON.parse(text())).toHaveLength(2);
    expect(of('notice').map(({ data }) => data)).toEqual([
      { path: 'attachments/big.png', reason: expect.stringContaining('5242880') },
    ]);
  });
});

describe('the driver', () => {
  test('plays a turn: text of one message, in order, and all lines of both directions in the transcript', async () => {
    const { run, of, text, events } = drive('hello');
    expect(await run()).toEqual({ kind: 'succeeded', summary: 'Hello world.' });
    expect(text()).toBe('Hello world.');
    expect(new Set(of('text').map((event) => event.message_id)).size).toBe(1);
    expect(events.at(-1)?.type).toBe('turn_finished');
    const lines = of('transcript').map((event) => JSON.parse(event.line) as { method?: string; id?: number });
    expect(lines.map((line) => line.method ?? `answer ${line.id}`)).toEqual([
      'initialize',
      'answer 0',
      'session/new',
      'answer 1',
      'session/prompt',
      'session/update',
      'session/update',
      'answer 2',
    ]);
  });

  test('never offers file system or terminal', async () => {
    const { run, of } = drive('hello');
    await run();
    const initialize = JSON.parse(of('transcript')[0]?.line ?? '') as { params: { clientCapabilities: object } };
    expect(Object.keys(initialize.params.clientCapabilities)).toEqual(['_meta']);
  });

  test('takes a tool call that is first seen in a permission request, allows it once and records that', async () => {
    const { run, of, text } = drive('permission-first');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('answered {"outcome":"selected","optionId":"once"}');
    expect(of('action')).toEqual([
      expect.objectContaining({ action_id: 't1', category: 'command', name: 'shell', input: { title: 'echo hi' } }),
    ]);
    expect(of('action_output').map((event) => event.text)).toEqual(['hi\n']);
    expect(of('action_result')).toEqual([expect.objectContaining({ action_id: 't1', state: 'completed' })]);
    expect(of('decided')).toEqual([
      expect.objectContaining({ kind: 'permission', action_id: 't1', decision: 'approve', by: 'policy' }),
    ]);
  });

  describe('asks a person', () => {
    const ask = { config: { approval_policy: 'ask' } } as const;
    const answer = (id: string, decision?: 'approve' | 'deny', message = '') => ({
      type: 'follow_up' as const,
      id: `f-${id}`,
      position: 1,
      message,
      answers: id,
      ...(decision ? { decision } : {}),
    });

    test('one request after the other, each with its own answer, while nothing else of the turn ends', async () => {
      const { run, approvals, of, text, until } = drive('permission-twice', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      const [first] = of('blocked');
      expect(first?.request).toMatchObject({
        kind: 'permission',
        title: 'run t1',
        action: { id: 't1', name: 'shell' },
      });
      await until(() => of('action').length === 2);
      expect(approvals.answer(answer(first?.request.request_id ?? '', 'approve'))).toBe(true);
      await until(() => of('blocked').length === 2);
      expect(of('action_result').filter(({ action_id }) => action_id === 't2')).toEqual([]);
      approvals.answer(answer(of('blocked')[1]?.request.request_id ?? '', 'deny'));
      expect((await running).kind).toBe('succeeded');
      expect(text()).toBe('t1: once, t2: no');
      expect(of('action_result').map(({ action_id, state }) => `${action_id} ${state}`)).toEqual([
        't1 completed',
        't2 denied',
      ]);
      expect(of('follow_up_taken')).toHaveLength(2);
    });

    test('and does not count the time that the answer took as time that the call ran', async () => {
      const { run, approvals, of, until } = drive('permission-first', ask);
      const began = performance.now();
      const running = run();
      await until(() => of('blocked').length === 1);
      const asked = performance.now();
      while (performance.now() < asked + 300) await new Promise(setImmediate);
      const waited = performance.now() - asked;
      approvals.answer(answer(of('blocked')[0]?.request.request_id ?? '', 'approve'));
      await running;
      const ran = of('action_result')[0]?.duration_ms ?? Number.NaN;
      expect(ran).toBeLessThanOrEqual(performance.now() - began - waited + 1);
    });

    test.each(['approve', 'deny'] as const)(
      'and plays the words of a denial as the next turn, not those of an approval (%s)',
      async (decision) => {
        const { run, approvals, of, text, until } = drive('permission-first', ask);
        const running = run();
        await until(() => of('blocked').length === 1);
        const words = answer(of('blocked')[0]?.request.request_id ?? '', decision, 'Mind the cat.');
        expect(approvals.answer(words), 'it is no turn of its own').toBe(decision === 'approve');
        await running;
        expect(text()).toContain(decision === 'deny' ? '"optionId":"no"' : '"optionId":"once"');
        expect(of('follow_up_taken')).toHaveLength(decision === 'approve' ? 1 : 0);
        expect(approvals.turnMessage(words)).toBe('Mind the cat.');
      },
    );

    test('and takes words for a denial that is the next turn', async () => {
      const { run, approvals, of, text, until } = drive('permission-first', ask);
      const running = run();
      await until(() => of('blocked').length === 1);
      const words = answer(of('blocked')[0]?.request.request_id ?? '', undefined, 'Do something else.');
      expect(approvals.answer(words)).toBe(false);
      await running;
      expect(text()).toContain('"optionId":"no"');
      expect(of('follow_up_taken')).toEqual([]);
    });

    test('and cancels the request where no option says no, or the turn is interrupted', async () => {
      const { run, of, text } = drive('permission-without-no', { config: { approval_policy: 'auto-deny' } });
      expect((await run()).kind).toBe('succeeded');
      expect(text()).toBe('cancelled');
      expect(of('decided')).toEqual([expect.objectContaining({ decision: 'deny', by: 'policy' })]);
      await driver?.kill();
      const interrupted = drive('permission-without-no', ask);
      const running = interrupted.run();
      await interrupted.until(() => interrupted.of('blocked').length === 1);
      interrupted.driver.interrupt();
      expect(await running).toEqual({ kind: 'interrupted', summary: 'cancelled' });
      expect(interrupted.of('decided')).toEqual([]);
    });
  });

  test('takes output and exit code that come only in _meta', async () => {
    const { run, of } = drive('terminal-output');
    await run();
    expect(of('action')).toHaveLength(1);
    expect(of('action_output').map((event) => event.text)).toEqual(['one\n', 'two\n']);
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed', exit_code: 3 })]);
    expect(of('action_result')[0]).not.toHaveProperty('output');
  });

  test('takes output and exit code from rawOutput, and settles an action only once', async () => {
    const { run, of } = drive('raw-output');
    await run();
    expect(of('action')).toEqual([expect.objectContaining({ input: { command: 'ls' } })]);
    expect(of('action_result')).toEqual([
      expect.objectContaining({ state: 'completed', output: 'a\nb\n', exit_code: 0 }),
    ]);
  });

  test('tells categories from kinds and from the names that harnesses give MCP tools', async () => {
    const { run, of } = drive('kinds', { config: { mcp_servers: { github: { command: 'github-mcp' } } } });
    await run();
    expect(of('action').map(({ name, category }) => [name, category])).toEqual([
      ['github.create_issue', 'integration'],
      ['github.search', 'integration'],
      ['github.create', 'integration'],
      ['github.list', 'integration'],
      ['read', 'files'],
      ['edit', 'files'],
      ['search', 'search'],
      ['fetch', 'search'],
      ['shell', 'command'],
      ['delete', 'files'],
      ['a-kind-of-the-future', 'integration'],
    ]);
  });

  test('passes on thoughts, plans, modes and what it does not know as notices, and bears nonsense', async () => {
    const { run, of, text } = drive('other-updates');
    expect((await run()).kind).toBe('succeeded');
    expect(of('notice').map((event) => event.name)).toEqual(['thought', 'plan', 'mode', 'from_the_future', 'usage']);
    expect(of('notice')[0]?.data).toEqual({ text: 'Let me think.' });
    expect(text()).toBe('a\u0000b\uFFFDc');
    expect(of('action')).toEqual([]);
  });

  test('settles what the harness leaves open', async () => {
    const { run, of } = drive('leaves-open');
    await run();
    expect(of('action_result')).toEqual([expect.objectContaining({ action_id: 't1', state: 'failed' })]);
    expect(of('action_output')[0]?.text).toContain('without telling the result');
  });

  test('bears lines that are no messages and keeps them in the transcript', async () => {
    const { run, of, text } = drive('garbage');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('still here');
    const raw = of('transcript').flatMap((event) => {
      const line = JSON.parse(event.line) as { raw?: string };
      return line.raw === undefined ? [] : [line.raw];
    });
    expect(raw).toEqual(['Welcome to the agent!', '{"not":"a message"}', '{broken', '[1,2]', expect.any(String)]);
  });

  test('splits a long text and keeps only the beginning of its line in the transcript', async () => {
    const { run, of, text } = drive('long-text');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('z'.repeat(3 * 1024 * 1024));
    expect(Math.max(...of('text').map((event) => event.text.length))).toBe(64 * 1024);
    expect(Math.max(...of('transcript').map((event) => event.line.length))).toBeLessThan(10_000);
  });

  test('cuts a line that is too long, tells so in the transcript and goes on', async () => {
    const { run, of, text } = drive('huge-line');
    expect((await run()).kind).toBe('succeeded');
    expect(text()).toBe('after');
    const cut = of('transcript')
      .map((event) => JSON.parse(event.line) as { raw?: string; cut_from_bytes?: number })
      .find((line) => line.cut_from_bytes);
    expect(cut?.cut_from_bytes).toBeGreaterThan(9 * 1024 * 1024);
    expect(cut?.raw?.length).toBeLessThan(5000);
  });

  test('reads a flood only as fast as there is room', async () => {
    let room = Promise.resolve();
    let passed = 0;
    let open = () => {};
    const { run, of, until } = drive('flood', {
      ready: () => {
        if (++passed === 100) {
          room = new Promise((resolve) => {
            open = resolve;
          });
        }
        return room;
      },
    });
    const running = run();
    await until(() => of('text').length > 80);
    await eventually(() => passed >= 100);
    for (let turns = 0; turns < 50; turns++) await new Promise(setImmediate);
    expect(of('text').length).toBeLessThan(110);
    open();
    expect(await running).toMatchObject({ kind: 'succeeded', summary: expect.stringMatching(/the end$/) });
    expect(of('text')).toHaveLength(30_001);
  }, 30_000);

  test('tells exit code and last words of a harness that exits at once', async () => {
    const outcome = await drive('exits-at-once').run();
    expect(outcome).toMatchObject({ kind: 'failed', code: 'agent_process_failed' });
    expect(outcome.kind === 'failed' && outcome.message).toMatch(
      /exited with code 2 before it answered initialize.*no such option: --acp/s,
    );
  });

  test('says so where the harness cannot be started', async () => {
    const outcome = await drive('', { command: ['/no/such/harness'] }).run();
    expect(outcome).toMatchObject({
      kind: 'failed',
      code: 'agent_process_failed',
      message: expect.stringMatching(/could not be started.*ENOENT/),
    });
  });

  test.each([
    ['silent', 'initialize'],
    ['silent-session', 'session/new'],
  ])('does not wait for ever for a harness that is %s', async (mode, method) => {
    const outcome = await drive(mode, { startTimeoutMs: 500 }).run();
    expect(outcome).toMatchObject({
      kind: 'failed',
      code: 'agent_process_failed',
      message: expect.stringContaining(`did not answer ${method}`),
    });
  });

  test('passes on the error of a harness that wants a login', async () => {
    expect(await drive('wants-login').run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('Authentication required'),
    });
  });

  test('refuses a harness that speaks another version', async () => {
    expect(await drive('other-version').run()).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('version 2'),
    });
  });

  test('tells the death of a harness in the middle of a turn and settles its actions', async () => {
    const { run, of } = drive('dies-in-turn');
    const outcome = await run();
    expect(outcome).toMatchObject({ kind: 'failed', code: 'agent_process_failed' });
    expect(outcome.kind === 'failed' && outcome.message).toMatch(
      /exited with code 9 before it answered session\/prompt.*Segmentation fault/s,
    );
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('turn_finished')).toHaveLength(1);
  });

  test.each([
    ['refuses', 'refused'],
    ['token-limit', 'limit of tokens'],
    ['cancels-itself', 'cancelled its turn by itself'],
  ])('takes the end of an agent that %s for a failure', async (mode, message) => {
    expect(await drive(mode).run()).toMatchObject({ kind: 'failed', message: expect.stringContaining(message) });
  });

  test('cancels a turn', async () => {
    const { driver, run, of, until } = drive('obeys-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    driver.cancel();
    expect(await running).toEqual({ kind: 'cancelled' });
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('action_output').map((event) => event.text)).toEqual(['[interrupted]\n']);
  });

  test('kills a harness that ignores a cancel, with what it started in other process groups', async () => {
    const { driver, run, of, until } = drive('ignores-cancel');
    const running = run();
    await until(() => of('action').length === 1);
    const { pid } = of('action')[0]!.input as { pid: number };
    driver.cancel();
    const started = performance.now();
    await driver.kill();
    expect(performance.now() - started).toBeLessThan(2_000);
    expect(await running).toEqual({ kind: 'cancelled' });
    await eventually(() => !isRunning(pid));
  });

  test('tells which MCP servers it had to leave out', async () => {
    const { run, of } = drive('hello', {
      config: {
        mcp_servers: { here: { command: 'x', env: { A: 'b' } }, far: { url: 'http://mcp' }, stored: { warp_id: 'w' } },
      },
    });
    await run();
    expect(of('notice').map((event) => (event.data as { name: string }).name)).toEqual(['far', 'stored']);
    const opened = of('transcript').map(
      (event) => JSON.parse(event.line) as { method?: string; params?: { mcpServers?: unknown } },
    );
    expect(opened.find((line) => line.method === 'session/new')?.params?.mcpServers).toEqual([
      { name: 'here', command: 'x', args: [], env: [{ name: 'A', value: 'b' }] },
    ]);
  });
});
