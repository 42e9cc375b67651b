import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ReportChanges } from '@runyard/contract/runs/changes';
import { describe, expect, test } from 'vitest';
import { agent, ended, fake, of, sh, start } from '../test/run.ts';

const output = (index: number) => fake.output(of('action')[index]?.action_id ?? '');

describe('a snapshot', () => {
  test('has a patch of each repository and the handed-off files, in their state at the end of the turn', async () => {
    await start(
      sh(
        'git init -q made; echo new > made/file',
        'mkdir out; echo early > out/a.txt; report-artifact handoff out/a.txt; cd out; report-artifact handoff a.txt; echo late > a.txt',
      ),
    );
    await ended();
    expect(output(1)).toBe('out/a.txt\nout/a.txt\n');
    expect(fake.snapshots).toHaveLength(1);
    const [patch, file, ...rest] = fake.snapshots[0]?.files ?? [];
    expect(rest).toEqual([]);
    expect([patch?.filename, file?.filename]).toEqual(['made.patch', 'a.txt']);
    expect(patch?.bytes?.toString()).toContain('+new');
    expect(file?.bytes?.toString()).toBe('late\n');
  });

  test('comes with a report of the changed files, and the agent also sends this report on request during a turn', async () => {
    const reports: ReportChanges[] = [];
    const paths = () => reports.at(-1)?.repositories[0]?.files.map(({ path }) => path);
    const prepare = (service: typeof fake) => {
      service.more = ({ path, body }) => {
        if (path !== '/changes') return undefined;
        reports.push(ReportChanges.parse(body));
        return Promise.resolve({ status: 200, value: {} });
      };
    };
    const wait = 'until [ -e go ]; do sleep 0.05; done';
    await start(sh(`git init -q made; echo new > made/file; touch ready; ${wait}; echo more > made/other`), {
      prepare,
    });
    await expect.poll(() => existsSync(join(agent.workspace, 'ready'))).toBe(true);
    fake.tell({ type: 'changes', asked: 1 });
    await expect.poll(paths).toEqual(['file']);
    writeFileSync(join(agent.workspace, 'go'), '');
    await ended();
    expect(paths()).toEqual(['file', 'other']);
  });

  test('does not accept a file outside of the workspace, and the command reports the reason', async () => {
    await start(
      sh(
        'report-artifact handoff /etc/passwd || echo refused-$?',
        'ln -s /etc/passwd link; ln -s /etc folder; for each in link folder/passwd absent . ..; do report-artifact handoff $each || echo refused; done',
      ),
    );
    await ended();
    expect(output(0)).toContain('/etc/passwd is not in the workspace');
    expect(output(0)).toContain('refused-1');
    expect(output(1).match(/refused/g)).toHaveLength(5);
    expect(fake.snapshots).toEqual([]);
  });

  test('leaves out a handed-off file that was removed, and a notice reports it', async () => {
    await start(sh('echo a > a; echo b > b; report-artifact handoff a b; rm a'));
    await ended();
    expect(fake.snapshots[0]?.files.map(({ filename }) => filename)).toEqual(['b']);
    expect(of('notice').map(({ name, data }) => [name, data])).toEqual([
      ['handoff_left_out', { what: 'a', reason: 'it does not exist' }],
    ]);
  });

  test('has the files of a workspace without git repositories, and each file once', async () => {
    await start(sh('mkdir docs; echo a > docs/report.md; echo b > fix.patch; echo c > c; report-artifact handoff c'));
    await ended();
    expect(fake.snapshots[0]?.files.map(({ filename, mime_type }) => [filename, mime_type])).toEqual([
      ['c', 'application/octet-stream'],
      ['docs-report.md', 'text/markdown'],
      ['fix.patch', 'text/plain'],
    ]);
  });

  test('of a workspace without git repositories is also sent on request during a turn', async () => {
    const wait = 'until [ -e .go ]; do sleep 0.05; done';
    await start(sh(`echo a > a; echo b > b; report-artifact handoff b; touch .ready; ${wait}; echo c > c; rm b`));
    await expect.poll(() => existsSync(join(agent.workspace, '.ready'))).toBe(true);
    fake.tell({ type: 'changes', asked: 1 });
    await expect.poll(() => fake.snapshots[0]?.files.every(({ bytes }) => bytes)).toBe(true);
    writeFileSync(join(agent.workspace, '.go'), '');
    await ended();
    expect(fake.snapshots.map(({ files }) => files.map(({ filename }) => filename))).toEqual([
      ['b', 'a'],
      ['a', 'c'],
    ]);
    expect(of('notice').map(({ data }) => data)).toEqual([{ what: 'b', reason: 'it does not exist' }]);
  });

  test('is not sent by a run without changes and files', async () => {
    await start(sh('true'));
    await ended();
    expect(fake.snapshots).toEqual([]);
  });
});
