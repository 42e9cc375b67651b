import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { testFolder } from '../test/agent.ts';
import { agent, ended, fake, of, scripted, start } from '../test/run.ts';
import { writeSkills } from './workspace/skills.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const skill = {
  name: 'review',
  description: 'Reviews.',
  files: [
    { path: 'SKILL.md', data: base64('the text') },
    { path: 'scripts/check.sh', data: base64('#!/bin/sh\necho checked\n'), executable: true as const },
  ],
};

test('the agent writes the skills into the home folder after the setup, because other runs share the result of the setup, and before a harness starts', async () => {
  const environment = { uid: 'E', config: { setup_commands: ['test ! -e "$HOME/.agents"'] } };
  await start({ ...scripted('hello'), skills: [skill], environment });
  await ended();
  expect(fake.finished[0]).toMatchObject({ success: true });
  const kinds = of('setup_step_finished').map(({ kind, error }) => [kind, error]);
  expect(kinds).toEqual([
    ['setup_command', undefined],
    ['skill', undefined],
    ['harness', undefined],
  ]);
  for (const folder of ['.agents/skills/review', '.claude/skills/review']) {
    expect(await readFile(join(agent.workspace, folder, 'SKILL.md'), 'utf8')).toBe('the text');
    expect((await stat(join(agent.workspace, folder, 'scripts/check.sh'))).mode & 0o777).toBe(0o755);
  }
});

test('the agent also writes the skills if the harness is a runbook', async () => {
  await start({ prompt: '```sh\n"$HOME/.claude/skills/review/scripts/check.sh"\n```', skills: [skill] });
  await ended();
  expect(fake.text()).toContain('exit code 0');
});

test.each(['../out', 'a/../../out', '/etc/x', 'a//b', 'a\\b'])(
  'the agent does not write a file of a skill with the name %s',
  async (path) => {
    const home = testFolder();
    const written = writeSkills([{ ...skill, files: [{ path, data: '' }] }], home);
    await expect(written).rejects.toThrow('leaves its folder');
    expect(await readdir(home)).toEqual([]);
  },
);

test('the agent writes no skill if the name of the skill points outside of the folder, or if there is no home folder', async () => {
  await expect(writeSkills([{ ...skill, name: '..' }], testFolder())).rejects.toThrow('leaves its folder');
  await expect(writeSkills([skill], undefined)).rejects.toThrow('no home folder');
});
