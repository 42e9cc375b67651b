/**
 * The test files that `bin/test-long` runs, because `bin/test` runs nothing or only a part of them. As a program, prints their paths,
 * one on each line.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import path from 'node:path';

const root = path.resolve(import.meta.dirname, '../..');

/**
 * Files that take many seconds of processor time and check the same behaviour as other files, but with other or more programs. Only
 * `bin/test-long` and `bin/test --filter` run them.
 */
export const longFiles: readonly string[] = [
  // Tests the gateway with the public clients of model providers. `model-runs.test.ts` tests the gateway with the AI SDK.
  'test/model-clients.test.ts',
  // Repeats the attacks of `sandbox-probes.test.ts` and the limits of `sandbox-limits.test.ts` in a gVisor sandbox.
  'test/gvisor-probes.test.ts',
  // Installs packages of Debian in sandboxes with their own Debian. `own-system.test.ts` tests such sandboxes with another system.
  'test/system-packages.test.ts',
  // Breaks parts of an installation and waits until it notices. `lost-database.test.ts` breaks the database.
  'test/faults.test.ts',
  // Stops one of two services behind a proxy for half a minute. `proxies.test.ts` tests the proxies with one service.
  'test/hanging-service.test.ts',
  // Signs people in with a real Keycloak. `sign-on.providers.test.ts` tests answers as those of Keycloak and other providers.
  'test/keycloak.test.ts',
  // Starts the units of `deploy/systemd` on a machine with systemd.
  'test/systemd-machine.test.ts',
  // Sends 100,000 events to a tab of the dashboard. `story.test.ts` tests the blocks in which a tab shows events.
  'test/dashboard/many-events.test.ts',
  // Tests the size limits of bodies and streams together. Other tests check these limits one by one.
  'test/memory-attacks.test.ts',
  // Starts services whose database or key is missing. `readiness.test.ts` and `lost-database.test.ts` test what such a service says.
  'test/waiting-services.test.ts',
  // Follows runs at a real terminal. The tests of `commands/runs/view` test what a terminal shows, and `command-line.test.ts` the programs.
  'test/command-line-watch.test.ts',
  // Runs the commands of docs/operate.md. `backup.test.ts`, `export-import.test.ts` and `command-line.test.ts` run the same commands.
  'test/operate.test.ts',
  // Starts nginx and Caddy. `client-address.test.ts` and `trusted-proxies.test.ts` test what the service believes of a proxy.
  'test/proxies.test.ts',
  // Runs a system behind a company's proxy. `outgoing-connections.test.ts` tests which connections use it.
  'test/company-proxy.test.ts',
  // Kill services while deliveries arrive and budgets are spent. `chaos.test.ts` kills services, and other tests count both.
  'test/webhook-crashes.test.ts',
  'test/budget-and-key-crashes.test.ts',
  // Kills a service while a run changes its state. `inbox.test.ts` tests which notifications the changes make.
  'test/inbox-crashes.test.ts',
  // Imports damaged files. `export-import.test.ts` imports whole ones, and the tests of `platform/store/transfer` damage parts.
  'test/failed-imports.test.ts',
  // Starts three services with different clocks and kills some. `fire.test.ts` fires times in two transactions at once.
  'test/schedules.test.ts',
  // Runs the conformance tests of MCP. The tests of `edges/mcp` test each tool and its answers.
  'test/mcp-conformance.test.ts',
  // Starts the programs of the units with the privileges that they allow. `up-and-down.test.ts` starts the same programs.
  'test/systemd.test.ts',
  // Runs the real agent in pods of a fake cluster. `kubernetes.test.ts` tests the pods, and other tests the agent.
  'test/kubernetes-runs.test.ts',
  // Starts services of an environment in containers. `services.test.ts` starts them in sandboxes of bubblewrap.
  'test/container-services.test.ts',
  // Tries `bin/try-github` with a whole system. The tests of `edges/channels/github` use the same fake.
  'test/try-github.test.ts',
  // Freezes processes of ended sandboxes. The tests of `sandboxes` end sandboxes whose processes end at once.
  'packages/worker/src/worker.proof.test.ts',
  // Makes requests from the OpenAPI document. `answers.ts` compares the answers of all other tests with the same document.
  'test/schemathesis.test.ts',
  // Kills workers and supervisors. `worker-alone.test.ts` starts a worker that takes over a run, and `chaos.test.ts` kills programs.
  'test/adoption.test.ts',
  // Kills the commands that start programs. `up-and-down.test.ts` kills `up`, and `chaos.test.ts` kills programs.
  'test/killed-parents.test.ts',
  // Fills a small disk below a whole system. The tests of blobs, database and worker fill theirs alone.
  'test/full-disk.test.ts',
];

/** Returns whether a test file, or a file with suites that it imports, has a tag of `support/long.ts`, or asks what `bin/test-long` adds. */
function hasLongTests(file: string): boolean {
  const source = readFileSync(path.join(root, file), 'utf8');
  const suites = [...source.matchAll(/from '\.\/((?!support|fakes|checks)[^']+\.ts)'/g)].map(([, name = '']) =>
    path.join(root, path.dirname(file), name),
  );
  const texts = [source, ...suites.filter(existsSync).map((suite) => readFileSync(suite, 'utf8'))];
  return texts.some((text) => /tags: '(long|compiled)'|import \{ isLong|\btestsOfKind\b|\bkindsOfTurn\b/.test(text));
}

/** Returns the files that `bin/test-long` runs. The paths are relative to the repository. */
export function findLongFiles(): string[] {
  const all = globSync(['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'], { cwd: root });
  return all.filter((file) => longFiles.includes(file) || hasLongTests(file)).sort();
}

if (import.meta.main) console.log(findLongFiles().join('\n'));
