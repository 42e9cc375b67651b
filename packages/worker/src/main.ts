import { parseSettings } from '@runyard/contract/settings/settings';
import { openLogDestination } from '@runyard/system/log-destination';
import { useProxy } from '@runyard/system/outgoing/outgoing';
import { stopsWithParent } from '@runyard/system/parent-input';
import { trustCaFile } from '@runyard/system/trust-authorities';
import { answerWatchdog } from '@runyard/system/watchdog';
import { type Logger, pino } from 'pino';
import { startWhenThereIsRoom } from './full-disk.ts';
import { closeInheritedDescriptors } from './inherited-descriptors.ts';
import { endOnSignals, endWithParent } from './signals.ts';
import { startWorker, WorkerRefused } from './worker.ts';

closeInheritedDescriptors();
const parsed = parseSettings(process.env);
if (!parsed.ok) {
  const problems = parsed.problems.map((problem) => `  ${problem}\n`).join('');
  process.stderr.write(`runyard worker: settings are wrong\n${problems}`);
  process.exit(2);
}
try {
  trustCaFile(parsed.settings.RUNYARD_CA_FILE);
  useProxy(process.env);
} catch (error) {
  process.stderr.write(`runyard worker: ${(error as Error).message}\n`);
  process.exit(2);
}
answerWatchdog();
const stopping = new AbortController();
const log: Logger = pino(
  { level: parsed.settings.RUNYARD_LOG, base: { program: 'worker', pid: process.pid } },
  openLogDestination(2, (gap) => log.error(gap, 'the log could not be written for a while')),
);

try {
  const start = () => startWorker(parsed.settings, { log, lockPatienceMs: 15_000 });
  const starting = startWhenThereIsRoom(start, { log, signal: stopping.signal });
  if (stopsWithParent()) endWithParent(starting, stopping);
  const worker = await starting;
  endOnSignals(worker);
  const { exitCode } = await worker.drained;
  process.exit(exitCode);
} catch (error) {
  if (stopping.signal.aborted) process.exit(0);
  if (!(error instanceof WorkerRefused)) throw error;
  log.fatal(error.message);
  process.exit(2);
}
