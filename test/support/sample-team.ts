/** Test support: fills a service with the data of a busy team, so that the screens of the dashboard look as they do in use. */
import { randomUUIDv7 } from 'node:crypto';
import { testAutomations } from '../../packages/service/test/automations.ts';
import { insertWorkerPool } from '../../packages/service/test/key.ts';
import { testSchedules } from '../../packages/service/test/schedules.ts';
import type { TestService } from '../../packages/service/test/service.ts';
import { testWebhooks } from '../../packages/service/test/webhooks.ts';

/** Ids of the objects that have a screen. */
export interface SampleTeam {
  readonly runId: string;
  readonly blockedRunId: string;
  readonly failedRunId: string;
  readonly liveRunId: string;
  readonly scheduleId: string;
  readonly factoryUid: string;
  readonly webhookUid: string;
  readonly automationUid: string;
  readonly webhookDeliveryId: string;
  readonly environmentUid: string;
}

const patch = `@@ -10,7 +10,9 @@ export async function refund(order: Order) {
   const charge = await charges.find(order.chargeId);
-  await stripe.refunds.create({ charge: charge.id });
+  // The key makes a repeated webhook harmless.
+  const idempotencyKey = \`refund-\${order.id}\`;
+  await stripe.refunds.create({ charge: charge.id }, { idempotencyKey });
   await orders.markRefunded(order);
`;
const testOutput = `\u001b[32m✓\u001b[0m refunds an order once (41 ms)
\u001b[31m✗\u001b[0m refunds an order when the webhook is repeated (112 ms)
  Expected: 1 call
  Received: 2 calls
\u001b[2mTests: 1 failed, 41 passed, 42 total\u001b[0m
`;
const answer = `The second webhook creates another refund, because \`refund()\` has no idempotency key.

1. \`src/refunds.ts\` now sends the key \`refund-<order id>\`.
2. A test repeats the webhook and expects **one** call.

| file | lines |
|---|---|
| src/refunds.ts | +3 −1 |
| test/refunds.test.ts | +24 |
`;

