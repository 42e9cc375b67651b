/** Tests the programs of the harness presets, one after another, and writes docs/harness-results.md. `main.ts CACHE [NAME …]` */
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { presets } from '@runyard/contract/agent/harness-presets/presets';
import { startFakeGitHost } from '../../test/fakes/git-host.ts';
import { startFakeModels } from '../../test/fakes/models.ts';
import { makeFakePullRequestApi } from '../../test/fakes/pull-request-api.ts';
import { startSystem } from '../../test/support/system.ts';
import { cases } from './cases.ts';
import type { Ground } from './ground.ts';
import { install } from './install.ts';
import { takeSteps } from './model-script.ts';
import { recordSession } from './record.ts';

const [cache = '', ...named] = process.argv.slice(2);
/** Names of the cases to run; empty: all cases. */
const only = process.env.HARNESS_CASES?.split(';');
const chosen = presetTypes.filter((type) => named.length === 0 || named.includes(type));
const versions: Record<string, string> = {};
for (const type of chosen) versions[type] = await install(presets[type], cache);

const models = await startFakeModels();
models.script(takeSteps);
const memory = String(Math.max(...chosen.map((type) => presets[type].leastMemoryMb)));
const { pulls, api } = makeFakePullRequestApi();
const codeHost = await startFakeGitHost({ api });
const env = {
  RUNYARD_CODE_HOST_URL: codeHost.template,
  RUNYARD_DEFAULT_MODEL: 'runbook',
  RUNYARD_HARNESS_DIR: cache,
  RUNYARD_SANDBOX_MEMORY_MB: memory,
};
const system = await startSystem({ env: { ...models.env, ...env } });
let failed = 0;

async function attempt(ground: Ground, test: (ground: Ground) => Promise<string>): Promise<string> {
  try {
    return await test(ground);
  } catch (error) {
    failed += 1;
    return `**fails**: ${error instanceof Error ? error.message.split('\n')[0]?.slice(0, 200) : String(error)}`;
  } finally {
    ground.models.forgive();
  }
}

const dataFile = path.join(import.meta.dirname, 'results.json');

/** Adds results of a program to results.json and writes the page from this file. Results of other programs and cases stay. */
function keep(type: string, more: Readonly<Record<string, string>>): void {
  const results = JSON.parse(readFileSync(dataFile, 'utf8')) as Record<string, Record<string, string>>;
  results[type] = { ...results[type], ...more };
  writeFileSync(dataFile, `${JSON.stringify(results, null, 2)}\n`);
  const columns = presetTypes.filter((each) => results[each] !== undefined);
  const rows = ['version', ...cases.map(({ name }) => name)];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const table = [
    line(['', ...columns]),
    line(['---', ...columns.map(() => '---')]),
    ...rows.map((row) => line([row, ...columns.map((each) => results[each]?.[row] ?? 'not tested')])),
  ];
  const machine = `${new Date().toISOString().slice(0, 10)}, ${os.cpus().length} cores, Linux ${os.release()}, Node ${process.versions.node}`;
  const about =
    'The table shows test results of the real programs. Each program is configured by its preset and runs in bubblewrap, without a network and with a fake model. The service offers the model under the name of its default model for the program, and in the row "newest model" under the name of the newest flagship. The row "commit and push" reads the commit from the remote repository. The row "shell turn" has the time from the request that creates the run to the end of a turn with two commands, and the memory of all processes of the sandbox during the second command. The MCP server in the tests starts 3 s late.';
  const text = `# Coding agents in the sandbox\n\n${about}\n\n${table.join('\n')}\n\n${machine}. The machine was shared, so times are upper bounds. Reproduce: \`bin/test-harnesses\`, which writes this page.\n`;
  writeFileSync(path.join(import.meta.dirname, '../../docs/harness-results.md'), text);
}

try {
  for (const type of chosen) {
    const ground: Ground = { preset: presets[type], system, models, codeHost, pulls };
    keep(type, { version: versions[type] ?? '' });
    for (const { name, test } of [...cases, { name: 'recording', test: recordSession }]) {
      if (only !== undefined && !only.includes(name)) continue;
      const result = await attempt(ground, test);
      process.stdout.write(`${type}: ${name}: ${result}\n`);
      if (name !== 'recording') keep(type, { [name]: result });
    }
  }
} finally {
  await system.stop();
  await models.close();
  await codeHost.close();
}
process.exitCode = failed === 0 ? 0 : 1;
