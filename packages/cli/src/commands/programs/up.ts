import type { Command } from 'commander';
import { type Context, processContext, programKey } from '../../context/context.ts';
import { ensureSandboxTool } from '../../machine/sandbox-tool.ts';
import { requireSameSettings } from '../../service/same-settings.ts';
import { AlreadyRunning, supervise } from '../../supervise/supervise.ts';
import { curlExample, shellQuote } from '../../terminal/curl-example.ts';

/** Starts the service, the database and the worker, prints how to use them, and runs until Ctrl-C. */
export async function up(context: Context): Promise<void> {
  await ensureSandboxTool(context.settings, context.env, context.report);
  context.report('starting ...');
  try {
    await inForeground(context, { worker: true });
  } catch (error) {
    if (error instanceof AlreadyRunning) requireSameSettings(context);
    if (error instanceof AlreadyRunning && error.holder.origin && programKey(context)) {
      const origin = context.settings.RUNYARD_BASE_URL ?? error.holder.origin;
      context.out(welcome(context, origin, { title: 'Runyard is running already.', ending: '' }));
    }
    throw error;
  }
  context.report('stopped');
}

/** Starts only the service. Also starts the embedded database, unless RUNYARD_DATABASE_URL names a server. */
async function serviceOnly(context: Context): Promise<void> {
  await inForeground(context, { worker: false });
  context.report('stopped');
}

/** Runs the service, and a worker if `worker` is set, until Ctrl-C. */
async function inForeground(context: Context, { worker }: { readonly worker: boolean }): Promise<void> {
  await supervise({
    mode: 'foreground',
    settings: context.settings,
    env: context.env,
    folder: context.folder,
    service: true,
    worker,
    report: context.report,
    onReady: (stack) => context.out(welcome(context, context.settings.RUNYARD_BASE_URL ?? stack.origin)),
  });
}

function welcome(
  context: Context,
  origin: string,
  { title, ending } = { title: 'Runyard is running.', ending: 'Ctrl-C stops everything.\n' },
): string {
  const { bold, dim, cyan } = context.colours;
  const key = programKey(context);
  // Prints the name of the file or variable with the key. Does not print the key itself, because screens are shared and logs are stored.
  const { RUNYARD_API_KEY: ofCaller, RUNYARD_BOOTSTRAP_KEY: ofService } = context.settings;
  const variable = ofCaller ? 'RUNYARD_API_KEY' : ofService ? 'RUNYARD_BOOTSTRAP_KEY' : undefined;
  const file = context.folder.bootstrapKeyFile;
  // If `key` is null, the key is in another data folder: the first key of a database is stored only once, in the data folder of the
  // first service that used the database.
  const isElsewhere = key === null;
  const word = isElsewhere
    ? '$RUNYARD_API_KEY'
    : variable === undefined
      ? `$(cat ${shellQuote(file)})`
      : `$${variable}`;
  const shortKey = isElsewhere
    ? `none in this data folder  ${dim('(set RUNYARD_API_KEY to a key of this database)')}`
    : `${key.slice(0, 8)}…  ${dim(`(${variable === undefined ? `in ${file}` : `$${variable}`})`)}`;
  return `
${bold(title)}

  ${dim('Service')}    ${cyan(origin)}
  ${dim('Base URL')}   ${cyan(`${origin}/api/v1`)}   ${dim('(RUNYARD_BASE_URL of a client: without /api/v1)')}
  ${dim('Reference')}  ${cyan(`${origin}/docs`)}
  ${dim('Dashboard')}  ${cyan('bin/runyard open')}   ${dim('(signs your browser in)')}
  ${dim('API key')}    ${shortKey}
  ${dim('Logs')}       ${context.folder.logs}

Start a run (paste this into another terminal):

${curlExample(origin, word)}

Then look at its session_link, or: bin/runyard logs RUN_ID --follow
${ending}`;
}

/** Declares the command `up`. */
export function declareUp(command: Command): void {
  command.action(() => up(processContext()));
}

/** Declares the command `service`. */
export function declareService(command: Command): void {
  command.action(() => serviceOnly(processContext()));
}
