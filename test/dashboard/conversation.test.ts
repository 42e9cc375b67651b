/** Tests the conversation of a run of the dashboard in a real browser. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { hiddenOrder, signIn, tooWide } from '../support/dashboard.ts';
import { type ActedAgent, startAgent } from '../support/full-run.ts';
import { isLong } from '../support/long.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Script for the page. Returns the faults that axe finds. */
const findFaults =
  "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')))";

interface Recorded {
  readonly type: 'action' | 'result' | 'text' | 'notice';
  readonly [member: string]: unknown;
}
const sessions = ['claude', 'codex', 'gemini', 'opencode', 'qwen'];

/** Reports the steps of a recorded session of a real harness. */
async function replay(agent: ActedAgent, harness: string): Promise<void> {
  const file = new URL(`../../packages/agent/test/sessions/${harness}.golden.json`, import.meta.url);
  const steps: Recorded[] = JSON.parse(readFileSync(file, 'utf8'));
  let action = '';
  for (const [index, { type, ...members }] of steps.entries()) {
    const id = `${harness}${index}`;
    if (type === 'action') {
      action = id;
      await agent.report({ type, step_id: 's', action_id: id, ...members });
    } else if (type === 'result') await agent.report({ type: 'action_result', action_id: action, ...members });
    else if (type === 'text') await agent.report({ type, step_id: 's', message_id: id, role: 'assistant', ...members });
  }
}

const act = (id: string, category: string, name: string, input: unknown) => ({
  type: 'action',
  step_id: 's',
  action_id: id,
  category,
  name,
  input,
});
const done = (id: string, more: object = {}) => ({ type: 'action_result', action_id: id, state: 'completed', ...more });
const hostile = '<img src=x onerror="document.title=`hacked`">\u202e';
const escapes =
  '\u001b]0;title\u0007\u001b]8;;https://evil.test\u0007link\u001b]8;;\u0007\u001b[2J\u001b[10A\u001b[31mred\u001b[0m';

