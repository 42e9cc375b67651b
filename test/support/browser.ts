/** Test support: starts Chromium, and opens a fresh profile with one page for each test. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { BrowserContext, Page, Browser as Program } from 'playwright-core';
import { afterEach, beforeEach } from 'vitest';
import { noChromium, startChromium } from './chromium.ts';

const screenshots = process.env.SCREENSHOT_DIR;

/** The reason why tests of pages cannot run on this machine, or null if they can. */
export const noBrowser = noChromium;

export interface Browser {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Folder of this test. */
  readonly folder: string;
  /** Errors of the page's scripts and violations of its content security policy. */
  readonly complaints: string[];
  /** Takes a picture of the whole page if SCREENSHOT_DIR is set in the environment. */
  picture(name: string): Promise<void>;
}

/**
 * The Chromium that all test files of this process share, because a start takes a second of processor time. Chromium ends with the
 * process.
 */
let started: Promise<Program> | undefined;

async function chromiumOfProcess(): Promise<Program> {
  const program = await started?.catch(() => undefined);
  if (program?.isConnected()) return program;
  started = startChromium();
  return await started;
}

/** Gives each test of the present `describe` a browser with a profile of its own. The returned function gives the browser of the current test. */
export function useBrowser(): () => Browser {
  let browser: Browser;
  beforeEach(async () => {
    const folder = await mkdtemp(path.join(tmpdir(), 'runyard-browser-'));
    const program = await chromiumOfProcess();
    const context = await program.newContext({ viewport: { width: 1200, height: 850 }, acceptDownloads: true });
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('console', (message) => {
      // Ignore the messages that the browser itself logs for each answer with a status of 400 and above.
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
