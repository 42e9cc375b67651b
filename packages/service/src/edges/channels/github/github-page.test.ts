/** Runs the commands of docs/github.md, and does on a fake GitHub what the page says. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test, vi } from 'vitest';
import { openGithubService } from '../../../../test/github.ts';
import { permissions } from '../../../triggers/github/manifest.ts';

const { github, service, site, claim, person, openDeliverer } = await openGithubService();
const page = readFileSync(path.resolve(import.meta.dirname, '../../../../../../docs/github.md'), 'utf8');
const steps = [...page.matchAll(/^```sh\n(.*?)^```$\n\n```text\n(.*?)^```$/gms)].map(
  ([, command = '', prints = '']) => ({ command, prints: prints.trim() }),
);

/** Runs the commands of the page up to a step, and returns what the last one prints. */
async function run(upTo: number): Promise<string> {
  const script = steps.slice(0, upTo).map(({ command }) => command);
  const env = { PATH: process.env.PATH ?? '', RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key };
  const { stdout } = await promisify(execFile)('bash', ['-c', `exec 2>&1\n${script.join('\n')}`], { env });
  return stdout.trim().split('\n').slice(-1).join();
}

test('the commands of the page lead to an answered issue', async () => {
  expect(steps).toHaveLength(2);
  await claim();
  const ann = await person('ann');
  const deliverer = await openDeliverer();
  expect(await run(1)).toBe(steps[0]?.prints);
  const issue = github.issue(site, ann.account);
  await github.comment(issue, ann.account, `@${github.app.slug} please look into this`);
  await vi.waitFor(async () => {
    await deliverer.deliver();
    expect(issue.comments.filter(({ byApp }) => byApp)).toHaveLength(1);
  }, 60_000);
  expect(issue.comments.at(-1)?.body).toMatch(/\/runs\/[\da-f-]{36}/);
  const last = steps[1]?.command ?? '';
  const [first = { command: '', prints: '' }] = steps;
  // Without the automation of the first step, which exists already.
  steps.splice(
    0,
    2,
    { ...first, command: first.command.replace(/^api "\/factory[\s\S]*$/m, '') },
    { command: last, prints: '' },
  );
  expect(await run(2)).toBe('issue_comment ACCEPTED 1');
});

test('the page lists the permissions of the manifest with their reasons', () => {
  const rows = [...page.matchAll(/^\| (\w+) \| (read|write) \| (.*) \|$/gm)].map(([, name, access, reason]) => ({
    name,
    access,
    reason,
  }));
  expect(rows).toEqual(permissions);
});
