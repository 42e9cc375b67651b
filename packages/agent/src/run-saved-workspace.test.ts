import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { describe, expect, test } from 'vitest';
import { testFolder } from '../test/agent.ts';
import { agent, ended, fake, of, scripted, sh, start } from '../test/run.ts';
import { archivedFolders } from './workspace-archive/archived-folders.ts';
import { packFolders } from './workspace-archive/pack.ts';

const keeps = { max_workspace_bytes: 100_000_000 };
const place = '/api/v1/harness-support/workspace/earlier';
const setup = { environment: { uid: 'e', config: { setup_commands: ['echo again > set-up'] } } };

/** The saved workspace of an earlier execution, with one file. */
async function archived(session?: string): Promise<{ bytes: Buffer; workspace: AgentTask['workspace'] }> {
  const folder = join(testFolder(), 'w');
  mkdirSync(folder);
  writeFileSync(join(folder, 'file'), 'kept');
  if (session !== undefined) writeFileSync(join(folder, `.scripted-${session}`), '"from before"\n');
  const signal = new AbortController().signal;
  const archive = packFolders(archivedFolders(folder, undefined), { env: process.env, maxBytes: 1e9, signal });
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk);
  const bytes = Buffer.concat(chunks);
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  const of = { path: place, size_bytes: bytes.length, sha256, execution_number: 1, turn: 2 };
  return { bytes, workspace: { kind: 'archive', ...of } };
}
const output = () => fake.output(of('action').at(-1)?.action_id ?? '');

