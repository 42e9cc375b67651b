import { overlapPolicies } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { loadContext, loadNamed } from './load-context.ts';
import { wholeNumber } from './whole-number.ts';

const loadSchedules = () => import('./commands/schedules.ts');

const asJson = ['--json', 'print JSON'] as const;
const idHelp = 'id or name of the schedule; bin/runyard schedules list shows them';
const promptHelp = 'prompt of each run: a file, - for standard input, or the text itself';
const cronHelp = 'five fields, @daily, @hourly …, or @every with a duration such as 90m';

const overlap = () =>
  new Option('--overlap <policy>', 'what happens while a run of it is live (default: allow)').choices(overlapPolicies);

/** Adds the commands that manage schedules. */
export function addScheduleCommands(program: Command): void {
  const schedules = program.command('schedules').description('manage prompts that become runs at fixed times');
  schedules
    .command('list', { isDefault: true })
    .description('list the schedules of the team')
    .option(...asJson)
    .action(async (options) => (await loadSchedules()).listSchedules(await loadContext(), options));
  schedules
    .command('create')
    .description('create a schedule and print its id')
    .argument('<prompt>', promptHelp)
    .requiredOption('--name <name>', 'name of the schedule')
    .requiredOption('--cron <expression>', cronHelp)
    .option('--timezone <zone>', 'IANA time zone of the expression (default: UTC)')
    .option('--environment <uid>', 'environment of the runs, by UID or name')
    .option('--model <id>', 'model of the runs')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option('--paused', 'create it paused')
    .option(...asJson)
    .action(async (prompt, options) => (await loadSchedules()).createSchedule(await loadContext(), prompt, options));
  schedules
    .command('get')
    .description('show a schedule as JSON, with its next times')
    .argument('<id>', idHelp)
    .action(async (id) => (await loadSchedules()).getSchedule(...(await loadNamed('schedule', id))));
  schedules
    .command('update')
    .description('change a schedule; its runs act as you from now on')
    .argument('<id>', idHelp)
    .option('--name <name>', 'name of the schedule')
    .option('--cron <expression>', cronHelp)
    .option('--prompt <prompt>', promptHelp)
    .option('--timezone <zone>', 'IANA time zone of the expression')
    .option('--environment <uid>', 'environment of the runs, by UID or name')
    .option('--model <id>', 'model of the runs')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option(...asJson)
    .action(async (id, options) =>
      (await loadSchedules()).updateSchedule(...(await loadNamed('schedule', id)), options),
    );
  for (const action of ['pause', 'resume'] as const) {
    schedules
      .command(action)
      .description(`${action} a schedule`)
      .argument('<id>', idHelp)
      .option(...asJson)
      .action(async (id, options) =>
        (await loadSchedules()).setSchedule(...(await loadNamed('schedule', id)), action, options),
      );
  }
  schedules
    .command('delete')
    .description('delete a schedule; its runs stay')
    .argument('<id>', idHelp)
    .action(async (id) => (await loadSchedules()).deleteSchedule(...(await loadNamed('schedule', id))));
  schedules
    .command('run')
    .description("start a run of a schedule now, and print the run's id")
    .argument('<id>', idHelp)
    .option(...asJson)
    .action(async (id, options) => (await loadSchedules()).runSchedule(...(await loadNamed('schedule', id)), options));
  schedules
    .command('history')
    .description('list the times at which a schedule fired, newest first')
    .argument('<id>', idHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option(...asJson)
    .action(async (id, options) => (await loadSchedules()).listFires(...(await loadNamed('schedule', id)), options));
}
