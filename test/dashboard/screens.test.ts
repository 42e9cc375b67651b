/**
 * Uses each screen of the dashboard with the keyboard alone, and checks each screen with axe in both colour themes, on a narrow page, with
 * reduced motion and in print. By default, the file uses only two screens and does not run axe, because `dashboard.test.ts` checks some
 * screens with axe. `bin/test-long` tests all of them. With SCREENSHOT_DIR, it then also takes a picture of
 * each screen with the data of a busy team.
 */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeOwnThings } from '../../packages/service/test/own-things.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { hiddenOrder, signIn } from '../support/dashboard.ts';
import { openEach, walkByTab } from '../support/keyboard-walk.ts';
import { isLong } from '../support/long.ts';
import { fillSampleTeam, type SampleTeam } from '../support/sample-team.ts';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const router = path.resolve(import.meta.dirname, '../../packages/dashboard/src/app/router.tsx');

/** Returns the screens to test, each with its address and with the path of its route in the router. */
const screensOf = (
  own: Omit<SampleTeam, 'blockedRunId' | 'liveRunId' | 'failedRunId'>,
  ...runs: readonly string[]
): readonly (readonly [pattern: string, address: string])[] => {
  const factory = `/factories/${own.factoryUid}`;
  const webhook = `${factory}/webhooks/${own.webhookUid}`;
  return [
    ['/runs', '/runs'],
    ['/runs/$runId', `/runs/${own.runId}`],
    ...runs.map((run) => ['/runs/$runId', `/runs/${run}`] as const),
    ['/runs/$runId', `/runs/${own.runId}?tab=files`],
    ['/runs/new', '/runs/new'],
    ['/compare', `/compare?run=${own.runId}`],
    ['/inbox', '/inbox'],
    ['/needs-answer', '/needs-answer'],
    ['/schedules', '/schedules'],
    ['/schedules/$scheduleId', `/schedules/${own.scheduleId}`],
    ['/factories', '/factories'],
    ['/factories/$factoryUid', factory],
    ['/factories/$factoryUid/automations/$automationUid', `${factory}/automations/${own.automationUid}`],
    ['/factories/$factoryUid/webhooks/$webhookUid', webhook],
    [
      '/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId',
      `${webhook}/deliveries/${own.webhookDeliveryId}`,
    ],
    ['/environments', '/environments'],
    ['/environments/$uid', `/environments/${own.environmentUid}`],
    ['/agents', '/agents'],
    ['/workers', '/workers'],
    ['/usage', '/usage?by=automation'],
    ...['members', 'keys', 'secrets', 'models', 'budget', 'code-hosts', 'mcp', 'events', 'audit', 'no-such-tab'].map(
      (tab) => ['/settings/$tab', `/settings/${tab}`] as const,
    ),
    ['/command-line', `/command-line?key=${'A'.repeat(392)}&name=laptop`],
  ];
};
/** Script for the page. Resolves when the page has not changed for 300 ms, or after 3 seconds. */
const untilStill = `new Promise((resolve) => {
  const pauseMs = 300;
  let timer = setTimeout(resolve, pauseMs);
  new MutationObserver(() => { clearTimeout(timer); timer = setTimeout(resolve, pauseMs); })
    .observe(document.body, { childList: true, subtree: true });
  setTimeout(resolve, 10 * pauseMs);
})`;
/** Script for the page. Returns faults of a page in a narrow window with reduced motion. */
const narrowFaults = `(() => {
  const { scrollWidth } = document.scrollingElement;
  const faults = scrollWidth > innerWidth ? ['is ' + scrollWidth + ' px wide'] : [];
  for (const animation of document.getAnimations())
    if (animation.playState === 'running') faults.push('moves ' + animation.effect.target.className);
  return faults;
})()`;
/**
 * Script for the page. Returns faults of a page in print: text that is too light for white paper, navigation, and parts of the
 * conversation that a scroll box cuts off.
 */
const printFaults = `(() => {
  const faults = [];
  const channels = (colour) => (colour.match(/[\\d.]+/g) ?? []).slice(0, 3).map(Number);
  for (const element of document.querySelectorAll('h1, h2, p, pre, span, dt, dd')) {
    if (!element.checkVisibility() || element.textContent.trim() === '') continue;
    const [red, green, blue] = channels(getComputedStyle(element).color);
    if (0.2126 * red + 0.7152 * green + 0.0722 * blue > 160) faults.push('light text: ' + element.textContent.trim().slice(0, 40));
  }
  for (const control of document.querySelectorAll('nav, header button, textarea'))
    if (control.checkVisibility()) faults.push('shows ' + control.className);
  const facts = document.querySelector('aside');
  if (facts && !facts.checkVisibility()) faults.push('leaves out the facts of the run');
  for (const box of document.querySelectorAll('#main, [data-part=scroll], #root > div, #root > div > div'))
    if (box.scrollHeight > box.clientHeight + 1 && getComputedStyle(box).overflowY !== 'visible') faults.push('cuts off ' + box.className);
  return faults;
})()`;
/** Routes that are not tested: those that redirect to another screen, and the sign-in screen, which needs no session. */
const others = ['/', '/settings', '/sign-in'];

