/** Creates and changes schedules. */
import type { Client } from '@runyard/client';
import type { CreateScheduledAgentRequest, ScheduledAgentItem } from '@runyard/contract/schedules/schedules';
import { Failure } from '../../exits/failure.ts';
import { readPrompt } from '../../input/input-file.ts';
import { notifyHelp, readRules } from '../../input/notify-rules.ts';
import { parsePair } from '../../input/parse-pair.ts';
import { request } from '../../route-commands/row.ts';
import { idOf } from '../../service/named.ts';
import { addRunOptions } from '../runs/options.ts';
import { configFrom, type RunOptions } from '../runs/request.ts';
import { withIds } from '../runs/with-ids.ts';
import { inUtc } from './fires.ts';

/** The argument that names a schedule. */
export const schedule = {
  usage: '<id>',
  help: 'id or name of the schedule; bin/runyard schedules list shows them',
  find: idOf.schedule,
};

/** Returns the configuration that the options describe. Returns no member if no option concerns the configuration. */
async function configOf(
  client: Client,
  options: RunOptions,
  before?: ScheduledAgentItem['agent_config'],
): Promise<Pick<CreateScheduledAgentRequest, 'agent_config'>> {
  // In answers, skill_spec repeats the first of the skills. A request must not have both.
  const { skill_spec: first, skills, ...others } = before ?? {};
  const changes = configFrom(options);
  if (Object.keys(changes).length === 0) return {};
  const { config } = await withIds(client, { config: changes });
  const namesSkill = changes.skill_spec !== undefined || changes.skills !== undefined;
  const followed = skills === undefined ? (first === undefined ? {} : { skill_spec: first }) : { skills };
  return { agent_config: { ...others, ...(namesSkill ? {} : followed), ...config } };
}

/** Returns the members that the options of runs set. The option `--name` is the name of the schedule, and not of its runs. */
async function membersOf(client: Client, options: object, before?: ScheduledAgentItem['agent_config']) {
  const { name: _, mode, metadata, ...ofRuns }: RunOptions = options;
  return {
    ...(mode === undefined ? {} : { mode }),
    ...(metadata === undefined ? {} : { metadata: Object.fromEntries(metadata.map(parsePair)) }),
    ...(await configOf(client, ofRuns, before)),
  };
}

const promptHelp = 'prompt of each run: a file, - for standard input, or the text itself';
const name = { member: 'name', help: 'name of the schedule' } as const;
const cron = {
  member: 'cron_schedule',
  help: 'five fields, @daily, @hourly …, or @every with a duration such as 90m',
} as const;
const flags = {
  '--timezone <zone>': { member: 'timezone', help: 'IANA time zone of the expression (at first UTC)' },
  '--overlap <policy>': {
    member: 'overlap',
    help: 'how to handle a fire while a run of the schedule is live (at first allow)',
  },
  '--max-live <count>': { member: 'max_live_runs', help: 'runs of it that may be live at once' },
  '--notify <rules>': {
    member: 'notify',
    help: notifyHelp,
    read: readRules,
  },
  '--executor <uid>': {
    member: 'executor_uid',
    help: 'as whom its runs act: me, or an agent identity that you may edit, by UID',
  },
} as const;

export const create = request('createSchedule', 'create', 'create a schedule and print its id', {
  arguments: [{ usage: '<prompt>', help: promptHelp, member: 'prompt', read: (text) => readPrompt(text) }],
  declare: addRunOptions,
  fixed: { enabled: true },
  flags: {
    '--name <name>': { ...name, isRequired: true },
    '--cron <expression>': { ...cron, isRequired: true },
    ...flags,
    '--paused': { member: 'enabled', value: false, help: 'create it paused' },
  },
  complete: async (members, { client, options }) => ({ ...members, ...(await membersOf(client, options)) }),
  orJson: true,
  lines: ({ id }) => id,
  notes: ({ history }) => (history?.next_run ? `its next time is ${inUtc(history.next_run)}` : 'it is paused'),
});

export const update = request(
  'updateSchedule',
  'update',
  'change a schedule; --executor me takes it over, otherwise its runs act as before',
  {
    arguments: [schedule],
    declare: addRunOptions,
    flags: {
      '--name <name>': name,
      '--cron <expression>': cron,
      '--prompt <prompt>': {
        member: 'prompt',
        help: promptHelp,
        read: (text: string | undefined) => (text === undefined ? undefined : readPrompt(text)),
      },
      ...flags,
    },
    complete: async (members, { client, params: { scheduleId = '' }, options: { json: _, ...options } }) => {
      if (Object.keys(options).length === 0)
        throw new Failure('nothing to change; see: bin/runyard schedules update --help');
      const before = await client.getSchedule({ params: { scheduleId } });
      const { name, cron_schedule, prompt, agent_config } = before;
      return { name, cron_schedule, prompt, ...members, ...(await membersOf(client, options, agent_config)) };
    },
    orJson: true,
    lines: ({ id }) => `${id} is changed`,
  },
);
