import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../../service/test/service.ts';
import { type Context, createContext } from '../context.ts';
import { listAudit } from './audit.ts';
import { createEnvironment, deleteEnvironment, showEnvironment, updateEnvironment } from './environments.ts';
import { createIdentity, deleteIdentity, listIdentities, showIdentity, updateIdentity } from './identities.ts';

let service: TestService;
let folder: string;
let printed: string[];

/** Returns the output of the command, without spaces around it. */
async function printedBy(command: (context: Context) => Promise<void>, key = service.key): Promise<string> {
  printed = [];
  const context = createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key });
  await command({ ...context, out: (text) => void printed.push(text), report: () => {} });
  return printed.join('').trim();
}
const fileOf = async (content: object) => {
  const file = path.join(folder, 'request.json');
  await writeFile(file, JSON.stringify(content));
  return file;
};

beforeAll(async () => {
  service = await startTestService();
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-cli-'));
});
afterAll(async () => {
  await service.close();
  await rm(folder, { recursive: true });
});

test('the commands create, change, list and delete an environment and an identity', async () => {
  const environmentFile = await fileOf({ config: { name: 'Shop', setup_commands: ['true'] } });
  const environment = await printedBy((context) => createEnvironment(context, environmentFile));
  const identityFile = await fileOf({ name: 'Reviewer', environment_id: environment });
  const identity = await printedBy((context) => createIdentity(context, identityFile));
  expect(await printedBy((context) => listIdentities(context, {}))).toMatch(
    new RegExp(`${identity}\\s+available\\s+${environment}\\s+Reviewer`),
  );
  const renamed = await fileOf({ name: 'Second reader' });
  await printedBy((context) => updateIdentity(context, identity, renamed));
  const shown = JSON.parse(await printedBy((context) => showIdentity(context, identity)));
  expect(shown).toMatchObject({ name: 'Second reader', environment_id: environment });

  const other = await fileOf({ config: { name: 'Other shop' } });
  await printedBy((context) => updateEnvironment(context, environment, other));
  const config = JSON.parse(await printedBy((context) => showEnvironment(context, environment))).config;
  expect(config).toEqual({ name: 'Other shop' });
  await printedBy((context) => deleteEnvironment(context, environment));
  expect(await printedBy((context) => listIdentities(context, {}))).toContain('unavailable');
  await printedBy((context) => deleteIdentity(context, identity));
  expect(await printedBy((context) => listIdentities(context, { json: true }))).toBe('{"agents":[]}');

  const changes = await printedBy((context) => listAudit(context, { subject_uid: identity }));
  expect(changes.match(/agent_identity\.\w+/g)).toEqual([
    'agent_identity.delete',
    'agent_identity.update',
    'agent_identity.create',
  ]);
  expect(await printedBy((context) => listAudit(context, {}), service.otherKey)).not.toContain(identity);
});

test('createIdentity rejects a file without valid JSON, and the error names the file', async () => {
  const file = path.join(folder, 'broken.json');
  await writeFile(file, '{');
  await expect(printedBy((context) => createIdentity(context, file))).rejects.toThrow(file);
});
