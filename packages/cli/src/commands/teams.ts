import type { Team } from '@runyard/contract/team/teams';
import type { Command } from 'commander';
import { connect } from '../api.ts';
import { type Context, processContext } from '../context.ts';
import { Failure } from '../failure.ts';
import type { Column } from '../live/columns.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { printList } from '../live/list.ts';
import { asJson } from '../options.ts';

interface Options {
  readonly json?: true;
}

const columns: Column<Team>[] = [
  { header: 'TEAM', text: ({ uid }) => uid },
  { header: 'ROLE', text: ({ role }) => role },
  { header: 'CURRENT', text: ({ is_current }) => (is_current ? 'yes' : '') },
  { header: 'NAME', flexible: true, text: ({ name }) => name },
];

/** Lists the teams of the caller. */
export async function listTeams(context: Context, options: Options): Promise<void> {
  const { teams } = await connect(context).listTeams();
  printList(context, { columns, rows: teams, json: { teams }, none: 'no teams' }, options);
}

/** Creates a team and prints its UID. */
export async function createTeam(context: Context, name: string, options: Options): Promise<void> {
  const team = await connect(context).createTeam({ body: { name } });
  if (options.json) return context.out(`${harmlessJson(team)}\n`);
  context.out(`${team.uid}\n`);
  context.report(`team ${harmlessLine(team.name)}. To act in it: export RUNYARD_TEAM=${team.uid}`);
}

/** Renames the team in which commands act. */
export async function renameTeam(context: Context, name: string): Promise<void> {
  const params = { teamUid: await currentTeam(context) };
  const team = await connect(context).updateTeam({ params, body: { name } });
  context.out(`${team.uid} is now ${harmlessLine(team.name)}\n`);
}

/** Joins a team with the key of an invitation. The person to whom the API key belongs becomes a member. */
export async function joinTeam(context: Context, invitation: string): Promise<void> {
  const team = await connect(context).joinTeam({ body: { key: invitation } });
  context.out(`${team.uid}\n`);
  context.report(`you are ${team.role} of ${harmlessLine(team.name)}. To act in it: export RUNYARD_TEAM=${team.uid}`);
}

/** Returns the UID of the team in which commands act. This is the team of RUNYARD_TEAM or, if it is not set, the team of the key. */
export async function currentTeam(context: Context): Promise<string> {
  const { teams } = await connect(context).listTeams();
  const team = teams.find(({ is_current }) => is_current);
  if (!team) throw new Failure('the key belongs to no team');
  return team.uid;
}

/** Declares the command `teams`. */
export function declareTeams(teams: Command): void {
  teams
    .command('list', { isDefault: true })
    .description('list your teams')
    .option(...asJson)
    .action((options) => listTeams(processContext(), options));
  teams
    .command('create')
    .description("create a team, with the operator's key; you become its owner")
    .argument('<name>')
    .option(...asJson)
    .action((name, options) => createTeam(processContext(), name, options));
  teams
    .command('rename')
    .description('rename the team that RUNYARD_TEAM names, or the team of your key')
    .argument('<name>')
    .action((name) => renameTeam(processContext(), name));
  teams
    .command('join')
    .description('accept an invitation as the person of your API key')
    .argument('<invitation>', 'key of the invitation')
    .action((invitation) => joinTeam(processContext(), invitation));
}
