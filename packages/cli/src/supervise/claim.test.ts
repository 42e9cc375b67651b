import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { namespaceProblem, startIsolated } from '../../../../test/support/namespaces.ts';
import { readClaim, takeClaim } from './claim.ts';
import { identify } from './processes.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'runyard-claim-'));
  file = path.join(folder, 'supervisor.json');
});
afterEach(() => rmSync(folder, { recursive: true }));

const staleClaim = (pid: number, ticks: number | null) =>
  writeFileSync(
    file,
    JSON.stringify({ pid, start_ticks: ticks, mode: 'background', started_at: '2026-11-21T10:00:00Z' }),
  );

test('a claim is held until it is released, and leaves nothing but its lock behind', () => {
  const first = takeClaim(file, 'foreground');
  expect(first.ok).toBe(true);
  const second = takeClaim(file, 'background');
  expect(second).toMatchObject({ ok: false, holder: { pid: process.pid, mode: 'foreground' } });
  expect(readdirSync(folder).sort()).toEqual(['supervisor.json', 'supervisor.json.lock']);
  if (first.ok) first.claim.release();
  expect(existsSync(file)).toBe(false);
});

test('what the holder announces can be read by others', () => {
  const taken = takeClaim(file, 'background');
  if (taken.ok) taken.claim.announce('http://127.0.0.1:4180', ['service', 'worker']);
  expect(readClaim(file)).toMatchObject({ origin: 'http://127.0.0.1:4180', programs: ['service', 'worker'] });
});

test('the claim of a process that ended is taken over', async () => {
  const child = spawn(process.execPath, ['-e', '']);
  const { pid, start_ticks } = identify(child.pid ?? 0);
  await new Promise((resolve) => child.once('exit', resolve));
  staleClaim(pid, start_ticks);
  expect(readClaim(file)).toBeNull();
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('a process that only has the number of the dead one is not taken for it', () => {
  staleClaim(process.pid, 1);
  expect(readClaim(file)).toBeNull();
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('a file that is no claim is taken over', () => {
  writeFileSync(file, 'half a cla');
  expect(takeClaim(file, 'background').ok).toBe(true);
});

test('of many processes that try at once, with a stale claim in the way, one gets it', async () => {
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
  // All of them still live while they answer: a claim is judged by its holder's life.
  const answers = await Promise.all(lines.map((next) => next()));
  for (const child of children) child.stdin.end();
  await Promise.all(children.map((child) => new Promise((resolve) => child.once('exit', resolve))));
  expect(answers.filter((answer) => answer === 'got it')).toHaveLength(1);
});

describe.skipIf(namespaceProblem)(
  namespaceProblem ? `between containers (skipped: ${namespaceProblem})` : 'between containers',
  () => {
    test('of two whose processes have the same id, the first holds the claim until it ends', async () => {
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
        await vi.waitFor(() => expect(readClaim(file)).toBeNull());
        expect(takeClaim(file, 'background').ok).toBe(true);
      } finally {
        await Promise.all([first.end(), second.end()]);
      }
    });
  },
);
