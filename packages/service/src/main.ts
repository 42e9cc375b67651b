import { once } from 'node:events';
import { parseSettings } from '@runyard/contract/settings/settings';
import { openLogDestination } from '@runyard/system/log-destination';
import { useProxy } from '@runyard/system/outgoing/outgoing';
import { onParentGone, stopsWithParent } from '@runyard/system/parent-input';
import { trustCaFile } from '@runyard/system/trust-authorities';
import { answerWatchdog } from '@runyard/system/watchdog';
import { type Logger, pino } from 'pino';
import { StartProblem } from './edges/start/open-parts.ts';
import { type Logs, openLogs } from './platform/metrics/open-logs.ts';
import { rootOf, withTraceOfRun } from './runs/executions/tracing/trace-runs.ts';
import { startService } from './service.ts';

const parsed = parseSettings(process.env);
if (!parsed.ok) {
  for (const problem of parsed.problems) process.stderr.write(`${problem}\n`);
  process.exit(2);
}
try {
  trustCaFile(parsed.settings.RUNYARD_CA_FILE);
  useProxy(process.env);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(2);
}
let sentLogs: Logs | undefined;
const standardError = openLogDestination(2, (gap) => log.error(gap, 'the log could not be written for a while'));
const log: Logger = pino(
  { level: parsed.settings.RUNYARD_LOG, base: { program: 'service' }, formatters: { log: withTraceOfRun } },
  {
    write: (line) => {
      standardError.write(line);
      sentLogs?.write(line);
    },
  },
);
sentLogs = await openLogs(process.env, log, ({ run_id }) => (typeof run_id === 'string' ? rootOf(run_id) : undefined));
/** Ends this process after the waiting lines of the log are sent. */
const exit = async (code: number): Promise<never> => {
  await sentLogs?.close();
  process.exit(code);
};

answerWatchdog();
const stopping = new AbortController();
const stop = (reason: string) => {
  if (stopping.signal.aborted) return;
  log.info({ reason }, 'service stops');
  stopping.abort();
};
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop(signal));
if (stopsWithParent()) onParentGone((how) => stop(how === 'asked' ? 'stopped by its parent' : 'parent gone'));

try {
  const service = await startService(parsed.settings, log, stopping.signal);
  if (!stopping.signal.aborted) await once(stopping.signal, 'abort');
  await service.stop();
  log.info('service stopped');
  await exit(0);
} catch (error) {
  if (error === stopping.signal.reason) {
    log.info('service stopped before it had started');
    await exit(0);
  }
  if (error instanceof StartProblem) process.stderr.write(`${error.message}\n`);
  else log.fatal({ err: error }, 'the service could not start');
  await exit(error instanceof StartProblem ? 2 : 1);
}
