/** Measures times in a web page: paints, frames, long tasks, and the time from a key press to the paint that shows the effect. */
import type { BrowserContext, CDPSession, Page } from 'playwright-core';

/** Measurements of a page since the last call of `readPace`. All numbers are milliseconds. */
export interface Pace {
  /** For each key press: the time from the key press to the paint of the next frame. */
  readonly keys: number[];
  /** Times between two frames. */
  readonly frames: number[];
  /** Durations of tasks longer than 50 ms. */
  readonly tasks: number[];
  /** Time of the last click, by the clock of the page. */
  readonly clickedAt: number;
}

/** Script that each page runs before its own scripts. */
const watch = `
  const empty = () => ({ keys: [], frames: [], tasks: [], clickedAt: 0 });
  let pace = empty();
  let last;
  const afterPaint = (then) => requestAnimationFrame(() => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => then(performance.now());
    port2.postMessage(0);
  });
  const frame = (now) => {
    if (last !== undefined) pace.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) pace.tasks.push(duration);
  }).observe({ type: 'longtask' });
  addEventListener('keydown', ({ timeStamp }) => afterPaint((now) => pace.keys.push(now - timeStamp)), true);
  addEventListener('pointerdown', ({ timeStamp }) => { pace.clickedAt = timeStamp; }, true);
  globalThis.readPace = () => {
    const read = pace;
    pace = empty();
    return read;
  };
  globalThis.afterPaint = () => new Promise(afterPaint);
`;

/** Starts the measurements in all pages that the browser profile opens after this call. */
export async function watchPages(context: BrowserContext): Promise<void> {
  await context.addInitScript(watch);
}

/** Returns the measurements of the page since the last call, and resets them. */
export const readPace = (page: Page): Promise<Pace> => page.evaluate<Pace>('readPace()');

/** Waits for the selector. Returns the time of the paint that shows it, by the clock of the page. */
export async function untilShown(page: Page, selector: string): Promise<number> {
  await page.waitForSelector(selector, { state: 'visible', timeout: 60_000 });
  return await page.evaluate<number>('afterPaint()');
}

/** Returns the duration of the longest task, or 0 if no task was longer than 50 ms. */
export const longestOf = ({ tasks }: Pace): number => Math.max(0, ...tasks);

/**
 * Returns a function. Each call of this function returns the milliseconds of processor time that the page's thread has used since the
 * call before.
 */
export async function openProcessorTime(cdp: CDPSession): Promise<() => Promise<number>> {
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  let before = 0;
  return async () => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    const total = (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN) * 1000;
    const spent = total - before;
    before = total;
    return spent;
  };
}

/** Returns the heap of the page after a garbage collection, MB. */
export async function heapMbOf(cdp: CDPSession): Promise<number> {
  await cdp.send('HeapProfiler.collectGarbage');
  const { usedSize } = await cdp.send('Runtime.getHeapUsage');
  return usedSize / 2 ** 20;
}
