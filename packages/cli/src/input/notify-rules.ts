import type { NotifyRule } from '@runyard/contract/runs/notify';
import { Failure } from '../exits/failure.ts';

/** Help of the option `--notify`. */
export const notifyHelp =
  'people and event subscriptions to notify of problems, as rules such as failed=UID,SUBSCRIPTION or failed_times:3=UID, with ; between them; none removes the rules';

/** Reads the value of `--notify`. The service checks events, numbers and names. */
export function readRules(text: string | undefined): NotifyRule[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  return text.split(';').map((rule) => {
    const [, on, times, names] = /^\s*([a-z_]+)(?::(\d+))?=(.+)$/.exec(rule) ?? [];
    if (on === undefined || names === undefined)
      throw new Failure(`--notify takes rules such as failed=UID, not ${JSON.stringify(rule)}`, 2);
    const to = names.split(',').map((name) => name.trim());
    return { on: on as NotifyRule['on'], ...(times === undefined ? {} : { times: Number(times) }), to };
  });
}
