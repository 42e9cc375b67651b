/** The published Python client of the interface works against this service by changing its base URL and its key. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeSystem } from './support/describe-system.ts';
import { installPythonClient, type PythonClient } from './support/python-client.ts';

const source = readFileSync(path.join(import.meta.dirname, 'python-client/scenarios.py'), 'utf8');
const names = [...source.matchAll(/^@scenario\("(.+)"\)$/gm)].map(([, name = '']) => name);

describeSystem('the published Python client', {}, (system) => {
  let client: PythonClient;
  const outcomes = new Map<string, string | null>();

  beforeAll(async () => {
    client = await installPythonClient();
    if (client.kind === 'missing') return;
    const env = { OZ_API_BASE_URL: `${system.baseUrl()}/api/v1`, WARP_API_KEY: system.key };
    const lines = (await client.start('scenarios.py', env)).trim().split('\n');
    for (const { scenario, error } of lines.map((line) => JSON.parse(line))) outcomes.set(scenario, error);
  }, 300_000);
  afterAll(async () => {
    if (client.kind === 'ready') await client.remove();
  });

  test.for(names)('%s', (name, { skip }) => {
    if (client.kind === 'missing') skip(client.reason);
    const error = outcomes.get(name);
    expect(error ?? '').toBe('');
    expect(error, 'the scenario was driven').toBeNull();
  });
});
