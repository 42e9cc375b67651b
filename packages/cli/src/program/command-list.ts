/**
 * The commands in their groups, as `runyard --help` lists them. The module of a command declares and implements the options and
 * subcommands of the command. The module is imported only when the command runs or the help of this command is shown, because
 * importing all modules takes several times as long as starting Node.
 */
import type { Command } from 'commander';
import type { Row } from '../route-commands/row.ts';

export interface ListedCommand {
  readonly name: string;
  /** Second name of the command, which the help does not list. */
  readonly alias?: string;
  /** Options and arguments, which the command list shows after the name. */
  readonly usage: string;
  readonly description: string;
  /**
   * True: if systemd runs the service of this checkout, the command uses the service's settings, credentials and user
   * (installed-units.ts).
   */
  readonly inUnit?: true;
  /** Imports the module. Returns the function that declares the options and subcommands, or a row for each subcommand. */
  load(): Promise<Declare | readonly Row[]>;
}

/** Declares the options, arguments and subcommands of a command. `loadAll` does this for all commands. */
type Declare = (command: Command, loadAll: () => Promise<void>) => void;

const listed = (
  name: string,
  usage: string,
  description: string,
  load: ListedCommand['load'],
  more: Pick<ListedCommand, 'alias' | 'inUnit'> = {},
): ListedCommand => ({ name, usage, description, load, ...more });

