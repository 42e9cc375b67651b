/** Tests applies of definitions that run at the same time as changes by the API. */
import { expect, test } from 'vitest';
import { baseFiles, testDefinitions } from '../../../../test/definitions.ts';
import { openTestService } from '../../../../test/service.ts';

const service = await openTestService();
const { apply, automations, open, stored } = testDefinitions(service);
const { db } = service.deps;

const someoneWaits = async () =>
  (
    await db.query<{ waits: boolean }>(
      `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock') AS waits`,
    )
  )[0]?.waits;

test('an apply creates an automation again if another request deletes the automation while the apply waits for its lock', async () => {
  await open();
  const files = (prompt: string) => ({
    ...baseFiles,
    'automations/a/automation.md': `---\ntriggers: [{provider: linear, event: issue}]\n---\n\n${prompt}\n`,
  });
  await apply(files('First.'));
  const [before] = await automations();
  const applying: ReturnType<typeof apply>[] = [];
  await db.transaction(async (tx) => {
    await tx.query('DELETE FROM automations WHERE uid = $1', [before?.uid]);
    applying.push(apply(files('Second.')));
    await expect.poll(someoneWaits).toBe(true);
  });
  expect((await applying[0])?.drift).toEqual([{ kind: 'automation', name: 'a', action: 'create' }]);
  const [after] = await automations();
  expect(after).toMatchObject({ name: 'a', prompt: 'Second.' });
  expect(after?.uid).not.toBe(before?.uid);
  expect((await stored()).drift).toEqual([]);
});
