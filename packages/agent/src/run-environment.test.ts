import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import { afterEach, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { agent, ended, fake, of, scripted, sh, start } from '../test/run.ts';

const environment = (config: EnvironmentConfig) => ({ environment: { uid: 'e', config } });
const outputs = () => of('action').map(({ action_id }) => fake.output(action_id));

describe('the variables of an environment', () => {
  test('are set for setup commands and the agent, and cannot replace a variable that the agent needs', async () => {
    await start({
      ...sh('echo "$GREETING $HOME"'),
      ...environment({
        // An environment that was stored before variables were checked may have such variables.
        variables: JSON.parse('{"GREETING": "hello", "HOME": "/elsewhere", "RUNYARD_AGENT_SOCKET": "x", "OLD": 5}'),
        setup_commands: ['test "$GREETING" = hello'],
      }),
    });
    await ended();
    expect(fake.finished[0]).toMatchObject({ success: true });
    expect(outputs()[0]).toMatch(/^hello /);
    expect(outputs()[0]).not.toContain('elsewhere');
  });
});

describe('the working directory of an environment', () => {
  test('is the folder in which the agent works. Setup commands run in the workspace and may create this folder', async () => {
    await start({
      ...sh('pwd; echo made > it; report-artifact it'),
      ...environment({ working_directory: 'a/b', setup_commands: ['pwd > place', 'mkdir -p a/b'] }),
    });
    await ended();
    expect(outputs()[0]).toContain(`${join(agent.workspace, 'a/b')}\n`);
    expect(existsSync(join(agent.workspace, 'place'))).toBe(true);
    expect(fake.artifacts[0]).toMatchObject({ data: { filepath: 'a/b/it' } });
  });

  test('is the folder in which an external harness starts', async () => {
    await start({
      harness: {
        type: 'acp',
        command: ['sh', '-c', 'touch here; exec "$@"', 'sh', ...(scripted('hello').harness?.command ?? [])],
      },
      ...environment({ working_directory: 'a', setup_commands: ['mkdir a'] }),
    });
    await ended();
    expect(existsSync(join(agent.workspace, 'a/here'))).toBe(true);
  });

  test.each([
    ['does not exist', 'missing', 'true'],
    ['leads out of the workspace', 'out', 'ln -s / out'],
    ['is not a folder', 'file', 'touch file'],
  ])('fails the setup if it %s', async (why, working_directory, command) => {
    await start({ ...sh('true'), ...environment({ working_directory, setup_commands: [command] }) });
    await ended();
    expect(fake.finished[0]?.error).toMatchObject({
      code: 'environment_setup_failed',
      message: expect.stringContaining(why),
    });
  });
});

describe('git in the sandbox', () => {
  let git: FakeGitHost;
  afterEach(() => git.close());
  const repositories = [{ owner: 'acme', repo: 'hello', gateway_path: '/api/v1/gateway/git/acme/hello.git' }];
  const prepare = (given: typeof fake) => void given.forwards.set('/api/v1/gateway/git', git.url);

  test('pushes and fetches through the gateway without the run token', async () => {
    git = await startFakeGitHost();
    await git.commit('acme', 'hello', { README: 'old\n' });
    const commit = 'git -c user.name=a -c user.email=a@example.invalid commit --quiet --all --message change';
    await start(
      {
        ...sh(
          `cd hello && echo new > README && ${commit} && git push --quiet origin HEAD:main && git fetch --quiet && env`,
        ),
        repositories,
      },
      { prepare },
    );
    await ended();
    expect(fake.finished[0]).toMatchObject({ success: true });
    expect(await git.read('acme', 'hello', 'README')).toBe('new');
    expect(outputs()[0]).not.toContain(fake.token);
  });

  test('cannot reach another repository, and reaches the repository of the run only with the secret path in its variables', async () => {
    git = await startFakeGitHost();
    await git.commit('acme', 'hello', { README: 'old\n' });
    await git.commit('acme', 'other', { README: 'secret\n' });
    const probe = [
      'base=$(printf %s "$GIT_CONFIG_KEY_0" | sed "s/^url.//; s/.insteadOf$//")',
      'git ls-remote "$base" > /dev/null && echo own-is-reached',
      'owner=$(dirname "$base")',
      'git ls-remote "$owner/other.git" || echo other-is-refused',
      'git ls-remote "$owner/hello.git/../other.git" || echo climb-is-refused',
      'git ls-remote "$(printf %s "$base" | sed -E "s#/[0-9a-f]{32}/#/#")" || echo path-is-refused',
    ];
    await start({ ...sh(probe.join('\n')), repositories }, { prepare });
    await ended();
    for (const line of ['own-is-reached', 'other-is-refused', 'climb-is-refused', 'path-is-refused'])
      expect(outputs()[0]).toContain(line);
    expect(git.requests.some(({ url }) => url.includes('other'))).toBe(false);
  });

  test('reports that a repository has no default branch or no commit', async () => {
    git = await startFakeGitHost();
    await git.replace('acme', 'hello', { branch: 'develop', files: { README: 'hello\n' } });
    await start({ ...sh('ls hello'), repositories }, { prepare });
    await ended();
    expect(of('setup_step_finished')[0]).toMatchObject({
      exit_code: 0,
      name: 'acme/hello: no files, because its default branch main does not exist. Set the default branch at the code host. Branches: develop',
    });
  });

  test('does not run programs of a hostile repository during the clone', async () => {
    git = await startFakeGitHost();
    await git.commit(
      'acme',
      'hello',
      {
        README: 'hostile\n',
        '.gitmodules': [
          ['x', '--upload-pack=touch owned'],
          ['y', 'file:///etc'],
          ['z', `${git.url}/private/z.git`],
          ['.git/hooks', 'ext::sh -c touch% owned'],
        ]
          .map(([path, url]) => `[submodule "${path}"]\n\tpath = ${path}\n\turl = ${url}\n`)
          .join(''),
        '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs\nREADME filter=evil\n',
        'large.bin': 'version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 99999999999\n',
        '.lfsconfig': '[lfs]\n\turl = http://127.0.0.1:1/\n',
        '.githooks/post-checkout': '#!/bin/sh\ntouch owned\n',
        '.envrc': 'touch owned\n',
      },
      { 'link-out': '/etc', '.agents': '../../..' },
      { x: 'a'.repeat(40), y: 'b'.repeat(40), z: 'c'.repeat(40) },
    );
    await start(
      {
        ...sh(
          'test ! -e owned && test ! -e hello/owned && cat hello/large.bin hello/README && find hello/x hello/y hello/z hello/.git/hooks && ! grep -r owned hello/.git/hooks',
        ),
        repositories,
      },
      { prepare },
    );
    await ended(0);
    expect(of('setup_step_finished')[0]).toMatchObject({ kind: 'clone', exit_code: 0 });
    expect(outputs()[0]).toContain('git-lfs.github.com/spec/v1');
    expect(outputs()[0]).toContain('hostile');
    expect(outputs()[0]).toMatch(/\nhello\/x\nhello\/y\nhello\/z\nhello\/\.git\/hooks\n/);
    expect(outputs()[0], 'only samples, and hooks of Git LFS if the machine has it').not.toMatch(
      /hooks\/(?!post-checkout|post-commit|post-merge|pre-push)[\w-]+\n/,
    );
    expect(outputs()[0]).not.toContain('touch owned');
    expect(git.requests.every(({ url }) => url.startsWith('/acme/hello.git/'))).toBe(true);
  });
});
