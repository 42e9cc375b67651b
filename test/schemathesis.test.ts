/**
 * Tests that the OpenAPI document and the service agree: Schemathesis makes valid and invalid requests from the document, and compares
 * the answers with the document. The seed is fixed, so that a failure can be repeated. By default, Schemathesis sends two cases for
 * each operation (`schemathesis/hooks.py`): a request that fits the schema, and a request that does not fit. By default, it tests only
 * every fifteenth operation, and the operations whose path begins with `linked`. This is enough, because `checks/answers.ts` compares
 * the answers of all other tests with the document. `bin/test-long` sends all cases, which takes minutes.
 */

import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { routes } from '@runyard/contract/routes';
import type { Route } from '@runyard/contract/wire/route';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { makeOwnThings, type OwnThings } from '../packages/service/test/own-things.ts';
import { startTestService, type TestService } from '../packages/service/test/service.ts';
import { isLong } from './support/long.ts';
import { installPythonPackages, type PythonPackages } from './support/python-packages.ts';

/**
 * `examples` is the number of random requests for each operation. The phase "examples" of Schemathesis sends the examples of the
 * document, with random values for missing members. `docs-examples.test.ts` sends these examples unchanged.
 */
const amount = isLong
  ? { examples: 6, phases: 'examples,coverage,fuzzing,stateful' }
  : { examples: 2, phases: 'coverage,fuzzing,stateful' };
/** Time limit. All requests together can take many minutes on a busy machine. */
const limitMs = isLong ? 50 * 60_000 : 580_000;
const seed = 4180;

/**
 * First part of the paths of operations that `bin/test` tests in sequences: Schemathesis creates, reads, changes and deletes objects
 * of one kind.
 */
const linked = '/agent/mcp-servers';
const isLinked = ({ path: at }: Route) => at.startsWith(linked);

/** Operations that are never sent: streams without an end, and the deletion of the key that all other requests need. */
const neverSent = ['streamTeamEvents', 'streamTeamDeliveries', 'deleteKey'];
const leftOut = Object.entries(routes)
  .filter(([name, route], index) => neverSent.includes(name) || (!isLong && index % 15 !== 0 && !isLinked(route)))
  .map(([name]) => name);

/** Statuses of refusals that depend on the stored data. A request may get them although it fits the schema. */
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

/**
 * For each reason that JSON Schema cannot express, the operations that may answer 400 for this reason to a request that fits the
 * schema.
 */
const refusals: Readonly<Record<string, readonly string[]>> = {
  'a cursor of another list, or an id of another run': [
    'listRuns',
    'listRunMessages',
    'listScheduleFires',
    'listAuditEntries',
    'listEventDeliveries',
    'listFactories',
    'listAutomationFires',
    'listFactoryTasks',
    'listWebhookDeliveries',
    'listTeamWebhooks',
    'listTeamAutomations',
    'listTeamDeliveries',
    'getUsage',
  ],
  'a number of steps that depends on two times': ['countRuns'],
  'a model, environment, conversation or webhook that the team does not have, alone or in a configuration': [
    'createRun',
    'createRunDeprecated',
    'rerunRun',
    'createSchedule',
    'updateSchedule',
    'previewSchedule',
    'createAgentIdentity',
    'updateAgentIdentity',
    'updateModelSettings',
    'createAutomation',
    'updateAutomation',
    'dryRunAutomation',
    'createFactoryTask',
  ],
  'a state of the run or its conversation': [
    'cancelRun',
    'interruptRun',
    'interruptConversation',
    'sendFollowup',
    'sendConversationFollowup',
    'getConversationTranscript',
  ],
  'an address that the service may not reach, or a repository of another code host': [
    'listAgents',
    'createEnvironment',
    'updateEnvironment',
    'createEventSubscription',
    'updateEventSubscription',
    'createMcpServer',
    'updateMcpServer',
    'setFactorySource',
  ],
  'a key that is no RSA key, or a secret with too few different characters': ['createCodeHostCredential', 'putSecret'],
  'a secret or signature that does not fit the scheme of the webhook': [
    'createWebhook',
    'updateWebhook',
    'rotateWebhookSecret',
  ],
  'a code, state, App or installation that GitHub does not know': [
    'createGithubApp',
    'convertGithubApp',
    'authorizeGithub',
    'finishGithubAuthorization',
  ],
  'a payload filter that is not valid': ['testFilter', 'testFilterOnDeliveries'],
};
const refusedByContent = new Set(Object.values(refusals).flat());

/**
 * Returns Schemathesis's settings for an operation: ids of existing objects, parameters with which the answer does not wait, and the
 * status 400 if the operation may refuse requests that fit the schema.
 */
