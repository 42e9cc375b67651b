/** Runs every benchmark, one after the other; `--write` keeps the results. What failed is told at the end. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** A benchmark is what reports; the other files are its parts. */
const benchmarks = readdirSync(import.meta.dirname)
  .filter((name) => name.endsWith('.ts') && name !== 'report.ts' && name !== path.basename(import.meta.filename))
  .filter((name) => /^\s*report\(/m.test(readFileSync(path.join(import.meta.dirname, name), 'utf8')));

const failed: string[] = [];
for (const name of benchmarks) {
  const started = performance.now();
  const child = spawn(process.execPath, [path.join(import.meta.dirname, name), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  const [code, signal] = await once(child, 'exit');
  if (code !== 0) failed.push(`${name} (${code ?? signal})`);
  process.stderr.write(`${name}: ${Math.round((performance.now() - started) / 1000)} s\n`);
}
if (failed.length > 0) {
  process.stderr.write(`failed: ${failed.join(', ')}\n`);
  process.exitCode = 1;
}
