/** The program `bin/build-sidecar-image`: makes the sidecar image and writes it to a file. */

import { createWriteStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { imageArchive, pushAdvice, sidecarLabels } from './archive.ts';
import { sidecarContent } from './content.ts';

const usage = `Usage: bin/build-sidecar-image [--name NAME:TAG] [--output FILE] [--source URL] [--busybox FILE] [--readable-node]

Makes the image by which oz-agent-worker runs the agent in docker and kubernetes mode, for the processor of this machine.
  --name NAME:TAG   name of the image (default: runyard-agent:VERSION)
  --output FILE     archive to write (default: runyard-agent-VERSION-ARCHITECTURE.tar)
  --source URL      where the sources of this image are, for its label
  --busybox FILE    a BusyBox without libraries (default: /bin/busybox)
  --readable-node   for users other than root in gVisor, which must read a program to start it
`;

const { values } = parseArgs({
  options: {
    name: { type: 'string' },
    output: { type: 'string' },
    source: { type: 'string' },
    busybox: { type: 'string', default: '/bin/busybox' },
    'readable-node': { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) process.stdout.write(usage);
else {
  const root = path.resolve(import.meta.dirname, '../../../..');
  const { version } = JSON.parse(await readFile(path.join(root, 'package.json'), 'utf8')) as { version: string };
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch;
  const name = values.name ?? `runyard-agent:${version}`;
  const output = values.output ?? `runyard-agent-${version}-${architecture}.tar`;
  const entries = await sidecarContent({ root, busybox: values.busybox, readableNode: values['readable-node'] });
  const image = await imageArchive({
    layers: [entries],
    architecture,
    labels: sidecarLabels(version, values.source),
    name,
    compress: true,
    createdBy: 'bin/build-sidecar-image',
  });
  await pipeline(image.pieces(), createWriteStream(output));
  process.stderr.write(
    `runyard: wrote ${output} (${Math.round((image.layers[0]?.length ?? 0) / 1e6)} MB), image ${name}, ${image.digest}\n` +
      pushAdvice(name, output),
  );
}
