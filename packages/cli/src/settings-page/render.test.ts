import { readFileSync } from 'node:fs';
import path from 'node:path';
import { settingsTable } from '@runyard/contract/settings/settings';
import { expect, test } from 'vitest';
import { root } from '../installation.ts';
import { renderSettingsPage } from './render.ts';

test('docs/settings.md is in step with the settings table (else: node packages/cli/src/settings-page/generate.ts)', () => {
  expect(readFileSync(path.join(root, 'docs/settings.md'), 'utf8')).toBe(renderSettingsPage());
});

test('the settings page names every setting, marks the secret ones and gives the defaults', () => {
  const page = renderSettingsPage();
  for (const name of Object.keys(settingsTable)) expect(page).toContain(`| \`${name}\` |`);
  expect(page).toMatch(/`RUNYARD_PORT` \| `4180` \|/);
  expect(page).toMatch(/`RUNYARD_DATABASE_URL` \|.*\*\*Secret\.\*\*/);
  expect(page).not.toMatch(/`RUNYARD_HOST` \|.*\*\*Secret\.\*\*/);
});
