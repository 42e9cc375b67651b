import { createWriteStream } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import { formatBytes } from '@runyard/contract/wire/byte-size';
import type { Command } from 'commander';
import { type Context, processContext, requireOrigin } from '../../context/context.ts';
import { Failure } from '../../exits/failure.ts';
import { asJson, runHelp } from '../../input/options.ts';
import { connect } from '../../service/connect.ts';
import { download } from '../../service/download.ts';
import { downloadFile } from '../../service/download-file.ts';
import { resolveRunId } from '../../service/run-id.ts';
import type { Column } from '../../terminal/columns.ts';
import { harmless, harmlessLine } from '../../terminal/harmless.ts';
import { printList } from '../../terminal/list.ts';
import { formatAgo } from '../../terminal/times.ts';

/** Lists the artifacts of a run. */
async function listArtifacts(context: Context, run: string, options: { readonly json?: true }): Promise<void> {
  const { artifacts } = await readArtifacts(context, run);
  const now = Date.now();
  const columns: Column<ArtifactItem>[] = [
    { header: 'NAME', text: nameOf, flexible: true },
    { header: 'TYPE', text: ({ artifact_type }) => artifact_type },
    {
      header: 'SIZE',
      align: 'right',
      text: (item) => (sizeOf(item) === undefined ? '' : formatBytes(sizeOf(item) ?? 0)),
      raw: (item) => String(sizeOf(item) ?? ''),
    },
    { header: 'CREATED', text: ({ created_at }) => formatAgo(created_at, now), raw: ({ created_at }) => created_at },
    { header: 'ARTIFACT', text: (item) => uidOf(item) ?? '' },
    { header: 'TITLE', text: (item) => titleOf(item) ?? '', flexible: true },
  ];
  printList(context, { columns, rows: artifacts, json: { artifacts }, none: 'the run has no artifacts' }, options);
}

/**
 * Downloads an artifact. `name` is the file name, the title, the path in the workspace or the uid of the artifact. Writes the bytes to
 * `output` (`-`: standard output) or, if it is absent, to a new file with the artifact's name in the current folder.
 * @throws Failure if no artifact or more than one artifact has this name, or if the new file already exists
 */
export async function getArtifact(
  context: Context,
  run: string,
  name: string,
  options: { readonly output?: string },
): Promise<void> {
  const { client, artifacts } = await readArtifacts(context, run);
  const item = pickArtifact(artifacts, name);
  const artifactUid = uidOf(item);
  if (artifactUid === undefined)
    throw new Failure(`${harmlessLine(nameOf(item))} is a link, which has no bytes to download`);
  const read = await client.getArtifact({ params: { artifactUid } });
  if (read.artifact_type === 'PLAN')
    return await writeBytes(context, Readable.from([Buffer.from(read.data.content)]), nameOf(item), options);
  const { sha256 } = read.data;
  const sizeBytes = 'size_bytes' in read.data ? read.data.size_bytes : undefined;
  let url: string | undefined = read.data.download_url;
  const open = async (from: number) => {
    // A signed URL is only valid for some minutes, so each further try gets a new one.
    const again = url === undefined ? await client.getArtifact({ params: { artifactUid } }) : undefined;
    const address = url ?? (again && 'download_url' in again.data ? again.data.download_url : '');
    url = undefined;
    return await download(requireOrigin(context), address, { from });
  };
  const { output } = options;
  if (output !== undefined && !(await isFileName(output)))
    return await writeBytes(context, (await open(0)).bytes, nameOf(item), options);
  const file = output ?? safeFileName(nameOf(item));
  const known = sizeBytes === undefined || sha256 === undefined ? undefined : { sizeBytes, sha256 };
  await downloadFile(
    { known, open },
    { file, replaces: output !== undefined, screen: process.stderr, report: context.report },
  );
  context.out(`${file}\n`);
}

/** Returns whether `output` is a file or no file yet. Standard output, devices and links are written directly. */
async function isFileName(output: string): Promise<boolean> {
  if (output === '-') return false;
  const there = await lstat(output).catch(() => undefined);
  return there === undefined || there.isFile();
}

async function readArtifacts(context: Context, run: string) {
  const client = connect(context);
  const { artifacts = [] } = await client.getRun({ params: { runId: await resolveRunId(client, run) } });
  return { client, artifacts };
}