/** The groups of commands. Each group has a heading. */
// biome-ignore format: two lines a command
export const commandGroups: readonly (readonly [heading: string, commands: readonly ListedCommand[]])[] = [
  [
    'Runs:',
    [
      listed('run', '[options] [prompt]', 'start a run and watch it; starts Runyard in the background if it does not run',
        async () => (await import('../commands/runs/create.ts')).declareRun),
      listed('runs', '[options]', 'list runs, newest first',
        async () => (await import('../commands/runs/list.ts')).declareRuns),
      listed('inbox', '', 'list your notifications: questions, reviews, failed runs and acceptances',
        async () => (await import('../commands/inbox/inbox.ts')).inbox),
      listed('logs', '[options] <run>', 'show the events of a run',
        async () => (await import('../commands/runs/logs.ts')).declareLogs),
      listed('open', '[options] [run]', 'open the page of a run in the browser, signed in; without RUN, the page of the newest run',
        async () => (await import('../commands/runs/open.ts')).declareOpen),
      listed('cancel', '<runs...>', 'cancel runs',
        async () => (await import('../commands/runs/list.ts')).declareCancel),
      listed('send', '[options] <run> <message>', 'send a follow-up to a run: an answer or a new instruction',
        async () => (await import('../commands/runs/answer.ts')).declareSend),
      listed('approve', '[options] <run> [message]', 'approve the request of a run',
        async () => (await import('../commands/runs/answer.ts')).declareApprove),
      listed('deny', '[options] <run> [message]', 'deny the request of a run',
        async () => (await import('../commands/runs/answer.ts')).declareDeny),
      listed('rerun', '[options] <run>', 'start a new run with the prompt and configuration of another run, except values that the options change',
        async () => (await import('../commands/runs/rerun.ts')).declareRerun),
      listed('compare', '[options] <run...>', 'show runs side by side; with other models, prompts, skills or harnesses, first repeat the runs with them',
        async () => (await import('../commands/runs/compare.ts')).declareCompare),
      listed('artifacts', '', 'list and download the artifacts of runs',
        async () => (await import('../commands/artifacts/artifacts.ts')).declareArtifacts),
    ],
  ],
  [
    'Start and stop:',
    [
      listed('up', '', 'start service, database and worker, and stay until Ctrl-C',
        async () => (await import('../commands/programs/up.ts')).declareUp),
      listed('down', '[options]', 'stop the programs of this data folder; asks whether to wait for live runs',
        async () => (await import('../commands/programs/down.ts')).declareDown),
      listed('status', '[options]', 'show the programs of this data folder',
        async () => (await import('../commands/programs/status.ts')).declareStatus, { inUnit: true }),
      listed('doctor', '[options]', 'check this machine, and say how to fix problems',
        async () => (await import('../commands/programs/doctor.ts')).declareDoctor),
      listed('service', '', 'start only the service (and its embedded database)',
        async () => (await import('../commands/programs/up.ts')).declareService),
      listed('worker', '', 'start only a worker, for the service at RUNYARD_BASE_URL',
        async () => (await import('../commands/programs/worker.ts')).declareWorker),
      listed('backup', '<file>', 'write database and blobs into one file, while Runyard runs',
        async () => (await import('../commands/installation/backup.ts')).declareBackup, { alias: 'export', inUnit: true }),
      listed('restore', '<file>', 'fill an empty database and blob store from a backup; they stay paused until resume',
        async () => (await import('../commands/installation/backup.ts')).declareRestore, { alias: 'import', inUnit: true }),
      listed('blobs', '', 'move transcripts, artifacts and workspaces between a folder and a bucket, while Runyard runs',
        async () => (await import('../commands/installation/backup.ts')).declareBlobs, { inUnit: true }),
      listed('resume', '', 'let a restored installation start its runs, schedules and deliveries',
        async () => (await import('../commands/installation/backup.ts')).declareResume, { inUnit: true }),
      listed('use-folder', '', 'use the secrets key and blobs of this data folder, if those of the database were lost',
        async () => (await import('../commands/installation/backup.ts')).declareUseFolder, { inUnit: true }),
    ],
  ],
  [
    'What runs use:',
    [
      listed('models', '[options]', 'list the language models that runs can use; choose default, fallbacks and disabled models of the team',
        async () => (await import('../commands/models/models.ts')).models),
      listed('agents', '[options]', 'list the agents (skills) that runs can follow',
        async () => (await import('../commands/agents/agents.ts')).declareAgents),
      listed('environments', '', 'manage the environments that runs can name, and share them with people of other teams',
        async () => (await import('../commands/environments/environments.ts')).environments),
      listed('secrets', '', 'list, set and delete the secrets that runs can use',
        async () => (await import('../commands/secrets/secrets.ts')).secrets, { inUnit: true }),
      listed('accept', '[options] [kind] [uid]', 'accept texts of others that your runs execute; without arguments, list the texts that wait for you',
        async () => (await import('../commands/acceptances/accept.ts')).declareAccept, { inUnit: true }),
      listed('mcp', '', 'manage the MCP servers that runs can name',
        async () => (await import('../commands/mcp/mcp.ts')).mcp),
      listed('code-hosts', '', 'store the credentials with which private repositories are cloned and pushed',
        async () => (await import('../commands/code-hosts/code-hosts.ts')).codeHosts, { inUnit: true }),
      listed('github', '', 'list and delete the GitHub Apps whose mentions start runs, and their installations',
        async () => (await import('../commands/github/github.ts')).github),
    ],
  ],
  [
    'Schedules, webhooks and automations:',
    [
      listed('schedules', '', 'manage prompts that become runs at fixed times',
        async () => (await import('../commands/schedules/schedules.ts')).schedules),
      listed('webhooks', '', 'manage URLs to which other systems POST deliveries',
        async () => (await import('../commands/webhooks/webhooks.ts')).webhooks),
      listed('automations', '', 'manage automations, which start runs for deliveries and schedules',
        async () => (await import('../commands/automations/automations.ts')).automations),
      listed('factory', '', 'manage factories, and check the files that define one',
        async () => (await import('../commands/factories/factories.ts')).factories),
    ],
  ],
  [
    'Team and access:',
    [
      listed('login', '[options]', 'sign in by the browser, as yourself; stores a key for the service',
        async () => (await import('../commands/login/login.ts')).declareLogin),
      listed('logout', '', 'delete the key that login has stored',
        async () => (await import('../commands/login/login.ts')).declareLogout),
      listed('keys', '', 'list, create and delete API keys',
        async () => (await import('../commands/keys/keys.ts')).keys, { inUnit: true }),
      listed('passkeys', '', 'list, rename and delete your passkeys, which sign you in at the dashboard',
        async () => (await import('../commands/keys/passkeys.ts')).passkeys, { inUnit: true }),
      listed('teams', '', 'list your teams, create and rename them, join one',
        async () => (await import('../commands/teams/teams.ts')).teams, { inUnit: true }),
      listed('users', '', 'list, invite and remove the people of a team',
        async () => (await import('../commands/users/users.ts')).users, { inUnit: true }),
      listed('identities', '', 'manage agents with defaults and keys of their own',
        async () => (await import('../commands/identities/identities.ts')).identities, { inUnit: true }),
      listed('budget', '', "show and set the team's budget for models",
        async () => (await import('../commands/budget/budget.ts')).budget, { inUnit: true }),
      listed('usage', '[options]', "report the team's use of models",
        async () => (await import('../commands/budget/usage.ts')).declareUsage),
      listed('audit', '[options]', 'list the changes in the team, newest first, for administrators',
        async () => (await import('../commands/audit/audit.ts')).audit, { inUnit: true }),
      listed('workers', '', 'list the pools of self-hosted workers, and manage who connects',
        async () => (await import('../commands/workers/workers.ts')).workers, { inUnit: true }),
    ],
  ],
  [
    'For scripts and other programs:',
    [
      listed('env', '[options]', 'print the variables with address and key, for curl and the published clients',
        async () => (await import('../commands/api/env.ts')).declareEnv),
      listed('api', '[options] <method> <path>', 'send one request to the API with the key, and print the answer',
        async () => (await import('../commands/api/api.ts')).declareApi),
      listed('completion', '<shell>', 'print the script that completes commands and options in a shell',
        async () => (await import('../commands/completion/completion.ts')).declareCompletion),
    ],
  ],
];
