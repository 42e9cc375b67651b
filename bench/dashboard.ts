/**
 * Measures the dashboard in Chromium: the sign-in and the list of a million runs, keys and scrolling in the list, runs of 20,000 events with
 * little and with 50 MB of text, and a run whose agent sends 100,000 events while a tab shows it.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { insertKey } from '../packages/service/test/insert-key.ts';
import { startChromium } from '../test/support/chromium.ts';
import { startSystem } from '../test/support/system.ts';
import { agentEvents, batchSize, lines, startRun } from './agent-run.ts';
import { seedRuns } from './list-seed.ts';
import { heapMbOf, longestOf, openProcessorTime, readPace, untilShown, watchPages } from './page-times.ts';
import { percentile, report } from './report.ts';

const runCount = Number(process.env.BENCH_RUNS ?? 1_000_000);
/** 0: measures no run. */
const eventCount = Number(process.env.BENCH_EVENTS ?? 20_000);
/** MB of all outputs of commands in the run with much text. */
const largeMb = Number(process.env.BENCH_EVENT_MB ?? 50);
/** 0: measures no stream. */
const streamCount = Number(process.env.BENCH_STREAM ?? 100_000);
const repetitions = Number(process.env.BENCH_REPETITIONS ?? 7);
const presses = Number(process.env.BENCH_KEYS ?? 60);
/**
 * Number of pages, of 200 messages each, by which the benchmark scrolls back in the long run. Together these pages have about a tenth of
 * the run's events.
 */
const pagesBack = Math.max(1, Math.min(10, Math.floor(eventCount / 2_000)));
/**
 * The goals in milliseconds. `open`: for the first paint, and for the opening of a run. `key`: for the time from a key press to the paint
 * that shows its effect, for the longest task, and for a frame.
 */
const goals = { open: 1_000, key: 100 };

/** These three constants are the last text of the long run, the selector of this text, and the selector of a row of the list. */
const lastWords = 'The very last words';
const end = `text=${lastWords}`;
const row = 'tbody tr[data-index] a';

const rows: (string | number)[][] = [];
/**
 * Adds a row with the median and the worst time of the sample. `most`: the goal, a time in milliseconds below which the worst time must
 * be. `processor`: processor time of the page's thread.
 */
function addRow(
  title: string,
  sample: readonly number[],
  { most, processor, note = '' }: { most?: number; processor?: number; note?: string } = {},
): void {
  const worst = Math.max(...sample);
  const judged = most === undefined ? '' : worst < most ? `< ${most}` : `< ${most}: **missed**`;
  const spent = processor === undefined ? '' : processor.toFixed(processor < 100 ? 1 : 0);
  rows.push([title, percentile(sample, 0.5).toFixed(0), worst.toFixed(0), judged, spent, note]);
  process.stderr.write(`${rows.at(-1)?.join(' | ')}\n`);
}

/** Opens a page in a fresh profile, signed in with the key. */
async function openPage(key: string | null) {
  const baseURL = system.baseUrl();
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, baseURL });
  await watchPages(context);
  if (key !== null) {
    const answer = await context.request.post('/api/v1/browser-sessions', {
      data: { api_key: key },
      headers: { origin: baseURL },
    });
    if (!answer.ok()) throw new Error(await answer.text());
  }
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  return { page, cdp, processorTime: await openProcessorTime(cdp), close: () => context.close() };
}

/** Opens the address in fresh profiles. Adds rows for the first paint and for the paint that shows the element of the selector. */
async function measureOpenings(name: string, key: string | null, address: string, selector: string): Promise<void> {
  const first: number[] = [];
  const shown: number[] = [];
  let processor = 0;
  for (let n = 0; n < repetitions; n += 1) {
    const { page, processorTime, close } = await openPage(key);
    await page.goto(address);
    shown.push(await untilShown(page, selector));
    first.push(await page.evaluate(`performance.getEntriesByName('first-contentful-paint')[0].startTime`));
    processor += (await processorTime()) / repetitions;
    await close();
  }
  addRow(`${name}: first paint`, first, { most: goals.open });
  addRow(`${name}: content`, shown, { most: goals.open, processor });
}