/** Writes the bytes of an artifact to the place that `getArtifact` describes. If this fails, removes the incomplete file. */
export async function writeBytes(
  context: Pick<Context, 'out' | 'outBytes'>,
  bytes: Readable,
  name: string,
  { output }: { readonly output?: string },
): Promise<void> {
  if (output === '-') return await context.outBytes(bytes);
  const file = output ?? safeFileName(name);
  // Replaces an existing file only if the user named it with --output. Never replaces a file whose name comes from the agent.
  const target = createWriteStream(file, { flags: output === undefined ? 'wx' : 'w' });
  let opened = false;
  target.once('open', () => {
    opened = true;
  });
  try {
    await pipeline(bytes, target);
  } catch (error) {
    // Removes only regular files, because the user may have named a device, or a link to a device.
    if (opened && (await lstat(file).catch(() => undefined))?.isFile()) await rm(file, { force: true });
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EEXIST') throw new Failure(`${file} exists already; choose another file with --output FILE`);
    throw new Failure(`cannot write ${file}: ${error instanceof Error ? error.message : String(error)}`);
  }
  context.out(`${file}\n`);
}

/** Returns the artifact that a person names. @throws the same errors as `getArtifact` */
export function pickArtifact(artifacts: readonly ArtifactItem[], name: string): ArtifactItem {
  const ways = [
    (item: ArtifactItem) => uidOf(item) === name,
    (item: ArtifactItem) => item.artifact_type === 'FILE' && item.data.filepath === name,
    (item: ArtifactItem) => nameOf(item) === name,
    (item: ArtifactItem) => titleOf(item) === name,
  ];
  for (const isNamed of ways) {
    const found = artifacts.filter(isNamed);
    // `filepath` and `uid` distinguish artifacts with the same name.
    if (found.length > 1)
      throw new Failure(`several artifacts are named ${harmlessLine(name)}; name one by its uid:\n${lines(found)}`);
    if (found[0]) return found[0];
  }
  throw new Failure(
    artifacts.length === 0
      ? 'the run has no artifacts'
      : `the run has no artifact ${JSON.stringify(harmlessLine(name))}; it has:\n${lines(artifacts)}`,
  );
}

const lines = (items: readonly ArtifactItem[]): string =>
  items
    .map((item) => {
      const title = titleOf(item);
      return `  ${uidOf(item) ?? item.artifact_type}  ${harmlessLine(nameOf(item))}${title === undefined ? '' : `  ${harmlessLine(title)}`}`;
    })
    .join('\n');

const titleOf = (item: ArtifactItem): string | undefined => ('title' in item.data ? item.data.title : undefined);

function nameOf(item: ArtifactItem): string {
  switch (item.artifact_type) {
    case 'FILE':
      return item.data.filename;
    case 'SCREENSHOT':
      return `screenshot-${item.data.artifact_uid.slice(-8)}.${item.data.mime_type.split('/')[1] ?? 'png'}`;
    case 'PLAN':
      return `${item.data.title ?? 'plan'}.md`;
    case 'PULL_REQUEST':
    case 'EXTERNAL_REFERENCE':
      return item.data.url;
  }
}

function uidOf(item: ArtifactItem): string | undefined {
  return 'artifact_uid' in item.data ? item.data.artifact_uid : undefined;
}

function sizeOf(item: ArtifactItem): number | undefined {
  return item.artifact_type === 'FILE' ? item.data.size_bytes : undefined;
}

/**
 * Returns a harmless name for a file in the current folder. The name of the artifact is not used unchanged, because an agent chose it.
 * It may contain a path or escape sequences, or may be the name of a file that programs read automatically, such as `.bashrc`.
 */
export function safeFileName(name: string): string {
  const base = path.posix.basename(harmless(name).replaceAll('\\', '/').replaceAll('\n', ' ').trim());
  const safe = base.replace(/^[.-]+/, '_').replaceAll(/[\t:*?"<>|]/g, '_');
  return shortenName(safe === '' ? 'artifact' : safe);
}

/** Shortens a name, because file systems allow at most 255 bytes. Keeps the extension, because it shows the file's type. */
function shortenName(name: string): string {
  const extension = path.extname(name).slice(0, 20);
  let stem = name.slice(0, name.length - extension.length);
  while (Buffer.byteLength(stem + extension) > 200) stem = stem.slice(0, -1);
  return (stem + extension).toWellFormed();
}

/** Declares the command `artifacts`. */
export function declareArtifacts(artifacts: Command): void {
  artifacts
    .command('list')
    .description('list the artifacts of a run')
    .argument('<run>', runHelp)
    .option(...asJson)
    .action((run, options) => listArtifacts(processContext(), run, options));
  artifacts
    .command('get')
    .description(
      'download an artifact of a run; a plan as Markdown. The same command continues an interrupted download',
    )
    .argument('<run>', runHelp)
    .argument('<name>', 'name, path in the workspace, or uid of the artifact')
    .option(
      '-o, --output <file>',
      "file to write, - for standard output (default: a new file with the artifact's name)",
    )
    .action((run, name, options) => getArtifact(processContext(), run, name, options));
}
