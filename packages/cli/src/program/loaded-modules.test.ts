/**
 * Tests which modules commands load, because a short command spends most of its time on loading modules. So a command should load only
 * its own modules, and schemas only if it checks data.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../test/support/close-at-end.ts';
import { loadedBy } from '../../../../test/support/loaded-modules.ts';

const main = 'packages/cli/src/main.ts';
const run = {
  run_id: '0197c1f4-0000-7000-8000-000000000000',
  title: 'Say hello',
  state: 'SUCCEEDED',
  created_at: '2026-11-21T10:00:00Z',
};
const service = closeAtEnd(
  createServer((_, response) => {
    response.setHeader('content-type', 'application/json');
    const lists = { runs: [run], services: [], gone_workers: [] };
    response.end(JSON.stringify({ status: 'ready', ...lists, page_info: { has_next_page: false } }));
  }),
);
const folder = newFolder();
const env: Record<string, string> = { RUNYARD_API_KEY: 'a-key', RUNYARD_DATA_DIR: folder };
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
env.RUNYARD_BASE_URL = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;

/** Modules that take long to load: zod, the schemas, the other programs, and Node's fetch. */
const heavy = (modules: readonly string[]) =>
  modules.filter((file) =>
    /^undici$|^node_modules\/zod\/|^packages\/(service|worker|agent)\/|contract\/src\/routes/.test(file),
  );

it('the command runs loads no module of zod, schemas, fetch, service or worker', async () => {
  const { output, modules } = await loadedBy([main, 'runs'], env);
  expect(output).toContain(`${run.run_id}\tSUCCEEDED`);
  expect(heavy(modules)).toEqual([]);
  expect(modules).toContain('packages/cli/src/commands/runs/list.ts');
  expect(modules).not.toContain('packages/cli/src/commands/runs/create.ts');
});

it('the command status loads no module of zod, schemas, fetch, service or worker', async () => {
  const { output, modules } = await loadedBy([main, 'status'], env);
  expect(output).toContain(env.RUNYARD_BASE_URL);
  expect(heavy(modules)).toEqual([]);
});

it.each(['--help', '--version'])(
  'the option %s loads no module of the client, the settings or commands',
  async (option) => {
    const { output, modules } = await loadedBy([main, option], env);
    expect(output).not.toBe('');
    expect(heavy(modules)).toEqual([]);
    expect(modules.filter((file) => /^packages\/client\/|\/commands\/|\/settings/.test(file))).toEqual([]);
  },
);
