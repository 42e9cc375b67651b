/** Tests the programs of the harness presets, one after another, and writes docs/harness-results.md. `main.ts CACHE [NAME …]` */
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { presetTypes } from '../../packages/contract/src/harness-presets/preset.ts';
import { presets } from '../../packages/contract/src/harness-presets/presets.ts';
import { startFakeModels } from '../../test/fakes/models.ts';
import { startSystem } from '../../test/support/system.ts';
import { cases } from './cases.ts';
import type { Ground } from './ground.ts';
import { install } from './install.ts';
import { takeSteps } from './model-script.ts';
import { recordSession } from './record.ts';

const [cache = '', ...named] = process.argv.slice(2);
const only = process.env.HARNESS_CASES?.split(',');
const chosen = presetTypes.filter((type) => named.length === 0 || named.includes(type));
const versions: Record<string, string> = {};
for (const type of chosen) versions[type] = await install(presets[type], cache);

const models = await startFakeModels();
models.script(takeSteps);
const memory = String(Math.max(...chosen.map((type) => presets[type].leastMemoryMb)));
const env = { RUNYARD_DEFAULT_MODEL: 'runbook', RUNYARD_HARNESS_DIR: cache, RUNYARD_SANDBOX_MEMORY_MB: memory };
const system = await startSystem({ env: { ...models.env, ...env } });
const results: Record<string, Record<string, string>> = {};
let failed = 0;

async function attempt(ground: Ground, name: string, test: (ground: Ground) => Promise<string>): Promise<string> {
  try {
    return await test(ground);
  } catch (error) {
    failed += 1;
    return `**fails**: ${error instanceof Error ? error.message.split('\n')[0]?.slice(0, 200) : String(error)}`;
  } finally {
    ground.models.forgive();
    process.stdout.write(`  ${ground.preset.type}: ${name} done\n`);
  }
}

try {
  for (const type of chosen) {
    const ground: Ground = { preset: presets[type], system, models };
    const result: Record<string, string> = {};
    results[type] = result;
    for (const { name, test } of cases) {
      if (only !== undefined && !only.includes(name)) continue;
      result[name] = await attempt(ground, name, test);
      process.stdout.write(`${type}: ${name}: ${result[name]}\n`);
    }
    if (only === undefined) result.recording = await attempt(ground, 'recording', recordSession);
  }
} finally {
  await system.stop();
  await models.close();
}

/** Results of programs that were not tested now stay as they are in the page's data. */
const page = path.join(import.meta.dirname, '../../docs/harness-results.md');
const dataFile = path.join(import.meta.dirname, 'results.json');
if (only === undefined) {
  const earlier = JSON.parse(readFileSync(dataFile, 'utf8')) as typeof results;
  const tested = Object.fromEntries(
    chosen.map((type) => [type, { version: versions[type] ?? '', ...results[type] }] as const),
  );
  const all: typeof results = { ...earlier, ...tested };
  writeFileSync(dataFile, `${JSON.stringify(all, null, 2)}\n`);
  const columns = presetTypes.filter((type) => all[type] !== undefined);
  const rows = ['version', ...cases.map(({ name }) => name)];
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const table = [
    line(['', ...columns]),
    line(['---', ...columns.map(() => '---')]),
    ...rows.map((row) => line([row, ...columns.map((type) => all[type]?.[row] ?? '')])),
  ];
  const machine = `${new Date().toISOString().slice(0, 10)}, ${os.cpus().length} cores, Linux ${os.release()}, Node ${process.versions.node}`;
  writeFileSync(
    page,
    `# Coding agents in the sandbox\n\nThe real programs, each configured by its preset, in bubblewrap without a network, against a fake model. The first row has the time from the create to the end of a turn with two commands, and the memory of all processes of the sandbox during the second.\n\n${table.join('\n')}\n\n${machine}. The machine was shared, so times are upper bounds. Reproduce: \`bin/test-harnesses\`, which writes this page.\n`,
  );
}
process.exitCode = failed === 0 ? 0 : 1;
