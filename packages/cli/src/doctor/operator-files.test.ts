import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseSettings } from '@runyard/contract/settings/settings';
import { catalogueMadeOn } from '@runyard/service/model-catalogue';
import { expect, test } from 'vitest';
import { checkContentPolicy, checkModelCatalogue, checkSignOn } from './operator-files.ts';

const file = path.join(await mkdtemp(path.join(tmpdir(), 'runyard-doctor-')), 'file.yaml');
function contextOf(env: Record<string, string>) {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(parsed.problems.join());
  return { settings: parsed.settings };
}
const daysLater = (days: number) => new Date(Date.parse(catalogueMadeOn) + days * 86_400_000);

test('doctor warns about an old price catalogue, but not if the file of the operator is newer', async () => {
  expect(await checkModelCatalogue(contextOf({}), daysLater(90))).toMatchObject([{ level: 'fact' }]);
  expect(await checkModelCatalogue(contextOf({}), daysLater(91))).toMatchObject([
    { level: 'note', detail: expect.stringContaining('91 days ago') },
  ]);
  await writeFile(file, `made_on: ${daysLater(60).toISOString().slice(0, 10)}\nmodels: []\n`);
  const context = contextOf({ RUNYARD_MODELS_FILE: file });
  expect(await checkModelCatalogue(context, daysLater(91))).toMatchObject([{ level: 'fact' }]);
});

test('doctor reports the line and the fault of a file with which the service would not start', async () => {
  await writeFile(file, 'models:\n  - id: gpt-5\n');
  const models = await checkModelCatalogue(contextOf({ RUNYARD_MODELS_FILE: file }), daysLater(0));
  expect(models).toMatchObject([{ level: 'bad', detail: expect.stringContaining('line 2: models.0.id: must begin') }]);
  const policy = await checkContentPolicy(contextOf({ RUNYARD_CONTENT_POLICY_FILE: file }));
  expect(policy).toMatchObject([{ level: 'bad', detail: expect.stringContaining('RUNYARD_CONTENT_POLICY_FILE') }]);
  expect(await checkContentPolicy(contextOf({}))).toEqual([]);
  const signOn = await checkSignOn(contextOf({ RUNYARD_OIDC_FILE: file }));
  expect(signOn).toMatchObject([{ level: 'bad', detail: expect.stringContaining('RUNYARD_OIDC_FILE') }]);
  expect(await checkSignOn(contextOf({}))).toEqual([]);
});