async function measureList(key: string): Promise<void> {
  const { page, processorTime, close } = await openPage(key);
  await page.goto('/runs?sort_by=created_at');
  await untilShown(page, row);
  await delay(1_000);
  for (const pressed of ['j', 'k']) {
    await readPace(page);
    await processorTime();
    for (let n = 0; n < presses; n += 1) {
      await page.keyboard.press(pressed);
      await delay(30);
    }
    const { keys } = await readPace(page);
    const processor = (await processorTime()) / presses;
    addRow(`runs: key ${pressed} to paint`, keys, { most: goals.key, processor, note: `${presses} keys` });
  }
  await page.mouse.move(700, 500);
  await readPace(page);
  await processorTime();
  for (let n = 0; n < 150; n += 1) {
    await page.mouse.wheel(0, 400);
    await delay(16);
  }
  const scroll = await readPace(page);
  const processor = (await processorTime()) / scroll.frames.length;
  const loaded = (await page.locator('.more').textContent())?.split('.')[0];
  const elements = await page.evaluate<number>(`document.querySelectorAll('*').length`);
  const note = `60,000 pixels; ${loaded}, ${elements} elements`;
  addRow('runs, scroll: frames', scroll.frames, { most: goals.key, processor, note });
  addRow('runs, scroll: longest task', [longestOf(scroll)], { most: goals.key });
  await close();
}

/** Opens the run from the list, and pages back in its conversation. */
async function measureRun(name: string, key: string, runId: string): Promise<void> {
  const { page, processorTime, close } = await openPage(key);
  await page.goto('/runs?sort_by=created_at');
  const link = page.locator(`a[href="/runs/${runId}"]`).first();
  const opened: number[] = [];
  await link.waitFor();
  await processorTime();
  for (let n = 0; n < repetitions; n += 1) {
    await link.waitFor();
    await link.click();
    const shownAt = await untilShown(page, end);
    opened.push(shownAt - (await readPace(page)).clickedAt);
    if (n < repetitions - 1) await page.goBack();
  }
  addRow(`${name}, from the list: its end`, opened, {
    most: goals.open,
    processor: (await processorTime()) / repetitions,
  });
  await delay(500);
  const blocks = page.locator('.flow [class*="_block_"]');
  const tasks: number[] = [];
  const shown: number[] = [];
  await processorTime();
  for (let n = 0; n < pagesBack; n += 1) {
    await readPace(page);
    const before = await blocks.count();
    const clicked = performance.now();
    await page.getByRole('button', { name: 'Earlier messages' }).click();
    while ((await blocks.count()) === before) await delay(20);
    shown.push(performance.now() - clicked);
    await delay(100);
    tasks.push(longestOf(await readPace(page)));
  }
  addRow(`${name}, ${pagesBack} pages back: a page`, shown, { most: goals.open });
  addRow(`${name}, ${pagesBack} pages back: longest task`, tasks, {
    most: goals.key,
    processor: (await processorTime()) / pagesBack,
    note: '200 messages each',
  });
  await close();
}

/** Measures keys, frames, tasks and memory of a tab while the agent of the run sends events. */
async function measureStream(key: string, run: Awaited<ReturnType<typeof startRun>>): Promise<void> {
  const { page, cdp, processorTime, close } = await openPage(key);
  await page.goto(`/runs/${run.runId}`);
  await page.locator('.st.lg.INPROGRESS').waitFor();
  await delay(1_000);
  const before = await heapMbOf(cdp);
  await readPace(page);
  await processorTime();
  const started = performance.now();
  let isSending = true;
  const watching = (async () => {
    while (isSending) {
      await page.keyboard.press('j');
      await delay(200);
    }
  })();
  await run.report(agentEvents(streamCount, 'The stream has ended here'));
  const sentMs = performance.now() - started;
  await page.getByText('The stream has ended here').waitFor({ timeout: 300_000 });
  const shownMs = performance.now() - started;
  isSending = false;
  await watching;
  const { keys, frames, tasks } = await readPace(page);
  const processor = await processorTime();
  const name = `stream of ${streamCount.toLocaleString('en')} events`;
  const perSecond = Math.round(streamCount / (sentMs / 1000)).toLocaleString('en');
  const note = `${keys.length} keys, ${perSecond} events a second`;
  addRow(`${name}: key to paint`, keys, { most: goals.key, note });
  addRow(`${name}: frames`, frames, {
    note: `processor: all ${(processor / 1000).toFixed(0)} s of ${(shownMs / 1000).toFixed(0)} s`,
  });
  addRow(`${name}: tasks over 50 ms`, tasks.length === 0 ? [0] : tasks, { note: `${tasks.length} tasks` });
  addRow(`${name}: the last one is shown`, [shownMs - sentMs], {
    most: goals.open,
    note: 'after the agent has sent it',
  });
  const elements = await page.evaluate<number>(`document.querySelectorAll('*').length`);
  const after = await heapMbOf(cdp);
  addRow(`${name}: heap, MB`, [after], { note: `${before.toFixed(0)} MB before; ${elements} elements` });
  await close();
}

