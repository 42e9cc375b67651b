/** Tests the page of a run of the dashboard in a real browser. With TEST_LONG=1, it tests all parts of the page. */
import { readFile } from 'node:fs/promises';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';
import { type ActedAgent, oneChange, startAgent, startFullRun } from '../support/full-run.ts';

describe.skipIf(noBrowser)(`the page of a run${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let agent: ActedAgent;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    agent = await startFullRun(service);
    await agent.handOff('billing.patch', 'a b.txt');
    await agent.send('/finish-task', { turn: 1, success: true, summary: 'Rounded' });
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });

  const open = async (runId: string, search = '') => {
    await page.goto(`${service.baseUrl}/runs/${runId}${search}`);
    await page.locator('#main h1').waitFor();
  };
  const facts = () => page.getByRole('complementary', { name: 'About this run' });
  const fact = (name: string) => facts().locator(`dt:text-is("${name}") + dd`);
  const seen = async (...texts: (string | RegExp)[]) => {
    for (const text of texts) await page.getByText(text).filter({ visible: true }).first().waitFor();
  };
  const runOf = async (runId: string) => (await service.request<RunItem>('GET', `/agent/runs/${runId}`)).body;
  /** Does `act`, and returns the body of the request that it causes to a path with this end. */
  const sentBy = async (end: string, act: () => Promise<unknown>): Promise<unknown> => {
    const sent = page.waitForRequest((each) => each.method() === 'POST' && each.url().endsWith(end));
    await act();
    return (await sent).postDataJSON();
  };
  const menu = async (entry: string) => {
    await page.getByRole('button', { name: 'More actions' }).click();
    await page.getByRole('menuitem', { name: entry }).click();
  };

  test('makes a comment on a changed line, a file and a mode part of the message to the agent', async () => {
    const made = await service.request<{ uid: string }>('POST', '/agent/environments', {
      body: { config: { name: 'E' } },
    });
    const config = { environment_id: made.body.uid };
    const working = await startAgent(service, { title: 'Changes a line', config });
    await working.send('/changes', oneChange);
    await open(working.runId, '?tab=files');
    const field = page.getByRole('textbox', { name: 'Message to the agent' });
    await page.getByRole('button', { name: 'Ask for a pull request' }).click();
    await expect.poll(() => field.inputValue()).toBe('Open a pull request with these changes.');
    await field.fill('');
    await page.getByRole('button', { name: 'Comment on line 2', exact: true }).click();
    await page.getByRole('textbox', { name: 'Comment on line 2' }).fill('Which rule?');
    await page.getByRole('button', { name: 'Add to the message' }).click();
    const comment = '`src/tax.ts`, line 2:\n```\nround(invoice)\n```\nWhich rule?\n';
    await expect.poll(() => field.inputValue()).toBe(comment);
    await page.locator('input[type=file]').setInputFiles({
      name: 'rules.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('Up'),
    });
    await page.getByLabel('Mode:').selectOption('plan');
    const sent = await sentBy('/followups', () => page.getByRole('button', { name: 'Send message' }).click());
    expect(sent).toEqual({
      message: comment,
      mode: 'plan',
      attachments: [{ file_name: 'rules.txt', mime_type: 'text/plain', data: 'VXA=' }],
    });
    await expect.poll(() => field.inputValue()).toBe('');
    expect(await page.getByLabel('Mode:').inputValue()).toBe('normal');
    await page.getByRole('link', { name: 'Conversation' }).click();
    const queued = page.getByRole('region', { name: 'Queued message' });
    await queued.getByText('Which rule?').waitFor();
    await expect
      .poll(() => queued.locator('[data-part=author]').textContent())
      .toBe('AdministratorQueuedplanrules.txt');
    await browser().picture('run-queued');
    await queued.getByRole('button', { name: 'Edit…' }).click();
    await page.getByRole('textbox', { name: 'Message', exact: true }).fill('Round each line up.');
    await browser().picture('run-queued-edit');
    await page.getByRole('button', { name: 'Save' }).click();
    await queued.getByText('Round each line up.').waitFor();
    await queued.getByRole('button', { name: 'Withdraw…' }).click();
    await page.getByRole('alertdialog').getByText('its files are deleted').waitFor();
    await page.getByRole('button', { name: 'Withdraw the message' }).click();
    await queued.waitFor({ state: 'detached' });
    expect(complaints).toEqual([]);
    // A page that has not heard yet that the agent took the message says so.
    await field.fill('Too late.');
    await page.getByRole('button', { name: 'Send message' }).click();
    await queued.getByRole('button', { name: 'Edit…' }).click();
    await service.deps.db.query("UPDATE followups SET execution_id = id, taken_at = now() WHERE message = 'Too late.'");
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('The agent already has this follow-up').waitFor();
    await page.getByRole('button', { name: 'Back' }).click();
    await field.fill('After the end.');
    await page.getByRole('button', { name: 'Send message' }).click();
    await queued.getByText('After the end.').waitFor();
    await service.request('POST', `/agent/runs/${working.runId}/cancel`);
    await queued.getByText('The agent gets this with the next message.').waitFor();
  });

  test('shows the work, the facts and the files of an ended run, also on a narrow page', async () => {
    await open(agent.runId);
    // The conversation: plan, difference of an edit, output of a failed command, answered question, child runs.
    await seen('1 of 2 done', 'exit 3', 'one test failed', 'Round up or down?', /^Answered by .*: Up/, '1 child run');
    await seen('cost not known', 'Round one invoice');
    await page.locator('[data-part=action]', { hasText: 'src/tax.ts' }).click();
    await page.locator('[data-kind=add]', { hasText: 'round(invoice)' }).waitFor();
    await page.getByRole('img', { name: /^Timeline: .*waited for an answer/ }).waitFor();
    await seen('1 denied');
    // The facts.
    expect(await fact('Model').textContent()).toBe('other/modelinstead of runbook');
    expect(await fact('Limits').textContent()).toBe('at most 30 minutes, 20 turns');
    expect(await fact('After a turn').textContent()).toBe('the sandbox waits 5 minutes for a message');
    expect(await fact('Environment').textContent()).toBe('billing');
    await fact('Sandbox').getByText('1 isolation feature missing').click();
    await fact('Sandbox').getByText('no cgroup: nobody <i>delegates</i> one').waitFor();
    expect(await fact('Sandbox').textContent()).toMatch(/^bubblewrap, ready in 14 ms4\.0 GB memory, 512 processes1/);
    await seen(
      'acme/billing #4824',
      'Pull request 4824',
      'Round tax per invoice',
      'NPM_TOKEN needs your acceptance',
      'Read and accept them',
    );
    await seen('1 host, 4 tries', 'registry.test:443', '×4', 'acme/billing tax-per-invoice');
    const pull = page.locator('[data-part=pull-request]');
    await expect
      .poll(() => pull.textContent())
      .toMatch(/merged.*approved maya.*failure GitHub Actions.*Merged bymaya.*did 2 things/);
    // The workspace.
    await seen('git apply --index billing.patch', 'a b.txt');
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download billing.patch' }).click();
    expect(await readFile(await (await download).path(), 'utf8')).toBe('billing.patch');
    await browser().picture('run-full');
    await page.setViewportSize({ width: 390, height: 844 });
    const strip = page.locator('details', { has: page.getByTitle('All facts about this run') });
    expect(await strip.locator('summary').textContent()).toMatch(/^Costnot known/);
    await strip.locator('summary').click();
    await strip.getByText('git apply --index billing.patch').waitFor();
    await browser().picture('run-full-narrow');
    expect(complaints).toEqual([]);
  });

  test('reruns a run with other limits or with a fresh environment', { tags: 'long' }, async () => {
    await open(agent.runId);
    await page.keyboard.press('r');
    const fresh = page.getByRole('checkbox', { name: /Fresh environment/ });
    expect(await fresh.isChecked()).toBe(false);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.keyboard.press('Shift+R');
    expect(await fresh.isChecked()).toBe(true);
    await browser().picture('run-rerun');
    await page.getByRole('link', { name: 'Change more…' }).click();
    await page.getByLabel('At most, minutes').fill('45');
    expect(await fresh.isChecked()).toBe(true);
    await browser().picture('run-rerun-changed');
    await page.getByRole('button', { name: /^Rerun/ }).click();
    await page.waitForURL((url) => /\/runs\/[\da-f-]{36}$/.test(url.pathname) && !url.pathname.endsWith(agent.runId));
    const before = await runOf(agent.runId);
    const rerun = await runOf(new URL(page.url()).pathname.split('/')[2] ?? '');
    expect(rerun).toMatchObject({ prompt: before.prompt, title: before.title, metadata: before.metadata });
    const changes = { max_duration_minutes: 45, refresh_environment: true };
    expect(rerun.agent_config).toEqual({ ...before.agent_config, ...changes });
  });

  test('says in the form for a new run how to start the same run with a command and as a schedule', {
    tags: 'long',
  }, async () => {
    await page.goto(`${service.baseUrl}/runs/new`);
    await page.getByLabel('Prompt').fill('Do it');
    await page.getByRole('combobox', { name: 'Model' }).fill('runb');
    await page.getByRole('option', { name: 'Runbook', exact: true }).click();
    await page.getByRole('button', { name: 'As command' }).click();
    await seen("bin/runyard run --model 'runbook' 'Do it'");
    await page.getByText(/^More: approvals/).click();
    await page.getByLabel('Mode', { exact: true }).selectOption('plan');
    await seen("bin/runyard run --model 'runbook' --mode 'plan' 'Do it'");
    await page.getByRole('link', { name: 'As schedule' }).click();
    await expect.poll(() => page.getByLabel('Prompt').inputValue()).toBe('Do it');
    await expect.poll(() => page.getByLabel('Model', { exact: true }).inputValue()).toBe('runbook');
  });

  test('answers a question with an option, and interrupts the turn', { tags: 'long' }, async () => {
    const asking = await startAgent(service, { title: 'Asks' });
    const request = { request_id: 'q', kind: 'question', title: 'Which **one**?', options: ['This', 'That'] };
    await asking.report({ type: 'blocked', step_id: 's', request });
    await open(asking.runId);
    const answer = await sentBy('/followups', () => page.getByRole('button', { name: 'That', exact: true }).click());
    expect(answer).toEqual({ message: 'That', request_id: 'q' });
    const working = await startAgent(service, { title: 'Works' });
    await open(working.runId);
    await sentBy('/interrupt', () => page.getByRole('button', { name: 'Interrupt turn' }).click());
    expect(complaints).toEqual([]);
  });

  test('shows texts and images of artifacts, and only downloads HTML', { tags: 'long' }, async () => {
    await open(agent.runId);
    const preview = async (name: string) => {
      await page.getByRole('button', { name, exact: true }).click();
      return page.getByRole('dialog');
    };
    const close = async () => {
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    await (await preview('report.md')).getByText('The **report** <b>as text</b>').waitFor();
    await close();
    const image = (await preview('chart.png')).getByRole('img');
    await expect.poll(() => image.evaluate((element) => Reflect.get(element, 'naturalWidth'))).toBe(1);
    await close();
    await (await preview('Round tax per invoice')).getByRole('heading', { name: 'Steps' }).waitFor();
    await close();
    const html = await preview('page.html');
    await html.getByText('This kind of file has no preview. Download it.').waitFor();
    expect(await html.locator('iframe').count()).toBe(0);
    const download = page.waitForEvent('download');
    await html.getByRole('button', { name: 'Download' }).click();
    expect((await download).suggestedFilename()).toBe('page.html');
    expect(complaints).toEqual([]);
  });

  test('downloads the raw transcript, and deletes an ended run after a question', { tags: 'long' }, async () => {
    const ended = await startAgent(service, { title: 'Said hello' });
    await ended.report({ type: 'transcript', line: '{"said":"hello"}' });
    await ended.send('/finish-task', { turn: 1, success: true, summary: 'done', workspace: 'empty' });
    await open(ended.runId);
    const download = page.waitForEvent('download');
    await menu('Raw transcript');
    expect(await readFile(await (await download).path(), 'utf8')).toContain('"said":"hello"');
    // No worker has taken this run, so no sandbox must end before the run can be deleted.
    const deleted = await service.newRun({ title: 'To be deleted' });
    await service.request('POST', `/agent/runs/${deleted}/cancel`);
    await open(deleted);
    await menu('Delete…');
    await page.getByText('Runs that it started stay.').waitFor();
    await browser().picture('run-delete');
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Keep');
    await page.getByRole('button', { name: 'Delete the run' }).click();
    await page.waitForURL(`${service.baseUrl}/runs`);
    expect((await service.request('GET', `/agent/runs/${deleted}`)).status).toBe(404);
  });

  test('reads the earlier messages of a long conversation without moving the shown ones', {
    tags: 'long',
  }, async () => {
    const long = await startAgent(service, { title: 'Long' });
    const texts = Array.from({ length: 450 }, (_, index) => ({
      type: 'text',
      step_id: 's',
      message_id: `m${index}`,
      role: 'assistant',
      text: `Message ${index}.`,
    }));
    await long.report(...texts);
    await open(long.runId);
    await page.getByText('Message 449.').waitFor();
    const placeOf = (text: string) =>
      page.getByText(text, { exact: true }).evaluate((element) => element.getBoundingClientRect().top);
    for (const first of [250, 50]) {
      await page.locator('[data-part=scroll]').evaluate((scroller) => scroller.scrollTo({ top: 0 }));
      await page.getByText(`Message ${first + 1}.`, { exact: true }).waitFor();
      const before = await placeOf(`Message ${first + 1}.`);
      await page.getByRole('button', { name: 'Earlier messages' }).click();
      await expect.poll(() => page.getByText(`Message ${first - 1}.`, { exact: true }).count()).toBe(1);
      await expect.poll(async () => Math.abs((await placeOf(`Message ${first + 1}.`)) - before)).toBeLessThan(60);
    }
    expect(await page.getByRole('button', { name: 'Earlier messages' }).count()).toBe(0);
  });

  test('says of a failed run why it failed, whose fault it is, and what to do now', { tags: 'long' }, async () => {
    const failed = await startAgent(service, { title: 'Fails' });
    const error = { code: 'budget_exceeded', message: 'The budget of the team is spent' };
    await failed.send('/finish-task', { turn: 1, success: false, summary: error.message, error });
    await open(failed.runId);
    const why = page.getByRole('region', { name: 'The budget of the team is spent' });
    await why.getByText('budget_exceeded').waitFor();
    await why.getByRole('link', { name: 'Open the budget' }).waitFor();
    await why.getByText('Its prompt, model, environment and limits can be changed first.').waitFor();
    await browser().picture('run-failed');
    const lost = await service.newRun({ title: 'Lost' });
    await service.deps.db.query(
      "UPDATE runs SET state = 'ERROR', error_code = 'internal_error', status_message = 'The worker was lost', retryable = true, ended_at = now() WHERE id = $1",
      [lost],
    );
    const kubernetes = {
      pod: {
        name: 'oz-1 \u202e<b>',
        phase: 'Failed',
        conditions: [{ type: 'Ready', status: 'False', reason: 'PodFailed' }],
      },
      container: { name: 'agent', state: 'terminated', termination_reason: 'OOMKilled', raw_exit_code: 137 },
      events: [{ type: 'Warning', reason: 'Killing', count: 2 }],
    };
    await service.deps.db.query(
      `INSERT INTO run_events (run_id, seq, event_type, execution_number, payload) VALUES ($1, 99, 'vm_shutdown', 1, $2)`,
      [lost, JSON.stringify({ kind: 'exited', kubernetes })],
    );
    await open(lost);
    await seen(/The platform failed, not the agent\./, /The same run may succeed when it is started again\./);
    await seen(
      'oz-1 [U+202E]<b>, Failed',
      'agent, terminated, OOMKilled, exit code 137',
      'Ready, PodFailed',
      'Killing, 2 times',
    );
    await browser().picture('run-pod');
  });

  test('gives the exact time to a person who focuses or copies a relative time', { tags: 'long' }, async () => {
    await browser().context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await open(agent.runId);
    const created = fact('Created').locator('time');
    await created.focus();
    await page.keyboard.press('Control+c');
    const copied = await page.evaluate('navigator.clipboard.readText()');
    expect(copied).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+/);
    expect(copied).toBe(await created.getAttribute('title'));
    await seen(/^ended (now|.* ago)$/);
  });
});
