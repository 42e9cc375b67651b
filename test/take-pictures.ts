/**
 * Program: takes the pictures of the README from a running service with runs. `node test/take-pictures.ts DATA_FOLDER RUN_ID`, with
 * RUNYARD_BASE_URL if the service is not at its usual address.
 */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { startChromium } from './support/chromium.ts';

const [folder, runId] = process.argv.slice(2);
if (folder === undefined || runId === undefined) throw new Error('usage: take-pictures.ts DATA_FOLDER RUN_ID');
const baseURL = process.env.RUNYARD_BASE_URL ?? 'http://127.0.0.1:4180';

const pictures = path.resolve(import.meta.dirname, '../docs/pictures');

const browser = await startChromium();
try {
  const page = await browser.newPage({ baseURL, viewport: { width: 1200, height: 640 } });
  await page.goto('/sign-in');
  await page.getByLabel('API key').fill(readFileSync(path.join(folder, 'bootstrap-key'), 'utf8').trim());
  await page.getByRole('button', { name: 'Sign in', exact: true }).click();
  const screens = [
    ['runs', '/runs', 'tbody tr[data-index] a'],
    ['run', `/runs/${runId}?tab=files`, '[data-part=diff]'],
  ] as const;
  await page.waitForURL('**/runs');
  for (const [name, address, sign] of screens) {
    await page.goto(address);
    await page.locator(sign).first().waitFor();
    await page.waitForLoadState('networkidle', { timeout: 1_000 }).catch(() => undefined);
    await page.screenshot({ path: path.join(pictures, `${name}.png`) });
  }
} finally {
  await browser.close();
}