function settingsOf(name: string, route: Route): string {
  const ids: Record<string, unknown> = { ...own, uid: own.environmentUid, kind: 'artifact', id: own.artifactUid };
  const names = Object.keys(route.params?.shape ?? {}).filter((each) => ids[each] !== undefined);
  // Do not delete these objects, because later operations read them.
  const fixed: Record<string, unknown> = Object.fromEntries(
    route.method === 'DELETE' ? [] : names.map((each) => [`path.${each}`, ids[each]]),
  );
  if (route.query && 'wait_ms' in route.query.shape) fixed['query.wait_ms'] = 0;
  if (name === 'streamRunEvents') fixed['query.follow'] = 'false';
  const parameters = Object.entries(fixed).map(([key, value]) => `${toml(key)} = ${toml(value)}`);
  const statuses = refusedByContent.has(name) ? [...accepted, '400'] : accepted;
  return `
parameters = { ${parameters.join(', ')} }
checks.positive_data_acceptance.expected-statuses = ${toml(statuses)}
`;
}

/**
 * For a JSON Schema above this length, the phase "coverage" takes seconds. Only the bodies of runs have such a schema, because they
 * contain an agent's configuration.
 */
const largeBody = 5000;

/**
 * Returns the phases for an operation. In `bin/test`, an operation gets the phase "coverage", which tries each member of the body, and
 * no random requests. Only an operation with a large schema gets random requests instead.
 */
function phasesOf(route: Route): string {
  if (isLong) return '';
  const body = route.body && JSON.stringify(z.toJSONSchema(route.body, { io: 'input', unrepresentable: 'any' }));
  const isCovered = body === undefined || body.length < largeBody;
  return `
phases.coverage.enabled = ${isCovered}
phases.fuzzing.enabled = ${!isCovered}
phases.stateful.enabled = ${isLinked(route)}
`;
}

/** Write one block for all operations with the same settings, because Schemathesis searches all blocks many times for each request. */
function operations(): string {
  const blocks = Map.groupBy(Object.entries(routes), ([name, route]) => settingsOf(name, route) + phasesOf(route));
  return [...blocks]
    .map(([settings, of]) => `[[operations]]\ninclude-operation-id = ${toml(of.map(([name]) => name))}${settings}`)
    .join('');
}

const configuration = (): string => `
warnings = false
hooks = ${toml(path.join(import.meta.dirname, 'schemathesis/hooks.py'))}
[phases.stateful]
max-steps = 6
generation.max-examples = ${isLong ? 25 : 6}
[auth.openapi.apiKey]
bearer = ${toml(service.key)}
[auth.openapi.runToken]
bearer = ${toml(own.runToken)}
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "413", "415", "422", "429", "431"]
${operations()}`;

/** A line of the file that `hooks.py` writes after the last request. */
type Made = readonly [operation: string, mode: 'positive' | 'negative', phase: string, count: number];

/** Returns the operations for which no request fitted the schema, or for which every request fitted. */
function findMissing(made: readonly Made[]): string[] {
  const seen = new Set(made.map(([operation, mode]) => `${operation}: ${mode}`));
  return Object.entries(routes)
    .filter(([name]) => !leftOut.includes(name))
    .flatMap(([, { method, path: at }]) => ['positive', 'negative'].map((mode) => `${method} ${at}: ${mode}`))
    .filter((each) => !seen.has(each));
}

test('Schemathesis gets only answers that the OpenAPI document declares', { timeout: limitMs + 20_000 }, async ({
  skip,
}) => {
  if (packages.kind === 'missing') return skip(packages.reason);
  const file = path.join(folder, 'schemathesis.toml');
  await writeFile(file, configuration());
  // Give Schemathesis a file, because it waits only 10 seconds for a document from a server.
  const document = path.join(folder, 'openapi.json');
  await writeFile(document, await fetch(`${service.baseUrl}/api/v1/openapi.json`).then((answer) => answer.text()));
  const found = await packages
    .start(
      [
        ...['-m', 'schemathesis.cli', '--config-file', file, 'run', document, '--url', `${service.baseUrl}/api/v1`],
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
      // Set HOME. Otherwise Python asks the system for the home folder at each request.
      { limitMs, cwd: folder, env: { ...(isLong ? { TEST_LONG: '1' } : {}), HOME: folder } },
    )
    .then(
      (output) => ({ failures: '', output }),
      (error: { stdout?: string; stderr?: string }) => ({ failures: `${error.stdout}${error.stderr}`, output: '' }),
    );
  expect(found.failures).toBe('');
  expect(found.output).toMatch(/Tested: \d\d/);
  const made: readonly Made[] = JSON.parse(await readFile(path.join(folder, 'cases.json'), 'utf8'));
  expect(findMissing(made)).toEqual([]);
});
