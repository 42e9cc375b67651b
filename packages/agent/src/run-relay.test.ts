import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { ended, fake, of, sh, start } from '../test/run.ts';

describe('an agent with a relay', () => {
  test('sends all requests, including a git clone, over the Unix socket of the relay, and keeps the token out of the git configuration', async () => {
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

  test('fails the setup with the message of git if a repository does not exist', async () => {
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
