/** Automations, which start runs for deliveries and schedules. */
import type { Client } from '@runyard/client';
import type { Automation } from '@runyard/contract/automations/automations';
import type { Command } from 'commander';
import { type Context, processContext } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { jsonFrom } from '../../input/input-file.ts';
import { automationHelp, factoryHelp } from '../../input/options.ts';
import { type Given, type Members, type Row, request } from '../../route-commands/row.ts';
import { connect } from '../../service/connect.ts';
import { findAutomation, idOf } from '../../service/named.ts';
import { fireColumns } from '../schedules/fires.ts';
import { payloadFlags, startLines, withOnePayload } from '../webhooks/simulate.ts';
import { declareList } from './list.ts';

const automation = {
  usage: '<uid>',
  help: automationHelp,
  find: async (client: Client, text: string): Promise<Given> => {
    const { factory_uid: factoryUid, uid: automationUid } = await findAutomation(client, text);
    return { factoryUid, automationUid };
  },
};

/** Returns the reasons for which a stored automation does not fire. */
const problemsOf = ({ problems = [] }: Automation): string[] => problems.map((problem) => `problem: ${problem}`);

const exampleHelp = `
For example, with the UID of a webhook:
  {"name": "Alerts", "prompt": "Look into attachments/event-payload.json.",
   "triggers": [{"provider": "webhook", "event": "received",
     "filter": {"webhook_ids": ["UID"], "payload": {"status": ["firing"]}}}]}
or at times: {"provider": "schedule", "event": "cron_fired", "schedule": {"name": "nightly", "cron": "0 3 * * *"}}
docs/factory-files.md has all triggers and filters, and the API reference all members.`;

const updateHelp = `
Members that the file leaves out get their defaults. bin/runyard automations show UID prints the present members: take name, prompt and triggers from it, and agent, config, overlap, concurrency_key, notify and enabled if it has them.
Its runs act as before; with "executor_uid": "me" you take it over.
`;

const filterHelp = `
The file has the member payload of a trigger's filter, such as {"status": ["firing"]}. Give the payload as a file, or a delivery:
  echo '{"status": ["firing"]}' | bin/runyard automations test-filter FACTORY - --payload payload.json
docs/factory-files.md explains payload filters.`;

/** Returns the members. @throws Failure unless they have exactly one of payload, delivery and schedule */
function withOneStart(members: Members): Members {
  const { payload, delivery_id, schedule_name, event, webhook_uid } = members;
  if (schedule_name === undefined && (payload === undefined) === (delivery_id === undefined))
    throw new Failure('give one of --payload, --delivery and --schedule');
  if (schedule_name !== undefined && [payload, delivery_id, event, webhook_uid].some((each) => each !== undefined))
    throw new Failure('--schedule cannot be combined with --payload and --delivery, which are about deliveries');
  return members;
}

/** Enables or disables an automation. After this, as after every change, runs of the automation act as the caller. */
async function setAutomation(context: Context, action: 'enable' | 'disable', uid: string): Promise<void> {
  const client = connect(context);
  const {
    factory_uid: factoryUid,
    uid: automationUid,
    name,
    prompt,
    triggers,
    agent,
    config,
    overlap,
    concurrency_key,
  } = await findAutomation(client, uid);
  await client.updateAutomation({
    params: { factoryUid, automationUid },
    body: {
      name,
      prompt,
      triggers,
      overlap,
      enabled: action === 'enable',
      ...(agent === undefined ? {} : { agent }),
      ...(config === undefined ? {} : { config }),
      ...(concurrency_key === undefined ? {} : { concurrency_key }),
    },
  });
  context.out(`${automationUid} is ${action}d\n`);
}

/** Declares `enable` and `disable` of `automations`. */
function declareSwitches(automations: Command): void {
  for (const action of ['enable', 'disable'] as const)
    automations
      .command(action)
      .description(action === 'enable' ? 'start runs again, as you' : 'start no more runs')
      .argument('<uid>', automationHelp)
      .action((uid) => setAutomation(processContext(), action, uid));
}

/** The commands of `automations`. */
export const automations: readonly Row[] = [
  declareList,
  request('getAutomation', 'show', 'show an automation as JSON', { arguments: [automation] }),
  request('createAutomation', 'create', 'create an automation, and print its UID', {
    arguments: [
      { usage: '<factory>', help: factoryHelp, find: idOf.factory },
      {
        usage: '<file>',
        help: 'JSON file with name, prompt and triggers, - for standard input',
        member: '*',
        read: jsonFrom,
      },
    ],
    helpBelow: exampleHelp,
    lines: ({ uid }) => uid,
    notes: problemsOf,
  }),
  request('updateAutomation', 'update', 'replace an automation; its runs act as before', {
    arguments: [
      automation,
      { usage: '<file>', help: 'JSON file with all members, - for standard input', member: '*', read: jsonFrom },
    ],
    helpBelow: `${updateHelp}${exampleHelp}`,
    lines: ({ uid }) => `${uid} is changed`,
    notes: problemsOf,
  }),
  request('listAutomationFires', 'history', 'list the times at which its schedules fired, newest first', {
    arguments: [automation],
    flags: { '--limit <count>': 'limit' },
    list: {
      of: 'fires',
      columns: fireColumns({ header: 'SCHEDULE', text: (fire) => fire.schedule_name ?? '' }),
      none: 'it has not fired yet',
    },
  }),
  declareSwitches,
  request('deleteAutomation', 'delete', 'delete an automation; its runs stay', {
    arguments: [automation],
    lines: (_, { automationUid }) => `${automationUid} is deleted`,
  }),
  request('testFilter', 'test-filter', 'compare a payload filter with a payload, and print why it matches or not', {
    arguments: [
      { usage: '<factory>', help: factoryHelp, find: idOf.factory },
      { usage: '<file>', help: 'JSON file with the filter, - for standard input', member: 'filter', read: jsonFrom },
    ],
    flags: payloadFlags,
    complete: withOnePayload,
    helpBelow: filterHelp,
    lines: ({ would_trigger, checks }) => [
      would_trigger ? 'matches' : 'does not match',
      ...checks.map(
        ({ passed, path, reason }) => `${passed ? '+' : '-'} ${path === undefined ? '' : `${path}: `}${reason}`,
      ),
    ],
  }),
  request(
    'dryRunAutomation',
    'dry-run',
    'show the run that a delivery or a schedule would start, or the reason why no run would start; creates nothing',
    {
      arguments: [automation],
      flags: {
        ...payloadFlags,
        '--event <name>': { member: 'event', help: 'event of GitHub, such as push, with --payload' },
        '--webhook <uid>': {
          member: 'webhook_uid',
          help: 'webhook of the delivery (default: the first that a trigger selects)',
        },
        '--schedule [name]': {
          member: 'schedule_name',
          help: 'a time of the schedule trigger with this name, or of the schedule trigger without a name',
          read: (name: string | true | undefined) => (name === true ? '' : name),
        },
      },
      complete: withOneStart,
      orJson: true,
      lines: startLines,
    },
  ),
];
