/**
 * The commands in their groups, as `runyard --help` lists them. The module of a command declares and implements the options and
 * subcommands of the command. The module is imported only when the command runs or the help of this command is shown, because
 * importing all modules takes several times as long as starting Node.
 */
import type { Command } from 'commander';

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
  /** Imports the module. Returns the function that declares the options and subcommands. */
  load(): Promise<Declare>;
}

/** Declares the options, arguments and subcommands of a command. `loadAll` does this for all commands. */
type Declare = (command: Command, loadAll: () => Promise<void>) => void;

/** The groups of commands. Each group has a heading. */
export const commandGroups: readonly (readonly [heading: string, commands: readonly ListedCommand[]])[] = [
  [
    'Runs:',
    [
      {
        name: 'run',
        usage: '[options] [prompt]',
        description: 'start a run and watch it; starts Runyard in the background if it does not run',
        load: async () => (await import('./commands/run.ts')).declareRun,
      },
      {
        name: 'runs',
        usage: '[options]',
        description: 'list runs, newest first',
        load: async () => (await import('./commands/runs.ts')).declareRuns,
      },
      {
        name: 'logs',
        usage: '[options] <run>',
        description: 'show the events of a run',
        load: async () => (await import('./commands/logs.ts')).declareLogs,
      },
      {
        name: 'open',
        usage: '[options] [run]',
        description: 'open the page of a run in the browser, signed in; without RUN, the page of the newest run',
        load: async () => (await import('./commands/open.ts')).declareOpen,
      },
      {
        name: 'cancel',
        usage: '<runs...>',
        description: 'cancel runs',
        load: async () => (await import('./commands/runs.ts')).declareCancel,
      },
      {
        name: 'send',
        usage: '[options] <run> <message>',
        description: 'send a follow-up to a run: an answer or a new instruction',
        load: async () => (await import('./commands/answer.ts')).declareSend,
      },
      {
        name: 'approve',
        usage: '[options] <run> [message]',
        description: 'approve the request of a run',
        load: async () => (await import('./commands/answer.ts')).declareApprove,
      },
      {
        name: 'deny',
        usage: '[options] <run> [message]',
        description: 'deny the request of a run',
        load: async () => (await import('./commands/answer.ts')).declareDeny,
      },
      {
        name: 'rerun',
        usage: '[options] <run>',
        description:
          'start a new run with the prompt and configuration of another run, except values that the options change',
        load: async () => (await import('./commands/rerun.ts')).declareRerun,
      },
      {
        name: 'artifacts',
        usage: '',
        description: 'list and download the artifacts of runs',
        load: async () => (await import('./commands/artifacts.ts')).declareArtifacts,
      },
    ],
  ],
  [
    'Start and stop:',
    [
      {
        name: 'up',
        usage: '',
        description: 'start service, database and worker, and stay until Ctrl-C',
        load: async () => (await import('./commands/up.ts')).declareUp,
      },
      {
        name: 'down',
        usage: '[options]',
        description: 'stop the programs of this data folder; asks whether to wait for live runs',
        load: async () => (await import('./commands/down.ts')).declareDown,
      },
      {
        name: 'status',
        usage: '[options]',
        description: 'show the programs of this data folder',
        inUnit: true,
        load: async () => (await import('./commands/status.ts')).declareStatus,
      },
      {
        name: 'doctor',
        usage: '[options]',
        description: 'check this machine, and say how to fix problems',
        load: async () => (await import('./commands/doctor.ts')).declareDoctor,
      },
      {
        name: 'service',
        usage: '',
        description: 'start only the service (and its embedded database)',
        load: async () => (await import('./commands/up.ts')).declareService,
      },
      {
        name: 'worker',
        usage: '',
        description: 'start only a worker, for the service at RUNYARD_BASE_URL',
        load: async () => (await import('./commands/worker.ts')).declareWorker,
      },
      {
        name: 'backup',
        alias: 'export',
        usage: '<file>',
        description: 'write database and blobs into one file, while Runyard runs',
        inUnit: true,
        load: async () => (await import('./commands/transfer.ts')).declareBackup,
      },
      {
        name: 'restore',
        alias: 'import',
        usage: '<file>',
        description: 'fill an empty database and blob store from a backup; they stay paused until resume',
        inUnit: true,
        load: async () => (await import('./commands/transfer.ts')).declareRestore,
      },
      {
        name: 'blobs',
        usage: '',
        description: 'move transcripts, artifacts and workspaces between a folder and a bucket, while Runyard runs',
        inUnit: true,
        load: async () => (await import('./commands/transfer.ts')).declareBlobs,
      },
      {
        name: 'resume',
        usage: '',
        description: 'let a restored installation start its runs, schedules and deliveries',
        inUnit: true,
        load: async () => (await import('./commands/transfer.ts')).declareResume,
      },
      {
        name: 'use-folder',
        usage: '',
        description: "use the secrets key and blobs of this data folder, after the database's own were lost",
        inUnit: true,
        load: async () => (await import('./commands/transfer.ts')).declareUseFolder,
      },
    ],
  ],
  [
    'What runs use:',
    [
      {
        name: 'models',
        usage: '[options]',
        description:
          'list the language models that runs can use; choose default, fallbacks and disabled models of the team',
        load: async () => (await import('./commands/models.ts')).declareModels,
      },
      {
        name: 'agents',
        usage: '[options]',
        description: 'list the agents (skills) that runs can follow',
        load: async () => (await import('./commands/agents.ts')).declareAgents,
      },
      {
        name: 'environments',
        usage: '',
        description: 'manage the environments that runs can name, and share them with people of other teams',
        load: async () => (await import('./commands/environments.ts')).declareEnvironments,
      },
      {
        name: 'secrets',
        usage: '',
        description: 'list, set and delete the secrets that runs can use',
        inUnit: true,
        load: async () => (await import('./commands/secrets.ts')).declareSecrets,
      },
      {
        name: 'accept',
        usage: '[options] [kind] [uid]',
        description:
          'accept texts of others that your runs execute; without arguments, list the texts that wait for you',
        inUnit: true,
        load: async () => (await import('./commands/accept.ts')).declareAccept,
      },
      {
        name: 'mcp',
        usage: '',
        description: 'manage the MCP servers that runs can name',
        load: async () => (await import('./commands/mcp.ts')).declareMcp,
      },
      {
        name: 'code-hosts',
        usage: '',
        description: 'store the credentials with which private repositories are cloned and pushed',
        inUnit: true,
        load: async () => (await import('./commands/code-hosts.ts')).declareCodeHosts,
      },
    ],
  ],
  [
    'Schedules, webhooks and automations:',
    [
      {
        name: 'schedules',
        usage: '',
        description: 'manage prompts that become runs at fixed times',
        load: async () => (await import('./commands/schedules.ts')).declareSchedules,
      },
      {
        name: 'webhooks',
        usage: '',
        description: 'manage URLs to which other systems POST deliveries',
        load: async () => (await import('./commands/webhooks.ts')).declareWebhooks,
      },
      {
        name: 'automations',
        usage: '',
        description: 'manage automations, which start runs for deliveries and schedules',
        load: async () => (await import('./commands/automations.ts')).declareAutomations,
      },
      {
        name: 'factory',
        usage: '',
        description: 'manage factories, and check the files that define one',
        load: async () => (await import('./commands/factories.ts')).declareFactory,
      },
    ],
  ],
  [
    'Team and access:',
    [
      {
        name: 'login',
        usage: '[options]',
        description: 'sign in by the browser, as yourself; stores a key for the service',
        load: async () => (await import('./commands/login.ts')).declareLogin,
      },
      {
        name: 'logout',
        usage: '',
        description: 'delete the key that login has stored',
        load: async () => (await import('./commands/login.ts')).declareLogout,
      },
      {
        name: 'keys',
        usage: '',
        description: 'list, create and delete API keys',
        inUnit: true,
        load: async () => (await import('./commands/keys.ts')).declareKeys,
      },
      {
        name: 'teams',
        usage: '',
        description: 'list your teams, create and rename them, join one',
        inUnit: true,
        load: async () => (await import('./commands/teams.ts')).declareTeams,
      },
      {
        name: 'users',
        usage: '',
        description: 'list, invite and remove the people of a team',
        inUnit: true,
        load: async () => (await import('./commands/users.ts')).declareUsers,
      },
      {
        name: 'identities',
        usage: '',
        description: 'manage agents with defaults and keys of their own',
        inUnit: true,
        load: async () => (await import('./commands/identities.ts')).declareIdentities,
      },
      {
        name: 'budget',
        usage: '',
        description: "show and set the team's budget for models",
        inUnit: true,
        load: async () => (await import('./commands/budget.ts')).declareBudget,
      },
      {
        name: 'usage',
        usage: '[options]',
        description: "report the team's use of models",
        load: async () => (await import('./commands/budget.ts')).declareUsage,
      },
      {
        name: 'audit',
        usage: '[options]',
        description: 'list the changes in the team, newest first, for administrators',
        inUnit: true,
        load: async () => (await import('./commands/audit.ts')).declareAudit,
      },
      {
        name: 'workers',
        usage: '',
        description: 'list the pools of self-hosted workers, and manage who connects',
        inUnit: true,
        load: async () => (await import('./commands/workers.ts')).declareWorkers,
      },
    ],
  ],
  [
    'For scripts and other programs:',
    [
      {
        name: 'env',
        usage: '[options]',
        description: 'print the variables with address and key, for curl and the published clients',
        load: async () => (await import('./commands/env.ts')).declareEnv,
      },
      {
        name: 'api',
        usage: '[options] <method> <path>',
        description: 'send one request to the API with the key, and print the answer',
        load: async () => (await import('./commands/api.ts')).declareApi,
      },
      {
        name: 'completion',
        usage: '<shell>',
        description: 'print the script that completes commands and options in a shell',
        load: async () => (await import('./commands/completion.ts')).declareCompletion,
      },
    ],
  ],
];
