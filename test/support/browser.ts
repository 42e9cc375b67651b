/** Test support: Chromium, and in it a fresh profile with a page for each test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BrowserContext, Page, Browser as Program } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { noChromium, startChromium } from './chromium.ts';

const screenshots = process.env.SCREENSHOT_DIR;

/** Why the tests of pages cannot run here; null: they can. */
export const noBrowser = noChromium;

export interface Browser {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Folder of this test. */
  readonly folder: string;
  /** Errors of the page's scripts and of its policy. */
  readonly complaints: string[];
  /** Takes a picture of the whole page where SCREENSHOT_DIR is set. */
  picture(name: string): Promise<void>;
}

/** Starts a browser for the present `describe`, with a profile of its own for each test. Returns the one of the current test. */
export function useBrowser(): () => Browser {
  let program: Program;
  let browser: Browser;
  beforeAll(async () => {
    program = await startChromium();
  });
  afterAll(() => program.close());
  beforeEach(async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'runyard-browser-'));
    const context = await program.newContext({ viewport: { width: 1200, height: 850 }, acceptDownloads: true });
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // Browsers log each answer of 400 and above by themselves.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        complaints.push(message.text());
    });
    const picture = async (name: string) => {
      if (screenshots) await page.screenshot({ path: path.join(screenshots, `${name}.png`), fullPage: true });
    };
    browser = { page, context, folder, complaints, picture };
  });
  afterEach(async () => {
    await browser.context.close();
    await rm(browser.folder, { recursive: true, force: true });
  });
  return () => browser;
}
