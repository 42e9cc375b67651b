/** The buttons of a run's page, and hostile text in it, in a real browser. */
import type { Page } from 'playwright-core';
import { beforeEach, describe, expect, test } from 'vitest';
import { appendTimelineEvent } from '../packages/service/src/runs/executions/timeline/timeline.ts';
import type { TestService } from '../packages/service/test/service.ts';
import { noBrowser } from './support/browser.ts';
import { shell, useRunPage } from './support/run-page.ts';

describe.skipIf(noBrowser)(`acting on a run's page${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  const { browser, report, open, atWork, ask, inbox, posts, ...current } = useRunPage();
  const picture = (name: string) => browser().picture(name);
  let service: TestService;
  let page: Page;
  beforeEach(() => {
    service = current.service();
    page = current.page();
  });

  test('denies with a reason, and shows that the action waits', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByRole('button', { name: 'Interrupt' }).waitFor();
    await ask(execution);
    await page.getByRole('heading', { name: 'The agent waits for your decision' }).waitFor();
    await page.locator('.act', { hasText: 'waits for your decision' }).waitFor();
    expect(await page.locator('#ask-announcer').textContent()).toContain('Run rm -rf build');
    expect(await page.getByRole('button', { name: 'Interrupt' }).isVisible()).toBe(false);
    expect(await page.getByLabel('Message to the agent').isVisible()).toBe(false);
    await picture('run-blocked');
    await page.getByLabel('Reason, or what to do instead').fill('Keep the build; clean only the cache.');
    await page.getByRole('button', { name: 'Deny' }).click();
    await page.locator('#ask').waitFor({ state: 'hidden' });
    expect(await inbox(execution)).toMatchObject([
      { type: 'follow_up', decision: 'deny', answers: 'q', message: 'Keep the build; clean only the cache.' },
    ]);
    expect(browser().complaints).toEqual([]);
  });

  test.each([
    ['a command that the title does not end with', 'Run ls', { command: 'rm x' }, 'rm x'],
    ['members besides the command', 'Run rm x', { command: 'rm x', cwd: '/etc' }, '{\n  "cwd": "/etc"\n}'],
    ['characters that reorder the text', 'Run it', { command: 'ls \u202egnp.x' }, 'ls [U+202E]gnp.x'],
    ['no input but the command of the title', 'Run `rm x`', { command: 'rm x' }, ''],
  ])('shows before a decision %s', async (_, title, input, shown) => {
    const execution = await atWork();
    const request = { request_id: 'q', kind: 'permission', title, action: { ...shell, id: 'a', input } };
    await report(execution, { type: 'blocked', step_id: 's', request });
    await open(execution.runId);
    await page.getByRole('heading', { name: 'The agent waits for your decision' }).waitFor();
    expect(await page.locator('#ask-input').textContent()).toBe(shown);
    expect(await page.locator('#ask-input').isVisible()).toBe(shown !== '');
  });

  test('keeps a plan open while the run is read again', async () => {
    const execution = await atWork();
    await service.request('POST', '/harness-support/report-artifact', {
      key: execution.runToken,
      body: { artifact_type: 'PLAN', data: { title: 'The plan', content: '# Steps' } },
    });
    await open(execution.runId);
    await page.getByText('The plan').click();
    await page.getByText('# Steps').waitFor();
    await ask(execution);
    await page.getByRole('heading', { name: 'The agent waits for your decision' }).waitFor();
    expect(await page.getByText('# Steps').isVisible()).toBe(true);
  });

  test('approves once for a double click', async () => {
    const execution = await atWork();
    await ask(execution);
    await open(execution.runId);
    const seen = posts('/followups');
    await page.getByRole('button', { name: 'Approve' }).dblclick();
    await page.locator('#ask').waitFor({ state: 'hidden' });
    const items = await inbox(execution);
    expect(items).toMatchObject([{ type: 'follow_up', decision: 'approve', answers: 'q' }]);
    expect(new Set(seen).size).toBe(1);
    expect(browser().complaints).toEqual([]);
  });

  test('repeats a message whose answer was lost as the same request, so that the agent gets it once', async () => {
    const execution = await atWork();
    await open(execution.runId);
    const seen = posts('/followups');
    let isFirst = true;
    await page.route('**/followups', async (route) => {
      if (!isFirst) return route.continue();
      isFirst = false;
      await route.fetch();
      return route.abort();
    });
    await page.getByLabel('Message to the agent').fill('Also run the tests.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText(/^The service could not be reached \([^()]+\)\. Try again\.$/).waitFor();
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Sent.', { exact: true }).waitFor();
    expect(seen).toHaveLength(2);
    expect(new Set(seen).size).toBe(1);
    expect(await inbox(execution)).toMatchObject([{ type: 'follow_up', message: 'Also run the tests.' }]);
  });

  test('answers a question by one of its options', async () => {
    const execution = await atWork();
    const request = { request_id: 'q', kind: 'question', title: 'Which branch?', options: ['main', 'develop'] };
    await report(execution, { type: 'blocked', step_id: 's', request });
    await open(execution.runId);
    await page.getByRole('heading', { name: 'The agent asks you' }).waitFor();
    expect(await page.getByRole('button', { name: 'Approve' }).isVisible()).toBe(false);
    await page.getByRole('button', { name: 'develop' }).click();
    await page.locator('#ask').waitFor({ state: 'hidden' });
    expect(await inbox(execution)).toMatchObject([{ type: 'follow_up', message: 'develop', answers: 'q' }]);
  });

  test('interrupts the turn, and shows why the service refuses', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await expect.poll(() => inbox(execution)).toMatchObject([{ type: 'interrupt' }]);
    await page.route('**/interrupt', (route) =>
      route.fulfill({ status: 400, json: { detail: 'No turn is in progress.' } }),
    );
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await page.getByText('No turn is in progress.').waitFor();
  });

  test('cancels after a confirmation, and then offers only actions of an ended run', async () => {
    const execution = await atWork();
    await open(execution.runId);
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Keep it running' }).click();
    expect((await service.request<{ state: string }>('GET', `/agent/runs/${execution.runId}`)).body.state).toBe(
      'INPROGRESS',
    );
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await picture('run-cancel-dialog');
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.locator('#state[data-state=CANCELLED]').waitFor();
    await page.getByText('The agent continues the run with it.').waitFor();
    expect(await page.locator('#controls').isVisible()).toBe(false);
    await page.getByLabel('Message to the agent').fill('Once more, please.');
    await page.getByLabel('Message to the agent').press('Control+Enter');
    await page.locator('#state[data-state=QUEUED]').waitFor();
  });

  test('links the runs that it started, and the run that started it, in the same tab', async () => {
    const execution = await atWork('Lead', { mode: 'orchestrate', title: 'Lead' });
    const child = { prompt: 'Help', title: 'Helper' };
    await service.request('POST', '/harness-support/child-runs', { key: execution.runToken, body: child });
    await open(execution.runId);
    await page.getByRole('link', { name: 'Helper' }).click();
    await page.getByRole('heading', { name: 'Helper' }).waitFor();
    await page.getByRole('link', { name: 'The run that started this one' }).click();
    await page.getByRole('heading', { name: 'Lead', exact: true }).waitFor();
  });

  const hostile = [
    '# Plan <script>window.hacked=1</script>',
    '<img src=x onerror="window.hacked=1"><svg onload="window.hacked=1"></svg><style>body{display:none}</style>',
    '[click](javascript:window.hacked=1) [data](data:text/html,x) [fine](https://example.com/a?b=1&c=2)',
    '![pixel](https://tracker.example/pixel.png "x\\" onerror=\\"window.hacked=1")',
    '<a href="https://example.com" onclick="window.hacked=1">raw</a> <form action="/x"><button id="cancel">x</button></form>',
    '- [x] done\n- **bold**\n\n| a | b |\n|---|---|\n| `1` | 2 |\n\n```js onmouseover=window.hacked=1\nlet a = "<b>";\n```',
    '<https://example.com/auto> &lt;script&gt;window.hacked=1&lt;/script&gt; <div id="view" hidden>',
  ].join('\n\n');

  test('renders Markdown of every author without raw HTML, remote images or scripts', async () => {
    const asked: string[] = [];
    page.on('request', (request) => asked.push(request.url()));
    const title = '<img src=x onerror=window.hacked=1> & <b>title</b>';
    const execution = await atWork(hostile, { title });
    const text = { type: 'text', step_id: 's', message_id: 'm', role: 'assistant' };
    await open(execution.runId);
    // In pieces that are hostile only together.
    for (const piece of hostile.match(/.{1,97}/gs) ?? []) await report(execution, { ...text, text: piece });
    await report(
      execution,
      { type: 'action', step_id: 's', ...shell, name: hostile, input: { command: hostile } },
      { type: 'action_result', action_id: 'a', state: 'completed', output: hostile, exit_code: 0, duration_ms: 1234 },
      {
        type: 'blocked',
        step_id: 's',
        request: { request_id: 'q', kind: 'question', title: hostile, options: [hostile] },
      },
    );
    await page.getByText('completed, exit code 0, 1.2 s').waitFor();
    await page.locator('.said[data-role=question] h3').waitFor();
    for (const role of ['user', 'assistant', 'question']) {
      const said = page.locator(`.said[data-role=${role}]`);
      await said.locator('li strong', { hasText: 'bold' }).waitFor();
      expect(await said.locator('h3').textContent()).toBe('Plan <script>window.hacked=1</script>');
      expect(await said.locator('td code').textContent()).toBe('1');
      expect(await said.locator('pre code').textContent()).toContain('let a = "<b>";');
      const links = await said
        .locator('a')
        .evaluateAll((all) => all.map((a) => [a.getAttribute('href'), a.getAttribute('rel'), a.textContent]));
      const rel = 'noopener noreferrer nofollow';
      expect(links).toEqual([
        [null, rel, 'click'],
        [null, rel, 'data'],
        ['https://example.com/a?b=1&c=2', rel, 'fine'],
        ['https://tracker.example/pixel.png', rel, 'pixel'],
        ['https://example.com/auto', rel, 'https://example.com/auto'],
      ]);
    }
    const bad = '#conversation :is(script, img, svg, style, form, button, input, iframe, [onclick], [onerror], [id])';
    expect(await page.locator(bad).count()).toBe(0);
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    expect(await page.locator('h1#title').textContent()).toBe(title);
    expect(asked.filter((url) => !url.startsWith(service.baseUrl))).toEqual([]);
    await picture('run-hostile');
    expect(browser().complaints).toEqual([]);
  });

  test('stays usable with Markdown that takes a parser minutes, or more stack than there is', async () => {
    const slow = '*a_'.repeat(20_000);
    const nested = `${'>'.repeat(2_000)} deep`;
    const execution = await atWork(slow);
    const text = { type: 'text', step_id: 's', role: 'assistant' };
    await open(execution.runId);
    await report(
      execution,
      { ...text, message_id: 'nested', text: nested },
      { ...text, message_id: 'slow', text: slow },
      { ...text, message_id: 'slow', text: slow },
      { ...text, message_id: 'last', text: 'Then **this**' },
    );
    await page.locator('.said strong', { hasText: 'this' }).waitFor();
    expect(await page.locator('#prompt').textContent()).toBe(slow);
    const shown = page.locator('.said[data-role=assistant] .markdown');
    await expect.poll(() => shown.allTextContents()).toEqual([nested, slow + slow, 'Then this\n']);
    await page.getByRole('button', { name: 'Cancel run' }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.locator('#state[data-state=CANCELLED]').waitFor();
  });

  test('sends pages with a policy that allows nothing inline, and markup only from the sanitizer', async () => {
    const { headers } = await fetch(`${service.baseUrl}/runs/${await service.newRun()}`);
    const policy = headers.get('content-security-policy') ?? '';
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'");
    expect(policy).toContain("require-trusted-types-for 'script'; trusted-types dompurify");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
  });

  test('opens a long run at its top and as narrow as the screen, and names harness, model and sandbox', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    const execution = await atWork(
      'Look at `packages/service/src/edges/http/pages/assets/run/conversation-as-it-grows.js`',
    );
    const { runId, executionId } = execution;
    const line = `${'word '.repeat(40)} ${'x'.repeat(300)}\n\n`;
    await report(execution, { type: 'text', step_id: 's', message_id: 'm', role: 'assistant', text: line.repeat(30) });
    await service.deps.db.transaction((tx) =>
      appendTimelineEvent(tx, {
        runId,
        executionId,
        type: 'worker_container_ready',
        payload: { backend: 'bubblewrap', spawn_ms: 21 },
      }),
    );
    await open(runId);
    await page.locator('.said[data-role=assistant]').waitFor();
    await page.locator('#timeline li', { hasText: 'agent started, oz, runbook' }).waitFor();
    await page.locator('#timeline li', { hasText: 'sandbox ready, bubblewrap, 21 ms' }).waitFor();
    expect(await page.evaluate('document.scrollingElement.scrollTop')).toBe(0);
    expect(await page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth')).toBe(
      true,
    );
    expect(await page.locator('#facts').textContent()).toContain('HarnessozModelrunbook');
    await picture('run-narrow');
  });
});
