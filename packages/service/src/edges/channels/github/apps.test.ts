/** Tests how people store Apps, link accounts and claim installations, and what the endpoint of Apps refuses. */
import { createHmac } from 'node:crypto';
import type { GithubApp, GithubAppPlan } from '@runyard/contract/team/github';
import { beforeAll, describe, expect, test } from 'vitest';
import { openGithubService } from '../../../../test/github.ts';
import { newPerson } from '../../../../test/people.ts';
import { connectTo, headOf } from '../../../../test/raw-http.ts';

const setup = await openGithubService();
const { github, service, deps, app, acme, site, installed, factory, authorize, finish, person } = setup;
const { request, problem } = service;
const claimOf = (id = installed.id) => ({ purpose: 'claim', installation_id: String(id), factory_uid: factory.uid });
const list = async (key = service.key) =>
  (await request<{ apps: GithubApp[] }>('GET', '/github/apps', { key })).body.apps;

describe('an account', () => {
  test('is linked by its numeric id, and unlinked again', async () => {
    const ann = await person('ann');
    expect((await list(ann.key))[0]?.linked_account).toEqual({ id: ann.account.id, login: 'ann' });
    expect((await request('DELETE', `/github/apps/${app.uid}/link`, { key: ann.key })).status).toBe(200);
    expect((await list(ann.key))[0]).not.toHaveProperty('linked_account');
    await problem(404, 'DELETE', `/github/apps/${app.uid}/link`, { key: ann.key });
  });

  test('cannot be linked by two people', async () => {
    const bob = await person('bob');
    const other = await newPerson(service, setup.teamUid, 'member');
    const back = await authorize(bob.account, { purpose: 'link' }, other.key);
    expect((await finish(back, other.key)).status).toBe(409);
  });

  test('cannot be linked by another person than the one who began', async () => {
    const victim = await newPerson(service, setup.teamUid, 'member');
    const attacker = await person('attacker', 'member', false);
    const back = await authorize(attacker.account, { purpose: 'link' }, attacker.key);
    expect((await finish(back, victim.key)).status).toBe(400);
    // The code of another authorization does not fit, because of the verifier.
    const other = await authorize(attacker.account, { purpose: 'link' }, victim.key);
    expect((await finish({ ...other, code: back.code }, victim.key)).status).toBe(400);
    expect((await finish({ ...other, state: `${other.state?.slice(0, -2)}AA` }, victim.key)).status).toBe(400);
    expect((await list(victim.key))[0]).not.toHaveProperty('linked_account');
  });

  test('of a code that was used is refused', async () => {
    const carol = await person('carol', 'member', false);
    const back = await authorize(carol.account, { purpose: 'link' }, carol.key);
    expect((await finish(back, carol.key)).status).toBe(200);
    expect((await finish(back, carol.key)).status).toBe(400);
  });
});

describe('an installation', () => {
  test('is not claimed by its number alone: the account must administer it', async () => {
    const stranger = github.account('stranger');
    const plain = github.account('plain-member');
    github.members.set(`${acme.id} ${plain.id}`, 'member');
    for (const account of [stranger, plain]) {
      const answer = await finish(await authorize(account, claimOf()));
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('does not administer')]);
    }
    const owner = github.account('owner');
    github.members.set(`${acme.id} ${owner.id}`, 'admin');
    expect((await finish(await authorize(owner, claimOf(999_999)))).status).toBe(404);
  });

  test('is claimed by an owner who is an administrator of the team, only once, and released', async () => {
    const member = await newPerson(service, setup.teamUid, 'member');
    await problem(403, 'POST', `/github/apps/${app.uid}/authorization`, { key: member.key, body: claimOf() });
    const claimed = await setup.claim();
    expect(claimed).toMatchObject({ account: { login: 'acme' }, factory_uid: factory.uid, is_suspended: false });
    const owner = github.account('second-owner');
    github.members.set(`${acme.id} ${owner.id}`, 'admin');
    expect((await finish(await authorize(owner, claimOf()))).status).toBe(409);
    // No key of another team sees, uses or releases it.
    const key = service.otherKey;
    expect(await list(key)).toEqual([]);
    await problem(404, 'POST', `/github/apps/${app.uid}/authorization`, { key, body: { purpose: 'link' } });
    await problem(404, 'DELETE', `/github/installations/${claimed.uid}`, { key });
    await problem(404, 'DELETE', `/github/apps/${app.uid}`, { key });
    expect((await request('DELETE', `/github/installations/${claimed.uid}`)).status).toBe(200);
    expect(await deps.db.query(`SELECT FROM event_subscriptions WHERE channel = 'github'`)).toEqual([]);
    expect((await list())[0]?.installations).toEqual([]);
  });

  test('of a person belongs to this person', async () => {
    const dora = github.account('dora');
    const own = github.install(dora);
    const other = github.account('other');
    expect((await finish(await authorize(other, claimOf(own.id)))).status).toBe(403);
    const claimed = await finish(await authorize(dora, claimOf(own.id)));
    expect(claimed.body.installation?.account).toMatchObject({ login: 'dora', type: 'User' });
  });

  test('has a subscription that no route shows, changes or deletes', async () => {
    const [row] = await deps.db.query<{ id: string }>(`SELECT id FROM event_subscriptions WHERE channel = 'github'`);
    const { body } = await request<{ subscriptions: unknown[] }>('GET', '/event-subscriptions');
    expect(JSON.stringify(body)).not.toContain(row?.id);
    for (const [method, more] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/rotate-secret'],
    ] as const)
      await problem(404, method, `/event-subscriptions/${row?.id}${more}`, method === 'POST' ? { body: {} } : {});
  });
});

