/** Manages schedules: prompts that become runs at fixed times. */
import type { Client } from '@runyard/client';
import type {
  CreateScheduledAgentRequest,
  OverlapPolicy,
  ScheduledAgentItem,
  ScheduleFire,
} from '@runyard/contract/schedules/schedules';
import { overlapPolicies } from '@runyard/contract/wire/choices';
import { type Command, Option } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { formatAgo } from '../live/times.ts';
import { contextAndId } from '../named.ts';
import { asJson, wholeNumber } from '../options.ts';
import { inUtc, printFires } from './fires.ts';
import { parsePair } from './parse-pair.ts';
import { readPrompt } from './read-prompt.ts';
import { reportWaiting } from './report-waiting.ts';
import { addRunOptions } from './run-options.ts';
import { configFrom, type RunOptions } from './run-request.ts';
import { withIds } from './with-ids.ts';

/** Options of create and update, as they are named on the command line. */
interface ScheduleOptions extends Omit<RunOptions, 'name' | 'title' | 'attach'> {
  readonly name?: string;
  readonly cron?: string;
  readonly prompt?: string;
  readonly timezone?: string;
  readonly overlap?: OverlapPolicy;
  readonly maxLive?: number;
  /** As whom the runs act: `me` or the UID of an agent identity. */
  readonly executor?: string;
  readonly json?: true;
}

/** Lists the schedules of the team by name. */
export async function listSchedules(context: Context, options: { readonly json?: true }): Promise<void> {
  const found = await connect(context).listSchedules();
  const now = Date.now();
  const columns: Column<ScheduledAgentItem>[] = [
    { header: 'SCHEDULE ID', text: ({ id }) => id },
    {
      header: 'STATUS',
      text: (schedule) => statusOf(schedule),
      paint: ({ enabled, last_spawn_error }, colours) =>
        last_spawn_error ? colours.red : enabled ? colours.green : colours.yellow,
    },
    { header: 'CRON', text: ({ cron_schedule }) => cron_schedule },
    {
      header: 'NEXT',
      text: ({ history }) => inUtc(history?.next_run),
      raw: ({ history }) => history?.next_run ?? '',
    },
    {
      header: 'LAST',
      text: ({ history }) => (history?.last_ran ? formatAgo(history.last_ran, now) : 'never'),
      raw: ({ history }) => history?.last_ran ?? '',
    },
    { header: 'NAME', flexible: true, text: ({ name }) => name },
  ];
  const none = 'no schedules; create one with: bin/runyard schedules create';
  printList(context, { columns, rows: found.schedules, json: found, none }, options);
}

function statusOf({ enabled, last_spawn_error }: ScheduledAgentItem): string {
  if (!enabled) return 'paused';
  return last_spawn_error ? 'failing' : 'active';
}

/** Creates a schedule and prints its id. */
export async function createSchedule(
  context: Context,
  prompt: string,
  options: ScheduleOptions & { readonly name: string; readonly cron: string; readonly paused?: true },
): Promise<void> {
  const body = {
    ...changesOf(options),
    name: options.name,
    cron_schedule: options.cron,
    prompt: readPrompt(prompt),
    enabled: !options.paused,
  };
  const client = connect(context);
  const config = await configOf(client, options);
  const created = await client.createSchedule({ body: { ...body, ...config } });
  print(context, created, options, created.id);
  const next = created.history?.next_run;
  if (!options.json) context.report(next ? `its next time is ${inUtc(next)}` : 'it is paused');
}

const changesOf = ({ timezone, overlap, maxLive, executor, mode, metadata }: ScheduleOptions) => ({
  ...(mode === undefined ? {} : { mode }),
  ...(metadata === undefined ? {} : { metadata: Object.fromEntries(metadata.map(parsePair)) }),
  ...(executor === undefined ? {} : { executor_uid: executor }),
  ...(timezone === undefined ? {} : { timezone }),
  ...(overlap === undefined ? {} : { overlap }),
  ...(maxLive === undefined ? {} : { max_live_runs: maxLive }),
});

/** Returns the configuration that the options describe. Returns no member if no option concerns the configuration. */
async function configOf(
  client: Client,
  options: ScheduleOptions,
  before?: ScheduledAgentItem['agent_config'],
): Promise<Pick<CreateScheduledAgentRequest, 'agent_config'>> {
  // In answers, skill_spec repeats the first of the skills. A request must not have both.
  const { skill_spec: first, skills, ...others } = before ?? {};
  const { name: _, ...ofRuns } = options;
  const changes = configFrom(ofRuns);
  if (Object.keys(changes).length === 0) return {};
  const { config } = await withIds(client, { config: changes });
  const namesSkill = changes.skill_spec !== undefined || changes.skills !== undefined;
  const followed = skills === undefined ? (first === undefined ? {} : { skill_spec: first }) : { skills };
  return { agent_config: { ...others, ...(namesSkill ? {} : followed), ...config } };
}

/** Changes the members of a schedule that the options name. All other members stay unchanged. */
export async function updateSchedule(context: Context, id: string, options: ScheduleOptions): Promise<void> {
  const client = connect(context);
  const { json, ...changes } = options;
  if (Object.keys(changes).length === 0)
    throw new Failure('nothing to change; see: bin/runyard schedules update --help');
  const params = { scheduleId: id };
  const { name, cron_schedule, prompt, agent_config } = await client.getSchedule({ params });
  const body = {
    name: options.name ?? name,
    cron_schedule: options.cron ?? cron_schedule,
    prompt: options.prompt === undefined ? prompt : readPrompt(options.prompt),
    ...changesOf(options),
    ...(await configOf(client, options, agent_config)),
  };
  const updated = await client.updateSchedule({ params, body });
  print(context, updated, options, `${updated.id} is changed`);
  if (!options.json) reportWaiting(context, updated.waiting);
}

