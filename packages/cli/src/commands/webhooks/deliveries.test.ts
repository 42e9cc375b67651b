/** Tests that commands print deliveries without control characters from the sender, and show why a delivery started no run. */
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { beforeAll, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { on, testAutomations } from '../../../../service/test/automations.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { testWebhooks } from '../../../../service/test/webhooks.ts';
import { runRow } from '../../../test/run-row.ts';
import { type Context, createContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { automations } from '../automations/automations.ts';
import { listAutomations } from '../automations/list.ts';
import { showDelivery } from './deliveries.ts';
import { listWebhooks, webhooks } from './webhooks.ts';

const service = await openTestService();
const { factory, create, send, log } = await testWebhooks(service);
const { create: automate } = testAutomations(service, factory.uid);
const folder = newFolder();

/** Runs the command. Returns its output and, if it fails, the message of the failure. */
async function printedBy(command: (context: Context) => Promise<void>): Promise<string> {
  const printed: string[] = [];
  const print = (text: string) => void printed.push(text);
  const env = { RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: service.key };
  const report = (text: string) => print(`${text}\n`);
  await command({ ...createContext(env), out: print, report }).catch((error: unknown) => {
    if (!(error instanceof Failure)) throw error;
    printed.push(`failure: ${error.message}\n`);
  });
  return printed.join('');
}

/**
 * Text that attacks a terminal: escape sequences that clear the screen, set the title and write the clipboard, a one-byte start of a
 * sequence, and characters that reverse the direction of the text or draw over it.
 */
const hostile = '\u001b[2J\u001b]0;title\u0007\u001b]52;c;eA==\u0007\u009b31m\u202edrow\r\b\u2028';
const obeyed = /(?!\n|\t)[\p{Cc}\u2028\u202a-\u202e\u2066-\u2069]/u;

describe('a sender of control characters', () => {
  let webhook: Awaited<ReturnType<typeof create>>;
  let automation: Awaited<ReturnType<typeof automate>>;
  let delivery: string;
  const file = path.join(folder, 'payload.json');
  const payload = { [hostile]: hostile, status: hostile };

  beforeAll(async () => {
    webhook = await create({ name: `W ${hostile}` });
    const filter = { webhook_ids: [webhook.uid], payload: { status: ['firing'] } };
    const triggers = [{ provider: 'webhook', event: 'received', filter }];
    automation = await automate(triggers, { name: `A ${hostile}`, prompt: `Look. ${hostile}` });
    const headers = { 'x-service-delivery-id': '\u009b31m' };
    delivery = (await send(webhook, { body: JSON.stringify(payload), headers })).body.delivery_id;
    writeFileSync(file, JSON.stringify(payload));
  });

  test.each<[string, (context: Context) => Promise<void>]>([
    ['webhooks list', (context) => listWebhooks(context, {})],
    ['webhooks list --json', (context) => listWebhooks(context, { json: true })],
    ['webhooks deliveries', (context) => runRow(webhooks, context, 'deliveries', webhook.uid)],
    ['webhooks deliveries --json', (context) => runRow(webhooks, context, 'deliveries', webhook.uid, '--json')],
    ['webhooks delivery', (context) => showDelivery(context, webhook.uid, delivery, {})],
    ['webhooks delivery --json', (context) => showDelivery(context, webhook.uid, delivery, { json: true })],
    ['webhooks simulate', (context) => runRow(webhooks, context, 'simulate', webhook.uid, '--payload', file)],
    ['automations list', (context) => listAutomations(context, {})],
    [
      'automations dry-run',
      (context) => runRow(automations, context, 'dry-run', automation.uid, '--delivery', delivery),
    ],
  ])('cannot send them to the terminal through %s', async (_name, command) => {
    const printed = await printedBy(command);
    expect(printed.length).toBeGreaterThan(20);
    expect(printed).not.toMatch(obeyed);
  });
});

test('lists name the factory of a webhook and of an automation in the form of the API', async () => {
  const webhook = await create();
  await automate([on(webhook)]);
  const listedWebhooks = JSON.parse(await printedBy((context) => listWebhooks(context, { json: true }))).webhooks;
  const listedAutomations = JSON.parse(
    await printedBy((context) => listAutomations(context, { json: true })),
  ).automations;
  for (const listed of [listedWebhooks, listedAutomations])
    expect(listed.at(-1)).toMatchObject({ factory_uid: expect.stringMatching(/^\w{22}$/) });
});

describe('a delivery that started no run', () => {
  test('is listed and shown with the reason of each automation', async () => {
    const webhook = await create();
    const filter = { webhook_ids: [webhook.uid], payload: { status: ['firing'] } };
    const [a, b] = [
      await automate([{ provider: 'webhook', event: 'received', filter }]),
      await automate([on(webhook)], { enabled: false }),
    ];
    const body = '{"status":"resolved"}';
    const { delivery_id: id } = (await send(webhook, { body })).body;
    await send(webhook, { body });
    await send(webhook, { token: 'wrong' });
    const mismatch = 'triggers[0]: status: found "resolved"; allowed: "firing"';
    const listed = (await printedBy((context) => runRow(webhooks, context, 'deliveries', webhook.uid)))
      .trimEnd()
      .split('\n');
    expect(listed.map((line) => line.split('\t').at(-1))).toEqual([
      expect.stringContaining('the credential of the webhook'),
      'a delivery with this identity was accepted before',
      expect.stringMatching(/, and 1 more$/),
    ]);
    const output = await printedBy((context) => showDelivery(context, webhook.uid, id, {}));
    expect(output).toContain(`- ${a.uid} ${a.name}: ${mismatch}\n`);
    expect(output).toContain(`- ${b.uid} ${b.name}: the automation is disabled\n`);
    expect(output).toContain('{\n  "status": "resolved"\n}\n');
    expect(
      await printedBy((context) => runRow(webhooks, context, 'deliveries', webhook.uid, '--label', 'rejected_auth')),
    ).toMatch(/^\S+\tREJECTED_AUTH\t[^\n]*\n$/);
    await expect(
      printedBy((context) => runRow(webhooks, context, 'deliveries', webhook.uid, '--label', 'lost')),
    ).rejects.toThrow('Allowed choices are ACCEPTED');
    await printedBy((context) => runRow(webhooks, context, 'replay', webhook.uid, id));
    const [newest] = await log(webhook);
    expect(await printedBy((context) => showDelivery(context, webhook.uid, newest?.delivery_id ?? '', {}))).toContain(
      `replay of ${id}\n`,
    );
  });

  test('has a reason that the commands for automations show, also after the webhook was deleted', async () => {
    const webhook = await create();
    const { uid } = await automate([on(webhook)]);
    await printedBy((context) => runRow(webhooks, context, 'update', webhook.uid, '--name', 'Renamed'));
    expect(await printedBy((context) => listWebhooks(context, {}))).toContain('\tRenamed\t');
    await service.request('DELETE', `/factory/${factory.uid}/webhooks/${webhook.uid}`);
    const problem = `triggers[0]: the webhook ${webhook.uid} was deleted`;
    const listed = (await printedBy((context) => listAutomations(context, {}))).split('\n');
    expect(listed.find((line) => line.startsWith(uid))).toMatch(/\thas problems\t.*was deleted$/);
    expect(listed.join('\n')).toContain(problem);
  });

  test('is predicted by the command that creates an automation that cannot fire', async () => {
    const file = path.join(folder, 'automation.json');
    const triggers = [{ provider: 'webhok', event: 'received' }];
    writeFileSync(file, JSON.stringify({ name: 'Misspelt', prompt: 'Look.', triggers }));
    expect(await printedBy((context) => runRow(automations, context, 'create', factory.uid, file))).toMatch(
      /^\w{22}\nproblem: triggers\[0\]: this service has no provider webhok\n$/,
    );
    writeFileSync(file, '{');
    expect(await printedBy((context) => runRow(automations, context, 'create', factory.uid, file))).toMatch(
      /^failure: \S+automation\.json is not JSON: /,
    );
  });
});

describe('a webhook with its own rules', () => {
  const rulesOf = async (uid: string) => {
    const { body } = await service.request<Webhook>('GET', `/factory/${factory.uid}/webhooks/${uid}`);
    const { auth_mode, signature_scheme, signature, delivery_id_path, event_header, duplicate_window_seconds } = body;
    return { auth_mode, signature_scheme, signature, delivery_id_path, event_header, duplicate_window_seconds };
  };

  test('is created and changed with options, and the log of deliveries shows event and reason', async () => {
    const secretFile = path.join(folder, 'secret');
    writeFileSync(secretFile, 'secret-of-acme');
    const rules = ['--signature', '{"header": "X-Acme", "prefix": "v1="}', '--delivery-id-path', 'event.id'];
    const names = ['--event-header', 'X-Acme-Event', '--duplicate-window', '60', '--secret-file', secretFile];
    const creationOutput = await printedBy((context) =>
      runRow(webhooks, context, 'create', factory.uid, 'acme', '--scheme', 'hmac', ...rules, ...names),
    );
    const [uid = '', url = ''] = creationOutput.split('\n');
    expect(await rulesOf(uid)).toEqual({
      auth_mode: 'signature',
      signature_scheme: 'hmac',
      signature: { header: 'X-Acme', prefix: 'v1=' },
      delivery_id_path: 'event.id',
      event_header: 'x-acme-event',
      duplicate_window_seconds: 60,
    });
    const signature = `v1=${createHmac('sha256', 'secret-of-acme').update('{}').digest('hex')}`;
    const headers = { 'x-acme': signature, 'x-acme-event': 'refund.created' };
    for (const id of ['one', 'two'])
      await send({ url }, { token: null, headers: { ...headers, 'x-service-delivery-id': id } });
    const [second] = await log({ uid });
    expect(await printedBy((context) => runRow(webhooks, context, 'deliveries', uid))).toContain(
      'the same signed bytes',
    );
    const output = await printedBy((context) => showDelivery(context, uid, second?.delivery_id ?? '', {}));
    expect(output).toMatch(/event refund\.created\n- the delivery .* had the same signed bytes/);

    await printedBy((context) =>
      runRow(webhooks, context, 'update', uid, '--no-delivery-id-path', '--no-event-header'),
    );
    await printedBy((context) =>
      runRow(webhooks, context, 'update', uid, '--duplicate-window', '0', '--signature', '{"header": "X-B"}'),
    );
    expect(await rulesOf(uid)).toMatchObject({
      signature: { header: 'X-B' },
      delivery_id_path: undefined,
      event_header: undefined,
      duplicate_window_seconds: 0,
    });
  });

  test('of a sender without signatures needs a token in the URL', async () => {
    const creationOutput = await printedBy((context) =>
      runRow(webhooks, context, 'create', factory.uid, 'sns', '--scheme', 'sns'),
    );
    const [uid = ''] = creationOutput.split('\n');
    expect(await rulesOf(uid)).toMatchObject({
      auth_mode: 'url_token',
      signature_scheme: 'sns',
    });
    expect(
      await printedBy((context) => runRow(webhooks, context, 'create', factory.uid, 'x', '--signature', '{')),
    ).toContain('failure: --signature: it must be JSON');
    expect(await printedBy((context) => runRow(webhooks, context, 'update', uid))).toContain(
      'failure: set at least one option',
    );
  });
});
