import { randomUUID } from 'node:crypto';
import type { UsageReport } from '@runyard/contract/team/budgets';
import { beforeEach, describe, expect, test } from 'vitest';
import { at, testAutomations } from '../../../../test/automations.ts';
import { children } from '../../../../test/child-runs.ts';
import { openTestService } from '../../../../test/service.ts';
import type { Assignment } from '../../../runs/executions/queue/assign.ts';
import { authenticateRunToken } from '../../../runs/executions/run-tokens/sessions.ts';
import { recordUsage } from '../../../team/usage/record-usage.ts';

const service = await openTestService();
const { db } = service.deps;
const newThing = async (path: string, body: object) => (await service.ok<{ uid: string }>('POST', path, { body })).uid;
const environment = await newThing('/agent/environments', { config: { name: 'Node' } });
const factory = await newThing('/factory', { name: 'Plant' });
const automations = testAutomations(service, factory);
const member = await service.newKey({ role: 'member' });
beforeEach(() => db.query('DELETE FROM usage_days'));

/** Records the usage of a model request by an assigned run, in the same way as the gateway. */
async function ask(assignment: Assignment | null, changes: object = {}): Promise<void> {
  const session = assignment && (await authenticateRunToken(db, assignment.runToken));
  if (!session) throw new Error('the run is not at work');
  const tokens = { inputTokens: 100, outputTokens: 30, cacheReadTokens: 0, cacheWriteTokens: 0 };
  const cost = { costUsd: 0.5, breakdown: null, toolsUsd: 0, chargedUsd: 0.5 };
  const answer = { provider: 'anthropic', isAnswer: true, status: 200, durationMs: 1 } as const;
  await recordUsage(db, { ...session, ...tokens, ...cost, ...answer, requestId: randomUUID(), ...changes });
}

const report = async (query: string, key?: string) =>
  await service.ok<UsageReport>('GET', `/usage?${query}`, key ? { key } : {});
const groups = 'group_by=automation&group_by=factory&group_by=environment';
const sumsOf = ({ usage }: UsageReport) =>
  usage.map(({ automation, factory: plant, environment: place, requests }) => [automation, plant, place, requests]);

describe('the usage of an automation, its factory and its environment', () => {
  test('includes the requests of its runs and of their descendants, and no requests of other runs', async () => {
    const { uid } = await automations.create([at()], { name: 'Triage', config: { environment_id: environment } });
    await automations.fireNow(uid);
    const started = await service.assignNext();
    await ask(started);
    await db.query("UPDATE runs SET mode = 'orchestrate' WHERE id = $1", [started?.runId]);
    await db.query("UPDATE executions SET phase = 'running', started_at = now() WHERE id = $1", [started?.executionId]);
    const body = { prompt: 'A part.' };
    const child = await service.ok<{ run_id: string }>('POST', children, { key: started?.runToken ?? '', body });
    await ask(await service.claimRun(child.run_id));
    await ask(await service.startExecution());

    const none = { kind: 'none' };
    const wanted = [
      { kind: 'known', uid, name: 'Triage' },
      { kind: 'known', uid: factory, name: 'Plant' },
      { kind: 'known', uid: environment, name: 'Node' },
    ];
    expect(sumsOf(await report(groups))).toEqual([
      [none, none, none, 1],
      [...wanted, 2],
    ]);
    await service.request('DELETE', `${automations.base}/${uid}`);
    expect((await report('group_by=automation')).usage[1]?.automation).toEqual({ kind: 'known', uid });
  });

  test('is not known for requests that an older version recorded, and pages give every group once', async () => {
    const waiting = { environmentId: undefined, automationUid: undefined, factoryUid: undefined };
    await ask(await service.startExecution(), waiting);
    await ask(await service.startExecution(), waiting);
    await ask(await service.startExecution({ config: { environment_id: environment } }));
    const first = await report(`${groups}&limit=1`);
    const second = await report(`${groups}&limit=1&cursor=${first.page_info.next_cursor}`);
    const notKnown = { kind: 'not_known' };
    expect([...sumsOf(first), ...sumsOf(second)]).toEqual([
      [{ kind: 'none' }, { kind: 'none' }, { kind: 'known', uid: environment, name: 'Node' }, 1],
      [notKnown, notKnown, notKnown, 2],
    ]);
    expect(second.page_info).toEqual({ has_next_page: false });
  });
});

describe('the usage that a member reads', () => {
  test('is only the usage of runs that the member created, also if the request asks for more', async () => {
    await ask(await service.startExecution());
    await ask(await service.claimRun(await service.newRun({}, member)));
    await ask(await service.claimRun(await service.newRun({}, await service.newKey({ role: 'member' }))));
    const own = await report('group_by=creator', member);
    expect(own).toMatchObject({ scope: 'own', usage: [{ requests: 1, cost_usd: 0.5 }] });
    expect(own).not.toHaveProperty('storage');
    expect(await report('group_by=creator')).toMatchObject({ scope: 'team', usage: { length: 3 } });

    const page = await report('group_by=creator&limit=1');
    const cursorOfTeam = `/usage?group_by=creator&limit=1&cursor=${page.page_info.next_cursor}`;
    expect((await service.problem(400, 'GET', cursorOfTeam, { key: member })).errors?.[0]?.path).toBe('cursor');
    const { creator } = own.usage[0] ?? {};
    const [other] = (await report('group_by=creator')).usage.filter((row) => row.creator?.uid !== creator?.uid);
    for (const query of [`creator=${other?.creator?.uid}`, 'scope=team', `group_by=creator&group_by=agent`])
      expect(await service.ok<UsageReport>('GET', `/usage?${query}`, { key: member })).toMatchObject({
        scope: 'own',
        usage: [{ requests: 1 }],
      });
  });

  test('is refused to viewers and agent keys, and cannot be read by another team', async () => {
    await ask(await service.claimRun(await service.newRun({}, member)));
    expect((await report('', service.otherKey)).usage).toEqual([]);
    const viewer = await service.newKey({ role: 'viewer' });
    const agent = await service.newKey({ kind: 'agent' });
    await service.problem(403, 'GET', '/usage', { key: viewer });
    await service.problem(403, 'GET', '/usage', { key: agent });
    await service.problem(403, 'GET', '/budget', { key: member });
  });
});