describe('an App', () => {
  test('cannot be stored twice, and not with a key that GitHub does not know', async () => {
    const [stored] = await list();
    const body = { client_id: 'x', client_secret: 'c'.repeat(20), webhook_secret: 'w'.repeat(20) };
    await problem(409, 'POST', '/github/apps', { body: { ...body, credential_id: stored?.credential_id } });
    await problem(400, 'POST', '/github/apps', { body: { ...body, credential_id: crypto.randomUUID() } });
    const key = await service.newKey({ kind: 'agent' });
    for (const path of ['/github/apps', '/github/apps/plan', '/github/apps/conversion', '/github/authorization'])
      await problem(403, 'POST', path, { key, body: {} });
  });

  test('is created from a manifest, and its secrets are in no answer', async () => {
    expect((await request('DELETE', `/github/apps/${app.uid}`)).status).toBe(200);
    for (const { id } of (await request<{ credentials: { id: string }[] }>('GET', '/code-hosts')).body.credentials)
      await request('DELETE', `/code-hosts/${id}`);
    const plan = await request<GithubAppPlan>('POST', '/github/apps/plan', {
      body: { name: 'my-app', organization: 'acme' },
    });
    const url = new URL(plan.body.url);
    expect(url.href.split('?')[0]).toBe(`${github.urls.web}/organizations/acme/settings/apps/new`);
    const manifest = JSON.parse(plan.body.manifest);
    expect(manifest).toMatchObject({
      name: 'my-app',
      public: false,
      redirect_url: `${service.baseUrl}/settings/github?step=created`,
    });
    expect(Object.keys(manifest.default_permissions)).toEqual(plan.body.permissions.map(({ name }) => name));
    github.manifestCodes.add('c0de');
    const back = { code: 'c0de', state: url.searchParams.get('state') ?? '' };
    const other = await newPerson(service, setup.teamUid, 'admin');
    await problem(400, 'POST', '/github/apps/conversion', { body: back, key: other.key });
    const made = await request<GithubApp>('POST', '/github/apps/conversion', { body: back });
    expect(made.status, made.text).toBe(201);
    expect(made.body.webhook_url).toBe(manifest.hook_attributes.url);
    // A state makes one App, and the refusal comes before GitHub gives the secrets of a second one away.
    github.manifestCodes.add('c0de2');
    await problem(409, 'POST', '/github/apps/conversion', { body: { ...back, code: 'c0de2' } });
    expect(github.manifestCodes).toContain('c0de2');
    const all = JSON.stringify([made.body, await list(), service.logged]);
    for (const secret of [github.clientSecret, github.webhookSecret, github.privateKey.slice(40, 80)])
      expect(all).not.toContain(secret);
    github.webhookUrl = made.body.webhook_url;
  });
});

