/** Test support: runs that push with the real git to a repository on a fake code host. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, expect } from 'vitest';
import { startFakeGitHost } from '../../../test/fakes/git-host.ts';
import { gatewayPathOf } from '../src/team/environments/git-path.ts';
import { runGit } from './run-git.ts';
import { openTestService } from './service.ts';

/** Starts a service and a code host with the repository acme/site, to which the runs may push. Stops both at the end of the test file. */
export async function openPushes() {
  const host = await startFakeGitHost();
  const folder = await mkdtemp(path.join(tmpdir(), 'pushes-'));
  const service = await openTestService({ env: { RUNYARD_CODE_HOST_URL: host.template } });
  afterAll(async () => {
    await host.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  const first = await host.commit('acme', 'site', { 'README.md': 'first' });

  async function startRun(config: object = {}, run: object = {}, members: object = {}) {
    const environment = await service.ok<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E', github_repos: [{ owner: 'acme', repo: 'site' }], ...config } },
    });
    const runId = await service.newRun({ ...members, config: { environment_id: environment.uid, ...run } });
    return await service.claimRun(runId);
  }

  const siteUrl = service.baseUrl + gatewayPathOf({ owner: 'acme', repo: 'site' });

  const git = (runToken: string, cwd: string, ...args: string[]) => runGit({ runToken, home: folder, cwd }, args);

  /** Starts a run, and clones the repository with the token of this run. */
  async function clone(config: object = {}, run: object = {}, members: object = {}) {
    const started = await startRun(config, run, members);
    const work = await mkdtemp(path.join(folder, 'work-'));
    const inWork = (...args: string[]) => git(started.runToken, work, ...args);
    expect(await inWork('clone', '--quiet', siteUrl, '.')).toEqual({ code: 0, text: '' });
    const commit = async (content: string, ...args: string[]) => {
      await writeFile(path.join(work, 'README.md'), content);
      expect((await inWork('commit', '--quiet', '--all', '--message', content, ...args)).code).toBe(0);
      return (await inWork('rev-parse', 'HEAD')).text.trim();
    };
    const events = async () => {
      const body = await service.ok<{ events: { event_type: string; payload: unknown }[] }>(
        'GET',
        `/agent/runs/${started.runId}/timeline`,
      );
      return body.events.filter(({ event_type }) => event_type === 'git_push').map(({ payload }) => payload);
    };
    return { ...started, work, git: inWork, commit, events };
  }

  const branchAt = (branch: string): Promise<string> => host.branchAt('acme', 'site', branch);

  return { host, service, first, siteUrl, startRun, git, clone, branchAt };
}
