/** Uses the dashboard in a real browser as a person does, with a service and a worker as processes and runs in real sandboxes. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type FakeGitHost, startFakeGitHost } from '../fakes/git-host.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { describeSystem, later } from '../support/describe-system.ts';

let host: FakeGitHost | undefined;
afterAll(async () => await host?.close());

const options = async () => {
  host = await startFakeGitHost();
  await host.commit('acme', 'app', { 'readme.md': 'first line\n' });
  return {
    env: { RUNYARD_CODE_HOST_URL: host.template, RUNYARD_DEFAULT_MODEL: 'runbook', RUNYARD_WORKER_SLOTS: '3' },
  };
};
const block = (command: string) => `\`\`\`sh\n${command}\n\`\`\``;

describe.skipIf(noBrowser)(`the dashboard with real runs${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  describeSystem('in sandboxes', options, (system) => {
    const browser = useBrowser();
    const page = later(() => browser().page);
    const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
    const terminal = (text: string) => page.locator('[data-part=terminal]', { hasText: text });
    /** Unfolds the action with this command. Actions are folded after their end. */
    const openAction = (command: string) =>
      page.locator('[data-part=action]', { hasText: command }).locator('summary').click();
    const state = (name: string) => page.locator(`[data-state=${name}][data-large]`);
    let app: string;
    const newEnvironment = async (config: object) =>
      (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
    /** Opens the address with a sign-in link that works once. */
    const openSignedIn = async (address: string) => {
      const { code } = await system.call<{ code: string }>('POST', '/sign-in-codes', undefined, 201);
      await page.goto(`${system.baseUrl()}${address}#sign-in=${code}`);
      await page.getByRole('button', { name: /^Sign in as / }).click();
    };

    beforeAll(async () => {
      app = await newEnvironment({ name: 'App', github_repos: [{ owner: 'acme', repo: 'app' }] });
    });
    beforeEach(() => page.setViewportSize({ width: 1440, height: 900 }));

    test('a person starts a run, approves its commands, reads their output, sends a follow-up and sees the changed files', async () => {
      await openSignedIn('/runs');
      await page.getByRole('link', { name: 'Change it first' }).click();
      await page.getByLabel('Prompt').fill(block('cd app; echo "second line" >> readme.md; echo approved-$((40+2))'));
      await page.getByLabel('Environment').selectOption({ label: 'App' });
      await page.getByText(/^More: approvals/).click();
      await page.getByLabel('Approvals').selectOption('ask');
      await button(/^Start run/).click();
      await page.getByRole('heading', { name: 'The agent asks to run a command' }).waitFor();
      expect(await terminal('approved-42').count()).toBe(0);
      await button(/^Approve(?! for)/).click();
      await state('SUCCEEDED').waitFor();
      await openAction('echo approved');
      await terminal('approved-42').waitFor();

      // The sandbox of the run waits for messages.
      await page
        .getByRole('textbox', { name: 'Message to the agent' })
        .fill(block('cat app/readme.md; echo again-$((1+1))'));
      await button('Send message').click();
      await button(/^Approve(?! for)/).click();
      await state('SUCCEEDED').waitFor();
      await openAction('echo again');
      await terminal('again-2').waitFor();
      expect(await terminal('again-2').textContent()).toContain('second line');
      await page.getByRole('link', { name: 'Files changed' }).click();
      await page.locator('[data-part=diff]', { hasText: 'second line' }).waitFor();
      await browser().picture('real-run-files');
      expect(browser().complaints).toEqual([]);
    });

    test('a person on a phone approves the push of a run, and nothing else', async () => {
      const push =
        'cd app && echo ready > ready.txt && git add . && git commit -qm Ready && git push -q origin HEAD:refs/heads/ready';
      const runId = await system.createRun(`${block('echo unasked-$((40+2))')}\n${block(push)}`, {
        title: 'Get ready',
        config: { environment_id: app, approval_policy: 'ask', approval_rules: [{ push: '*' }] },
      });
      await system.until(runId, (run) => run.state === 'BLOCKED');
      await page.setViewportSize({ width: 390, height: 844 });
      await openSignedIn('/inbox');
      await page.getByRole('link', { name: 'Get ready' }).first().click();
      await page.getByRole('heading', { name: 'The agent asks to push' }).waitFor();
      await page.getByText('ready: new branch').first().waitFor();
      await browser().picture('real-run-push-on-a-phone');
      expect(await host?.branchAt('acme', 'app', 'ready')).toBe('');
      await button(/^Approve(?! for)/).click();
      await state('SUCCEEDED').waitFor();
      expect(await host?.lastCommit('acme', 'app', 'ready')).toMatchObject({ subject: 'Ready' });
      await openAction('echo unasked');
      await terminal('unasked-42').waitFor();
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(390);
      expect(browser().complaints).toEqual([]);
    });

    test('a person watches a run at work with its output and its changed files, and cancels it', async () => {
      const command =
        'cd app; echo "line of the agent" >> readme.md; printf "\\033[32mlive\\033[0m-%s\\n" $((40+2)); sleep 600';
      const runId = await system.createRun(block(command), { config: { environment_id: app } });
      await openSignedIn(`/runs/${runId}`);
      await terminal('live-42').waitFor();
      expect(await page.locator('[data-part=terminal] [data-colour=green]').textContent()).toBe('live');
      await state('INPROGRESS').waitFor();
      await page.getByRole('link', { name: 'Files changed' }).click();
      await page.locator('[data-part=diff]', { hasText: 'line of the agent' }).waitFor();
      await page.getByText('read again every few seconds').waitFor();
      await button('Cancel run…').click();
      await button('Cancel the run').click();
      await state('CANCELLED').waitFor();
      await page.locator('[data-part=diff]', { hasText: 'line of the agent' }).waitFor();
      await page.getByText('read again every few seconds').waitFor({ state: 'detached' });
      expect(browser().complaints).toEqual([]);
    });

    test('a person downloads a file of a workspace without git while the run works', async () => {
      const runId = await system.createRun(block('echo early-$((40+2)) > report.md; sleep 600'));
      await openSignedIn(`/runs/${runId}?tab=files`);
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.locator('main').getByRole('button', { name: 'Download report.md' }).first().click(),
      ]);
      await state('INPROGRESS').waitFor();
      expect(readFileSync((await download.path()) ?? '', 'utf8')).toBe('early-42\n');
      await browser().picture('real-run-loose-files');
      await system.call('POST', `/agent/runs/${runId}/cancel`);
    });

    test('a run whose setup fails shows the failed step with its output, and the next step of the person', async () => {
      const environment_id = await newEnvironment({
        name: 'Broken',
        setup_commands: ['echo missing-$((40+2)); exit 5'],
      });
      const runId = await system.createRun(block('true'), { config: { environment_id } });
      await openSignedIn(`/runs/${runId}`);
      await state('FAILED').waitFor();
      await terminal('missing-42').waitFor();
      await page.getByText(/^The agent did not begin\. The same run fails again/).waitFor();
      await page.getByRole('link', { name: 'environment_setup_failed' }).waitFor();
      await browser().picture('real-run-failed');
      await page.getByRole('link', { name: 'Edit setup' }).click();
      await page.getByRole('heading', { name: 'Broken' }).waitFor();
      expect(browser().complaints).toEqual([]);
    });
  });
});
