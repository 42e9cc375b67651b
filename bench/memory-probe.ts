/**
 * A measured process loads this module before its program. On SIGUSR2, the process collects garbage, waits until its memory is stable,
 * and writes the size of the memory to the file that BENCH_MEMORY_FILE names.
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
