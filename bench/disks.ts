/**
 * Measures three ways to make the file system of a sandbox: run `mkfs.ext4` for each sandbox, copy an image with `cp`, or write the
 * template that the worker keeps in memory.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { readTemplate, writeTemplate } from '../packages/worker/src/state/disk-template.ts';
import { report } from './report.ts';
import { inTurns, spread, spreadColumns, timed } from './turns.ts';

const run = promisify(execFile);
const rounds = Number(process.env.BENCH_ROUNDS ?? 60);
/** Size of the file system of a sandbox whose disk limit is 4 GB. */
const bytes = 4538 * 1024 * 1024;
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-disks-'));
const [first, next] = [path.join(folder, 'first'), path.join(folder, 'next')];

async function emptyFile(file: string) {
  const handle = await open(file, 'wx', 0o600);
  await handle.truncate(bytes);
  return handle;
}
async function makeFileSystem(file: string): Promise<void> {
  await (await emptyFile(file)).close();
  const extended = 'lazy_itable_init=1,nodiscard,num_backup_sb=0';
  const features = '^has_journal,^resize_inode,sparse_super2';
  await run('mkfs.ext4', ['-q', '-F', '-U', 'clear', '-O', features, '-m', '0', '-i', '8192', '-E', extended, file]);
}

await makeFileSystem(first);
const template = await readTemplate(first);
if (template === undefined) throw new Error(`${folder} does not list holes: set TMPDIR to a folder that does`);
const ways = {
  'mkfs.ext4': () => makeFileSystem(next),
  'cp --sparse=always': () => run('cp', ['--sparse=always', first, next]),
  'template in this process': async () => {
    const handle = await emptyFile(next);
    await writeTemplate(handle, template);
    await handle.close();
  },
};

/**
 * Returns the milliseconds of processor time that this process and its ended children have used (proc(5), fields 14 to 17 of stat, in
 * steps of 10 ms).
 */
function processorMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ').at(-1)?.split(' ').slice(11, 15) ?? [];
  return fields.reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

const processor = new Map<string, number>();
const measure = async (name: string, make: () => Promise<unknown>): Promise<number> => {
  const before = processorMs();
  const took = await timed(make);
  processor.set(name, (processor.get(name) ?? 0) + processorMs() - before);
  await rm(next);
  return took;
};
const samples = await inTurns(
  Object.fromEntries(Object.entries(ways).map(([name, make]) => [name, () => measure(name, make)])),
  rounds,
  0,
);
await rm(folder, { recursive: true });

report(
  'Disks of sandboxes',
  `Each row is the time, in milliseconds, to make the file system for a sandbox with a limit of 4 GB, ${rounds} times each, in turns. The processor time is a mean; it is the time of the benchmark's process and its children.`,
  ['way', ...spreadColumns, 'processor time'],
  Object.entries(samples).map(([name, sample]) => [
    name,
    ...spread(sample),
    ((processor.get(name) ?? 0) / rounds).toFixed(1),
  ]),
);
