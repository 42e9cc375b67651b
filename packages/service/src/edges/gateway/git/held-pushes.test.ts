/**
 * Tests pushes that an approval rule of the run holds, with the real git. The test acts as the agent of the run, and sends false reports
 * too.
 */
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { BlockedOn } from '@runyard/contract/runs/approvals';
import { expect, it } from 'vitest';
import { openPushes } from '../../../../test/pushes.ts';
import { waitForApproval } from '../../../runs/executions/held-actions/held-actions.ts';

const { host, service, first, clone, branchAt } = await openPushes();
const rules = { approval_policy: 'ask', approval_rules: [{ push: 'acme/*' }] };

interface Asked {
  readonly number: number;
  readonly request: { readonly request_id: string; readonly title: string };
}

/** Clones the repository in a run with these rules. The functions act as its agent, and as a person. */
async function openRun(config: object = rules) {
  const run = await clone({}, config);
  const { runId, runToken } = run;
  let seq = 0;
  const report = (...events: object[]) =>
    service.report(
      runToken,
      events.map((event) => ({ seq: ++seq, occurred_at: '2026-01-02T03:04:05.000Z', ...event })),
    );
  await report(
    { type: 'agent_started', harness: 'oz', model_id: 'runbook' },
    { type: 'turn_started', step_id: 's1', prompt: 'Go.' },
  );
  const items = async (held = 0) =>
    (
      await service.ok<{ items: ({ type: string } & Asked)[] }>('GET', `/harness-support/inbox?held=${held}`, {
        key: runToken,
      })
    ).items;
  const heldItem = async (after = 0) => {
    await expect.poll(async () => (await items(after)).some(({ type }) => type === 'held')).toBe(true);
    return (await items(after)).find(({ type }) => type === 'held') as Asked;
  };
  const ask = async ({ request }: Asked, forged: object = {}) => {
    const asked = await report({ type: 'blocked', step_id: 's1', request: { ...request, ...forged } });
    expect(asked.status, asked.text).toBe(200);
  };
  const answer = (body: object, key?: string) =>
    service.request('POST', `/agent/runs/${runId}/followups`, { body, ...(key ? { key } : {}) });
  const read = async () => await service.ok<{ state: string; blocked_on?: BlockedOn }>('GET', `/agent/runs/${runId}`);
  return { ...run, report, items, heldItem, ask, answer, read };
}

it('a held push waits for a person, who sees the record of the gateway; an agent key cannot approve', async () => {
  const { git, commit, heldItem, ask, answer, read, runId } = await openRun();
  const made = await commit('held');
  const pushing = git('push', '--quiet', 'origin', 'HEAD:held');
  const item = await heldItem();
  await ask(item, {
    title: 'Read a file',
    rest_of_run: 'nothing',
    action: { name: 'read', category: 'files', input: {} },
  });
  const { state, blocked_on: asked } = await read();
  expect(state).toBe('BLOCKED');
  expect(asked).toMatchObject({
    title: `git push to acme/site\nheld: new branch -> ${made}`,
    action: {
      name: 'git push',
      input: { repository: 'acme/site', branches: [{ branch: 'held', from: null, to: made }] },
    },
    rest_of_run: 'all git pushes to held of acme/site',
    enforced_by: 'gateway',
  });
  const { text: conversation } = await service.request('GET', `/agent/runs/${runId}/conversation`);
  expect(conversation).not.toContain('Read a file');
  const agentKey = await service.newKey({ kind: 'agent' });
  expect((await answer({ decision: 'approve' }, agentKey)).status).toBe(403);
  expect(await branchAt('held')).toBe('');
  expect((await answer({ decision: 'approve', request_id: item.request.request_id })).status).toBe(200);
  expect(await pushing).toMatchObject({ code: 0 });
  expect(await branchAt('held')).toBe(made);
});

it('an approval of an invented request allows no push', async () => {
  const { git, commit, heldItem, ask, answer, report } = await openRun();
  await commit('invented');
  const invented = { request_id: 'mine', kind: 'permission', title: 'Read a file', held: 'gateway' };
  await report({ type: 'blocked', step_id: 's1', request: invented });
  expect((await answer({ decision: 'approve' })).status).toBe(200);
  const pushing = git('push', 'origin', 'HEAD:invented');
  await ask(await heldItem());
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect((await pushing).text).toContain('a person denied this push');
  expect(await branchAt('invented')).toBe('');
});

