import { parseSettings } from '@runyard/contract/settings';
import { destination, pino } from 'pino';
import { closeInheritedDescriptors } from './inherited-descriptors.ts';
import { endOnSignals } from './signals.ts';
import { startWorker, WorkerRefused } from './worker.ts';

closeInheritedDescriptors();
const parsed = parseSettings(process.env);
if (!parsed.ok) {
  process.stderr.write(
    `runyard worker: settings are wrong\n${parsed.problems.map((problem) => `  ${problem}\n`).join('')}`,
  );
  process.exit(2);
}
const log = pino({ level: parsed.settings.RUNYARD_LOG, base: { program: 'worker', pid: process.pid } }, destination(2));

try {
  const worker = await startWorker(parsed.settings, { log });
  endOnSignals(worker);
  const { exitCode } = await worker.drained;
  process.exit(exitCode);
} catch (error) {
  if (!(error instanceof WorkerRefused)) throw error;
  log.fatal(error.message);
  process.exit(2);
}
