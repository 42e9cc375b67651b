/**
 * The OpenAPI document and the service agree: Schemathesis makes requests from the document, good ones and bad ones, and
 * compares what comes back with it. The seed is fixed, so that a failure is found again. It sends some of the cases that it makes of
 * the document (`schemathesis/hooks.py`); with SCHEMATHESIS_ALL_CASES=1 in the environment (`bin/test-long`) it sends all of them, which takes
 * minutes.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Route } from '@runyard/contract/route';
import { routes } from '@runyard/contract/routes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeOwnThings, type OwnThings } from '../packages/service/test/own-things.ts';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { installPythonPackages, type PythonPackages } from './support/python-packages.ts';

const { SCHEMATHESIS_ALL_CASES = '' } = process.env;
/**
 * Requests by chance for each operation, beside the many of the coverage phase. The examples of the document are sent as they stand by
 * `docs-examples.test.ts`; the phase of examples fills their gaps by chance.
 */
const amount =
  SCHEMATHESIS_ALL_CASES === '1'
    ? { examples: 6, phases: 'examples,coverage,fuzzing,stateful' }
    : { examples: 1, phases: 'coverage,fuzzing,stateful' };
const seed = 4180;

/** A stream without an end, and the key that all other requests need. */
const leftOut = ['streamTeamEvents', 'deleteKey'];

/** Statuses of a request that fits its schema: they depend on the stored data, not on the request. */
const accepted = ['2xx', '3xx', '401', '403', '404', '409', '416', '422', '429'];

let packages: PythonPackages;
let service: TestService;
let own: OwnThings;
let folder: string;
beforeAll(async () => {
  packages = await installPythonPackages(path.join(import.meta.dirname, 'schemathesis/requirements.txt'), 11);
  service = await startTestService();
  own = (await makeOwnThings(service)).own;
  folder = await mkdtemp(path.join(tmpdir(), 'runyard-schemathesis-'));
}, 300_000);
afterAll(async () => {
  if (packages?.kind === 'ready') await packages.remove();
  await service?.close();
  await rm(folder, { recursive: true, force: true });
});

const toml = (value: unknown): string => JSON.stringify(value);

/** Settings of an operation: ids that exist, no waiting, and 400 where the route declares one of its own: an id in a body may be unknown. */
function settingsOf(name: string, route: Route): string {
  const ids: Record<string, unknown> = { ...own, uid: own.environmentUid, kind: 'artifact', id: own.artifactUid };
  const names = Object.keys(route.params?.shape ?? {}).filter((each) => ids[each] !== undefined);
  // Things that are deleted first could not be read later.
  const fixed: Record<string, unknown> = Object.fromEntries(
    route.method === 'DELETE' ? [] : names.map((each) => [`path.${each}`, ids[each]]),
  );
  if (route.query && 'wait_ms' in route.query.shape) fixed['query.wait_ms'] = 0;
  if (name === 'streamRunEvents') fixed['query.follow'] = 'false';
  const parameters = Object.entries(fixed).map(([key, value]) => `${toml(key)} = ${toml(value)}`);
  const statuses = route.errors?.[400] === undefined ? accepted : [...accepted, '400'];
  return `
parameters = { ${parameters.join(', ')} }
checks.positive_data_acceptance.expected-statuses = ${toml(statuses)}
`;
}

/** Operations with the same settings share a block: Schemathesis goes through all blocks many times for each request. */
function operations(): string {
  const blocks = Map.groupBy(Object.entries(routes), ([name, route]) => settingsOf(name, route));
  return [...blocks]
    .map(([settings, of]) => `[[operations]]\ninclude-operation-id = ${toml(of.map(([name]) => name))}${settings}`)
    .join('');
}

const configuration = (): string => `
warnings = false
hooks = ${toml(path.join(import.meta.dirname, 'schemathesis/hooks.py'))}
[phases.stateful]
max-steps = 4
generation.max-examples = 3
[auth.openapi.apiKey]
bearer = ${toml(service.key)}
[auth.openapi.runToken]
bearer = ${toml(own.runToken)}
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429", "431"]
${operations()}`;

test('gives schemathesis no answer that the OpenAPI document does not declare', { timeout: 600_000 }, async ({
  skip,
}) => {
  if (packages.kind === 'missing') return skip(packages.reason);
  const file = path.join(folder, 'schemathesis.toml');
  await writeFile(file, configuration());
  const found = await packages
    .start(
      [
        ...['-m', 'schemathesis.cli', '--config-file', file, 'run', `${service.baseUrl}/api/v1/openapi.json`],
        ...[
          '--checks',
          'all',
          '--phases',
          amount.phases,
          '--max-examples',
          String(amount.examples),
          '--seed',
          String(seed),
        ],
        ...['--generation-allow-x00', 'false', '--generation-database', 'none', '--no-color'],
        ...leftOut.flatMap((name) => ['--exclude-operation-id', name]),
      ],
      { cwd: folder, env: { SCHEMATHESIS_ALL_CASES } },
    )
    .then(
      (output) => ({ failures: '', output }),
      (error: { stdout?: string; stderr?: string }) => ({ failures: `${error.stdout}${error.stderr}`, output: '' }),
    );
  expect(found.failures).toBe('');
  expect(found.output).toMatch(/Tested: \d\d/);
});
