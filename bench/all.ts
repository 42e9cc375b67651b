/**
 * Runs every benchmark, or the named ones (`gateway`), one after the other; `--write` stores the results. Failed benchmarks are listed
 * at the end.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { benchmarks } from './benchmarks.ts';

const options = process.argv.slice(2).filter((word) => word.startsWith('--'));
const named = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const benchmarkNames = benchmarks();
const unknown = named.filter((name) => !benchmarkNames.includes(`${name}.ts`));
if (unknown.length > 0) throw new Error(`no such benchmark: ${unknown.join(', ')}`);

const failed: string[] = [];
for (const name of benchmarkNames) {
  if (named.length > 0 && !named.includes(path.basename(name, '.ts'))) continue;
  const started = performance.now();
  const script = path.join(import.meta.dirname, name);
  const child = spawn(process.execPath, [script, ...options], { stdio: 'inherit' });
  const [code, signal] = await once(child, 'exit');
  if (code !== 0) failed.push(`${name} (${code ?? signal})`);
  process.stderr.write(`${name}: ${Math.round((performance.now() - started) / 1000)} s\n`);
}
if (failed.length > 0) {
  process.stderr.write(`failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}
