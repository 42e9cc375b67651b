import type { Command } from 'commander';
import { apiKey, type Context, originOfFolder, processContext, serviceOrigin } from '../context.ts';
import { harmlessJson, harmlessLine } from '../live/harmless.ts';
import { asJson } from '../options.ts';
import { settingDifferences } from '../same-settings.ts';
import { readReadiness } from '../supervise/answers.ts';
import { readClaim } from '../supervise/claim.ts';

interface Status {
  readonly running: boolean;
  readonly ready: boolean;
  /** Why the service is not ready, or which part of a ready service does not work. */
  readonly problem: string | null;
  readonly origin: string | null;
  readonly pid: number | null;
  readonly mode: string | null;
  readonly since: string | null;
  readonly data_dir: string;
  readonly logs: string;
  readonly has_key: boolean;
}

/**
 * Shows the service that commands talk to and the programs of this data folder. Exit code 0 if that service is ready, else 1.
 */
export async function status(context: Context, options: { readonly json?: true }): Promise<void> {
  const claim = readClaim(context.folder.supervisorFile);
  const origin = serviceOrigin(context);
  const { answered, ready, problem } =
    origin === null ? { answered: false, ready: false, problem: null } : await readReadiness(origin, 3000);
  const found: Status = {
    running: (claim !== null && context.settings.RUNYARD_BASE_URL === undefined) || answered,
    ready,
    problem,
    origin,
    pid: claim?.pid ?? null,
    mode: claim?.mode ?? null,
    since: claim?.started_at ?? null,
    data_dir: context.folder.path,
    logs: context.folder.logs,
    has_key: apiKey(context) !== null,
  };
  if (!ready) process.exitCode = 1;
  if (options.json) {
    context.out(`${harmlessJson(found)}\n`);
    return;
  }
  const { green, yellow } = context.colours;
  const named = context.settings.RUNYARD_BASE_URL !== undefined;
  const state = ready ? green('running') : (claim && !named) || answered ? yellow('not ready') : 'not running';
  context.out(`${state}${origin ? `  ${origin}` : ''}\n`);
  if (problem !== null) context.out(`  ${yellow(harmlessLine(problem))}\n`);
  if (named) {
    const ofFolder = originOfFolder(context.folder);
    context.out(
      `  commands use this address because RUNYARD_BASE_URL names it${answered ? '' : '; nothing answers there'}\n`,
    );
    if (ofFolder !== null && ofFolder !== origin) context.out(`  the service of the data folder is at ${ofFolder}\n`);
  }
  for (const { name, here, running } of settingDifferences(context) ?? [])
    context.out(
      `  ${yellow(`${name}: here ${harmlessLine(here)}; running with ${harmlessLine(running)}. It counts after bin/runyard down && bin/runyard up`)}\n`,
    );
  if (claim)
    context.out(
      `  process ${claim.pid} (${claim.mode}: ${(claim.programs ?? []).join(', ') || 'starting'}), since ${claim.started_at}\n`,
    );
  context.out(`  data folder ${context.folder.path}\n  logs ${context.folder.logs}\n`);
}

/** Declares the command `status`. */
export function declareStatus(command: Command): void {
  command.option(...asJson).action((options) => status(processContext(), options));
}
