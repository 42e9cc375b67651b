/** Tests how many statements and commits a run costs, and how many bytes it writes to the log of PostgreSQL. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CountingServer, type Counts, startCountingServer } from './support/count-statements.ts';
import { eventually, type System, sandboxProblem, startSystem } from './support/system.ts';

let server: CountingServer;
let system: System;

beforeAll(async () => {
  server = await startCountingServer();
  system = await startSystem({ databaseUrl: server.url });
}, 180_000);
afterAll(async () => {
  await system?.stop();
  await server?.stop();
});

const runs = 10;

/** Waits until the sandboxes of `count` further runs have ended. */
async function doRuns(start: () => Promise<unknown>): Promise<void> {
  for (let n = 0; n < runs; n += 1) {
    await start();
    await eventually(
      'the end of a run',
      async () => (await server.query("SELECT FROM executions WHERE phase <> 'ended'")).length === 0,
      undefined,
      50,
    );
  }
}

function show({ commits, logBytes, statements }: Counts): void {
  const names = [...statements].filter(([, n]) => n / runs >= 0.05).sort(([, a], [, b]) => b - a);
  console.log([commits / runs, logBytes / runs, names.reduce((sum, [, n]) => sum + n, 0) / runs]);
  for (const [text, n] of names) console.log((n / runs).toFixed(1), text.slice(0, 150));
}

test.skipIf(sandboxProblem !== null)(
  'a run with one command',
  async () => {
    const create = () => system.createRun('```sh\ntrue\n```');
    await doRuns(create);
    const counts = await server.count(() => doRuns(create));
    show(counts);
    expect(counts.commits / runs).toBeLessThanOrEqual(20);
  },
  180_000,
);