describe.skipIf(noBrowser)(`the screens of the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let screens: ReturnType<typeof screensOf>;
  /** The same screens with the data of a busy team. */
  let sampleScreens: ReturnType<typeof screensOf> = [];
  /** Returns a name for the picture of the screen at this address. */
  let nameOf: (address: string) => string = () => '';
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    const { own } = await makeOwnThings(service);
    const failed = await service.newRun({ title: 'A run that failed' });
    await service.deps.db.query(
      "UPDATE runs SET state = 'FAILED', error_code = 'environment_setup_failed', status_message = 'npm ci: exit code 1', ended_at = now() WHERE id = $1",
      [failed],
    );
    screens = screensOf(own, failed).slice(0, isLong ? undefined : 2);
    if (!isLong) return;
    const sample = await fillSampleTeam(service);
    sampleScreens = screensOf(sample, sample.failedRunId, sample.blockedRunId, sample.liveRunId);
    const names = Object.entries(sample).map(([name, id]) => [id, name.replace(/(Run)?(Id|Uid)$/, '')] as const);
    nameOf = (address) =>
      names
        .reduce((name, [id, word]) => name.replace(id, word), address)
        .replaceAll(/\W+/g, '-')
        .slice(1, 100);
  });
  afterAll(() => service.close());

  const open = async (address: string) => {
    const { page } = browser();
    await page.goto(service.baseUrl + address);
    // The page of the service for an unknown address has a heading, but is not the dashboard.
    await page.locator('#root h1').first().waitFor();
    await page.locator('[data-part=skeleton]').first().waitFor({ state: 'detached' });
    await page.evaluate(untilStill);
  };

  test('are all in the list of tested screens', { tags: 'long' }, () => {
    const paths = [...readFileSync(router, 'utf8').matchAll(/path: '([^']+)'/g)].map(([, each = '']) => each);
    const walked = new Set([...screens.map(([pattern]) => pattern), ...others]);
    expect(paths.filter((each) => !walked.has(each))).toEqual([]);
  });

  test('let the keyboard reach each control and leave each dialog and menu', async () => {
    const { page, complaints } = browser();
    await signIn(page, service);
    const found: string[] = [];
    for (const [, address] of screens) {
      await open(address);
      found.push(...(await walkByTab(page)).map((fault) => `${address}: ${fault}`));
      found.push(...(await openEach(page)).map((fault) => `${address}: ${fault}`));
    }
    await browser().context.clearCookies();
    await open('/sign-in');
    found.push(...(await walkByTab(page)).map((fault) => `/sign-in: ${fault}`));
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  }, 1_200_000);

  test('do not scroll sideways at 360 px, have no animation with reduced motion, and print dark text on a light page', async () => {
    const { page } = browser();
    await signIn(page, service);
    await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' });
    const found: string[] = [];
    for (const [, address] of isLong ? [...screens, ...sampleScreens] : screens) {
      await page.setViewportSize({ width: 360, height: 740 });
      await open(address);
      found.push(...(await page.evaluate<string[]>(narrowFaults)).map((fault) => `${address}: ${fault}`));
      if (!address.startsWith('/runs/') || address === '/runs/new') continue;
      await page.setViewportSize({ width: 700, height: 1000 });
      await page.emulateMedia({ media: 'print' });
      found.push(...(await page.evaluate<string[]>(printFaults)).map((fault) => `${address} in print: ${fault}`));
      if (isLong) await browser().picture(`print-${nameOf(address)}`);
      await page.emulateMedia({ media: 'screen' });
    }
    expect(found).toEqual([]);
  }, 600_000);

  test.runIf(isLong && process.env.SCREENSHOT_DIR)(
    'have pictures with the data of a busy team',
    { timeout: 600_000, tags: 'long' },
    async () => {
      const { page, picture } = browser();
      await signIn(page, service);
      const take = async (address: string) => {
        for (const width of [1440, 390]) {
          await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
          await open(address);
          for (const colorScheme of ['light', 'dark'] as const) {
            await page.emulateMedia({ colorScheme });
            await picture(`${nameOf(address)}-${width}-${colorScheme}`);
          }
        }
      };
      for (const [, address] of sampleScreens) await take(address);
      await browser().context.clearCookies();
      await take('/sign-in');
    },
  );

  test('show characters that reverse texts as marks, in names from every table of the database', {
    timeout: 600_000,
    tags: 'long',
  }, async () => {
    const { page, complaints } = browser();
    const { db } = service.deps;
    const columns = await db.query<{ table_name: string; column_name: string }>(
      `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' AND data_type = 'text'
         AND column_name IN ('name', 'title', 'display_name', 'description', 'prompt', 'status_message', 'disabled_reason', 'event', 'error')`,
    );
    const changed: string[] = [];
    for (const { table_name: table, column_name: column } of columns) {
      // Some tables refuse the change: their names have only plain characters.
      const rows = await db
        .query(`UPDATE ${table} SET ${column} = left(${column}, 20) || U&'\\202E' || '<b>' RETURNING 1`)
        .catch(() => []);
      if (rows.length > 0) changed.push(`${table}.${column}`);
    }
    expect(changed).toEqual(expect.arrayContaining(['factories.name', 'schedules.name', 'users.display_name']));
    await signIn(page, service);
    const found: string[] = [];
    for (const [, address] of screens) {
      await open(address);
      found.push(...(await hiddenOrder(page)).map((fault) => `${address} ${fault}`));
    }
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('have no serious accessibility fault in either theme', { timeout: 600_000, tags: 'long' }, async () => {
    const { page } = browser();
    await signIn(page, service);
    const found: string[] = [];
    const check = async (address: string) => {
      await open(address);
      // Load axe through the debugger, because the content security policy of the page does not apply to code from there.
      await page.evaluate(axe);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const faults = await page.evaluate<string[]>(
          `axe.run().then(({ violations }) => violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => id + ': ' + nodes.slice(0, 2).map(({ html }) => html.slice(0, 160)).join(' | ')))`,
        );
        found.push(...faults.map((fault) => `${address} ${colorScheme} ${fault}`));
      }
    };
    for (const [, address] of screens) await check(address);
    await browser().context.clearCookies();
    await check('/sign-in');
    expect(found).toEqual([]);
  });
});
