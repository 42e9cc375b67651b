import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import { patchLimits, sendSnapshot } from './send.ts';

test('if all patches together exceed the limit, the snapshot leaves some patches out and reports which', async () => {
  // These are a hundredth of the real limits, because git has to compress four patches that almost reach the limits, and that takes long.
  const limits = { ofOne: patchLimits.ofOne / 100, together: patchLimits.together / 100 };
  const workspace = testFolder();
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) {
    const repository = join(workspace, name);
    mkdirSync(repository);
    execFileSync('git', ['init', '--quiet'], { cwd: repository });
    // In a patch, a binary file takes 1.25 times its size.
    if (name !== 'f') writeFileSync(join(repository, 'random'), randomBytes(185_000));
    else writeFileSync(join(repository, 'small'), 'small');
  }
  const leftOut: string[] = [];
  const announced: { filename: string; size_bytes: number }[] = [];
  const sent = await sendSnapshot({
    client: {
      async uploadSnapshot({ files }) {
        announced.push(...files);
        return { files: files.map(({ filename }) => ({ filename, upload_url: '/upload' })) };
      },
      upload: async () => {},
    },
    workspace,
    withPatches: true,
    env: { HOME: testFolder(), PATH: process.env.PATH },
    handedOff: [],
    turn: 1,
    evenEmpty: false,
    signal: AbortSignal.timeout(60_000),
    limits,
    onLeftOut: (what, reason) => leftOut.push(`${what}: ${reason}`),
  });
  expect(sent).toBe(true);
  expect(announced.map(({ filename }) => filename)).toEqual(['a.patch', 'b.patch', 'c.patch', 'd.patch', 'f.patch']);
  expect(announced.reduce((sum, file) => sum + file.size_bytes, 0)).toBeLessThan(limits.together);
  expect(leftOut).toEqual([expect.stringMatching(/^e\.patch: .*bytes/)]);
});

test('a file that a program removes or replaces meanwhile is left out, and the others are sent', async () => {
  const [workspace, home] = [testFolder(), testFolder()];
  for (const name of ['a', 'b', 'c']) writeFileSync(join(workspace, name), name);
  const leftOut: string[] = [];
  const sent: string[] = [];
  const isSent = await sendSnapshot({
    client: {
      uploadSnapshot: async ({ files }) => ({
        files: files.map(({ filename }) => ({ filename, upload_url: `/${filename}` })),
      }),
      upload: async (path, open) => void sent.push(`${path} ${Buffer.concat(await open().toArray())}`),
    },
    workspace,
    withPatches: true,
    env: {
      // The snapshot reads this variable after it has listed the files.
      get HOME() {
        rmSync(join(workspace, 'a'), { force: true });
        rmSync(join(workspace, 'b'), { force: true, recursive: true });
        mkdirSync(join(workspace, 'b'));
        return home;
      },
    },
    handedOff: [],
    turn: 1,
    evenEmpty: false,
    signal: AbortSignal.timeout(60_000),
    onLeftOut: (name, reason) => leftOut.push(`${name}: ${reason}`),
  });
  expect(isSent).toBe(true);
  expect(sent).toEqual(['/c c']);
  expect(leftOut).toEqual([expect.stringMatching(/^a: ENOENT/), expect.stringMatching(/^b: .* is a folder/)]);
});
