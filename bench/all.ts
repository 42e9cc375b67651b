/** Runs every benchmark, one after the other; `--write` keeps the results. What failed is told at the end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { benchmarks } from './benchmarks.ts';

const failed: string[] = [];
for (const name of benchmarks()) {
  const started = performance.now();
  const script = path.join(import.meta.dirname, name);
  const child = spawn(process.execPath, [script, ...process.argv.slice(2)], { stdio: 'inherit' });
  const [code, signal] = await once(child, 'exit');
  if (code !== 0) failed.push(`${name} (${code ?? signal})`);
  process.stderr.write(`${name}: ${Math.round((performance.now() - started) / 1000)} s\n`);
}
if (failed.length > 0) {
  process.stderr.write(`failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}
