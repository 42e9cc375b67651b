import type { Client } from '@runyard/client';
import type { Installation } from '@runyard/contract/team/installation';
import type { WorkerConnection } from '@runyard/contract/workers/workers';
import type { Command } from 'commander';
import { apiKey, type Context, originOfFolder, processContext, serviceOrigin } from '../../context/context.ts';
import { readClaim } from '../../data-folder/claim.ts';
import { asJson } from '../../input/options.ts';
import { settingDifferences } from '../../service/same-settings.ts';
import { noAnswer, readReadiness } from '../../supervise/answers.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';
import { formatAgo } from '../../terminal/times.ts';

interface Status {
  readonly running: boolean;
  readonly ready: boolean;
  /** Why the service is not ready, or which part of a ready service does not work. Null if there is no problem. */
  readonly problem: string | null;
  readonly origin: string | null;
  readonly pid: number | null;
  readonly mode: string | null;
  readonly since: string | null;
  readonly data_dir: string;
  readonly logs: string;
  readonly has_key: boolean;
  /** Workers that are connected to the service. Null if there is no key that may read them, or if the service did not answer. */
  readonly workers: Connected | null;
  /** Services, workers and backups of the whole installation. Null if there is no key that may read them. */
  readonly installation: Installation | null;
}

type Connected = Awaited<ReturnType<Client['listConnectedWorkers']>>;

/** Longest wait for an answer of the service. It is short, because people often use this command when the service does not answer. */
const patienceMs = 3000;

/**
 * Reads the workers that are connected to the service. Returns null if there is no key that may read them, or if the service did not
 * answer.
 */
async function readWorkers(context: Context): Promise<Connected | null> {
  if (apiKey(context) === null) return null;
  try {
    const { connect } = await import('../../service/connect.ts');
    const found: Partial<Connected> = await connect(context).listConnectedWorkers({
      signal: AbortSignal.timeout(patienceMs),
    });
    const { workers, hosted_workers: hosted } = found;
    // Returns null if the answer does not describe connections, because it comes from an older version of the service.
    if (![...(workers ?? [{}]), ...(hosted ?? [])].every((worker) => 'connections' in worker)) return null;
    return { ...found, workers: workers ?? [] };
  } catch {
    return null;
  }
}

/** Reads the state of the installation. Returns null if the key may not read it, or if the service is older or does not answer. */
async function readInstallation(context: Context): Promise<Installation | null> {
  if (apiKey(context) === null) return null;
  try {
    const { connect } = await import('../../service/connect.ts');
    return await connect(context).getInstallation({ signal: AbortSignal.timeout(patienceMs) });
  } catch {
    return null;
  }
}

/** Prints the service processes if there are several or one has a problem, the workers that are gone, and the age of the last backup. */
function printInstallation(
  context: Context,
  { services, gone_workers: gone, last_backup_at: backup }: Installation,
): void {
  const now = Date.now();
  const { yellow } = context.colours;
  for (const { host = 'unknown machine', version, started_at: started, is_alive: isAlive, problem, disk } of services) {
    if (services.length === 1 && problem === undefined && isAlive) continue;
    const parts = [
      isAlive ? `runs since ${formatAgo(started, now)}` : 'gone',
      ...(version === undefined ? [] : [`version ${version}`]),
      ...(disk === undefined ? [] : [`${(disk.free_bytes / 1024 ** 3).toFixed(1)} GB of disk free`]),
      ...(problem === undefined ? [] : [problem]),
    ];
    const line = `service on ${host}: ${parts.join(', ')}`;
    context.out(`  ${isAlive && problem === undefined ? harmlessLine(line, 500) : yellow(harmlessLine(line, 500))}\n`);
  }
  for (const { worker_host: name, gone_at: at, reason } of gone.slice(0, 10)) {
    const line = `worker ${name}: ${reason} ${formatAgo(at, now)}`;
    context.out(`  ${reason === 'lost' ? yellow(harmlessLine(line)) : harmlessLine(line)}\n`);
  }
  if (backup !== undefined) context.out(`  last backup ${formatAgo(backup, now)}\n`);
}

/** Describes a worker's connection: isolation, free slots, version and free disk space. */
function describeConnection({
  backend = 'unknown isolation',
  missing_features: missing,
  slots: { used, total },
  version,
  disk,
  draining,
  problem,
}: WorkerConnection): string {
  return [
    backend === 'none' ? 'no isolation' : backend,
    ...(missing.length > 0 ? [`without ${missing.map(({ feature }) => feature).join(', ')}`] : []),
    total === undefined ? `${used} slots in use` : `${used} of ${total} slots in use`,
    ...(disk ? [`${(disk.free_bytes / 1024 ** 3).toFixed(1)} GB of disk free`] : []),
    ...(version === undefined ? [] : [`version ${version}`]),
    ...(draining ? ['draining'] : []),
    ...(problem === undefined ? [] : [`takes no runs: ${problem}`]),
  ].join(', ');
}

/** Prints a line for each connection of a worker. */
function printWorkers(context: Context, { workers, hosted_workers: hosted }: Connected): void {
  if (hosted?.length === 0)
    context.out(`  ${context.colours.yellow('no worker of the service is connected: runs wait for one')}\n`);
  for (const { worker_host: name, connection_count: count, connections } of [...(hosted ?? []), ...workers]) {
    for (const connection of connections)
      context.out(`  worker ${harmlessLine(name)}: ${harmlessLine(describeConnection(connection))}\n`);
    if (count > connections.length) context.out(`  worker ${harmlessLine(name)}: ${count - connections.length} more\n`);
  }
}

/**
 * Shows the service that commands use and the programs of this data folder. The exit code is 0 if this service is ready, and otherwise
 * 1.
 */
export async function status(context: Context, options: { readonly json?: true }): Promise<void> {
  const claim = readClaim(context.folder.supervisorFile);
  const origin = serviceOrigin(context);
  const { answered, ready, problem } = origin === null ? noAnswer : await readReadiness(origin, patienceMs);
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
    workers: ready ? await readWorkers(context) : null,
    installation: ready ? await readInstallation(context) : null,
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
      `  commands use this address because RUNYARD_BASE_URL names it${answered ? '' : '; no program answers there'}\n`,
    );
    if (ofFolder !== null && ofFolder !== origin) context.out(`  the service of the data folder is at ${ofFolder}\n`);
  }
  for (const { name, here, running } of settingDifferences(context) ?? [])
    context.out(
      `  ${yellow(`${name}: here ${harmlessLine(here)}; running with ${harmlessLine(running)}. It takes effect after bin/runyard down && bin/runyard up`)}\n`,
    );
  if (claim)
    context.out(
      `  process ${claim.pid} (${claim.mode}: ${(claim.programs ?? []).join(', ') || 'starting'}), since ${claim.started_at}\n`,
    );
  if (found.workers) printWorkers(context, found.workers);
  if (found.installation) printInstallation(context, found.installation);
  context.out(`  data folder ${context.folder.path}\n  logs ${context.folder.logs}\n`);
}

/** Declares the command `status`. */
export function declareStatus(command: Command): void {
  command.option(...asJson).action((options) => status(processContext(), options));
}
