/** Tests that an event which cannot be stored does not block other events. */
import { expect, test } from 'vitest';
import { openGithubService } from '../../../../test/github.ts';

const { github, service, deps, site, automations, person, claim, poll } = await openGithubService();
await claim();
const ann = await person('ann');
await automations.create([{ provider: 'github', event: 'issue_mentioned', filter: { mentioned: [github.app.slug] } }]);
const handle = `@${github.app.slug}`;
const countRuns = async () =>
  (await deps.db.query<{ count: number }>('SELECT count(*)::int AS count FROM runs'))[0]?.count;

test('a comment with U+0000 continues its run without this character', async () => {
  const issue = github.issue(site, ann.account);
  expect((await github.comment(issue, ann.account, `${handle} begin`)).status).toBe(202);
  expect((await github.comment(issue, ann.account, `${handle} go\u0000 on`)).status).toBe(202);
  expect(await deps.db.query('SELECT message FROM github_words')).toEqual([{ message: `${handle} go on` }]);
});

test('an event that always fails does not block later events in the log of GitHub', async () => {
  await deps.db.query(`
    CREATE FUNCTION refuse_place() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.number = (SELECT min(number) FROM github_poison) THEN RAISE 'this event is poison'; END IF; RETURN NEW; END $$`);
  await deps.db.query('CREATE TABLE github_poison (number integer)');
  await deps.db.query(
    'CREATE TRIGGER refuse_place BEFORE INSERT ON github_places FOR EACH ROW EXECUTE FUNCTION refuse_place()',
  );
  const [first, bad, last] = [1, 2, 3].map(() => github.issue(site, ann.account));
  if (!first || !bad || !last) throw new Error('no issues');
  await deps.db.query('INSERT INTO github_poison VALUES ($1)', [bad.number]);
  const before = (await countRuns()) ?? 0;
  const { webhookUrl } = github;
  github.webhookUrl = undefined;
  const missed = [];
  for (const issue of [first, bad, last]) missed.push(await github.comment(issue, ann.account, `${handle} a`));
  github.webhookUrl = webhookUrl;
  for (const delivery of missed) delivery.status = 500;
  await poll();
  expect(await countRuns()).toBe(before + 2);
  await deps.db.query('DELETE FROM github_poison');
  await poll();
  expect(await countRuns()).toBe(before + 3);
  expect(JSON.stringify(service.logged)).toContain('this event is poison');
});

test('a mention where the last run was deleted starts a new run', async () => {
  const issue = github.issue(site, ann.account);
  await github.comment(issue, ann.account, `${handle} begin`);
  const [run] = await deps.db.query<{ id: string }>('SELECT id FROM runs ORDER BY id DESC LIMIT 1');
  await service.request('POST', `/agent/runs/${run?.id}/cancel`, { body: {} });
  const gone = await service.request('DELETE', `/agent/runs/${run?.id}`);
  expect(gone.status, gone.text).toBe(200);
  const before = (await countRuns()) ?? 0;
  await github.comment(issue, ann.account, `${handle} again`);
  expect(await countRuns()).toBe(before + 1);
});