describe('the endpoint of an App', () => {
  const sign = (body: string, secret = github.webhookSecret) =>
    `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const send = (body: string, headers: Record<string, string> = {}) =>
    request<{ ignored?: string }>('POST', github.webhookUrl ?? '', {
      key: null,
      raw: body,
      headers: {
        'content-type': 'application/json',
        'x-github-event': 'issues',
        'x-github-delivery': crypto.randomUUID(),
        'x-hub-signature-256': sign(body),
        ...headers,
      },
    });

  beforeAll(() => expect(github.webhookUrl).toBeDefined());

  test('refuses a forged signature and an unknown App, and drops unused events before it reads them', async () => {
    expect((await send('{}', { 'x-hub-signature-256': sign('{}', 'wrong') })).status).toBe(401);
    expect((await send('{}', { 'x-hub-signature-256': '' })).status).toBe(401);
    const unknown = (github.webhookUrl ?? '').replace(/[^/]+$/, 'a'.repeat(22));
    expect((await request('POST', unknown, { key: null, raw: '{}' })).status).toBe(404);
    const unused = await send('not json', { 'x-github-event': 'star', 'x-hub-signature-256': '' });
    expect([unused.status, unused.body.ignored]).toEqual([202, 'nothing uses such events']);
    expect((await send('not json')).status).toBe(400);
    expect((await send('{}')).body.ignored).toBe('the event has no sender');
  });

  test('ignores an installation that no team has claimed, and stores nothing of it', async () => {
    const before = await deps.db.query('SELECT count(*) FROM webhook_deliveries');
    const eve = github.account('eve');
    const delivery = await github.open(github.issue(site, eve, { body: `@${github.app.slug} hello` }));
    expect(delivery.status).toBe(202);
    expect(await deps.db.query('SELECT count(*) FROM webhook_deliveries')).toEqual(before);
    expect(await deps.db.query('SELECT FROM github_places')).toEqual([]);
  });

  test('takes an event of some megabytes, and stores a smaller one', async () => {
    const [fresh] = await list();
    const owner = github.account('owner-again');
    github.members.set(`${acme.id} ${owner.id}`, 'admin');
    const { url } = (
      await request<{ url: string }>('POST', `/github/apps/${fresh?.uid}/authorization`, { body: claimOf() })
    ).body;
    expect((await finish(Object.fromEntries(github.authorize(owner, url)))).status).toBe(200);
    await setup.automations.create([{ provider: 'github', event: 'push', filter: { paths: ['last/file'] } }]);
    const commits = Array.from({ length: 4_000 }, (_, n) => ({
      message: 'm'.repeat(800),
      added: n === 3_999 ? ['last/file'] : [],
    }));
    const delivery = await github.send('push', {
      ref: 'refs/heads/main',
      commits,
      repository: { id: site.id, full_name: 'acme/site', private: true },
      sender: { id: owner.id, login: owner.login, type: 'User' },
      installation: { id: installed.id },
    });
    expect(delivery.status).toBe(202);
    const [row] = await deps.db.query<{ size: number; runs: string[] }>(
      'SELECT octet_length(payload) AS size, runs FROM webhook_deliveries ORDER BY id DESC LIMIT 1',
    );
    expect(row?.runs).toHaveLength(1);
    expect(row?.size).toBeLessThanOrEqual(256 * 1024);
  });

  test('limits the events of one account, and reads the others later from the log of GitHub', async () => {
    await setup.automations.create([{ provider: 'github', event: 'issue_created' }]);
    const loud = await person('loud', 'member', false);
    const statuses: number[] = [];
    const refused = () => statuses.filter((each) => each === 429).length;
    // More than a round reads again of one repository. The budget refills with time.
    while (refused() < 21 && statuses.length < 90)
      statuses.push((await github.open(github.issue(site, loud.account))).status);
    expect(statuses.slice(0, 30)).toEqual(Array(30).fill(202));
    expect(refused()).toBe(21);
    const quiet = github.account('quiet');
    expect((await github.open(github.issue(site, quiet))).status).toBe(202);
    // They do not hold up an event of another repository.
    const other = github.issue(github.repository(acme, 'other'), quiet);
    const { webhookUrl } = github;
    github.webhookUrl = undefined;
    await github.open(other);
    github.webhookUrl = webhookUrl;
    const ofQuiet = () => deps.db.query(`SELECT FROM webhook_deliveries WHERE sender->>'login' = 'quiet'`);
    expect(await ofQuiet()).toHaveLength(1);
    await setup.poll();
    expect(await ofQuiet()).toHaveLength(2);
  });

  test('takes an event while slow senders hold all its places', async () => {
    const url = github.webhookUrl ?? '';
    const head = ['x-github-event: issues', 'x-github-delivery: slow', 'content-length: 1000'];
    const sockets = Array.from({ length: 50 }, () => {
      const socket = connectTo(url);
      socket.on('error', () => undefined);
      socket.write(headOf(url, head));
      return socket;
    });
    const closed = new Set<object>();
    for (const socket of sockets) socket.once('close', () => closed.add(socket)).resume();
    try {
      await expect
        .poll(async () => [(await send('{}')).status, closed.size])
        .toEqual([202, expect.toSatisfy((n) => n > 0)]);
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  test('an App whose log cannot be read shows the reason, and the service logs it once', async () => {
    const [shown] = await list();
    expect(shown).not.toHaveProperty('poll_problem');
    await deps.db.query(`UPDATE code_host_credentials SET vault_key_id = 'gone' WHERE id = $1`, [shown?.credential_id]);
    await setup.poll();
    await setup.poll();
    expect((await list())[0]?.poll_problem).toContain('private key of the App cannot be read');
    expect(service.logged.filter((line) => JSON.stringify(line).includes('log of a GitHub App'))).toHaveLength(1);
  });
});
