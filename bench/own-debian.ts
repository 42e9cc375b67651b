/** Measures how long a worker needs to make the Debian for sandboxes, and how long the copy for a sandbox takes. */
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { findBubblewrap } from '../packages/worker/src/sandboxes/bubblewrap/find-bubblewrap.ts';
import { copySystem, systemTree } from '../packages/worker/src/sandboxes/bubblewrap/system-tree.ts';
import { mountImage, unmountImage } from '../packages/worker/src/state/disk-image.ts';
import { median, percentile, report } from './report.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 10);
const program = await findBubblewrap();
if (program === undefined || process.getuid?.() !== 0) throw new Error('this benchmark needs bubblewrap and root');

const stateRoot = await mkdtemp(path.join(os.tmpdir(), 'runyard-own-debian-'));
try {
  await chmod(stateRoot, 0o711);
  let megabytes = 0;
  const began = performance.now();
  const tree = await systemTree({
    stateRoot,
    program,
    now: Date.now,
    report(step) {
      if (step.step === 'finished') megabytes = Math.round((step.bytes ?? 0) / 1e6);
    },
  });
  const making = performance.now() - began;
  const copies: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const [image, top] = [path.join(stateRoot, 'disk.img'), path.join(stateRoot, 'top')];
    await mkdir(top, { recursive: true });
    await mountImage(image, top, 4096);
    const start = performance.now();
    await copySystem(tree, path.join(top, 'system'), 70_000);
    copies.push(performance.now() - start);
    await unmountImage(image, top);
  }
  report(
    'Debian for sandboxes',
    `The first row includes the download from the package mirror of the machine. The Debian takes ${megabytes} MB of disk space. The second row is part of the start of each sandbox in an environment with \`system: "debian"\`: the copy to the disk of the sandbox, ${rounds} rounds.`,
    ['step', 'median ms', 'p99 ms'],
    [
      ['make the Debian, once a month', making.toFixed(0), making.toFixed(0)],
      ['copy it for a sandbox', median(copies).toFixed(0), percentile(copies, 0.99).toFixed(0)],
    ],
  );
} finally {
  await rm(stateRoot, { recursive: true, force: true });
}
