/** Builds the images of the service and the worker. bin/images starts this program. */
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { pushAdvice, type TarEntry } from '../../packages/worker/src/sidecar/archive.ts';
import { archiveOf, imageKinds, imageOf } from './images.ts';
import { materialsOf } from './materials.ts';

const usage = `Usage: bin/images [--output FOLDER] [--prefix REGISTRY/] [--source URL] [--unpacked]

Makes the images of service and worker for the processor of this machine, which must be Debian, and their bills of materials.
  --output FOLDER     where to write them (default: the current folder)
  --prefix REGISTRY/  before the names of the images, which are runyard-service:VERSION and runyard-worker:VERSION
  --source URL        where the sources of the images are, for their labels
  --unpacked          write the files of each image into a folder, for deploy/Dockerfile
`;

const { values } = parseArgs({
  options: {
    output: { type: 'string', default: '.' },
    prefix: { type: 'string', default: '' },
    source: { type: 'string' },
    unpacked: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

async function unpack(entries: readonly TarEntry[], folder: string): Promise<void> {
  for (const { name, mode, content } of entries) {
    const at = path.join(folder, name);
    if (content === 'folder') await mkdir(at, { mode, recursive: true });
    else if ('link' in content) await symlink(content.link, at);
    else await writeFile(at, content.bytes, { mode });
  }
}

if (values.help) process.stdout.write(usage);
else {
  const root = path.resolve(import.meta.dirname, '../..');
  const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
  await mkdir(values.output, { recursive: true });
  if (values.unpacked) process.umask(0);
  for (const kind of imageKinds) {
    const image = imageOf(kind, root);
    const inOutput = (name: string): string => path.join(values.output, name);
    if (values.unpacked) {
      await mkdir(inOutput(kind), { recursive: true });
      for (const entries of image.layers) await unpack(entries, inOutput(kind));
      continue;
    }
    const name = `${values.prefix}runyard-${kind}:${version}`;
    const base = `runyard-${kind}-${version}`;
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
    const file = inOutput(`${base}-${architecture}.tar`);
    const archive = await archiveOf({ image, version, name, source: values.source, compress: true });
    await pipeline(archive.pieces(), createWriteStream(file));
    await writeFile(
      inOutput(`${base}.cdx.json`),
      `${JSON.stringify(materialsOf(image, version, archive.digest), null, 2)}\n`,
    );
    const megabytes = Math.round(archive.layers.reduce((sum, { length }) => sum + length, 0) / 1e6);
    process.stderr.write(
      `runyard: wrote ${file} (${megabytes} MB), image ${name}, ${archive.digest}\n${pushAdvice(name, file)}`,
    );
  }
}
