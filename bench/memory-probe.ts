/** Preloaded into a measured process: on SIGUSR2 it collects garbage and writes its memory to the file BENCH_MEMORY_FILE. */
import { renameSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const file = process.env.BENCH_MEMORY_FILE;
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

if (file !== undefined) {
  process.on('SIGUSR2', () => {
    collect();
    collect();
    const { heapUsed, external, rss } = process.memoryUsage();
    writeFileSync(`${file}.part`, JSON.stringify({ heapUsed: heapUsed + external, rss }));
    renameSync(`${file}.part`, file);
  });
}
