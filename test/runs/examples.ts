/** Runs the example programs of the folder `examples` against a whole system. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { System } from '../support/system.ts';

const folderOf = (name: string) => path.join(import.meta.dirname, '../../examples', name);
const hasPython = spawnSync('python3', ['--version'], { stdio: 'ignore' }).status === 0;
const programs = [
  ['TypeScript', process.execPath, folderOf('run.ts'), true],
  ['Python', 'python3', folderOf('run.py'), hasPython],
] as const;

export const describeExamples = (system: System) =>
  describe.each(programs)('the example in %s', (_, command, file, isThere) => {
    let folder = '';
    beforeAll(async () => {
      folder = await mkdtemp(path.join(tmpdir(), 'runyard-example-'));
    });
    afterAll(() => rm(folder, { recursive: true, force: true }));

    /** Runs the program with this runbook. `answers` are the lines that a person types. */
    async function run(
      script: string,
      answers: string,
    ): Promise<{ readonly code: number | null; readonly output: string }> {
      const prompt = path.join(folder, 'prompt.md');
      await writeFile(prompt, `\`\`\`sh\n${script}\n\`\`\`\n`);
      const env = { PATH: process.env.PATH, RUNYARD_BASE_URL: system.baseUrl(), RUNYARD_API_KEY: system.key };
      const child = spawn(command, [file, prompt, path.join(folder, 'files')], { env });
      let output = '';
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (chunk: Buffer) => {
          output += chunk;
        });
      child.stdin.end(answers);
      const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
      return { code, output };
    }

    test.skipIf(!isThere)('starts a run, streams it, answers its question and downloads its artifact', async () => {
      const { code, output } = await run('echo made by a run > result.txt; report-artifact result.txt', 'y\n');
      expect(code, output).toBe(0);
      expect(output).toMatch(/\[INPROGRESS\][\s\S]*\[BLOCKED\]\n\? [\s\S]*\[SUCCEEDED\]/);
      expect(output).toMatch(/newest runs: (?:\w+, )*\w+\n$/);
      expect(await readFile(path.join(folder, 'files/result.txt'), 'utf8')).toBe('made by a run\n');
    });

    test.skipIf(!isThere)('starts a failed run again once', async () => {
      const { code, output } = await run('exit 3', 'y\ny\n');
      expect(code, output).toBe(1);
      expect(output.match(/\[FAILED\]/g)).toHaveLength(2);
      expect(output).toContain('Starting it again.');
    });
  });
