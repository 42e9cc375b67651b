/** Private repositories in the whole system: the service has the credential, and the sandbox clones and pushes without it. */
import { afterAll, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from './fakes/git-host.ts';
import { describeSystem } from './support/describe-system.ts';

const token = 'github_pat_of-the-whole-system-0123456789';
let host: FakeGitHost | undefined;
afterAll(async () => await host?.close());

const options = async () => {
  host = await startFakeGitHost({ token });
  await host.commit('acme', 'site', { 'docs/README.md': 'private' });
  return { env: { RUNYARD_CODE_HOST_URL: host.template } };
};

describeSystem('a private repository', options, (system) => {
  test('is refused without a credential, and cloned and pushed with one that no sandbox sees', async () => {
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
      'git push --quiet origin HEAD:main',
      'env; cat ../.git/config; cat /proc/[0-9]*/environ 2> /dev/null | tr "\\0" "\\n"',
    ];
    const start = () => system.createRun(`\`\`\`sh\n${script.join('\n')}\n\`\`\``, { config: { environment_id: uid } });

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
    expect(await host?.read('acme', 'site', 'docs/README.md')).toBe('pushed');
    expect(conversation).toContain('hello');
    expect(conversation).not.toContain(token);
    expect(await system.logs()).not.toContain(token);
  }, 180_000);
});
