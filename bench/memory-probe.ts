/**
 * Preloaded into a measured process: on SIGUSR2 it collects garbage, waits until the memory is stable, and writes its memory to the file
 * BENCH_MEMORY_FILE.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env.BENCH_MEMORY_FILE;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Wait, because V8 returns memory to the system only some time after it became free. */
const settleMs = 2_000;

if (file !== undefined) {
  process.on('SIGUSR2', async () => {
    collect();
    await delay(settleMs);
    collect();
    await delay(settleMs);
    const { heapUsed, external, rss } = process.memoryUsage();
    writeFileSync(`${file}.part`, JSON.stringify({ heapUsed: heapUsed + external, rss }));
    renameSync(`${file}.part`, file);
  });
}
