import { describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { agent, ended, fake, of, scripted, start } from '../test/run.ts';

describe('an external harness', () => {
  test('is driven over stdio and started as a step of the setup', async () => {
    await start({ ...scripted('hello'), agent_config: { model_id: 'm' } });
    await ended();
    expect(of('setup_step_finished')).toEqual([expect.objectContaining({ kind: 'harness', name: 'acp' })]);
    expect(of('agent_started')).toEqual([expect.objectContaining({ harness: 'acp', model_id: 'm' })]);
    expect(fake.finished).toEqual([{ turn: 1, success: true, summary: 'Hello world.' }]);
  });

  test('does not see the run token', async () => {
    await start(scripted('tells-environment'));
    await ended();
    expect(JSON.parse(fake.text())).toEqual({ socket: expect.any(String) });
  });

  test('starts after the repositories are cloned, because it reads project files when it starts', async () => {
    const git = await startFakeGitHost();
    try {
      await git.commit('acme', 'hello', { README: 'from git\n' });
      const whenCloned =
        'test -e hello/.git/refs/runyard/base || { echo "started during the clone" >&2; exit 9; }; exec "$@"';
      const command = scripted('hello').harness?.command ?? [];
      await start(
        {
          harness: { type: 'acp', command: ['sh', '-c', whenCloned, 'sh', ...command] },
          repositories: [{ owner: 'acme', repo: 'hello', gateway_path: '/api/v1/gateway/git/acme/hello.git' }],
        },
        { prepare: (fake) => fake.forwards.set('/api/v1/gateway/git', git.url) },
      );
      await ended();
      expect(fake.finished).toEqual([{ turn: 1, success: true, summary: 'Hello world.' }]);
    } finally {
      await git.close();
    }
  });

  test('gets the base prompt before the prompt, and gets attachments as links', async () => {
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

  test('fails the run with the reason if it exits at once', async () => {
    await start(scripted('exits-at-once'));
    await ended();
    expect(fake.finished[0]?.error).toEqual({
      code: 'agent_process_failed',
      message: expect.stringContaining('no such option'),
    });
    expect(of('agent_started')).toEqual([]);
    expect(of('setup_step_finished')[0]?.error).toContain('exited with code 2');
  });

  test('fails the setup if the run names no command', async () => {
    await start({ harness: { type: 'claude' } });
    await ended();
    expect(fake.finished[0]?.error).toEqual({
      code: 'environment_setup_failed',
      message: expect.stringContaining('claude'),
    });
  });

  test('fails the setup if the kernel refuses the command', async () => {
    await start({ harness: { type: 'acp', command: ['true', 'x'.repeat(140_000)] } });
    await ended();
    expect(fake.finished[0]?.error).toEqual({
      code: 'environment_setup_failed',
      message: expect.stringMatching(/acp cannot be started: .*E2BIG/),
    });
  });

  test('is blocked in writing output while the service does not answer, and no output is lost', async () => {
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
  });
});
