import { readFileSync } from 'node:fs';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { installCommand, presets } from '@runyard/contract/agent/harness-presets/presets';
import { parseSettings } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { checkHarnesses } from './harnesses.ts';

test('doctor reports each harness program that is not installed, and the command that installs the program', async () => {
  const parsed = parseSettings({ RUNYARD_HARNESS_DIR: '/nonexistent' });
  if (!parsed.ok) throw new Error(parsed.problems.join());
  const findings = await checkHarnesses({ settings: parsed.settings });
  expect(findings.map(({ name }) => name)).toEqual([
    'harness oz',
    ...['claude', 'codex', 'gemini', 'opencode', 'qwen'].map((type) => `harness ${type}`),
  ]);
  const missing = findings.filter(({ detail }) => detail.includes('is not in'));
  for (const { fix, level } of missing) {
    expect(level).toBe('fact');
    expect(fix).toMatch(/npm install --global --prefix \/nonexistent .+@\d/);
  }
});

test.each(presetTypes)('docs/harnesses.md contains the installation command that doctor prints for %s', (type) => {
  const page = readFileSync(new URL('../../../../docs/harnesses.md', import.meta.url), 'utf8');
  expect(page).toContain(`## ${type}\n`);
  expect(page).toContain(installCommand(presets[type], '/usr/local'));
});
