import type { Context } from '../context/context.ts';
import { readReadiness } from '../supervise/answers.ts';
import { checkClock } from './database.ts';
import type { Finding } from './finding.ts';

const name = 'service';

/** Checks that the service of a worker answers, is ready and has the time of this machine. */
export async function checkService({ settings }: Pick<Context, 'settings'>): Promise<Finding[]> {
  const origin = settings.RUNYARD_BASE_URL;
  if (origin === undefined)
    return [{ name, level: 'bad', detail: 'no service is named', fix: 'set RUNYARD_BASE_URL for the worker' }];
  const { answered, ready, problem, aheadMs } = await readReadiness(origin, 5_000);
  if (!answered)
    return [
      {
        name,
        level: 'bad',
        detail: `the service at ${origin} does not answer`,
        fix: `check RUNYARD_BASE_URL, the network and the service; bin/runyard doctor --url ${origin} says more`,
      },
    ];
  const clock = aheadMs === null ? [] : [checkClock('the service', aheadMs)];
  if (!ready) return [{ name, level: 'bad', detail: `the service at ${origin} is not ready: ${problem}` }, ...clock];
  return [{ name, level: 'good', detail: `${origin} is ready` }, ...clock];
}