describe('the workspace', () => {
  test('is saved after the agent has reported the end of the run', async () => {
    await start({ ...sh('echo made > file'), ...keeps });
    await ended();
    expect(fake.workspaces.map(({ turn }) => turn)).toEqual([1]);
    const paths = fake.requests.map(({ path }) => path.split('/').at(-1));
    expect(paths.indexOf('workspace')).toBeGreaterThan(paths.indexOf('finish-task'));
  });

  test('is not saved if it is too large, and the agent reports this', async () => {
    await start({ ...sh('head -c 100000 /dev/urandom > file'), max_workspace_bytes: 50_000 });
    await ended();
    expect(fake.workspaces).toEqual([]);
    expect(of('notice').map(({ name }) => name)).toEqual(['workspace_not_kept']);
  });

  test('is saved after a cancel in the remaining time before the agent must exit', async () => {
    await start({ ...sh('echo made > file; echo begun; sleep 60'), ...keeps });
    await fake.until(() => of('action_output').length > 0);
    fake.cancel();
    await ended();
    expect(fake.workspaces).toHaveLength(1);
    expect(fake.shutdowns).toEqual(['cancelled']);
  });

  test('is restored without a new setup, and is not saved again if nothing changed', async () => {
    const { bytes, workspace } = await archived();
    await start(
      { ...sh('cat file; ls'), ...setup, ...keeps, workspace },
      {
        prepare: (fake) => fake.files.set(place, bytes),
      },
    );
    await ended();
    expect(output()).toContain('kept');
    expect(output()).not.toContain('set-up');
    expect(of('setup_step_finished')).toEqual([
      expect.objectContaining({
        kind: 'workspace',
        name: expect.stringMatching(/^restored as it was after turn 2 of execution 1 \(0\.0 MB\)$/),
        duration_ms: expect.any(Number),
      }),
    ]);
    expect(of('notice')).toEqual([]);
    expect(fake.workspaces).toEqual([]);
  });

  test('is saved again for this run if its files came from another run of the conversation', async () => {
    const { bytes, workspace } = await archived();
    const ofOther = { ...workspace, run_id: 'other' } as AgentTask['workspace'];
    await start(
      { ...sh('cat file'), ...setup, ...keeps, workspace: ofOther },
      { prepare: (fake) => fake.files.set(place, bytes) },
    );
    await ended();
    expect(output()).toContain('kept');
    expect(of('setup_step_finished').map(({ name }) => name)).toEqual([
      expect.stringMatching(/^restored as it was after turn 2 of execution 1 of the run other \(/),
    ]);
    expect(fake.workspaces.map(({ turn }) => turn)).toEqual([1]);
  });

  test('is set up again if the run may not get the files of its conversation, and a notice gives the reason', async () => {
    const workspace = { kind: 'missing' as const, reason: 'the environment has changed since' };
    await start({ ...sh('ls'), ...setup, ...keeps, workspace });
    await ended();
    expect(output()).toBe('set-up\n');
    expect(of('notice')).toMatchObject([
      { name: 'workspace_not_restored', data: { reason: 'the environment has changed since' } },
    ]);
  });

  test('is saved again if an attachment arrived, although the turn changed no file', async () => {
    const { bytes, workspace } = await archived();
    const path = '/api/v1/harness-support/files/1';
    const attachments = [{ file_name: 'data.txt', mime_type: 'text/plain', size_bytes: 3, path }];
    await start(
      { ...sh('true'), ...keeps, workspace, attachments },
      {
        prepare: (fake) => {
          fake.files.set(place, bytes);
          fake.files.set(path, Buffer.from('new'));
        },
      },
    );
    await ended();
    expect(fake.workspaces.map(({ turn }) => turn)).toEqual([1]);
  });

  test('is restored when the service can read the archive again, in one step and without a notice', async () => {
    const { bytes, workspace } = await archived();
    let refusals = 4;
    await start(
      { ...sh('cat file'), ...keeps, workspace },
      {
        prepare: (fake) => {
          fake.files.set(place, bytes);
          fake.fault = ({ path }) => (path === place && refusals-- > 0 ? { status: 503 } : undefined);
        },
      },
    );
    await ended();
    expect(refusals).toBeLessThan(0);
    expect(output()).toBe('kept');
    expect(of('setup_step_finished')).toMatchObject([{ kind: 'workspace' }]);
    expect(of('notice')).toEqual([]);
  });

  test('is set up again, with a notice, if five downloads are cut off', async () => {
    const { workspace } = await archived();
    const headers = { 'content-length': '1000', connection: 'close' };
    await start(
      { ...sh('ls'), ...setup, ...keeps, workspace },
      {
        prepare: (fake) => {
          fake.fault = ({ path }) => (path === place ? { status: 200, body: '{}', headers } : undefined);
        },
      },
    );
    await ended();
    expect(output()).toBe('set-up\n');
    expect(fake.requests.filter(({ path }) => path === place)).toHaveLength(5);
    expect(of('notice').map(({ name }) => name)).toEqual(['workspace_not_restored']);
  });

  test.each([
    ['broken', (bytes: Buffer) => bytes.subarray(0, bytes.length - 9)],
    ['another one', () => Buffer.from('no archive at all')],
    ['gone', () => undefined],
  ])('is set up again, with a notice, if the archive is %s', async (_name, damage) => {
    const { bytes, workspace } = await archived();
    await start(
      { ...sh('ls'), ...setup, ...keeps, workspace },
      {
        prepare: (fake) => {
          const damaged = damage(bytes);
          if (damaged !== undefined) fake.files.set(place, damaged);
        },
      },
    );
    await ended();
    expect(output()).toBe('set-up\n');
    expect(of('notice').map(({ name }) => name)).toEqual(['workspace_not_restored']);
    const [first, second] = of('setup_step_finished');
    expect(first).toMatchObject({ kind: 'workspace', error: expect.any(String) });
    expect(second).toMatchObject({ kind: 'setup_command', exit_code: 0 });
    expect(agent.stderr()).not.toContain('Error');
  });

  test('of an earlier execution that left it empty is restored as an empty folder', async () => {
    await start({ ...sh('ls'), ...setup, ...keeps, workspace: { kind: 'empty' } });
    await ended();
    expect(output()).toBe('');
    expect(of('notice')).toEqual([]);
  });

  test('is saved with the id of the session if the harness can load sessions', async () => {
    await start({ ...scripted('remembers'), ...keeps });
    await ended();
    expect(fake.workspaces.map(({ session }) => session)).toEqual([expect.stringMatching(/^s\d/)]);
    await fake.close();
    await start({ ...scripted('remembers-not'), ...keeps });
    await ended();
    expect(fake.workspaces.map(({ session }) => session)).toEqual([null]);
  });

  test.each([
    ['continues in it if it is restored', true],
    ['begins a new one with the conversation as text where it is not', false],
  ])('is restored with its session: the harness %s', async (_name, isThere) => {
    const { bytes, workspace } = await archived('s1');
    if (workspace?.kind !== 'archive') throw new Error('no archive');
    await start(
      {
        ...scripted('remembers'),
        ...keeps,
        prompt: 'And now?',
        conversation: { kind: 'text', text: 'EARLIER WORDS' },
        workspace: { ...workspace, session_id: 's1' },
      },
      {
        prepare: (fake) => {
          if (isThere) fake.files.set(place, bytes);
        },
      },
    );
    await ended();
    expect(fake.text()).toContain('And now?');
    if (isThere) expect(fake.text()).toBe('I remember "from before"\n"And now?"\n');
    else expect(fake.text()).toContain('EARLIER WORDS');
    expect(of('notice').map(({ name }) => name)).toEqual(isThere ? [] : ['workspace_not_restored']);
  });

  test('is saved while the agent waits for a follow-up, and a follow-up stops the saving', async () => {
    let isDown = true;
    await start(
      { ...sh('echo one > file'), ...keeps },
      {
        prepare: (fake) => {
          fake.next = 'wait';
          fake.fault = ({ method, path }) =>
            isDown && method === 'PUT' && path.endsWith('/workspace') ? { status: 503 } : undefined;
        },
      },
    );
    await fake.until(() => fake.requests.some(({ method, path }) => method === 'PUT' && path.endsWith('/workspace')));
    const { prompt: message = '' } = sh('cat file');
    fake.tell({ type: 'follow_up', id: 'f1', position: 1, message });
    await fake.until(() => fake.finished.length === 2);
    expect(output()).toBe('one\n');
    expect(fake.workspaces).toEqual([]);
    isDown = false;
    fake.tell({ type: 'leave' });
    await ended();
    expect(fake.workspaces.map(({ turn }) => turn)).toEqual([2]);
  });

  test('gets the files of a follow-up, and if they cannot be written, only the turn of this follow-up fails', async () => {
    await start(sh('rm -rf attachments; touch attachments'), {
      prepare: (fake) => {
        fake.next = 'wait';
        fake.files.set('/api/v1/harness-support/files/1', Buffer.from('hi'));
      },
    });
    const attachments = [
      { file_name: 'a.txt', mime_type: 'text/plain', size_bytes: 2, path: '/api/v1/harness-support/files/1' },
    ];
    const say = (position: number, prompt = '') =>
      fake.tell({ type: 'follow_up', id: `f${position}`, position, message: prompt, attachments });
    await fake.until(() => fake.finished.length === 1);
    say(1, sh('true').prompt);
    await fake.until(() => fake.finished.length === 2);
    expect(fake.finished[1]).toMatchObject({
      success: false,
      error: { message: expect.stringContaining('attachments') },
    });
    expect(fake.finished[1]?.error).not.toHaveProperty('code');
    fake.tell({ type: 'follow_up', id: 'f2', position: 2, message: sh('rm attachments').prompt ?? '' });
    await fake.until(() => fake.finished.length === 3);
    say(3, sh('cat attachments/a.txt').prompt);
    await fake.until(() => fake.finished.length === 4);
    expect(output()).toBe('hi');
    fake.tell({ type: 'leave' });
    await ended();
  });
});
