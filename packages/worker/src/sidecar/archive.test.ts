import { execFileSync } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { imageArchive, pushAdvice } from './archive.ts';

test.each([
  ['registry.example.com/team/agent:1', 'registry.example.com/team/agent:1', ''],
  ['localhost/agent:1', 'localhost/agent:1', ''],
  ['registry:5000/agent:1', 'registry:5000/agent:1', ''],
  ['team/agent:1', 'REGISTRY/team/agent:1', 'docker tag team/agent:1 REGISTRY/team/agent:1; '],
  ['agent:1.0', 'REGISTRY/agent:1.0', 'docker tag agent:1.0 REGISTRY/agent:1.0; '],
])('pushAdvice for the image %s names the target %s', (name, target, tag) => {
  expect(pushAdvice(name, 'agent.tar')).toBe(
    `runyard: send it to your registry: skopeo copy oci-archive:agent.tar docker://${target}\n` +
      `runyard: or: docker load --input agent.tar; ${tag}docker push ${target}\n`,
  );
});

test('imageArchive makes equal images from equal requests, and tar can list the files', async () => {
  const long = `licences/${'a'.repeat(60)}/${'b'.repeat(60)}`;
  const request = {
    layers: [
      [
        { name: 'bin/', mode: 0o755, content: 'folder' },
        { name: 'bin/node', mode: 0o111, content: { bytes: Buffer.from('text') } },
        { name: long, mode: 0o644, content: { bytes: Buffer.alloc(1_000) } },
        { name: 'link', mode: 0o777, content: { link: 'bin/node' } },
        { name: 'data/', mode: 0o700, content: 'folder', owner: 10001 },
      ],
    ],
    createdBy: 'test',
    architecture: 'amd64',
    labels: {},
    name: 'agent:1',
    compress: false,
  } as const;
  const [first, second] = await Promise.all([imageArchive(request), imageArchive(request)]);
  expect(await buffer(second.pieces())).toEqual(await buffer(first.pieces()));
  const env = { PATH: process.env.PATH, TZ: 'UTC', LC_ALL: 'C' };
  const listed = execFileSync('tar', ['-tvf', '-'], { input: first.layers[0], env, encoding: 'utf8' });
  expect(listed.replaceAll(/ +/g, ' ').trimEnd().split('\n')).toEqual([
    'drwxr-xr-x root/root 0 1970-01-01 00:00 bin/',
    '---x--x--x root/root 4 1970-01-01 00:00 bin/node',
    `-rw-r--r-- root/root 1000 1970-01-01 00:00 ${long}`,
    'lrwxrwxrwx root/root 0 1970-01-01 00:00 link -> bin/node',
    'drwx------ 10001/10001 0 1970-01-01 00:00 data/',
  ]);
});
