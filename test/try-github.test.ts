/** Runs the scenarios of bin/try-github against the fake GitHub as an Enterprise Server, with a service, a worker and real sandboxes. */
import { afterAll, expect, test } from 'vitest';
import { openGround } from '../bench/try-github/ground.ts';
import { openPerson } from '../bench/try-github/person.ts';
import { runScenarios } from '../bench/try-github/scenarios.ts';
import { createTestDatabase } from '../packages/service/test/database.ts';
import { startFakeGitHost } from './fakes/git-host.ts';
import { startFakeGithub, usualPermissions } from './fakes/github/github.ts';
import { sandboxProblem } from './support/system.ts';

const closing: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

test.skipIf(sandboxProblem)(
  'the scenarios of bin/try-github pass, and close what they open',
  async () => {
    const github = await startFakeGithub();
    closing.push(github.close);
    const git = await startFakeGitHost();
    closing.push(git.close);
    Object.assign(github, { git, gitOrigin: git.url });
    const acme = github.account('acme', 'Organization');
    const ann = github.account('ann');
    github.members.set(`${acme.id} ${ann.id}`, 'admin');
    github.repository(acme, 'site');
    github.install(acme, { ...usualPermissions, checks: 'write' });
    await git.commit('acme', 'site', { 'README.md': 'site' });
    github.tokens.set('token-of-ann', { kind: 'user', user: ann });
    const database = await createTestDatabase();
    closing.push(database.drop);

    const [repository, token] = ['acme/site', 'token-of-ann'];
    const app = { appId: String(github.app.id), privateKey: github.privateKey };
    const ground = await openGround({ ...app, url: github.urls.web, repository, token, databaseUrl: database.url });
    closing.push(ground.system.stop);
    // GitHub's log is read once a minute.
    const hurry = () => database.db.query(`UPDATE github_apps SET polled_at = now() - interval '1 hour'`);
    const timer = setInterval(() => void hurry().catch(() => {}), 500);
    const lines: string[] = [];
    const attempt = async (label: string, stopAt?: string) => {
      const stop = new AbortController();
      const { signal } = stop;
      const person = openPerson({ api: ground.api, token, repository, signal });
      const say = (line: string) => {
        lines.push(line);
        if (stopAt !== undefined && line.startsWith(stopAt)) stop.abort();
      };
      return await runScenarios({ ground, person, label, pauseMs: 500, signal, say });
    };
    const failed = await attempt('runyard-try-1');
    clearInterval(timer);

    expect({ failed, lines, faults: github.faults }).toMatchObject({ failed: 0, faults: [] });
    expect(lines.filter((line) => line.startsWith('passed: '))).toHaveLength(4);
    expect(github.issues.map(({ isClosed }) => isClosed)).toEqual([true, true]);
    expect([...github.branches]).toEqual([]);

    // Ctrl-C ends the wait for an answer. The command still closes the issue.
    expect(await attempt('runyard-try-2', 'opened')).toBe(1);
    expect(github.issues.map(({ isClosed }) => isClosed)).toEqual([true, true, true]);
    expect(lines.at(-1)).toMatch(/^FAILED: a mention in a new issue .*: stopped$/);
  },
  300_000,
);
