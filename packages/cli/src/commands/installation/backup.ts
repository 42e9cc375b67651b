import { existsSync, statSync } from 'node:fs';
import path from 'node:path';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import type { backUp } from '@runyard/service/installation-commands';
import type { Command } from 'commander';
import { type Context, dataPlace, processContext } from '../../context/context.ts';
import { readClaim } from '../../data-folder/claim.ts';
import { readServiceFile } from '../../data-folder/service-file.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson } from '../../input/options.ts';
import { formatCount } from '../../terminal/amounts.ts';
import { harmlessJson, harmlessLine } from '../../terminal/harmless.ts';

/**
 * Writes a backup with all tables and blobs. `name` is a file, a folder in which a new file is made, or `-` for standard output. The
 * service may run during the backup.
 */
async function backUpAll(context: Context, name: string): Promise<void> {
  const target = name === '-' ? process.stdout : fileOfBackup(path.resolve(name));
  if (target === process.stdout && process.stdout.isTTY)
    throw new Failure('a backup is not for a terminal: name a file, or pipe it to another program');
  requireDatabase(context);
  const { backUp } = await import('@runyard/service/installation-commands');
  const result = await backUp(dataPlace(context), target).catch(toFailure);
  context.report(
    `wrote ${target === process.stdout ? 'the backup' : target}: ${describe(result)}. It holds hashes of keys and all prompts: protect it as you protect the data folder`,
  );
  const { folder, settings } = context;
  context.report(
    `the secrets key is not in it: keep a copy of ${settings.RUNYARD_SECRETS_KEY === undefined ? path.join(folder.path, 'secrets-key') : 'RUNYARD_SECRETS_KEY'} at another place. Without the key, the secrets in the backup cannot be opened`,
  );
}

/** Reads a backup and reports whether a restore could use it. Needs neither the database nor the blobs. */
async function verifyAll(context: Context, file: string, options: { readonly json?: true }): Promise<void> {
  const { verifyExport } = await import('@runyard/service/verify-backup');
  const found = await verifyExport(sourceOf(file)).catch(toFailure);
  context.out(
    options.json
      ? `${harmlessJson(found)}\n`
      : `the backup is complete: ${describe(found)}, made ${harmlessLine(found.createdAt)} at migration ${harmlessLine(found.migration)}\n`,
  );
}

/** Returns the stream or the path of a backup to read. */
function sourceOf(file: string): NodeJS.ReadStream | string {
  if (file === '-') return process.stdin;
  const source = path.resolve(file);
  if (!existsSync(source)) throw new Failure(`there is no file ${source}`);
  return source;
}

/** Returns the path of the file to write. If `target` is a folder, this is a new file in the folder with the current time as its name. */
function fileOfBackup(target: string): string {
  const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory() === true;
  const time = new Date().toISOString().slice(0, 19).replaceAll(':', '-');
  const file = isFolder ? path.join(target, `runyard-${time}Z.backup`) : target;
  if (existsSync(file)) throw new Failure(`${file} exists already; name a new file`);
  return file;
}

/** Throws if the folder has no embedded database, because the command would otherwise create one. */
export function requireDatabase({ folder, settings }: Context): void {
  if (settings.RUNYARD_DATABASE_URL !== undefined || existsSync(path.join(folder.path, 'postgres'))) return;
  throw new Failure(`there is no database in ${folder.path}; set RUNYARD_DATA_DIR to the data folder`);
}

/**
 * Fills an empty database and an empty blob store from a backup. `-` reads the backup from standard input. The service must not run
 * during this.
 */
