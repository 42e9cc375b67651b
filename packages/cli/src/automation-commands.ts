import type { Command } from 'commander';
import { loadContext, loadNamed } from './load-context.ts';
import { wholeNumber } from './whole-number.ts';

const loadAutomations = () => import('./commands/automations.ts');
const loadSimulations = () => import('./commands/simulations.ts');

const uidHelp = 'UID or name of the automation; bin/runyard automations list shows them';
const factoryHelp = 'UID, alias or name of the factory; bin/runyard factory list shows them';

const exampleHelp = `
For example, with the UID of a webhook:
  {"name": "Alerts", "prompt": "Look into attachments/event-payload.json.",
   "triggers": [{"provider": "webhook", "event": "received",
     "filter": {"webhook_ids": ["UID"], "payload": {"status": ["firing"]}}}]}
or at times: {"provider": "schedule", "event": "cron_fired", "schedule": {"name": "nightly", "cron": "0 3 * * *"}}
docs/factory-files.md has all triggers and filters, and the API reference all members.`;

const updateHelp = `
Members that the file leaves out get their defaults. bin/runyard automations show UID prints the present members: take name,
prompt, triggers and, where they are there, agent, config, overlap, concurrency_key and enabled from it.
`;

const filterHelp = `
The file has the member payload of a trigger's filter, such as {"status": ["firing"]}. Give the payload as a file, or a delivery:
  echo '{"status": ["firing"]}' | bin/runyard automations test-filter FACTORY - --payload payload.json
docs/factory-files.md explains payload filters.`;

/** Adds the commands that manage automations. */
export function addAutomationCommands(program: Command): void {
  const automations = program
    .command('automations')
    .description('manage automations, which start runs for deliveries and schedules');
  automations
    .command('list', { isDefault: true })
    .description('list the automations of the team')
    .option('--json', 'print JSON')
    .action(async (options) => (await loadAutomations()).listAutomations(await loadContext(), options));
  automations
    .command('show')
    .description('show an automation as JSON')
    .argument('<uid>', uidHelp)
    .action(async (uid) => (await loadAutomations()).showAutomation(await loadContext(), uid));
  automations
    .command('create')
    .description('create an automation, and print its UID')
    .argument('<factory>', factoryHelp)
    .argument('<file>', 'JSON file with name, prompt and triggers, - for standard input')
    .addHelpText('after', exampleHelp)
    .action(async (factory, file) =>
      (await loadAutomations()).createAutomation(...(await loadNamed('factory', factory)), file),
    );
  automations
    .command('update')
    .description('replace an automation; its runs act as you from now on')
    .argument('<uid>', uidHelp)
    .argument('<file>', 'JSON file with all members, - for standard input')
    .addHelpText('after', `${updateHelp}${exampleHelp}`)
    .action(async (uid, file) => (await loadAutomations()).updateAutomation(await loadContext(), uid, file));
  automations
    .command('history')
    .description('list the times at which its schedules fired, newest first')
    .argument('<uid>', uidHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option('--json', 'print JSON')
    .action(async (uid, options) => (await loadAutomations()).listAutomationFires(await loadContext(), uid, options));
  for (const action of ['enable', 'disable'] as const)
    automations
      .command(action)
      .description(action === 'enable' ? 'start runs again, as you' : 'start no more runs')
      .argument('<uid>', uidHelp)
      .action(async (uid) => (await loadAutomations()).setAutomation(await loadContext(), action, uid));
  automations
    .command('delete')
    .description('delete an automation; its runs stay')
    .argument('<uid>', uidHelp)
    .action(async (uid) => (await loadAutomations()).deleteAutomation(await loadContext(), uid));
  automations
    .command('test-filter')
    .description('compare a payload filter with a payload, and print why it matches or not')
    .argument('<factory>', factoryHelp)
    .argument('<file>', 'JSON file with the filter, - for standard input')
    .option('--payload <file>', 'JSON file with the payload')
    .option('--delivery <id>', 'id of an accepted delivery; bin/runyard webhooks deliveries lists them')
    .addHelpText('after', filterHelp)
    .action(async (factory, file, options) =>
      (await loadAutomations()).testFilter(...(await loadNamed('factory', factory)), file, options),
    );
  automations
    .command('dry-run')
    .description('show the run that a delivery or a schedule would start, or why it would not; nothing is created')
    .argument('<uid>', uidHelp)
    .option('--payload <file>', 'JSON file with the payload, - for standard input')
    .option('--delivery <id>', 'id of an accepted delivery')
    .option('--event <name>', 'event of GitHub, such as push, with --payload')
    .option('--webhook <uid>', 'webhook of the delivery (default: the first that a trigger selects)')
    .option('--schedule [name]', 'a time of the schedule trigger with this name, or of the one without a name')
    .option('--json', 'print JSON')
    .action(async (uid, options) => (await loadSimulations()).dryRunAutomation(await loadContext(), uid, options));
}