describe.skipIf(noBrowser)(`the conversation${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
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
  const step = (words: string | RegExp) => page.locator('[data-part=action] > summary', { hasText: words });

  test('shows the steps of every harness as sentences, with changes, commands and folded reads', async () => {
    const agent = await startAgent(service, { title: 'Round the tax', prompt: 'Round the tax' });
    for (const harness of sessions) await replay(agent, harness);
    await agent.report(
      ...['a', 'b', 'c'].flatMap((id) => [act(id, 'files', 'read', { path: `src/${id}.ts` }), done(id)]),
      act('d', 'search', 'search', { pattern: 'round', path: 'src' }),
      done('d'),
      act('todo', 'documents', 'TodoWrite', {
        todos: [
          { content: 'Fix it', status: 'completed' },
          { content: 'Test it', status: 'in_progress' },
        ],
      }),
      done('todo'),
      act('mcp', 'integration', 'db.query', { sql: 'SELECT 1', limits: { rows: 10 } }),
      done('mcp', { output: 'one row', duration_ms: 40 }),
      act('test', 'command', 'Bash', { command: 'cd packages/tax &&\nnpx vitest run', cwd: '/workspace/billing' }),
      done('test', { state: 'failed', output: escapes, exit_code: 1, duration_ms: 8400 }),
      act('pr', 'files', 'report_artifact', { type: 'PULL_REQUEST', url: 'https://github.test/acme/billing/pull/7' }),
      done('pr'),
      act('child', 'integration', 'start_run', { title: 'Check the callers', prompt: 'Check **all** callers' }),
      done('child', { output: 'started run 01a2238f-be67-7514-8600-000000000000; its state is QUEUED' }),
      { type: 'notice', step_id: 's', name: 'connection_denied', data: { host: 'registry.test:443' } },
      { type: 'notice', step_id: 's', name: 'usage', data: { used: 50_000, size: 200_000 } },
    );
    // The page renders only the blocks near the visible part.
    await page.setViewportSize({ width: 1280, height: 4000 });
    await open(agent.runId);
    await step('Called db.query').click();
    await page.locator('[data-part=terminal]', { hasText: 'one row' }).waitFor();
    await expect.poll(() => step('echo hello; exit 3').count()).toBe(sessions.length);
    await expect
      .poll(() =>
        page.locator('[data-part=action]:has([data-part=diff]) > summary', { hasText: 'a.txt' }).allInnerTexts(),
      )
      .toHaveLength(5);
    const reads = page.locator('[data-part=reads] > summary');
    expect(await reads.textContent()).toMatch(/^Read 3 files and searched once/);
    await reads.click();
    await step('Read src/b.ts').waitFor();
    const failed = page.locator('[data-part=action]', {
      has: page.locator('summary', { hasText: 'Ran cd packages/tax' }),
    });
    expect(await failed.locator('[data-part=command]').textContent()).toContain('npx vitest run');
    expect(await failed.textContent()).toMatch(/exit 18\.4 s/);
    expect(await failed.textContent()).toContain('in /workspace/billing');
    expect(await failed.locator('[data-part=terminal] pre').textContent()).toBe('linkred');
    expect(await failed.locator('[data-colour=red]').textContent()).toBe('red');
    await page.getByText('1 of 2 done').or(step('Changed the plan')).first().waitFor();
    await page.getByText('The connection to registry.test:443 was denied.').waitFor();
    await step('Started a child run Check the callers').click();
    await page.getByRole('link', { name: 'Open the child run' }).waitFor();
    await failed.getByRole('button', { name: 'Raw' }).click();
    await failed.getByText('"exit_code"').waitFor();
    // Load axe through the debugger, because the content security policy of the page does not apply to code from there.
    await page.evaluate(axe);
    expect(await page.evaluate<string[]>(findFaults)).toEqual([]);
    for (const width of isLong ? [1280, 390] : [])
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        await page.setViewportSize({ width, height: width === 390 ? 844 : 2600 });
        expect(await tooWide(page)).toEqual([]);
        await browser().picture(`talk-${width}-${colorScheme}`);
      }
    expect(complaints).toEqual([]);
  });

  test('shows hostile texts of steps, notices and found places as text, with marks for hidden characters', async () => {
    const agent = await startAgent(service, { title: 'Hostile', prompt: 'Go' });
    await agent.report(
      act('a', 'command', hostile, { command: hostile, cwd: hostile }),
      done('a', { state: 'failed', output: hostile, exit_code: 1 }),
      act('b', 'files', 'edit', { path: hostile, old_string: hostile, new_string: `${hostile}2` }),
      done('b'),
      act('c', 'integration', hostile, { [hostile]: hostile, list: [hostile] }),
      done('c', { state: 'failed', output: hostile }),
      act('d', 'integration', 'start_run', { title: hostile, prompt: hostile }),
      done('d', { state: 'failed', output: `started run ../../evil${hostile}; its state` }),
      act('e', 'documents', 'TodoWrite', { todos: [{ content: hostile, status: hostile }] }),
      done('e'),
      { type: 'notice', step_id: 's', name: 'connection_denied', data: { host: hostile } },
      { type: 'notice', step_id: 's', name: 'strange', data: { reason: hostile } },
      ...['f', 'g'].flatMap((id) => [act(id, 'files', 'read', { path: hostile }), done(id)]),
    );
    await open(agent.runId);
    await step('Started a child run').waitFor();
    expect(await page.getByRole('link', { name: 'Open the child run' }).count()).toBe(0);
    await page.locator('[data-part=reads] > summary').click();
    for (const raw of await page.getByRole('button', { name: 'Raw' }).all()) await raw.click();
    await page.keyboard.press('/');
    await page.getByRole('textbox', { name: 'Find in the conversation' }).fill('<img');
    await page.getByRole('search').getByText('[U+202E]').first().waitFor();
    expect(await hiddenOrder(page)).toEqual([]);
    expect(await tooWide(page)).toEqual([]);
    expect(await page.title()).not.toContain('hacked');
    expect(complaints).toEqual([]);
  });

  describe('of very many events', () => {
    let agent: ActedAgent;
    beforeAll(async () => {
      agent = await startAgent(service, { title: 'Long', prompt: 'Begin the long work' });
      for (let part = 0; part < 6; part += 1) {
        const events = Array.from({ length: 330 }, (_, n) => {
          const id = `${part}-${n}`;
          const end = n === 100 ? { state: 'failed', output: `needle ${part}`, exit_code: 2 } : { output: 'fine' };
          return [act(id, 'command', 'shell', { command: `make target-${id}` }), done(id, end)];
        }).flat();
        const turn = { type: 'turn_started', step_id: `t${part}`, prompt: `Please continue with part ${part}` };
        await agent.report(turn, ...events);
      }
    });
    /** Returns true while the element is inside the visible part of the page. */
    const isVisible = (words: string) =>
      step(words).evaluate((element) => {
        const { top, bottom } = element.getBoundingClientRect();
        return top >= 0 && bottom <= (element.ownerDocument.defaultView?.innerHeight ?? 0);
      });

    test('finds a text, messages and failures that are not loaded, and jumps to them', async () => {
      await open(agent.runId);
      await step('make target-5-329').waitFor();
      await page.keyboard.press('Control+f');
      const field = page.getByRole('textbox', { name: 'Find in the conversation' });
      await field.fill('TARGET-1-277');
      const search = page.getByRole('search');
      await search.getByText('1 place').waitFor();
      await page.keyboard.press('Enter');
      await search.getByText('1 of 1').waitFor();
      await expect.poll(() => isVisible('make target-1-277')).toBe(true);
      await page.waitForFunction('document.querySelector("[data-target]") !== null');
      await field.fill('');
      await search.getByRole('button', { name: 'Failures' }).click();
      await search.getByText('6 places').waitFor();
      await search.getByRole('button', { name: /target-4-100/ }).click();
      await expect.poll(() => isVisible('make target-4-100')).toBe(true);
      await search.getByText('5 of 6').waitFor();
      await browser().picture('talk-find');
      await search.getByRole('button', { name: 'Messages of people' }).click();
      await search.getByText('7 places').waitFor();
      await search.getByRole('button', { name: 'Top' }).click();
      await page.getByRole('log').getByText('Begin the long work').waitFor();
      await page.keyboard.press('Escape');
      expect(complaints).toEqual([]);
    });

    test('opens at the step of a link, also when the step is not loaded yet', { tags: 'long' }, async () => {
      const found = await service.request<{ matches: { seq: number }[] }>(
        'GET',
        `/agent/runs/${agent.runId}/conversation/find?text=target-2-300`,
      );
      await open(agent.runId, `#step-${found.body.matches[0]?.seq}`);
      await step('make target-2-300').waitFor();
      await expect.poll(() => page.locator('[data-target]').textContent()).toContain('make target-2-300');
      await expect.poll(() => isVisible('make target-2-300')).toBe(true);
      // The outline leads to each turn.
      const turns = page.getByRole('navigation', { name: 'Turns of the conversation' });
      await turns.getByRole('link', { name: /continue with part 4/ }).click();
      await expect.poll(() => page.locator('[data-target]').textContent()).toContain('Please continue with part 4');
      // At 200 % zoom, the search leaves room for the conversation and moves nothing out of the window.
      await page.setViewportSize({ width: 600, height: 425 });
      await page.getByRole('button', { name: 'Find in the conversation' }).click();
      await page.getByRole('textbox', { name: 'Find in the conversation' }).fill('needle');
      await page.getByRole('search').getByText('6 places').waitFor();
      expect(await tooWide(page)).toEqual([]);
      await browser().picture('talk-zoom');
      expect(complaints).toEqual([]);
    });
  });
});
