/** Tests the screens for webhooks and deliveries of the dashboard in a real browser. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { on, testAutomations } from '../../packages/service/test/automations.ts';
import { startTestService, type TestService } from '../../packages/service/test/service.ts';
import { testWebhooks } from '../../packages/service/test/webhooks.ts';
import { noBrowser, useBrowser } from '../support/browser.ts';
import { signIn } from '../support/dashboard.ts';

describe.skipIf(noBrowser)(`deliveries on the dashboard${noBrowser ? ` (skipped: ${noBrowser})` : ''}`, () => {
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
  beforeEach(async () => {
    ({ page, complaints } = browser());
    await signIn(page, service);
  });
  const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
  const filtered = (uid: string) => ({
    ...on({ uid }),
    filter: { webhook_ids: [uid], payload: { status: ['firing'] } },
  });
  const start = async () => {
    const webhook = await hooks.create({ name: 'Alerts', event_header: 'x-event' });
    const automation = await testAutomations(service, hooks.factory.uid).create([filtered(webhook.uid)], {
      name: `Look ${webhook.uid}`,
    });
    const send = async (status: string, event: string) =>
      (await hooks.send(webhook, { body: JSON.stringify({ status, event }), headers: { 'x-event': event } })).body
        .delivery_id;
    return { webhook, automation, send, address: `${service.baseUrl}/factories/${hooks.factory.uid}` };
  };

  test('show why they matched no automation, and appear in the list at once, or after a click while another delivery is open', async () => {
    const { webhook, send, address } = await start();
    const first = await send('resolved', 'markup <b>');
    await page.goto(`${address}/webhooks/${webhook.uid}`);
    await page.getByText('found "resolved"; allowed: "firing"').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await send('firing', 'alert.second');
    await page.getByRole('link', { name: /alert\.second/ }).waitFor();
    // The first delivery is still in the list.
    await page.getByText('found "resolved"; allowed: "firing"').waitFor();
    await page.goto(`${address}/webhooks/${webhook.uid}/deliveries/${first}`);
    await page.getByText('Live', { exact: true }).waitFor();
    // The field that misses the condition is amber, and a click copies the path of the field.
    await page.locator('[data-mark=miss]', { hasText: '"resolved"' }).click();
    await page.getByText(/^(Copied the path|The browser refuses to copy\. Copy it from here:) status$/).waitFor();
    await send('other', 'alert.third');
    await button('1 new delivery').click();
    await page.getByRole('link', { name: /alert\.third/ }).waitFor();
    await browser().picture('webhook');
    expect(complaints).toEqual([]);
  });

  test('are counted in the lists of all webhooks and automations of the team, and listed for all factories', async () => {
    const { webhook, send } = await start();
    await send('firing', 'alert.one');
    await page.goto(`${service.baseUrl}/factories?tab=webhooks`);
    await page
      .locator('tr', { has: page.locator(`a[href$="${webhook.uid}"]`) })
      .getByText('1 accepted')
      .waitFor();
    await send('firing', 'alert.two');
    await page
      .locator('tr', { has: page.locator(`a[href$="${webhook.uid}"]`) })
      .getByText('2 accepted')
      .waitFor();
    await browser().picture('team-webhooks');
    await page.getByRole('link', { name: 'Automations', exact: true }).click();
    await page.getByRole('row', { name: new RegExp(`Look ${webhook.uid}.*2 started`) }).waitFor();
    await browser().picture('team-automations');
    await page.getByRole('link', { name: 'Deliveries', exact: true }).click();
    await page.getByRole('link', { name: /alert\.two/ }).waitFor();
    await send('resolved', 'alert.three');
    await page.getByRole('link', { name: /alert\.three/ }).waitFor();
    await page.getByRole('link', { name: 'Started runs' }).click();
    await expect.poll(() => page.getByRole('link', { name: /alert\.three/ }).count()).toBe(0);
    await page.getByRole('link', { name: /alert\.two/ }).waitFor();
    await browser().picture('team-deliveries');
    expect(complaints).toEqual([]);
  });

  test('can be simulated: the page shows which run a sample payload would start, and no run starts', async () => {
    const { webhook, automation, address } = await start();
    await page.goto(`${address}/webhooks/${webhook.uid}`);
    await button('Simulate…').click();
    await page.getByLabel('Event', { exact: true }).selectOption({ label: 'An alert' });
    await button('Simulate').click();
    await page.getByText('would start a run').waitFor();
    await page.getByLabel('Payload').fill('{"status": "resolved"}');
    await button('Simulate').click();
    await page.getByText('found "resolved"; allowed: "firing"').waitFor();
    await browser().picture('simulate');
    await page.getByLabel('Payload').fill('{');
    await button('Simulate').click();
    await page.getByText(/The payload is not JSON/).waitFor();
    const { body } = await service.request<{ runs: unknown[] }>('GET', `/agent/runs?q=${automation.uid}`);
    expect(body.runs).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('are replayed, and the webhook is renamed, disabled with an undo, and gets another secret', {
    tags: 'long',
  }, async () => {
    const { webhook, send, address } = await start();
    const first = await send('firing', 'alert.replayed');
    await page.goto(`${address}/webhooks/${webhook.uid}/deliveries/${first}`);
    await page.getByText('matched and started a run').waitFor();
    await button('Replay…').click();
    await page.getByRole('alertdialog').getByRole('button', { name: 'Replay', exact: true }).click();
    await page.getByText(`A replay of ${first}`).waitFor();
    await page.getByText('matched and started a run').waitFor();
    expect((await hooks.log(webhook)).map(({ replay_of: of }) => of)).toEqual([first, undefined]);

    const stored = async () => (await service.request('GET', `${hooks.base}/${webhook.uid}`)).body;
    await button('More actions').click();
    await page.getByRole('menuitem', { name: 'Rename…' }).click();
    await page.getByRole('dialog').getByLabel('Name').fill('Alerts <i>2');
    await button('Rename').click();
    await page.getByRole('heading', { name: 'Alerts <i>2' }).waitFor();
    await page.getByRole('button', { name: /^Undo/ }).click();
    await page.getByRole('heading', { name: 'Alerts', exact: true }).waitFor();
    await button('Disable').click();
    await button('Enable').waitFor();
    await page.getByText('Disabled Alerts').waitFor();
    await expect.poll(stored).toMatchObject({ name: 'Alerts', enabled: false });
    await page.getByRole('button', { name: /^Undo/ }).click();
    await button('Disable').waitFor();
    await expect.poll(stored).toMatchObject({ enabled: true });

    await button('Rotate secret…').click();
    await page.getByLabel('The old secret is accepted').selectOption('0');
    await button('Rotate').click();
    const secret = (await page.getByRole('dialog').locator('pre').textContent()) ?? '';
    await button('I stored it').click();
    expect(secret).not.toBe(webhook.secret);
    expect((await hooks.send(webhook)).status).toBe(401);
    expect((await hooks.send(webhook, { token: secret })).status).toBe(202);
    await browser().context.grantPermissions(['clipboard-read', 'clipboard-write']);
    await button('More actions').click();
    await page.getByRole('menuitem', { name: 'Copy as curl' }).click();
    await page.getByText('Copied the curl command').waitFor();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    expect(copied).toContain(`${service.baseUrl}/api/v1${hooks.base}/${webhook.uid}`);
    expect(complaints).toEqual([]);
  });

  test('are rendered only near the visible part if the list is long', { tags: 'long' }, async () => {
    const { webhook, send, address } = await start();
    await send('firing', 'alert.oldest');
    // Rows of the database, because a webhook accepts fewer deliveries in a minute.
    await service.deps.db.query(
      `INSERT INTO webhook_deliveries (id, webhook_uid, team_id, label, size_bytes, provider_event)
       SELECT new_uuid_v7(), uid, team_id, 'ACCEPTED', 1, 'alert.' || n FROM webhooks, generate_series(0, 239) n WHERE uid = $1`,
      [webhook.uid],
    );
    await send('resolved', 'alert.newest');
    const loadAll = async (more: string) => {
      await button(more).waitFor();
      // The button is gone when the last page has come, which can be before the click.
      while ((await button(more).count()) > 0)
        await button(more)
          .click({ timeout: 2_000 })
          .catch(() => undefined);
    };
    const scrollTo = (selector: string, top: number) =>
      page.evaluate(`document.querySelector('${selector}').scrollTo(0, ${top})`);
    await page.goto(`${address}/webhooks/${webhook.uid}`);
    await loadAll('Older deliveries');
    await scrollTo('#main > div > div', 0);
    await page.getByRole('link', { name: /alert\.newest/ }).waitFor();
    expect(await page.locator('[data-part=delivery]').count()).toBeLessThan(100);
    await scrollTo('#main > div > div', 1e9);
    await page.getByRole('link', { name: /alert\.oldest/ }).waitFor();
    await browser().picture('deliveries-long');
    expect(complaints).toEqual([]);
  });

  test('are compared with a filter: the page shows how many of the last deliveries match', async () => {
    const { automation, send, address } = await start();
    for (const [index, status] of ['firing', 'resolved', 'resolved'].entries()) await send(status, `alert.${index}`);
    await page.goto(`${address}/automations/${automation.uid}`);
    await page.getByLabel('Deliveries that came').selectOption({ label: 'the last 20' });
    await page.getByText('1 of the last 3 deliveries match').waitFor();
    await page.getByText('found "resolved"; allowed: "firing"').first().waitFor();
    // A click on a field of a payload adds a condition. Fields that meet a condition are blue, others are amber.
    await page.getByLabel('Deliveries that came').selectOption({ label: 'none: the payload below' });
    await page.getByLabel('A payload').fill('{"status": "resolved", "alert": {"team": "web"}}');
    const field = page.getByRole('region', { name: 'Fields of the payload' });
    await field.getByRole('button', { name: '"web"' }).click();
    await page.locator('span > code', { hasText: '"web"' }).waitFor();
    expect(await page.getByLabel('Field', { exact: true }).last().inputValue()).toBe('alert.team');
    await field.locator('[data-mark=hit]', { hasText: '"web"' }).waitFor();
    await field.locator('[data-mark=miss]', { hasText: '"resolved"' }).waitFor();
    await browser().picture('filter-test');
    expect(complaints).toEqual([]);
  });

  test('are in the history of the automation, whose dry run shows the run of the saved automation, and whose form edits all its triggers', async () => {
    const { automation, send, address } = await start();
    await send('firing', 'alert.fired');
    await send('resolved', 'alert.calm');
    await page.goto(`${address}/automations/${automation.uid}`);
    const history = page.getByRole('region', { name: 'What fired' });
    await history.getByRole('listitem').filter({ hasText: 'alert.fired' }).getByText('started').waitFor();
    await history.getByRole('listitem').filter({ hasText: 'alert.calm' }).getByText('no match').waitFor();
    const dryRun = page.getByRole('region', { name: 'Dry run' });
    await page.getByLabel('A payload').fill('{"status": "firing"}');
    await dryRun.getByRole('button', { name: 'With the event above' }).click();
    await dryRun.getByText('would start a run').waitFor();
    await button('At times').click();
    await page.getByLabel('Five fields, or @every 90m').fill('61 9 * * *');
    await page.getByLabel('Model').selectOption('runbook');
    await page.getByLabel('While a run is live').selectOption('queue');
    await page.getByLabel('Only runs with the same').fill('alert.id');
    await button('Save').click();
    await page.getByRole('alert').filter({ hasText: 'minute' }).waitFor();
    await page.getByLabel('Five fields, or @every 90m').fill('30 9 * * *');
    await button('Save').click();
    await page.getByText(/^Saved Look/).waitFor();
    const saved = await testAutomations(service, hooks.factory.uid).read(automation.uid);
    expect(saved).toMatchObject({
      triggers: [
        { filter: { payload: { status: { in: ['firing'] } } } },
        { provider: 'schedule', schedule: { cron: '30 9 * * *' } },
      ],
      config: { model_id: 'runbook' },
      overlap: 'queue',
      concurrency_key: 'alert.id',
    });
    await dryRun.getByRole('button', { name: 'At a time of its schedule' }).waitFor();
    await browser().picture('automation');
    expect(complaints).toEqual([]);
  });

  test('a pasted payload shows whether a new automation would start a run for it, before the automation is created', {
    tags: 'long',
  }, async () => {
    const { webhook, address } = await start();
    await hooks.create({ name: 'Pasted' });
    await page.goto(`${address}/automations/new`);
    await page.getByLabel('Name', { exact: true }).fill('From a payload');
    await page.locator('label', { hasText: 'Pasted' }).getByRole('checkbox').check();
    await button('Condition').click();
    await page.getByLabel('Field', { exact: true }).fill('status');
    await page.getByLabel('Add a value').fill('firing');
    await page.getByLabel('A payload').fill('{"status": "resolved"}');
    await page.getByText('It does not match').waitFor();
    await page.getByLabel('A payload').fill('{"status": "firing"}');
    await page.getByText('It matches and would start a run').waitFor();
    await page.getByLabel('Then a run gets this prompt').fill('Look into it.');
    await button('Create automation').click();
    await page.getByText('Saved From a payload').waitFor();
    await page.waitForURL(/\/automations\/(?!new)/);
    const made = await testAutomations(service, hooks.factory.uid).read(page.url().split('/').at(-1) ?? '');
    expect(made).toMatchObject({
      name: 'From a payload',
      triggers: [{ filter: { payload: { status: { in: ['firing'] } } } }],
    });
    expect(made.triggers[0]?.filter?.webhook_ids).not.toContain(webhook.uid);
    expect(complaints).toEqual([]);
  });

  test('a webhook of a sender that makes the secret is off until the secret is stored, and a signature is described in the form', async () => {
    const { address } = await start();
    await page.goto(address);
    await button('New webhook').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('Payments');
    await dialog.getByLabel('Sender').selectOption('stripe');
    await dialog.getByText(/^In the Stripe dashboard/).waitFor();
    await browser().picture('new-webhook');
    await button('Create webhook').click();
    await dialog.getByText('Payments is off until it has a secret').waitFor();
    await button('Done').click();
    await page.getByRole('link', { name: 'Payments', exact: true }).click();
    // The service refuses to enable it, so the page shows it as off again, with the reason.
    await button('Enable').click();
    await page
      .getByRole('alert')
      .getByText(/secret/)
      .first()
      .waitFor();
    await page.getByText('off', { exact: true }).waitFor();
    await button('Rotate secret…').click();
    await dialog.getByLabel('Secret of the sender').fill('whsec_of_the_destination');
    await browser().picture('rotate');
    await button('Rotate').click();
    await page.getByText('The new secret is stored').waitFor();
    await page.getByText('on', { exact: true }).waitFor();

    await page.goto(address);
    await button('New webhook').click();
    await dialog.getByLabel('Name', { exact: true }).fill('Acme');
    await dialog.getByLabel('Sender').selectOption('hmac');
    await dialog.getByLabel('Header with the signature').fill('X-Acme-Signature');
    await dialog.getByLabel('Signed text').fill('{timestamp}.{body}');
    await button('Create webhook').click();
    await dialog.getByText(/so the header with the timestamp is needed/).waitFor();
    await dialog.getByLabel('Header with {timestamp}').fill('X-Acme-Time');
    await browser().picture('new-webhook-hmac');
    await button('Create webhook').click();
    await dialog.getByText('The secret of Acme').waitFor();
    const { body } = await service.request<{ webhooks: object[] }>('GET', `${hooks.base}?limit=100`);
    expect(body.webhooks).toContainEqual(
      expect.objectContaining({
        name: 'Acme',
        enabled: true,
        signature: expect.objectContaining({ signed: '{timestamp}.{body}', timestamp_header: 'X-Acme-Time' }),
      }),
    );
    expect(complaints).toEqual([]);
  });
});
