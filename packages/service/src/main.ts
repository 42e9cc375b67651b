import { parseSettings } from '@runyard/contract/settings';
import pino from 'pino';
import { StartProblem, startService } from './service.ts';

const parsed = parseSettings(process.env);
if (!parsed.ok) {
  for (const problem of parsed.problems) process.stderr.write(`${problem}\n`);
  process.exit(2);
}
const log = pino(
  { level: parsed.settings.RUNYARD_LOG, base: { program: 'service' } },
  pino.destination({ fd: 2, sync: false }),
);

const stopping = Promise.withResolvers<string>();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.resolve(signal));
if (process.argv.includes('--stop-with-parent')) {
  process.stdin.on('error', () => stopping.resolve('parent gone'));
  process.stdin.once('end', () => stopping.resolve('parent gone')).resume();
}

try {
  const service = await startService(parsed.settings, log);
  const reason = await stopping.promise;
  log.info({ reason }, 'service stops');
  await service.stop();
  process.exit(0);
} catch (error) {
  if (error instanceof StartProblem) process.stderr.write(`${error.message}\n`);
  else log.fatal({ err: error }, 'the service could not start');
  log.flush(() => process.exit(error instanceof StartProblem ? 2 : 1));
}
