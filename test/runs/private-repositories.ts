/**
 * Tests private repositories in a whole system: the service has the credential, and programs in the sandbox clone and push without it.
 */
import { describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../fakes/git-host.ts';
import { makeFakePullRequestApi } from '../fakes/pull-request-api.ts';
import type { System } from '../support/system.ts';

const token = 'github_pat_of-the-whole-system-0123456789';
const pullRequests = makeFakePullRequestApi(token);

/** Starts a fake code host with the repositories. The settings of the system name its address. */
export async function startPrivateHost(): Promise<FakeGitHost> {
  const host = await startFakeGitHost({ token, api: pullRequests.api });
  await host.commit('acme', 'site', { 'docs/README.md': 'private' });
  await host.commit('acme', 'secret', { 'README.md': 'of others' });
  return host;
}

export const describePrivateRepositories = (system: System, host: FakeGitHost) =>
  describe('a private repository', () => {
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
  });
