import { spawnSync } from 'node:child_process';
import { afterEach, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { ended, fake, of, sh, start } from '../test/run.ts';

const origin = 'https://code.acme.example/acme';
const repository = (repo: string, more: object = {}) => ({
  owner: 'acme',
  repo,
  url: `${origin}/${repo}.git`,
  gateway_path: `/api/v1/gateway/git/acme/${repo}.git`,
  ...more,
});

let git: FakeGitHost;
afterEach(() => git.close());

/** Runs a command after the clones. Returns its output. */
async function run(command: string, repositories: readonly object[]): Promise<string> {
  await start(
    { ...sh(command), repositories: repositories as never },
    { prepare: (given) => void given.forwards.set('/api/v1/gateway/git', git.url) },
  );
  await ended();
  const [action] = of('action');
  const output = fake.output(action?.action_id ?? '');
  expect(fake.finished[0], output + JSON.stringify(of('setup_step_finished'))).toMatchObject({ success: true });
  return output;
}

const cloneStep = () => of('setup_step_finished').find(({ kind }) => kind === 'clone');

describe('a repository', () => {
  test('has the address on its code host as origin, and is reached by HTTPS and SSH addresses through the gateway', async () => {
    git = await startFakeGitHost();
    await git.commit('acme', 'site', { README: 'one\n' });
    const remotes = [
      `${origin}/site.git`,
      'git@code.acme.example:acme/site.git',
      'ssh://git@code.acme.example/acme/site.git',
    ];
    const commands = ['cat site/.git/config', ...remotes.map((remote) => `git ls-remote ${remote} HEAD`)];
    const output = await run(commands.join(' && '), [repository('site')]);
    expect(output).toContain(`url = ${origin}/site.git`);
    expect(output.match(/[0-9a-f]{40}\tHEAD/g)).toHaveLength(3);
  });

  test('is checked out at a branch, a tag or a commit, with the wanted history, folders and place', async () => {
    git = await startFakeGitHost();
    const first = await git.commit('acme', 'site', { 'a/x': '1\n', 'b/y': '1\n', top: '1\n' });
    await git.commit('acme', 'site', { 'a/x': '2\n' });
    await git.replace('acme', 'site', { branch: 'release/1.x', files: { 'a/x': 'of the branch\n' } });
    const count = (folder: string) => `git -C ${folder} rev-list --count HEAD`;
    const output = await run(
      [
        `echo branch $(cat branch/a/x) $(git -C branch branch --show-current)`,
        `echo commit $(cat commit/a/x) $(git -C commit rev-parse HEAD)`,
        `echo history $(${count('whole')}) $(${count('deep/er')})`,
        `echo sparse $(ls sparse) : $(cat sparse/a/x)`,
        `echo partial $(cat partial/b/y) $(git -C partial config remote.origin.partialclonefilter)`,
        `test ! -e absent && echo absent`,
      ].join('; '),
      [
        repository('site', { path: 'branch', ref: 'release/1.x' }),
        repository('site', { path: 'commit', ref: first }),
        repository('site', { path: 'whole', depth: 0 }),
        repository('site', { path: 'deep/er' }),
        repository('site', { path: 'sparse', sparse: ['a'] }),
        repository('site', { path: 'partial', filter: 'blob:none' }),
        repository('site', { path: 'absent', checkout: false }),
      ],
    );
    for (const line of [
      'branch of the branch release/1.x',
      `commit 1 ${first}`,
      'history 2 1',
      'sparse a top : 2',
      'partial 1 blob:none',
      'absent',
    ])
      expect(output).toContain(`${line}\n`);
  });

  test('gets the submodules whose repositories the run may reach, and the step names the others', async () => {
    git = await startFakeGitHost();
    const library = await git.commit('acme', 'library', { code: 'of the library\n' });
    const secret = await git.commit('acme', 'secret', { code: 'secret\n' });
    const module = (name: string, url: string) => `[submodule "${name}"]\n\tpath = ${name}\n\turl = ${url}\n`;
    const modules = [
      module('by-path', '../library'),
      module('by-ssh', 'git@code.acme.example:acme/library.git'),
      module('secret', '../secret.git'),
      module('local', '/etc'),
      module('option', '--upload-pack=touch /tmp/never'),
      module('helper', 'ext::sh -c touch% never'),
    ];
    await git.commit(
      'acme',
      'site',
      { '.gitmodules': modules.join('') },
      {},
      { 'by-path': library, 'by-ssh': library, secret, local: secret, option: secret, helper: secret },
    );
    const output = await run(
      'cat site/by-path/code site/by-ssh/code; ls site/secret site/local site/option site/helper',
      [repository('site', { submodules: true }), repository('library', { checkout: false })],
    );
    expect(output.match(/of the library/g)).toHaveLength(2);
    expect(output).not.toContain('secret\n');
    expect(cloneStep()?.name).toBe(
      'acme/site: not cloned, because their repositories are not in github_repos of the environment: submodules secret, local, option, helper',
    );
    expect(git.requests.some(({ url }) => url.includes('secret'))).toBe(false);
  });

  test('names the files of Git LFS that stay pointers', async () => {
    git = await startFakeGitHost();
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'0'.repeat(64)}\nsize 3\n`;
    const files = {
      '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
      'a.bin': pointer,
      'b.bin': pointer,
    };
    await git.commit('acme', 'site', files);
    expect(await run('cat site/a.bin', [repository('site')])).toContain('oid sha256');
    const hasLfs = spawnSync('git', ['lfs', 'version']).status === 0;
    expect(cloneStep()?.name).toContain(
      `acme/site: 2 files of Git LFS are pointers: ${hasLfs ? 'git lfs exited' : 'the sandbox has no git-lfs'}`,
    );
  });
});
