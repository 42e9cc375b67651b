import { spawn } from 'node:child_process';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parentProcess, startTicks, thisProcess } from '@runyard/system/process-identity';
import { beforeEach, describe, expect, test } from 'vitest';
import { newFolder } from '../../../../test/support/close-at-end.ts';
import { namespaceProblem, startIsolated } from '../../../../test/support/namespaces.ts';
import { readClaim, takeClaim } from './claim.ts';
import { urlOfService } from './service-file.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = newFolder();
  file = path.join(folder, 'supervisor.json');
});

const staleClaim = (pid: number, ticks: number) =>
  writeFileSync(
    file,
    JSON.stringify({
      ...thisProcess(),
      pid,
      start_ticks: ticks,
      mode: 'background',
      started_at: '2026-11-21T10:00:00Z',
    }),
  );

test('takeClaim fails until the earlier claim is released, and a released claim leaves only the lock file', () => {
  const first = takeClaim(file, 'foreground');
  expect(first.ok).toBe(true);
  const second = takeClaim(file, 'background');
  expect(second).toMatchObject({ ok: false, holder: { pid: process.pid, mode: 'foreground' } });
  expect(readdirSync(folder).sort()).toEqual(['supervisor.json', 'supervisor.json.lock']);
  if (first.ok) first.claim.release();
  expect(existsSync(file)).toBe(false);
});

test('readClaim returns the description that the holder has announced', () => {
  const ownClaim = takeClaim(file, 'background');
  if (ownClaim.ok) ownClaim.claim.announce('http://127.0.0.1:4180', ['service', 'worker']);
  expect(readClaim(file)).toMatchObject({ origin: 'http://127.0.0.1:4180', programs: ['service', 'worker'] });
});

test('takeClaim takes the claim of a process that has ended', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  const pid = child.pid ?? 0;
  const ticks = startTicks(pid) ?? 0;
  await new Promise((resolve) => child.once('exit', resolve));
  staleClaim(pid, ticks);
  expect(readClaim(file)).toBeNull();
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('readClaim does not mistake a new process for an ended process with the same id', () => {
  staleClaim(process.pid, 1);
  expect(readClaim(file)).toBeNull();
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('takeClaim replaces a damaged claim file', () => {
  writeFileSync(file, 'half a cla');
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('only one of many processes can take a stale claim', async () => {
  staleClaim(process.pid, 1);
  const module = new URL('claim.ts', import.meta.url).href;
  const script = `import { takeClaim } from ${JSON.stringify(module)};
    process.stdin.once('data', () => { const t = takeClaim(${JSON.stringify(file)}, 'background'); console.log(t.ok ? 'got it' : 'no'); });
    console.log('ready'); process.stdin.once('end', () => process.exit());`;
  const children = Array.from({ length: 8 }, () => spawn(process.execPath, ['--input-type=module', '-e', script]));
  const lines = children.map((child) => {
    const queue: string[] = [];
    const waiting: ((line: string) => void)[] = [];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.trim().split('\n')) (waiting.shift() ?? ((late: string) => queue.push(late)))(line);
    });
    return () =>
      new Promise<string>((resolve) => {
        const line = queue.shift();
        if (line === undefined) waiting.push(resolve);
        else resolve(line);
      });
  });
  await Promise.all(lines.map((next) => next()));
  for (const child of children) child.stdin.write('go\n');
  // Reads all answers before a process ends, because a claim is valid only while its holder lives.
  const answers = await Promise.all(lines.map((next) => next()));
  for (const child of children) child.stdin.end();
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))));
  expect(answers.filter((answer) => answer === 'got it')).toHaveLength(1);
});

describe.skipIf(namespaceProblem)(
  namespaceProblem ? `between containers (skipped: ${namespaceProblem})` : 'between containers',
  () => {
    test('of two processes with the same pid, the first one has the claim until it ends', async () => {
      const module = path.join(import.meta.dirname, 'claim.ts');
      const script = `
        import { takeClaim } from ${JSON.stringify(module)};
        const taken = takeClaim(${JSON.stringify(file)}, 'background');
        console.log(process.pid, taken.ok ? 'got it' : 'held by ' + taken.holder.pid);
        setInterval(() => {}, 1000);`;
      const [first, second] = [await startIsolated(script), await startIsolated(script)];
      try {
        expect([first.line, second.line]).toEqual(['1 got it', '1 held by 1']);
        expect(readClaim(file)).toMatchObject({ pid: 1 });
        await first.end();
        await expect.poll(() => readClaim(file)).toBeNull();
        expect(takeClaim(file, 'background').ok).toBe(true);
      } finally {
        await Promise.all([first.end(), second.end()]);
      }
    });
  },
);

test('urlOfService returns null if the parent of the service has ended', () => {
  const serviceFile = path.join(folder, 'service.json');
  const base_url = 'http://127.0.0.1:1';
  const write = (parent?: object) =>
    writeFileSync(serviceFile, JSON.stringify({ ...thisProcess(), base_url, ...(parent ? { parent } : {}) }));
  expect(urlOfService(serviceFile)).toBeNull();
  write();
  expect(urlOfService(serviceFile)).toBe(base_url);
  write(parentProcess());
  expect(urlOfService(serviceFile)).toBe(base_url);
  write({ ...parentProcess(), start_ticks: 1 });
  expect(urlOfService(serviceFile)).toBeNull();
});
