import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import type { TaskSkill } from '@runyard/contract/agent/agent-protocol';
import { SetupFailure } from '../setup-failure.ts';

/** Folders below the home in which harnesses look for skills. Every known harness reads at least one of these folders. */
const places = ['.agents/skills', '.claude/skills'] as const;

const isSafe = (part: string): boolean => part !== '' && part !== '.' && part !== '..' && !/[/\\\0]/.test(part);

/**
 * Writes skills into the home folder, each in its own folder, and replaces the skills of an earlier execution. Throws a
 * `SetupFailure`.
 */
export async function writeSkills(skills: readonly TaskSkill[], home: string | undefined): Promise<void> {
  if (home === undefined || !isAbsolute(home))
    throw new SetupFailure('The run has no home folder (HOME), so its skills cannot be written there.');
  for (const { name, files } of skills) {
    for (const place of places) {
      const folder = join(home, place, name);
      try {
        if (!isSafe(name) || !files.every(({ path }) => path.split('/').every(isSafe)))
          throw new Error('it has a file name that leaves its folder');
        await rm(folder, { recursive: true, force: true });
        for (const file of files) await writeSkillFile(join(folder, ...file.path.split('/')), file);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new SetupFailure(`The skill ${name} could not be written to ${folder}: ${reason}`);
      }
    }
  }
}

async function writeSkillFile(path: string, { data, executable }: TaskSkill['files'][number]): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, Buffer.from(data, 'base64'), { flag: 'wx', mode: executable ? 0o755 : 0o644 });
}
