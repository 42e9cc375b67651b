import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

test('doctor reports an identity provider that publishes another issuer than the file names', async () => {
  const published = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ issuer, authorization_endpoint: `${url}/auth`, token_endpoint: `${url}/token` }));
  });
  await new Promise<void>((resolve) => published.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(published.address() as AddressInfo).port}`;
  let issuer = url;
  await writeFile(file, `providers: [{ id: acme, name: Acme, issuer: '${url}', client_id: runyard }]\n`);
  const check = () => checkSignOn(contextOf({ RUNYARD_OIDC_FILE: file }));
  expect(await check()).toMatchObject([{ level: 'good', detail: '1 providers answer, and rules for 0 teams' }]);
  issuer = 'https://id.example.com/';
  const detail = expect.stringContaining(`the file has the issuer ${url}, and the provider publishes ${issuer}`);
  expect(await check()).toMatchObject([{ level: 'note', detail }]);
  published.close();
});