it('an approval is not used for another commit, another branch, a second time, or after an hour', async () => {
  const { git, commit, heldItem, ask, answer, items, runId } = await openRun();
  const { db } = service.deps;
  const shown = await commit('shown');
  const abandoned = git('push', '--quiet', 'origin', 'HEAD:shown');
  const item = await heldItem();
  await ask(item);
  await git('update-ref', 'refs/heads/other', await commit('not shown'));
  const other = git('push', 'origin', 'other:shown');
  const second = await heldItem(item.number);
  expect((await answer({ decision: 'approve' })).status).toBe(200);
  expect(await abandoned).toMatchObject({ code: 0 });
  await ask(second);
  expect((await answer({ message: 'What is in it?' })).status, 'words do not approve').toBe(200);
  expect((await other).text).toContain('a person denied this push');
  expect(await branchAt('shown')).toBe(shown);

  const third = git('push', 'origin', `${shown}:refs/heads/elsewhere`);
  const elsewhere = await heldItem(second.number);
  await ask(elsewhere);
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect((await third).text).toContain('a person denied this push');

  await db.query(
    `INSERT INTO held_actions (id, run_id, execution_id, number, held_by, subject, rest_of_run, request, state, tried_until, decided_at)
     SELECT gen_random_uuid(), run_id, execution_id, 100, held_by, subject, rest_of_run, request, 'approved', now(), now() - interval '61 minutes'
     FROM held_actions WHERE run_id = $1 AND id = $2`,
    [runId, elsewhere.request.request_id],
  );
  const stale = git('push', 'origin', `${shown}:refs/heads/elsewhere`);
  await ask(await heldItem(100));
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect((await stale).text).toContain('a person denied this push');
  expect(await items(1000)).toEqual(expect.not.arrayContaining([expect.objectContaining({ type: 'held' })]));
});

it.each<[name: string, command: (git: string) => string]>([
  ['env git push', () => 'env git push origin HEAD:ways'],
  ['quotation marks', () => `g"i"t 'pu'sh origin HEAD:ways`],
  ['a line continuation', () => 'git \\\n push origin HEAD:ways'],
  ['an alias', () => 'git -c alias.status2=push status2 origin HEAD:ways'],
  ['a command substitution after a semicolon', () => 'true; $(echo git) $(echo hsup | rev) origin HEAD:ways'],
  ['a shell in an alias', () => 'git -c alias.x="!sh -c \'git push origin HEAD:ways\'" x'],
])('a push by %s is held', async (_name, command) => {
  const { git, work, commit, heldItem, ask, answer } = await openRun();
  await commit(`way ${_name}`);
  const script = path.join(work, '.git', 'way');
  await writeFile(script, `#!/bin/sh\n${command('git')}\n`);
  await chmod(script, 0o755);
  const pushing = git('-c', `alias.way=!${script}`, 'way');
  await ask(await heldItem());
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect((await pushing).text).toContain('a person denied this push');
  expect(await branchAt('ways')).toBe('');
});

it('an approval for the rest of the run allows later pushes to the same branch, and pushes to other branches are held', async () => {
  const { git, commit, heldItem, ask, answer, read } = await openRun();
  await commit('rest 1');
  const pushing = git('push', '--quiet', 'origin', 'HEAD:rest');
  const item = await heldItem();
  await ask(item);
  const refused = await answer({ decision: 'deny', allow_for: 'run' });
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('allow_for')]);
  expect((await answer({ decision: 'approve', allow_for: 'run' })).status).toBe(200);
  expect((await pushing).code).toBe(0);
  const second = await commit('rest 2');
  expect((await git('push', '--quiet', 'origin', 'HEAD:rest')).code).toBe(0);
  expect(await branchAt('rest')).toBe(second);
  const other = git('push', 'origin', 'HEAD:rest-other');
  await ask(await heldItem(item.number));
  expect((await read()).blocked_on).toMatchObject({ rest_of_run: 'all git pushes to rest-other of acme/site' });
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect((await other).code).toBe(1);
});

it('an approval is marked as late if no push waits for it, and then allows the same push', async () => {
  const { git, commit, heldItem, ask, answer, items, runId } = await openRun();
  const made = await commit('late');
  const pushing = git('push', '--quiet', 'origin', 'HEAD:late');
  const item = await heldItem();
  const { executionDeps } = service.deps;
  expect(await waitForApproval(executionDeps, runId, item.request.request_id, AbortSignal.abort())).toBe(undefined);
  await service.deps.db.query("UPDATE held_actions SET tried_until = now() - interval '1 second' WHERE run_id = $1", [
    runId,
  ]);
  await ask(item);
  const agent = expect.poll(async () => (await items(item.number)).find(({ type }) => type === 'follow_up'));
  expect((await answer({ decision: 'approve' })).status).toBe(200);
  await agent.toBeDefined();
  expect((await pushing).code).toBe(0);
  expect(await branchAt('late')).toBe(made);
});

it('the policy auto-deny refuses matching pushes at once, and allows pushes to other repositories', async () => {
  const denied = await openRun({ ...rules, approval_policy: 'auto-deny' });
  await denied.commit('denied');
  expect((await denied.git('push', 'origin', 'HEAD:denied')).text).toContain(
    'the approval policy of this run is auto-deny',
  );
  const free = await openRun({ ...rules, approval_rules: [{ push: 'acme/docs' }] });
  await free.commit('free');
  expect((await free.git('push', '--quiet', 'origin', 'HEAD:free')).code).toBe(0);
  expect(await branchAt('main')).toBe(first);
  expect(host.requests.length).toBeGreaterThan(0);
});
