import { OverlapPolicy } from '@runyard/contract/schedules';
import { type Command, Option } from 'commander';
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  listFires,
  listSchedules,
  runSchedule,
  setSchedule,
  updateSchedule,
} from './commands/schedules.ts';
import { createContext } from './context.ts';
import { wholeNumber } from './whole-number.ts';

const asJson = ['--json', 'print JSON'] as const;
const idHelp = 'id of the schedule; bin/runyard schedules list shows it';
const cronHelp = 'five fields, @daily, @hourly …, or @every with a duration such as 90m';

const overlap = () =>
  new Option('--overlap <policy>', 'what happens while a run of it is live (default: allow)').choices(
    OverlapPolicy.options,
  );

/** Adds the commands that manage schedules. */
export function addScheduleCommands(program: Command): void {
  const schedules = program.command('schedules').description('manage prompts that become runs at fixed times');
  const context = () => createContext(process.env);
  schedules
    .command('list', { isDefault: true })
    .description('list the schedules of the team')
    .option(...asJson)
    .action((options) => listSchedules(context(), options));
  schedules
    .command('create')
    .description('create a schedule and print its id')
    .argument('<text>', 'prompt of each run')
    .requiredOption('--name <name>', 'name of the schedule')
    .requiredOption('--cron <expression>', cronHelp)
    .option('--timezone <zone>', 'IANA time zone of the expression (default: UTC)')
    .option('--environment <uid>', 'environment of the runs')
    .option('--model <id>', 'model of the runs')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option('--paused', 'create it paused')
    .option(...asJson)
    .action((prompt, options) => createSchedule(context(), prompt, options));
  schedules
    .command('get')
    .description('show a schedule as JSON, with its next times')
    .argument('<id>', idHelp)
    .action((id) => getSchedule(context(), id));
  schedules
    .command('update')
    .description('change a schedule; its runs act as you from now on')
    .argument('<id>', idHelp)
    .option('--name <name>', 'name of the schedule')
    .option('--cron <expression>', cronHelp)
    .option('--prompt <text>', 'prompt of each run')
    .option('--timezone <zone>', 'IANA time zone of the expression')
    .option('--environment <uid>', 'environment of the runs')
    .option('--model <id>', 'model of the runs')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option(...asJson)
    .action((id, options) => updateSchedule(context(), id, options));
  for (const action of ['pause', 'resume'] as const) {
    schedules
      .command(action)
      .description(`${action} a schedule`)
      .argument('<id>', idHelp)
      .option(...asJson)
      .action((id, options) => setSchedule(context(), action, id, options));
  }
  schedules
    .command('delete')
    .description('delete a schedule; its runs stay')
    .argument('<id>', idHelp)
    .action((id) => deleteSchedule(context(), id));
  schedules
    .command('run')
    .description("start a run of a schedule now, and print the run's id")
    .argument('<id>', idHelp)
    .option(...asJson)
    .action((id, options) => runSchedule(context(), id, options));
  schedules
    .command('history')
    .description('list the times at which a schedule fired, newest first')
    .argument('<id>', idHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option(...asJson)
    .action((id, options) => listFires(context(), id, options));
}