async function restoreAll(context: Context, file: string): Promise<void> {
  const source = sourceOf(file);
  if (readClaim(context.folder.supervisorFile) || readServiceFile(context.folder.serviceFile)) {
    throw new Failure('Runyard is running on this data folder; stop it first: bin/runyard down');
  }
  const secretsKey = context.settings.RUNYARD_SECRETS_KEY;
  const place = { ...dataPlace(context), ...(secretsKey === undefined ? {} : { secretsKey }) };
  const { importInstallation } = await import('@runyard/service/import-installation');
  const result = await importInstallation(place, source).catch(toFailure);
  context.report(`read ${typeof source === 'string' ? source : 'the backup'}: ${describe(result)}`);
  if (result.missingBlobs > 0) {
    const missing = result.missingBlobs;
    context.report(
      `the backup lacks the bytes of ${formatCount(missing)} ${missing === 1 ? 'row' : 'rows'}, such as attachments, artifacts or workspaces: they were missing when it was written. The next nightly sweep names each in ${path.join(context.folder.logs, 'service.log')}`,
    );
  }
  if (result.keyProblem !== null) context.report(result.keyProblem);
  context.report(
    'the installation is paused: after the start it serves requests, but no queued run, schedule or delivery starts until bin/runyard resume. Stop the source first, or do not resume: both would do the same work',
  );
  context.report(
    'keys and members that were deleted since the backup work again: compare bin/runyard keys and bin/runyard users, and delete them before bin/runyard resume. All browsers are signed out',
  );
  if (!existsSync(context.folder.bootstrapKeyFile)) {
    context.report(
      `API keys continue to work, but are stored only as hashes: copy bootstrap-key from the old data folder to ${context.folder.path}, or set RUNYARD_BOOTSTRAP_KEY`,
    );
  }
}

function toFailure(error: unknown): never {
  throw new Failure(error instanceof Error ? error.message : String(error));
}

function describe(result: Awaited<ReturnType<typeof backUp>>): string {
  return `${formatCount(result.rows)} rows of ${result.tables} tables, ${formatCount(result.blobs)} blobs`;
}

/** Copies the blobs of RUNYARD_BLOBS_FROM to RUNYARD_BLOBS. The service may run during this. */
async function moveAll(context: Context): Promise<void> {
  const { moveBlobs } = await import('@runyard/service/transfer');
  let reported = 0;
  const tell = ({ copied }: { readonly copied: number }) => {
    if (copied < reported + 1000) return;
    reported = copied;
    context.report(`copied ${formatCount(copied)} blobs ...`);
  };
  const { copied, present, bytes } = await moveBlobs(dataPlace(context), tell).catch(toFailure);
  context.report(
    `copied ${formatCount(copied)} blobs with ${formatBytes(bytes)}; ${formatCount(present)} were there already. Every blob is at the new place: unset RUNYARD_BLOBS_FROM, restart the services, then delete the old place`,
  );
}

/** Declares the command `blobs`. */
export function declareBlobs(command: Command): void {
  command
    .command('move')
    .description('copy all blobs of RUNYARD_BLOBS_FROM to RUNYARD_BLOBS; restart the services with both settings first')
    .action(async () => {
      await moveAll(processContext());
    });
}

/** Ends the pause of an installation that was restored from a backup. The service may run during this. */
async function resumeAll(context: Context): Promise<void> {
  requireDatabase(context);
  const { resume } = await import('@runyard/service/installation-commands');
  const ended = await resume(dataPlace(context)).catch(toFailure);
  context.out(ended ? 'queued runs, schedules and deliveries start now\n' : 'the installation is not paused\n');
}

/** Makes the database use the secrets key and the blobs of this data folder. */
async function useFolder(context: Context): Promise<void> {
  requireDatabase(context);
  const commands = await import('@runyard/service/installation-commands');
  await commands.useFolder(dataPlace(context), context.settings).catch(toFailure);
  context.out(`the database now uses the secrets key and blobs of ${context.folder.path}\n`);
  context.report('secrets that another key sealed stay closed: set them again. Blobs that are in no folder stay lost');
}

/** Declares the command `resume`. */
export function declareResume(command: Command): void {
  command.action(() => resumeAll(processContext()));
}

/** Declares the command `use-folder`. */
export function declareUseFolder(command: Command): void {
  command.action(() => useFolder(processContext()));
}

/** Declares the command `backup`. */
export function declareBackup(command: Command): void {
  command
    .argument('<file>', 'a new file, a folder, or - for standard output')
    .action((file: string) => backUpAll(processContext(), file));
  command
    .command('verify')
    .description('read a backup and compare its checksums')
    .argument('<file>', 'a backup, or - for standard input')
    .option(...asJson)
    .action((file: string, options) => verifyAll(processContext(), file, options));
}

/** Declares the command `restore`. */
export function declareRestore(command: Command): void {
  command
    .argument('<file>', 'a backup, or - for standard input')
    .action((file: string) => restoreAll(processContext(), file));
}