/** Fills the first team of the service. */
export async function fillSampleTeam(service: TestService): Promise<SampleTeam> {
  const { db } = service.deps;
  const report = async (key: string, ...events: object[]) => {
    const at = Date.now() - events.length * 7_000;
    const body = {
      events: events.map((event, index) => ({
        seq: index + 1,
        occurred_at: new Date(at + index * 7_000).toISOString(),
        ...event,
      })),
    };
    const { status, text } = await service.request('POST', '/harness-support/events', { key, body });
    if (status !== 200) throw new Error(text);
  };
  const step = 'step';
  const begun = (prompt: string) => [
    { type: 'setup_step_started', step_id: 'clone', kind: 'clone', name: 'acme/billing' },
    { type: 'setup_step_finished', step_id: 'clone', kind: 'clone', name: 'acme/billing', duration_ms: 2_130 },
    { type: 'setup_step_started', step_id: 'npm', kind: 'setup_command', name: 'npm ci' },
    { type: 'setup_step_finished', step_id: 'npm', kind: 'setup_command', name: 'npm ci', duration_ms: 9_480 },
    { type: 'agent_started', harness: 'oz', model_id: 'anthropic/claude-opus-5-5' },
    { type: 'turn_started', step_id: step, prompt },
  ];
  const text = (id: string, words: string) => ({
    type: 'text',
    step_id: step,
    message_id: id,
    role: 'assistant',
    text: words,
  });
  const command = (id: string, line: string, output: string, exitCode: number) => [
    { type: 'action', step_id: step, action_id: id, category: 'command', name: 'shell', input: { command: line } },
    { type: 'action_output', action_id: id, text: output },
    {
      type: 'action_result',
      action_id: id,
      state: exitCode === 0 ? 'completed' : 'failed',
      exit_code: exitCode,
      duration_ms: 4_310,
    },
  ];

  const environment = await service.request<{ uid: string }>('POST', '/agent/environments', {
    body: {
      config: {
        name: 'billing-node24',
        description: 'Node 24 with the billing service',
        github_repos: [
          { owner: 'acme', repo: 'billing' },
          { owner: 'acme', repo: 'shared-typescript-configuration-of-all-teams' },
        ],
        setup_commands: ['cd billing && npm ci --no-audit --no-fund', 'cd billing && npm run build:fixtures'],
      },
    },
  });
  const environmentUid = environment.body.uid;
  const config = { environment_id: environmentUid, approval_policy: 'ask' };

  const prompt = 'Refunds are created twice when Stripe repeats a webhook. Find the cause, fix it and add a test.';
  const worked = await service.startExecution({
    title: 'Fix duplicate refunds when a webhook is repeated',
    prompt,
    config,
  });
  await report(
    worked.runToken,
    ...begun(prompt),
    text('m1', 'I look for the code that creates refunds, and run its tests first.'),
    ...command('a1', 'npm test -- refunds', testOutput, 1),
    ...command('a2', 'rg -n "refunds.create" src', 'src/refunds.ts:11:  await stripe.refunds.create({\n', 0),
    text('m2', answer),
    { type: 'turn_finished', step_id: step, summary: 'Fixed the duplicate refund' },
  );
  const changes = [
    { path: 'src/refunds.ts', status: 'modified', additions: 3, deletions: 1, patch },
    { path: 'test/refunds.test.ts', status: 'added', additions: 24, deletions: 0, patch: '@@ -0,0 +1,1 @@\n+test(\n' },
  ];
  await service.request('POST', '/harness-support/changes', {
    key: worked.runToken,
    body: { repositories: [{ path: 'billing', branch: 'fix/refunds', base_commit: 'a'.repeat(40), files: changes }] },
  });

  const live = await service.startExecution({ title: 'Update the dependencies of acme/billing', config });
  await report(
    live.runToken,
    ...begun('Update all dependencies and run the tests.'),
    text('m1', 'I read the lockfile.'),
    {
      type: 'action',
      step_id: step,
      action_id: 'a1',
      category: 'command',
      name: 'shell',
      input: { command: 'npm outdated --json' },
    },
  );
  const blocked = await service.startExecution({
    title: 'Delete stale preview deployments older than 30 days',
    config,
  });
  await report(blocked.runToken, ...begun('Delete stale previews.'), text('m1', 'There are 14 stale previews.'), {
    type: 'blocked',
    step_id: step,
    request: {
      request_id: 'q',
      kind: 'permission',
      title: 'kubectl delete namespace preview-1041 preview-1044 preview-1050',
      action: {
        name: 'shell',
        category: 'command',
        input: {
          command: 'kubectl delete namespace preview-1041 preview-1044 preview-1050',
          cwd: '/workspace/billing',
        },
      },
    },
  });
  const failed = await service.startExecution({ title: 'Nightly check of the invoices', config });
  const [cloneStarted, cloneFinished, setupStarted, setupFinished] = begun('');
  await report(failed.runToken, cloneStarted ?? {}, cloneFinished ?? {}, setupStarted ?? {}, {
    ...setupFinished,
    exit_code: 1,
    error: 'exit code 1',
    output_tail:
      'npm error code ERESOLVE\nnpm error Could not resolve dependency: peer react@"^18" from chart-kit@4.1.0\n',
  });
  const others = [
    ['SUCCEEDED', 'Review pull request #482: retry logic of the payment queue', null],
    ['SUCCEEDED', 'Summarise the incidents of the last week', null],
    ['CANCELLED', 'Migrate the flaky browser tests', null],
    ['ERROR', 'Reproduce the crash of the importer', 'The worker was lost, and its sandbox with it'],
    ['FAILED', `Explain ${'averyveryverylongnamewithoutanyspace'.repeat(4)}`, 'The budget of the run is spent'],
    ['QUEUED', 'Write release notes for 4.12', null],
    ['SUCCEEDED', 'Triage: TypeError in checkout on Safari 17', null],
  ] as const;
  for (const [state, title, message] of others) {
    const id = await service.newRun({ title, prompt: title });
    await db.query(
      `UPDATE runs SET state = $2, status_message = $3, created_at = now() - random() * interval '9 hours',
         ended_at = CASE WHEN $2 = 'QUEUED' THEN NULL ELSE now() - interval '12 minutes' END WHERE id = $1`,
      [id, state, message],
    );
  }
  const end = (id: string, state: string, code: string | null, message: string | null) =>
    db.query('UPDATE runs SET state = $2, error_code = $3, status_message = $4, ended_at = now() WHERE id = $1', [
      id,
      state,
      code,
      message,
    ]);
  await end(failed.runId, 'FAILED', 'environment_setup_failed', 'setup command 1 of 2 (npm ci): exit code 1');
  await end(worked.runId, 'SUCCEEDED', null, 'Fixed the duplicate refund');

  const schedules = testSchedules(service);
  const { id: scheduleId } = await schedules.create({ name: 'Nightly invoices', timezone: 'Europe/Berlin' });
  await schedules.create({ name: 'Dependencies each Monday morning', cron_schedule: '30 7 * * 1' });
  await schedules.create({ name: 'Hourly importer', cron_schedule: '0 * * * *', enabled: false });
  await db.query(
    `INSERT INTO starts (schedule_id, due_at, outcome, reason)
     SELECT $1, now() - n * interval '1 day', CASE WHEN n % 5 = 0 THEN 'failed' ELSE 'skipped' END, 'The run before is live'
     FROM generate_series(28, 1, -1) AS n`,
    [scheduleId],
  );
  const hooks = await testWebhooks(service);
  const webhook = await hooks.create({ name: 'Sentry alerts of the checkout', event_header: 'sentry-hook-resource' });
  const filter = { webhook_ids: [webhook.uid], payload: { action: ['created'], data: { level: ['error', 'fatal'] } } };
  const automation = await testAutomations(service, hooks.factory.uid).create(
    [{ provider: 'webhook', event: 'received', filter }],
    { name: 'Triage new errors', prompt: 'Find the commit that caused this error, and propose a fix.' },
  );
  let webhookDeliveryId = '';
  for (const level of ['error', 'warning', 'fatal', 'info', 'error', 'warning']) {
    const data = {
      level,
      culprit: 'checkout/pay.ts in submit',
      title: 'TypeError: x is undefined',
      tags: { release: '4.12' },
    };
    const body = JSON.stringify({ action: 'created', data, actor: { type: 'application', name: 'Sentry' } });
    const sent = await hooks.send(webhook, { body, headers: { 'sentry-hook-resource': 'event_alert' } });
    webhookDeliveryId = sent.body.delivery_id;
  }

  const [owner] = await db.query<{ uid: string }>('SELECT uid FROM users ORDER BY id LIMIT 1');
  for (const [model, cost] of [
    ['anthropic/claude-opus-5-5', 3.2],
    ['openai/gpt-6-codex', 1.1],
    ['local/qwen3-coder', 0],
  ] as const)
    await db.query(
      `INSERT INTO usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid, requests,
         input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, unpriced_requests)
       SELECT $1, (now() AT TIME ZONE 'UTC')::date - n, $2, 'user', $3, 'user', $3, 40, 25000, 5000, 75000, 0, $4::numeric * (1 + n % 5), 0
       FROM generate_series(0, 27) AS n`,
      [service.teamId, model, owner?.uid ?? '', cost],
    );
  await db.query(
    `INSERT INTO team_spend (team_id, month, spent_usd) VALUES ($1, date_trunc('month', now() AT TIME ZONE 'UTC'), 311.4)`,
    [service.teamId],
  );
  await service.request('PATCH', '/budget', { body: { monthly_limit_usd: 500 } });
  await service.request('PUT', '/secrets/STRIPE_TEST_KEY', {
    body: { value: 'a value that no page shows', scope: 'team' },
  });
  await service.request('POST', '/agent/identities', {
    body: { name: 'Release bot', description: 'Writes release notes' },
  });
  await db.query(
    `INSERT INTO worker_connections (id, service_instance_id, worker_id, team_id, slots, draining, version, disk_free_bytes, disk_total_bytes, sandbox)
     VALUES ($1, $1, 'build-machine-1', $2, 8, false, '0.1.0', 61073741824, 107374182400, $3)`,
    [
      randomUUIDv7(),
      service.teamId,
      JSON.stringify({
        backend: 'bubblewrap',
        features: ['user', 'network'],
        missing: [{ feature: 'cgroup', reason: 'not delegated' }],
      }),
    ],
  );
  await insertWorkerPool(db, service.teamId, 'build-machine-1');
  return {
    runId: worked.runId,
    blockedRunId: blocked.runId,
    failedRunId: failed.runId,
    liveRunId: live.runId,
    scheduleId,
    factoryUid: hooks.factory.uid,
    webhookUid: webhook.uid,
    automationUid: automation.uid,
    webhookDeliveryId,
    environmentUid,
  };
}