/** Shows a schedule as JSON. */
export async function getSchedule(context: Context, id: string): Promise<void> {
  context.out(`${harmlessJson(await connect(context).getSchedule({ params: { scheduleId: id } }))}\n`);
}

/** Pauses or resumes a schedule. */
async function setSchedule(
  context: Context,
  id: string,
  action: 'pause' | 'resume',
  options: { readonly json?: true },
): Promise<void> {
  const client = connect(context);
  const params = { scheduleId: id };
  const item = await (action === 'pause' ? client.pauseSchedule({ params }) : client.resumeSchedule({ params }));
  const next = item.history?.next_run;
  print(context, item, options, next ? `${id} is active; its next time is ${inUtc(next)}` : `${id} is paused`);
}

/** Deletes a schedule. The runs that it has started are not deleted. */
export async function deleteSchedule(context: Context, id: string): Promise<void> {
  await connect(context).deleteSchedule({ params: { scheduleId: id } });
  context.out(`${id} is deleted\n`);
}

/** Starts a run of a schedule now and prints the run's id. */
export async function runSchedule(context: Context, id: string, options: { readonly json?: true }): Promise<void> {
  const started = await connect(context).runSchedule({ params: { scheduleId: id } });
  print(context, started, options, started.run_id);
}

/** Lists the fires of a schedule, newest first. */
export async function listFires(
  context: Context,
  id: string,
  options: { readonly json?: true; readonly limit?: number },
): Promise<void> {
  const query = options.limit === undefined ? {} : { limit: options.limit };
  const found = await connect(context).listScheduleFires({ params: { scheduleId: id }, query });
  const by = { header: 'BY', text: ({ due_at }: ScheduleFire) => (due_at ? 'schedule' : 'hand') };
  printFires(context, found, by, options);
}

function print(context: Context, answer: object, options: { readonly json?: true }, line: string): void {
  context.out(options.json ? `${harmlessJson(answer)}\n` : `${harmlessLine(line)}\n`);
}

const idHelp = 'id or name of the schedule; bin/runyard schedules list shows them';
const executorHelp = 'as whom its runs act: me, or an agent identity that you may edit, by UID';
const promptHelp = 'prompt of each run: a file, - for standard input, or the text itself';
const cronHelp = 'five fields, @daily, @hourly …, or @every with a duration such as 90m';

const overlap = () =>
  new Option('--overlap <policy>', 'how to handle a fire while a run of the schedule is live (default: allow)').choices(
    overlapPolicies,
  );

/** Declares the command `schedules`. */
export function declareSchedules(schedules: Command): void {
  schedules
    .command('list', { isDefault: true })
    .description('list the schedules of the team')
    .option(...asJson)
    .action((options) => listSchedules(processContext(), options));
  addRunOptions(schedules.command('create'))
    .description('create a schedule and print its id')
    .argument('<prompt>', promptHelp)
    .requiredOption('--name <name>', 'name of the schedule')
    .requiredOption('--cron <expression>', cronHelp)
    .option('--timezone <zone>', 'IANA time zone of the expression (default: UTC)')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option('--executor <uid>', executorHelp)
    .option('--paused', 'create it paused')
    .option(...asJson)
    .action((prompt, options) => createSchedule(processContext(), prompt, options));
  schedules
    .command('get')
    .description('show a schedule as JSON, with its next times')
    .argument('<id>', idHelp)
    .action(async (id) => getSchedule(...(await contextAndId('schedule', id))));
  addRunOptions(schedules.command('update'))
    .description('change a schedule; --executor me takes it over, otherwise its runs act as before')
    .argument('<id>', idHelp)
    .option('--name <name>', 'name of the schedule')
    .option('--cron <expression>', cronHelp)
    .option('--prompt <prompt>', promptHelp)
    .option('--timezone <zone>', 'IANA time zone of the expression')
    .addOption(overlap())
    .option('--max-live <count>', 'runs of it that may be live at once', wholeNumber)
    .option('--executor <uid>', executorHelp)
    .option(...asJson)
    .action(async (id, options) => updateSchedule(...(await contextAndId('schedule', id)), options));
  for (const action of ['pause', 'resume'] as const) {
    schedules
      .command(action)
      .description(`${action} a schedule`)
      .argument('<id>', idHelp)
      .option(...asJson)
      .action(async (id, options) => setSchedule(...(await contextAndId('schedule', id)), action, options));
  }
  schedules
    .command('delete')
    .description('delete a schedule; its runs stay')
    .argument('<id>', idHelp)
    .action(async (id) => deleteSchedule(...(await contextAndId('schedule', id))));
  schedules
    .command('run')
    .description("start a run of a schedule now, and print the run's id")
    .argument('<id>', idHelp)
    .option(...asJson)
    .action(async (id, options) => runSchedule(...(await contextAndId('schedule', id)), options));
  schedules
    .command('history')
    .description('list the times at which a schedule fired, newest first')
    .argument('<id>', idHelp)
    .option('--limit <count>', 'how many, at most 100 (default: 20)', wholeNumber)
    .option(...asJson)
    .action(async (id, options) => listFires(...(await contextAndId('schedule', id)), options));
}
