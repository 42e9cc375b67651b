/** Lists the automations of all factories. */
import type { Automation } from '@runyard/contract/automations/automations';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { asJson } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { allAutomations } from '../../service/named.ts';
import type { Column } from '../../terminal/columns.ts';
import { printList } from '../../terminal/list.ts';
import { inUtc } from '../schedules/fires.ts';

type Json = { readonly json?: true };

function statusOf({ enabled, problems, last_spawn_error: error }: Automation): string {
  if (!enabled) return error ? 'paused' : 'disabled';
  if (error) return 'failing';
  return problems ? 'has problems' : 'enabled';
}

/** Returns the next time at which a schedule of the automation fires. Returns an empty text if there is none. */
function nextOf({ schedules = [] }: Automation): string {
  const times = schedules.flatMap(({ next_run: time }) => time ?? []);
  return times.toSorted()[0] ?? '';
}

/** Lists the automations of the team. */
export async function listAutomations(context: Context, options: Json): Promise<void> {
  const automations = await allAutomations(connect(context));
  const columns: Column<(typeof automations)[number]>[] = [
    { header: 'AUTOMATION', text: ({ uid }) => uid },
    { header: 'FACTORY', text: ({ factory_uid: uid }) => uid },
    {
      header: 'STATUS',
      text: statusOf,
      paint: (automation, colours) =>
        automation.last_spawn_error ? colours.red : statusOf(automation) === 'enabled' ? colours.green : colours.yellow,
    },
    { header: 'NEXT', text: (automation) => inUtc(nextOf(automation)), raw: nextOf },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
    {
      header: 'PROBLEM',
      sentence: true,
      text: ({ last_spawn_error: error, problems }) => error ?? problems?.[0] ?? '',
    },
  ];
  const none = 'no automations; create one with: bin/runyard automations create FACTORY FILE';
  printList(context, { columns, rows: automations, json: { automations }, none }, options);
}

/** Declares `list` of `automations`. */
export function declareList(automations: Command): void {
  automations
    .command('list', { isDefault: true })
    .description('list the automations of the team')
    .option(...asJson)
    .action((options) => listAutomations(processContext(), options));
}