const system = await startSystem({ workers: [], env: { RUNYARD_LOG: 'warn' } });
const browser = await startChromium();
try {
  const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
  if (!embedded) throw new Error('the embedded PostgreSQL does not run');
  const db = await openDatabase({ address: { connectionString: embedded.url }, maxConnections: 4, log: silentLog });
  const { teamId } = await seedRuns(db, runCount);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  await db.query('UPDATE teams SET max_concurrent_executions = 10000 WHERE id = $1', [teamId]);
  const key = await insertKey(db, teamId, {});
  await measureOpenings('sign-in', null, '/sign-in', 'input');
  await measureOpenings('runs', key, '/runs', row);
  await measureList(key);
  if (eventCount > 0) await measureLongRuns(db, key);
  await db.close();
} finally {
  await browser.close();
  await system.stop();
}

async function measureLongRuns(db: Database, key: string): Promise<void> {
  const count = eventCount.toLocaleString('en');
  const turns = eventCount / (12 + 1 + lines.length + 1);
  const runs = [
    { name: `run of ${count} events`, outputBytes: 0 },
    { name: `run of ${count} events, ${largeMb} MB`, outputBytes: (largeMb * 2 ** 20) / turns },
  ];
  for (const { name, outputBytes } of runs) {
    const run = await startRun(system, db, key, `A ${name}`);
    await run.report(agentEvents(eventCount, lastWords, outputBytes));
    await measureOpenings(`${name}, its end`, key, `/runs/${run.runId}`, end);
    await measureRun(name, key, run.runId);
  }
  if (streamCount > 0) await measureStream(key, await startRun(system, db, key, 'A run that streams'));
}
const comparison = `On 2026-11-27, several builds of the dashboard were compared by the time from a key to its paint while a run gets 30,000 events, 5,000 to 8,600 a second. Four rounds in turns, 101 to 135 keys for each build, load about 2. In the first build, the median was 113 ms and the 90th percentile 234 ms: each frame shows all events that have come, each change reads the height of the conversation and renders the whole screen, and blocks have 50 entries. Without these reads and renderings, and with blocks of 25 entries: 73 ms and 154 ms. If the page also pauses after each change: 42 ms and 98 ms. With blocks of 50 entries, the pauses made no difference (median of two rounds: 94 ms with pauses, 83 ms without). The longest tasks still need about 55 ms of the processor (with a trace), for the script, style and layout of up to 50 new entries. Chromium, the service, its database and the agent share two cores, so a task often takes twice its processor time, and the worst key waits longer than the goal.`;
report(
  `The dashboard over ${runCount.toLocaleString('en')} runs`,
  `Times are in milliseconds, in Chromium ${browser.version()} without a graphics processor and with 1440 by 900 pixels. Chromium shares the cores with the service and its embedded PostgreSQL. Each page is opened ${repetitions} times, each time in a new profile, so nothing is cached. A time ends with the paint that shows what the row names. The column "processor" is the processor time of the page's main thread for one repetition, which depends less on other programs of the machine. The runs are those of \`list.ts\`. In each turn the agent writes a text in 12 pieces and runs a command. It sends events as fast as the service accepts ${batchSize} events at a time.\n\n${comparison}`,
  ['what', 'p50', 'worst', 'goal', 'processor', ''],
  rows,
);
