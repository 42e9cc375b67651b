/** Tests the command `runyard open`, and in a real browser the sign-in link that it prints. */
import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { noBrowser, useBrowser } from './support/browser.ts';
import { runCommand } from './support/command-line.ts';
import { runyardFile } from './support/programs.ts';

const runyard = await runyardFile();

describe.skipIf(noBrowser)(`runyard open${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let runId: string;
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    runId = await service.newRun({ title: 'Look here' });
  });
  afterAll(() => service.close());

  const call = (args: string[], env: Record<string, string> = {}) =>
    runCommand([runyard, 'open', ...args], {
      cwd: browser().folder,
      env: {
        RUNYARD_BASE_URL: service.baseUrl,
        RUNYARD_API_KEY: service.key,
        RUNYARD_DATA_DIR: path.join(browser().folder, 'client'),
        DISPLAY: '',
        WAYLAND_DISPLAY: '',
        BROWSER: '',
        ...env,
      },
    });
  const linkIn = (output: string) => /http:\S+#sign-in=[\w-]{43}/.exec(output)?.[0] ?? '';

  test('opens the dashboard if there is no run yet', async () => {
    const empty = await startTestService();
    try {
      const env = { RUNYARD_BASE_URL: empty.baseUrl, RUNYARD_API_KEY: empty.key };
      const { code, output } = await call([], env);
      expect(code, output).toBe(0);
      const { page, complaints } = browser();
      await page.goto(linkIn(output));
      await page.getByRole('button', { name: 'Sign in as Administrator' }).click();
      await page.getByRole('button', { name: 'Administrator' }).waitFor();
      expect(new URL(page.url()).origin).toBe(empty.baseUrl);
      expect(complaints).toEqual([]);
    } finally {
      await empty.close();
    }
  });

  test('prints a link if the machine has no desktop; the link signs in once and leaves no secret in the address', async () => {
    const { page, context, complaints, picture } = browser();
    const { code, output } = await call([runId]);
    expect(code, output).toBe(0);
    expect(output).toContain('no browser was started: this machine has no desktop');
    expect(output).not.toContain(service.key);
    const link = linkIn(output);
    await page.goto(link);
    await page.getByRole('heading', { name: 'Sign in as Administrator?' }).waitFor();
    await picture('sign-in-link');
    await page.getByRole('button', { name: 'Sign in as Administrator' }).click();
    await page.getByRole('heading', { name: 'Look here' }).waitFor();
    await page.getByRole('button', { name: 'Administrator' }).waitFor();
    expect(page.url()).toBe(`${service.baseUrl}/runs/${runId}`);
    expect(service.logged.join('\n')).not.toContain(link.split('sign-in=')[1]);
    await picture('run-signed-in');
    await page.getByRole('button', { name: 'Cancel run…' }).click();
    await page.getByRole('button', { name: 'Cancel the run' }).click();
    await page.locator('[data-state=CANCELLED][data-large]').waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Look here' }).waitFor();

    await page.getByRole('button', { name: 'Administrator' }).click();
    await page.getByRole('menuitem', { name: 'Sign out', exact: true }).click();
    await page.getByLabel('API key', { exact: true }).waitFor();
    const second = await context.newPage();
    await second.goto(link);
    await second.getByText('This sign-in link was used already, or is older than a minute.').waitFor();
    expect(second.url()).not.toContain(link.split('sign-in=')[1]);
    expect(complaints).toEqual([]);
  });

  test('starts the browser with the path of a file that only this user can read, so that no argument contains the sign-in code', async () => {
    const { page, folder } = browser();
    const script = path.join(folder, 'browser');
    const seen = path.join(folder, 'arguments');
    await writeFile(script, `#!/bin/sh\nprintf '%s' "$*" > '${seen}'\n`);
    await chmod(script, 0o755);
    const { code, output } = await call([], { BROWSER: script });
    expect(code, output).toBe(0);
    expect(output).toContain(`${service.baseUrl}/runs/${runId}`);
    expect(linkIn(output)).toBe('');
    const given = await readFile(seen, 'utf8');
    const url = given.startsWith('file:') ? given : `file://${given}`;
    expect(given).not.toContain('sign-in');
    expect((await stat(fileURLToPath(url))).mode & 0o077).toBe(0);
    await page.goto(url);
    await page.getByRole('button', { name: 'Administrator' }).waitFor();
  });

  test('prints the link if the browser does not start', async () => {
    const { output } = await call([runId], { BROWSER: '/nonexistent/browser' });
    expect(linkIn(output)).not.toBe('');
    expect(output).toContain('no browser was started');
  });

  test('says why it cannot open a run of another team, and why it cannot use an agent key', async () => {
    const other = await call([runId], { RUNYARD_API_KEY: service.otherKey });
    expect([other.code, other.output]).toEqual([1, expect.stringContaining('resource_not_found')]);
    const agent = await call([runId], { RUNYARD_API_KEY: await service.newKey({ kind: 'agent' }) });
    expect([agent.code, agent.output]).toEqual([1, expect.stringContaining('use a personal key')]);
  });
});
