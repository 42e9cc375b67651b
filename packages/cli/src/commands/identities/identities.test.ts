import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../service/test/service.ts';
import { runRow } from '../../../test/run-row.ts';
import { createContext } from '../../context/context.ts';
import type { Row } from '../../route-commands/row.ts';
import { audit } from '../audit/audit.ts';
import { environments } from '../environments/environments.ts';
import { identities } from './identities.ts';

let printed: string[];

/** Returns the output of the command, without spaces around it. */
async function printedBy(noun: readonly Row[], words: readonly string[], key = service.key): Promise<string> {
  printed = [];
  const context = createContext({ RUNYARD_BASE_URL: service.baseUrl, RUNYARD_API_KEY: key });
  const quiet = { ...context, out: (text: string) => void printed.push(text), report: () => {} };
  await runRow(noun, quiet, ...words);
  return printed.join('').trim();
}
const fileOf = async (content: object) => {
  const file = path.join(folder, 'request.json');
  await writeFile(file, JSON.stringify(content));
  return file;
};

const service = await openTestService();
const folder = newFolder();

test('the commands create, change, list and delete an environment and an identity', async () => {
  const environmentFile = await fileOf({ config: { name: 'Shop', setup_commands: ['true'] } });
  const environment = await printedBy(environments, ['create', environmentFile]);
  const identityFile = await fileOf({ name: 'Reviewer', environment_id: environment });
  const identity = await printedBy(identities, ['create', identityFile]);
  expect(await printedBy(identities, ['list'])).toMatch(
    new RegExp(`${identity}\\s+available\\s+${environment}\\s+Reviewer`),
  );
  const renamed = await fileOf({ name: 'Second reader' });
  await printedBy(identities, ['update', identity, renamed]);
  const shown = JSON.parse(await printedBy(identities, ['show', identity]));
  expect(shown).toMatchObject({ name: 'Second reader', environment_id: environment });

  const other = await fileOf({ config: { name: 'Other shop' } });
  await printedBy(environments, ['update', environment, other]);
  const config = JSON.parse(await printedBy(environments, ['show', environment])).config;
  expect(config).toEqual({ name: 'Other shop' });
  await printedBy(environments, ['delete', environment]);
  expect(await printedBy(identities, ['list'])).toContain('unavailable');
  await printedBy(identities, ['delete', identity]);
  expect(await printedBy(identities, ['list', '--json'])).toBe('{"agents":[]}');

  const changes = await printedBy(audit, ['--subject', identity]);
  expect(changes.match(/agent_identity\.\w+/g)).toEqual([
    'agent_identity.delete',
    'agent_identity.update',
    'agent_identity.create',
  ]);
  expect(await printedBy(audit, [], service.otherKey)).not.toContain(identity);
});

test('createIdentity rejects a file without valid JSON, and the error names the file', async () => {
  const file = path.join(folder, 'broken.json');
  await writeFile(file, '{');
  await expect(printedBy(identities, ['create', file])).rejects.toThrow(file);
});
