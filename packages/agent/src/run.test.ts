import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { AgentTask } from '@runyard/contract/agent-protocol';
import { afterEach, describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { type FakeHarnessSupport, startFakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { eventually, isRunning, startTestAgent, type TestAgent } from './test-agent.ts';

const scriptedAgent = fileURLToPath(new URL('./harness/fixtures/scripted-agent.mjs', import.meta.url));
let fake: FakeHarnessSupport;
let agent: TestAgent;
afterEach(async () => {
  agent?.child.kill('SIGKILL');
  await agent?.exited;
  await fake?.close();
});

async function start(
  task: Partial<AgentTask>,
  options: { socketPath?: string; prepare?: (fake: FakeHarnessSupport) => void } = {},
) {
  fake = await startFakeHarnessSupport({
    task,
    ...(options.socketPath === undefined ? {} : { socketPath: options.socketPath }),
  });
  options.prepare?.(fake);
  agent = startTestAgent(fake);
}

const sh = (...scripts: string[]): Partial<AgentTask> => ({
  prompt: scripts.map((script) => `\`\`\`sh\n${script}\n\`\`\``).join('\n\n'),
});
const scripted = (mode: string): Partial<AgentTask> => ({
  harness: { type: 'acp', command: [process.execPath, scriptedAgent, mode] },
});
const of = <T extends FakeHarnessSupport['events'][number]['type']>(type: T) =>
  fake.events.filter(
    (event): event is Extract<FakeHarnessSupport['events'][number], { type: T }> => event.type === type,
  );
const numbered = () => expect(fake.events.map((event) => event.seq)).toEqual(fake.events.map((_, index) => index + 1));

async function ended(exitCode = 0) {
  expect(await agent.exited, agent.stderr()).toBe(exitCode);
  numbered();
}

describe('a runbook', () => {
  test('runs the blocks, tells everything in order, finishes and exits with 0', async () => {
    await start({ prompt: 'Please\n\n```sh\necho hello\n```\nand\n```bash\necho world >&2\n```\n' });
    await ended();
    expect(fake.events.filter((event) => event.type !== 'transcript').map((event) => event.type)).toEqual([
      'agent_started',
      'turn_started',
      'action',
      'action_output',
      'action_result',
      'action',
      'action_output',
      'action_result',
      'text',
      'turn_finished',
    ]);
    expect(of('agent_started')).toEqual([expect.objectContaining({ harness: 'oz', model_id: 'runbook' })]);
    expect(of('action')).toEqual([
      expect.objectContaining({ name: 'shell', category: 'command', input: { command: 'echo hello' } }),
      expect.objectContaining({ name: 'shell', category: 'command', input: { command: 'echo world >&2' } }),
    ]);
    expect(of('action_result').map((event) => [event.state, event.exit_code])).toEqual([
      ['completed', 0],
      ['completed', 0],
    ]);
    expect(fake.text()).toContain('Ran all 2 commands');
    expect(fake.text()).toContain('No language model is configured');
    expect(fake.finished).toEqual([{ success: true, summary: expect.stringContaining('Ran all 2 commands') }]);
    expect(fake.shutdowns).toEqual(['finished']);
    expect(agent.stderr()).toBe('');
  });

  test('stops at the first failure and says which command it was', async () => {
    await start(sh('true', 'echo oops; exit 4', 'touch never'));
    await ended();
    expect(of('action_result').map((event) => [event.state, event.exit_code])).toEqual([
      ['completed', 0],
      ['failed', 4],
    ]);
    expect(fake.finished).toEqual([
      expect.objectContaining({ success: false, error: { message: 'Command 2 exited with code 4' } }),
    ]);
    expect(existsSync(join(agent.workspace, 'never'))).toBe(false);
  });

  test('goes on after a failure where it is told to', async () => {
    await start({ prompt: '```sh continue-on-error\nfalse\n```\n```sh\necho on\n```' });
    await ended();
    expect(of('action_result')).toHaveLength(2);
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('explains itself where the prompt has no command', async () => {
    await start({ prompt: 'Write me a poem.' });
    await ended();
    expect(fake.text()).toContain('nothing to run');
    expect(fake.text()).toContain('RUNYARD_ANTHROPIC_API_KEY');
    expect(fake.finished[0]?.success).toBe(true);
  });

  test('bounds an output of 200 MB, in the agent and in what it reports', async () => {
    await start(sh('echo START; head -c 200000000 /dev/zero | tr "\\0" x; echo; echo END'));
    let peak = 0;
    const watch = setInterval(() => {
      try {
        const [, kb = '0'] = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${agent.child.pid}/status`, 'utf8')) ?? [];
        peak = Math.max(peak, Number(kb));
      } catch {
        // Gone.
      }
    }, 20);
    await ended();
    clearInterval(watch);
    const [result] = of('action_result');
    expect(result?.output_bytes).toBe(200_000_011);
    expect(String(result?.output)).toMatch(/^START\nxxx.*bytes left out.*xxx\nEND\n$/s);
    expect(String(result?.output).length).toBeLessThan(66 * 1024);
    expect(of('action_output').reduce((sum, event) => sum + event.text.length, 0)).toBeLessThanOrEqual(64 * 1024);
    expect(peak).toBeGreaterThan(10_000);
    expect(peak).toBeLessThan(250_000);
  }, 30_000);

  test('reports output that is not UTF-8 and holds NUL', async () => {
    await start(sh("printf 'a\\377b\\000c'"));
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('a\uFFFDb\uFFFDc');
  });

  test('runs a block of more than 128 KB', async () => {
    await start(sh(`x='${'y'.repeat(200_000)}'\necho \${#x}`));
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('200000\n');
  });

  test('leaves a background server alive for the next block and dead after the run', async () => {
    await start(sh('sleep 600 & echo $! > pid', 'kill -0 $(cat pid) && echo alive'));
    await ended();
    expect(fake.finished[0]?.success).toBe(true);
    const pid = Number(readFileSync(join(agent.workspace, 'pid'), 'utf8'));
    await eventually(() => !isRunning(pid));
  });

  test('keeps the run token and the relay from what it starts', async () => {
    await start(sh('env'));
    await ended();
    const output = fake.output(of('action')[0]!.action_id);
    expect(output).toContain('RUNYARD_AGENT_SOCKET=');
    expect(output).not.toContain(fake.token);
    expect(output).not.toContain('RUNYARD_RELAY_SOCKET');
  });
});

describe('another harness', () => {
  test('is driven over stdio, with its start as a step of the setup', async () => {
    await start({ ...scripted('hello'), agent_config: { model_id: 'm' } });
    await ended();
    expect(of('setup_step_finished')).toEqual([expect.objectContaining({ kind: 'harness', name: 'acp' })]);
    expect(of('agent_started')).toEqual([expect.objectContaining({ harness: 'acp', model_id: 'm' })]);
    expect(fake.finished).toEqual([{ success: true, summary: 'Hello world.' }]);
  });

  test('does not see the run token', async () => {
    await start(scripted('tells-environment'));
    await ended();
    expect(JSON.parse(fake.text())).toEqual({ socket: expect.any(String) });
  });

  test('gets the base prompt before the prompt and attachments as links', async () => {
    await start(
      {
        ...scripted('echo'),
        prompt: 'The prompt.',
        agent_config: { base_prompt: 'The base.' },
        attachments: [
          { file_name: '../a b.txt', mime_type: 'text/plain', size_bytes: 2, path: '/api/v1/harness-support/files/1' },
        ],
      },
      { prepare: (fake) => fake.files.set('/api/v1/harness-support/files/1', Buffer.from('hi')) },
    );
    await ended();
    expect(JSON.parse(fake.text())).toEqual([
      { type: 'text', text: 'The base.\n\nThe prompt.' },
      {
        type: 'resource_link',
        uri: `file://${agent.workspace}/attachments/a%20b.txt`,
        name: 'a b.txt',
        mimeType: 'text/plain',
        size: 2,
      },
    ]);
  });

  test('that exits at once makes an error that says why', async () => {
    await start(scripted('exits-at-once'));
    await ended();
    expect(fake.finished[0]?.error).toEqual({
      code: 'agent_process_failed',
      message: expect.stringContaining('no such option'),
    });
    expect(of('agent_started')).toEqual([]);
    expect(of('setup_step_finished')[0]?.error).toContain('exited with code 2');
  });

  test('without a command fails the setup', async () => {
    await start({ harness: { type: 'claude' } });
    await ended();
    expect(fake.finished[0]?.error).toEqual({
      code: 'environment_setup_failed',
      message: expect.stringContaining('claude'),
    });
  });

  test('that floods is slowed down while the service does not answer, and nothing is lost', async () => {
    let refuse = true;
    await start(scripted('flood'), {
      prepare: (fake) => {
        fake.fault = ({ path }) =>
          refuse && path.endsWith('/events') && fake.events.length > 2000 ? { status: 503 } : undefined;
      },
    });
    await fake.until(
      () => fake.requests.filter((request) => request.path.endsWith('/events')).length > 6 && fake.events.length > 2000,
    );
    refuse = false;
    await ended();
    expect(fake.text().length).toBe(30_000_000 + 'the end'.length);
  }, 60_000);
});

describe('the setup', () => {
  test('writes attachments, then runs setup commands, each with duration and exit code', async () => {
    await start(
      {
        ...sh('cat made'),
        attachments: [
          { file_name: 'data.txt', mime_type: 'text/plain', size_bytes: 5, path: '/api/v1/harness-support/files/1' },
          { file_name: 'data.txt', mime_type: 'text/plain', size_bytes: 3, path: '/api/v1/harness-support/files/2' },
        ],
        environment: {
          uid: 'e',
          config: { setup_commands: ['cat attachments/data.txt attachments/data-2.txt > made', 'echo ready'] },
        },
      },
      {
        prepare: (fake) => {
          fake.files.set('/api/v1/harness-support/files/1', Buffer.from('first'));
          fake.files.set('/api/v1/harness-support/files/2', Buffer.from('2nd'));
        },
      },
    );
    await ended();
    expect(of('setup_step_finished')).toEqual([
      expect.objectContaining({ kind: 'attachments', name: '2 files', duration_ms: expect.any(Number) }),
      expect.objectContaining({ kind: 'setup_command', exit_code: 0 }),
      expect.objectContaining({ kind: 'setup_command', name: 'echo ready', exit_code: 0, output_tail: 'ready\n' }),
    ]);
    expect(fake.output(of('action')[0]!.action_id)).toBe('first2nd');
  });

  test('that fails ends the run with the step, its exit code and the end of its output', async () => {
    await start({
      ...sh('true'),
      environment: {
        uid: 'e',
        config: {
          setup_commands: [
            'true',
            'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo broken; exit 5',
            'true',
          ],
        },
      },
    });
    await ended();
    const steps = of('setup_step_finished');
    expect(steps).toHaveLength(2);
    expect(steps[1]).toMatchObject({ exit_code: 5, output_tail: expect.stringMatching(/broken\n$/) });
    expect(steps[1]?.output_tail?.length).toBeLessThanOrEqual(8 * 1024);
    expect(fake.finished[0]).toMatchObject({
      success: false,
      error: {
        code: 'environment_setup_failed',
        message: expect.stringMatching(/Setup command 2 of 3.*exited with code 5.*broken.*Fix the command/s),
      },
    });
    expect(of('agent_started')).toEqual([]);
    expect(fake.shutdowns).toEqual(['finished']);
  });

  test('that cannot download an attachment says which one', async () => {
    await start({
      ...sh('true'),
      attachments: [
        { file_name: 'gone', mime_type: 'text/plain', size_bytes: 5, path: '/api/v1/harness-support/files/1' },
      ],
    });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'environment_setup_failed',
      message: expect.stringContaining('"gone"'),
    });
  });
});

describe('artifacts', () => {
  test('are kept by the command in the sandbox, which prints their uid', async () => {
    await start(
      sh(
        'mkdir out && printf 123 > out/result.json && cd out && report-artifact result.json --title Result --description "The one"',
      ),
    );
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('artifact-1\n');
    expect(fake.artifacts).toEqual([
      {
        artifact_uid: 'artifact-1',
        artifact_type: 'FILE',
        data: {
          filename: 'result.json',
          filepath: `${agent.workspace}/out/result.json`,
          mime_type: 'application/json',
          size_bytes: 3,
          title: 'Result',
          description: 'The one',
        },
        bytes: Buffer.from('123'),
      },
    ]);
  });

  test('of every type are reported with their data', async () => {
    await start(
      sh(
        'echo "# Plan" > plan.md; report-artifact plan.md --type PLAN --title "My plan"',
        'report-artifact --type PULL_REQUEST --url https://x.test/pr/1 --branch fix',
        'report-artifact --type EXTERNAL_REFERENCE --url https://x.test/i/1 --reference-type issue --title Issue',
        ': > empty; report-artifact empty --type screenshot --mime-type image/png',
      ),
    );
    await ended();
    expect(fake.artifacts.map(({ artifact_type, data }) => [artifact_type, data])).toEqual([
      ['PLAN', { title: 'My plan', content: '# Plan\n' }],
      ['PULL_REQUEST', { url: 'https://x.test/pr/1', branch: 'fix' }],
      ['EXTERNAL_REFERENCE', { reference_type: 'issue', url: 'https://x.test/i/1', title: 'Issue' }],
      ['SCREENSHOT', expect.objectContaining({ filename: 'empty', mime_type: 'image/png', size_bytes: 0 })],
    ]);
    expect(fake.artifacts[3]?.bytes).toEqual(Buffer.alloc(0));
  });

  test.each([
    ['a folder', 'report-artifact .', 'is a folder'],
    ['a missing file', 'report-artifact nothing', 'there is no file'],
    ['a symbolic link', 'ln -s /etc/passwd link; report-artifact link', 'symbolic link'],
    ['a named pipe', 'mkfifo pipe; report-artifact pipe', 'not a regular file'],
    ['a device', 'report-artifact /dev/zero', 'not a regular file'],
    ['an unknown type', 'report-artifact x --type POEM', 'unknown artifact type'],
    ['a pull request without its branch', 'report-artifact --type PULL_REQUEST --url https://x.test', 'needs branch'],
    ['an unknown flag', 'report-artifact --colour x', 'Unknown option'],
  ])('refuses %s with exit code 1 and the reason', async (_what, command, reason) => {
    await start(sh(command));
    await ended();
    expect(of('action_result')[0]).toMatchObject({ state: 'failed', exit_code: 1 });
    expect(fake.output(of('action')[0]!.action_id)).toContain(reason);
    expect(fake.artifacts).toEqual([]);
  });

  test('survive a service that fails the first upload', async () => {
    let failures = 0;
    await start(sh('head -c 300000 /dev/zero > big; report-artifact big'), {
      prepare: (fake) => {
        fake.fault = ({ method }) => (method === 'PUT' && failures++ === 0 ? { status: 500 } : undefined);
      },
    });
    await ended();
    expect(fake.artifacts[0]?.bytes?.length).toBe(300_000);
    expect(failures).toBe(2);
  });
});

describe('a service in trouble', () => {
  test('that answers 503 for a while gets everything once, in order', async () => {
    let faults = 6;
    await start(sh('for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.05; done', 'echo end'), {
      prepare: (fake) => {
        fake.fault = () => (faults-- > 0 ? { status: 503 } : undefined);
      },
    });
    await ended();
    expect(fake.output(of('action')[0]!.action_id)).toBe('1\n2\n3\n4\n5\n6\n7\n8\n');
    expect(fake.finished[0]?.success).toBe(true);
  }, 30_000);

  test('whose acknowledgements are lost stores nothing twice', async () => {
    let requests = 0;
    await start(sh('for i in 1 2 3 4 5 6; do echo $i; sleep 0.05; done'), {
      prepare: (fake) => {
        fake.fault = ({ path }) => (path.endsWith('/events') && requests++ % 2 === 0 ? { status: 'cut' } : undefined);
      },
    });
    await ended();
    expect(requests).toBeGreaterThan(2);
    expect(fake.output(of('action')[0]!.action_id)).toBe('1\n2\n3\n4\n5\n6\n');
  });

  test('that refuses one event gets a notice in its place and all others', async () => {
    await start(sh('echo one', 'echo poison', 'echo three'), {
      prepare: (fake) => {
        fake.fault = ({ path, body }) => {
          if (!path.endsWith('/events')) return undefined;
          const { events } = JSON.parse(body) as { events: { type: string; text?: string }[] };
          return events.some((event) => event.type === 'action_output' && event.text === 'poison\n')
            ? { status: 400 }
            : undefined;
        };
      },
    });
    await ended();
    expect(of('action_output').map((event) => event.text)).toEqual(['one\n', 'three\n']);
    expect(of('notice')).toEqual([expect.objectContaining({ name: 'event_refused' })]);
    expect(of('action_result')).toHaveLength(3);
  });

  test('that calls the execution superseded stops the agent at once, with its commands and without a report', async () => {
    await start(sh('echo $$; exec sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    const pid = Number(of('action_output')[0]?.text);
    const told = fake.events.length;
    fake.supersede();
    await ended();
    await eventually(() => !isRunning(pid));
    expect(fake.events.length).toBe(told);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual([]);
  });

  test('that does not know the run makes the agent report and end', async () => {
    await start(sh('true'), {
      prepare: (fake) => {
        fake.fault = ({ path }) => (path.endsWith('/resolve-prompt') ? { status: 404 } : undefined);
      },
    });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'agent_process_failed',
      message: expect.stringContaining('404'),
    });
  });
});

describe('a cancel', () => {
  async function cancelled(stop: () => void = () => fake.cancel()): Promise<number> {
    const started = performance.now();
    stop();
    await agent.exited;
    numbered();
    return performance.now() - started;
  }

  test('stops a command, settles it, reports the shutdown and exits with 0', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    expect(await cancelled()).toBeLessThan(3_000);
    expect(await agent.exited).toBe(0);
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(of('turn_finished')).toHaveLength(1);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('stops a command that ignores SIGTERM and what it detached', async () => {
    await start(sh('trap "" TERM\nsetsid sleep 600 & echo $!\nwhile true; do sleep 1; done'));
    await fake.until(() => of('action_output').length === 1);
    const pid = Number(of('action_output')[0]?.text);
    expect(await cancelled()).toBeLessThan(5_000);
    await eventually(() => !isRunning(pid));
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends within 5 s a harness that ignores it, with what it detached', async () => {
    await start(scripted('ignores-cancel'));
    await fake.until(() => of('action').length === 1);
    const { pid } = of('action')[0]!.input as { pid: number };
    expect(await cancelled()).toBeLessThan(5_000);
    expect(await agent.exited).toBe(0);
    await eventually(() => !isRunning(pid));
    expect(of('action_result')).toEqual([expect.objectContaining({ state: 'failed' })]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  }, 15_000);

  test('ends a setup command', async () => {
    await start({ ...sh('true'), environment: { uid: 'e', config: { setup_commands: ['sleep 600'] } } });
    await fake.until(() => of('setup_step_started').length === 1);
    expect(await cancelled()).toBeLessThan(5_000);
    expect(of('agent_started')).toEqual([]);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('ends the agent within 5 s although the service takes no reports', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    fake.fault = ({ path }) => (path.endsWith('/inbox') ? undefined : { status: 503 });
    expect(await cancelled()).toBeLessThan(5_500);
    expect(await agent.exited).toBe(0);
  }, 15_000);

  test('by SIGTERM stops the run in the same way', async () => {
    await start(sh('echo begun; sleep 600'));
    await fake.until(() => of('action_output').length === 1);
    await cancelled(() => agent.child.kill('SIGTERM'));
    expect(await agent.exited).toBe(143);
    expect(fake.shutdowns).toEqual(['terminated']);
    expect(fake.finished).toEqual([]);
  });
});

describe('behind the relay', () => {
  test('all goes over its Unix socket, also a clone by git, and no token stays behind', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'runyard-relay-'));
    const git = await startFakeGitHost();
    try {
      await git.commit('acme', 'hello', { README: 'from git\n' });
      await start(
        {
          ...sh('cat hello/README; cat hello/.git/config; report-artifact hello/README'),
          repositories: [{ owner: 'acme', repo: 'hello', gateway_path: '/api/v1/gateway/git/acme/hello.git' }],
        },
        {
          socketPath: join(folder, 'relay.sock'),
          prepare: (fake) => fake.forwards.set('/api/v1/gateway/git', git.url),
        },
      );
      await ended();
      const output = fake.output(of('action')[0]!.action_id);
      expect(output).toMatch(/^from git\n/);
      expect(output).toContain('url = https://github.com/acme/hello.git');
      expect(output).not.toContain(fake.token);
      expect(output).not.toContain('127.0.0.1');
      expect(of('setup_step_finished')).toEqual([
        expect.objectContaining({ kind: 'clone', name: 'acme/hello', exit_code: 0 }),
      ]);
      expect(
        fake.requests
          .filter((request) => request.path.includes('/git/'))
          .every((request) => request.authorization === `Bearer ${fake.token}`),
      ).toBe(true);
      expect(fake.artifacts[0]?.bytes?.toString()).toBe('from git\n');
    } finally {
      await git.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('a repository that does not exist fails the setup with what git said', async () => {
    await start({
      ...sh('true'),
      repositories: [{ owner: 'acme', repo: 'gone', gateway_path: '/api/v1/gateway/git/acme/gone.git' }],
    });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'environment_setup_failed',
      message: expect.stringMatching(/acme\/gone.*not found/s),
    });
    expect(fake.finished[0]?.error?.message).not.toContain(fake.token);
  });
});
