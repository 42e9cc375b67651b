import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { openTestService } from '../../../test/service.ts';
import { measureTeams } from './measure.ts';

const service = await openTestService();

test('fifty teams have gauges of their own, which stay, and all others are one sum', async () => {
  const { db } = service.deps;
  const month = `date_trunc('month', now() AT TIME ZONE 'UTC')::date`;
  await db.query(
    `WITH made AS (
       INSERT INTO teams (id, uid, name) SELECT gen_random_uuid(), 'team-' || n, '' FROM generate_series(1, 60) n RETURNING id, uid
     )
     INSERT INTO team_spend (team_id, month, spent_usd) SELECT id, ${month}, replace(uid, 'team-', '')::numeric FROM made`,
  );
  const read = measureTeams(db);
  const valuesNow = async (metric: string) =>
    new Map(
      (await read())
        .filter(({ name }) => name === metric)
        .map(({ labels, value }) => [Object.values(labels)[0], value]),
    );
  const costs = await valuesNow('runyard_team_cost_dollars');
  expect(costs.size).toBe(51);
  expect(costs.get('team-60')).toBe(60);
  expect(costs.get('team-10')).toBeUndefined();
  expect(costs.get('other')).toBe(55);

  // Even if another team spends the most later, it stays in the sum, and the first teams keep their series.
  await db.query(`UPDATE team_spend SET spent_usd = 1000 FROM teams t WHERE t.id = team_id AND t.uid = 'team-10'`);
  const later = await valuesNow('runyard_team_cost_dollars');
  expect([...later.keys()]).toEqual([...costs.keys()]);
  expect(later.get('other')).toBe(1045);
});

test('failed runs of the last hour are counted by team and automation', async () => {
  const { db } = service.deps;
  const automation = randomUUID();
  const runs = [await service.newRun(), await service.newRun(), await service.newRun()];
  await db.query(`UPDATE runs SET state = 'FAILED', ended_at = now() WHERE id = ANY($1::uuid[])`, [runs]);
  await db.query(`UPDATE runs SET metadata = jsonb_build_object('automation_id', $2::text) WHERE id = $1`, [
    runs[0],
    automation,
  ]);
  await db.query(`UPDATE runs SET ended_at = now() - interval '2 hours' WHERE id = $1`, [runs[2]]);
  const values = (await measureTeams(db)()).filter(({ value }) => value > 0 && value < 10);
  expect(values).toEqual([
    { name: 'runyard_team_failed_runs', labels: { team: expect.any(String) }, value: 2 },
    { name: 'runyard_automation_failed_runs', labels: { automation }, value: 1 },
  ]);
});
