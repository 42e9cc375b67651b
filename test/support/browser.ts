/** Test support: Chromium with a page in it, fresh for each test of a file. */
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';

const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
const screenshots = process.env.SCREENSHOT_DIR;

/** Why the tests of pages cannot run here; null: they can. */
export const noBrowser: string | null = existsSync(executablePath) ? null : `there is no ${executablePath}`;

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

/** Opens a browser before each test of the present `describe`, and closes it after the test. Returns the current one. */
export function useBrowser(): () => Browser {
  let browser: Browser;
  beforeEach(async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'runyard-browser-'));
    const context = await chromium.launchPersistentContext(folder, {
      executablePath,
      headless: true,
      viewport: { width: 1200, height: 850 },
      acceptDownloads: true,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    });
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
    await rm(browser.folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  return () => browser;
}
