/** Executes the commands of docs/factory-files.md: an empty installation, one apply, staging, production and a rollback. */
import { execFile } from 'node:child_process';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Environment } from '@runyard/contract/environments/environments';
import type { Factory } from '@runyard/contract/factories/factories';
import { expect, test } from 'vitest';
import { newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestService } from '../../../../service/test/service.ts';

const root = path.resolve(import.meta.dirname, '../../../../..');
const page = readFileSync(path.join(root, 'docs/factory-files.md'), 'utf8');
const service = await openTestService();
const folder = newFolder();

/** Writes a file below the folder. */
function write(file: string, content: string): void {
  const target = path.join(folder, file);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, content);
}

const example = [...page.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)];
const [first = '', second = ''] = [...page.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? '');

/** Executes a block of commands, which ends at the first failure. Returns its output. */
async function execute(block: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    RUNYARD_BASE_URL: service.baseUrl,
    RUNYARD_API_KEY: service.key,
    CI_WEBHOOK_SECRET: 'a-secret-of-the-ci-system',
  };
  const { stdout, stderr } = await promisify(execFile)('sh', ['-ec', block], { cwd: folder, env });
  return stdout + stderr;
}

const factories = async () =>
  new Map(
    (await service.ok<{ factories: Factory[] }>('GET', '/factory')).factories.map(({ name, uid }) => [name, uid]),
  );
const promptOf = async (uid = '') =>
  (await service.ok<Factory>('GET', `/factory/${uid}`)).agents?.find(({ name }) => name === 'foreman')?.prompt;

test('one definition makes production and staging in an empty installation, and production goes back', async () => {
  for (const [, file = '', content = ''] of example) write(`payments/${file}`, content);
  write('bin/runyard', `#!/bin/sh\nexec ${process.execPath} ${path.join(root, 'packages/cli/src/main.ts')} "$@"\n`);
  chmodSync(path.join(folder, 'bin/runyard'), 0o755);

  const created = await execute(first);
  expect(created.match(/version 1 is applied/g)).toHaveLength(2);
  const made = await factories();
  expect([...made.keys()].sort()).toEqual(['payments', 'payments-staging']);
  const body = await service.ok<{ environments: Environment[] }>('GET', '/agent/environments');
  expect(body.environments.map(({ config }) => config.name)).toEqual(['node', 'node']);
  const before = await promptOf(made.get('payments'));
  expect(before).toBe('Decide who works on the request, and report the result.');

  write('payments/agents/foreman/agent.md', '---\nagentType: FOREMAN\n---\n\nWork yourself.\n');
  const changed = await execute(second);
  expect(changed).toMatch(/^2\t.*\n1\t/m);
  expect(changed).toContain('prompt: "Decide who works on the request, and report the result." → "Work yourself."');
  expect(changed).toContain('version 3 is applied, with the files of version 1');
  expect(await promptOf(made.get('payments-staging'))).toBe('Work yourself.');
  expect(await promptOf(made.get('payments'))).toBe(before);
  expect((await factories()).size).toBe(2);
});
