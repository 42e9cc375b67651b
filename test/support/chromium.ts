/** Starts the Chromium of the machine, with options that turn off Chromium's own requests to the internet. */
import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

const programs = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium'];
const executablePath = process.env.CHROMIUM_PATH ?? programs.find((file) => existsSync(file)) ?? '/usr/bin/chromium';

/** The reason why this machine cannot open pages, or null if it can. */
export const noChromium: string | null = existsSync(executablePath) ? null : `there is no ${executablePath}`;

/** Starts Chromium. The caller closes it. */
export const startChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath,
    headless: true,
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
