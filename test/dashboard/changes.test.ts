/** Tests the changed files of a run in a real browser: colours, differences of words, tree, marks of viewed files, and comments on lines. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn, tooWide } from '../support/dashboard.ts';
import { type ActedAgent, startAgent } from '../support/full-run.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Script for the page. Returns the faults that axe finds. */
const findFaults =
  "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')))";

const hostileLine = '``` </code><script>document.title="hacked"</script>\u202e [a](https://evil.test)';
const file = (path: string, patch: string, more = {}) => ({
  path,
  status: 'modified',
  additions: 1,
  deletions: 1,
  patch,
  ...more,
});
const tax = [
  '@@ -1,6 +1,6 @@ export function taxOf(invoice: Invoice) {',
  ' /* Tax of an',
  '    invoice */',
  '-  const rate = round(line, 2);',
  '+  const rate = round(invoice, 3);',
  '   return `rate %`; // per invoice',
  '',
].join('\n');
const changesWith = (patch: string) => ({
  repositories: [
    {
      path: 'billing',
      branch: 'tax-per-invoice',
      files: [
        file('packages/tax/src/rounding/tax.ts', patch),
        file('packages/tax/README.md', '@@ -1 +1 @@\n-# Tax\n+# Tax per invoice\n'),
        file('scripts/run.sh', `@@ -0,0 +1,2 @@\n+set -e\n+${hostileLine}\n`, { status: 'added', deletions: 0 }),
        { path: 'logo.png', status: 'added', binary: true },
      ],
    },
  ],
});

describe.skipIf(noBrowser)(`the changed files of a run${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let agent: ActedAgent;
  let page: Page;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());
  beforeEach(async () => {
    ({ page } = browser());
    agent = await startAgent(service, { title: 'Rounds taxes' });
    await agent.send('/changes', changesWith(tax));
    await signIn(page, service);
  });
  const open = async () => {
    await page.goto(`${service.baseUrl}/runs/${agent.runId}?tab=files`);
    await page
      .getByRole('button', { name: /tax\.ts/ })
      .first()
      .waitFor();
  };
  const section = (path: string) => page.getByRole('region', { name: path });
  const message = () => page.getByRole('textbox', { name: 'Message to the agent' });
  const viewed = (path: string) => page.getByRole('checkbox', { name: `Viewed ${path}` });

  test('the lines have the colours of their language, and marks on the words that differ', async () => {
    await open();
    const lines = section('packages/tax/src/rounding/tax.ts').locator('[data-kind]');
    await lines.locator('[data-word=keyword]', { hasText: 'const' }).first().waitFor();
    expect(await lines.locator('[data-word=comment]').allTextContents()).toEqual([
      '/* Tax of an',
      '   invoice */',
      '// per invoice',
    ]);
    expect(await lines.locator('mark').allTextContents()).toEqual(['line', '2', 'invoice', '3']);
    await page.evaluate(axe);
    for (const [width, height] of [
      [1440, 1000],
      [390, 844],
      [600, 425],
    ] as const) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await page.evaluate<string[]>(findFaults), `${width} ${colorScheme}`).toEqual([]);
        await browser().picture(`changes-${width}-${colorScheme}`);
      }
      expect(await tooWide(page)).toEqual([]);
    }
    expect(browser().complaints).toEqual([]);
  });

  test('the tree opens a file, and a viewed file stays viewed until the agent changes it again', async () => {
    await page.setViewportSize({ width: 1440, height: 700 });
    await open();
    const tree = page.locator('details', { hasText: 'Files' });
    await tree.getByText('packages/tax/', { exact: true }).waitFor();
    await viewed('packages/tax/src/rounding/tax.ts').check();
    await viewed('logo.png').check();
    await page.getByText('2 of 4 viewed').waitFor();
    expect(await section('packages/tax/src/rounding/tax.ts').locator('[data-kind]').count()).toBe(0);
    expect(await page.evaluate('JSON.stringify([localStorage, sessionStorage])')).not.toContain('tax');
    await page.reload();
    await page.getByText('2 of 4 viewed').waitFor();
    await tree.getByRole('button', { name: /tax\.ts/ }).click();
    await section('packages/tax/src/rounding/tax.ts').locator('[data-kind=add]').waitFor();
    await agent.send('/changes', changesWith(tax.replace('3);', '4);')));
    await page.getByText('1 of 4 viewed').waitFor();
    expect(await viewed('packages/tax/src/rounding/tax.ts').isChecked()).toBe(false);
    await signIn(page, service, await service.newKey({ role: 'member' }));
    await page.reload();
    await viewed('logo.png').waitFor();
    expect(await viewed('logo.png').isChecked()).toBe(false);
  });

  test('comments on lines become parts of one message, and hostile code cannot leave its quotation', async () => {
    await open();
    await page.getByRole('button', { name: 'Comment on line 3', exact: true }).click();
    const field = page.getByRole('textbox', { name: 'Comment on line 3' });
    await field.fill('Round down.');
    await browser().picture('changes-comment');
    await page.getByRole('button', { name: 'Add to the message' }).click();
    await section('scripts/run.sh').getByRole('button', { name: 'Comment on line 2', exact: true }).click();
    await page.getByRole('textbox', { name: 'Comment on line 2' }).fill('Remove this.');
    await page.keyboard.press('Control+Enter');
    const shown = hostileLine.replace('\u202e', '[U+202E]');
    const expected = [
      '`packages/tax/src/rounding/tax.ts`, line 3:\n```\n  const rate = round(invoice, 3);\n```\nRound down.\n',
      `\`scripts/run.sh\`, line 2:\n\`\`\`\`\n${shown}\n\`\`\`\`\nRemove this.\n`,
    ].join('\n');
    await expect.poll(() => message().inputValue()).toBe(expected);
    await page.getByRole('button', { name: 'Send message' }).click();
    await expect.poll(() => message().inputValue()).toBe('');
    await page.getByRole('link', { name: 'Conversation' }).click();
    await page.getByText('Remove this.').first().waitFor();
    expect(await page.title()).not.toContain('hacked');
    expect(browser().complaints).toEqual([]);
  });
});
