import { expect, test } from 'vitest';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();

/** Starts a run whose rules name `api.example.com`. The functions act as the proxy of its sandbox, as its agent, and as a person. */
async function openRun(config: object = {}) {
  const rules = [{ host: 'api.example.com' }, { host: '*.pay.example.com:8443' }];
  const { runId, runToken } = await service.startExecution({
    config: { approval_policy: 'ask', approval_rules: rules, ...config },
  });
  let seq = 0;
  const report = (event: object) =>
    service.report(runToken, [{ seq: ++seq, occurred_at: '2026-01-02T03:04:05.000Z', ...event }]);
  await report({ type: 'agent_started', harness: 'oz', model_id: 'runbook' });
  const connect = async (host: string, port = 443) =>
    await service.ok('POST', '/harness-support/connections', { key: runToken, body: { host, port } });
  const ask = async (after = 0) => {
    let item: { number: number; request: object } | undefined;
    const read = () =>
      service.request<{ items: { type: string; number: number; request: object }[] }>(
        'GET',
        `/harness-support/inbox?held=${after}`,
        { key: runToken },
      );
    await expect
      .poll(async () => {
        item = (await read()).body.items.find(({ type }) => type === 'held');
        return item;
      })
      .toBeDefined();
    await report({ type: 'blocked', step_id: 's1', request: item?.request });
    return item?.number ?? 0;
  };
  const answer = (body: object) => service.request('POST', `/agent/runs/${runId}/followups`, { body });
  const read = async () => await service.ok<{ blocked_on?: object }>('GET', `/agent/runs/${runId}`);
  return { connect, ask, answer, read };
}

test('an approval allows one connection to the host, and the next one asks again', async () => {
  const { connect, ask, answer, read } = await openRun();
  const first = connect('api.example.com');
  const number = await ask();
  expect((await read()).blocked_on).toMatchObject({
    title: 'one connection to api.example.com:443',
    enforced_by: 'proxy',
    rest_of_run: 'all connections to api.example.com:443',
  });
  expect((await answer({ decision: 'approve' })).status).toBe(200);
  expect(await first).toEqual({ decision: 'allowed' });
  const second = connect('api.example.com');
  await ask(number);
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect(await second).toEqual({ decision: 'denied' });
});

test('an approval for the rest of the run allows all connections to this host and port, and no others', async () => {
  const { connect, ask, answer } = await openRun();
  const waiting = [connect('a.pay.example.com', 8443), connect('a.pay.example.com', 8443)];
  await ask();
  expect((await answer({ decision: 'approve', allow_for: 'run' })).status).toBe(200);
  expect(await Promise.all(waiting)).toEqual([{ decision: 'allowed' }, { decision: 'allowed' }]);
  expect(await connect('a.pay.example.com', 8443)).toEqual({ decision: 'allowed' });
  const other = connect('b.pay.example.com', 8443);
  await ask();
  expect((await answer({ decision: 'deny' })).status).toBe(200);
  expect(await other).toEqual({ decision: 'denied' });
});

test('hosts that no rule names need no approval, and the policy auto-deny denies the named hosts at once', async () => {
  const asking = await openRun();
  expect(await asking.connect('example.com')).toEqual({ decision: 'allowed' });
  const denying = await openRun({ approval_policy: 'auto-deny' });
  expect(await denying.connect('API.example.com')).toEqual({ decision: 'denied' });
  expect(await denying.connect('api.example.com', 9000)).toEqual({ decision: 'denied' });
  expect(await denying.connect('a.pay.example.com', 9000)).toEqual({ decision: 'allowed' });
});
