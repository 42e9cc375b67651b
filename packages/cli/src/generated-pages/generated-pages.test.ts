import { serviceSettings } from '@runyard/contract/settings/service';
import { settingsTable } from '@runyard/contract/settings/settings';
import { githubEvents } from '@runyard/contract/webhooks/github-events';
import { readDefinition } from '@runyard/definitions/read-definition';
import { expect, test } from 'vitest';
import { renderFactoryFilesPage } from './factory-files-page.ts';
import { renderLimitsPage } from './limits-page.ts';
import { renderSettingsPage } from './settings-page.ts';

test('the settings page names every setting, marks secret settings and shows the defaults', () => {
  const page = renderSettingsPage();
  for (const name of Object.keys(settingsTable)) expect(page).toContain(`| \`${name}\` |`);
  expect(page).toMatch(/`RUNYARD_PORT` \| `4180` \|/);
  expect(page).toMatch(/`RUNYARD_DATABASE_URL` \|.*\*\*Secret\.\*\*/);
  expect(page).not.toMatch(/`RUNYARD_HOST` \|.*\*\*Secret\.\*\*/);
});

test('the page of limits names every setting that limits the stored data of a run', () => {
  const bounds = Object.keys(serviceSettings).filter((name) => name.endsWith('_MB'));
  expect(bounds.length).toBeGreaterThan(3);
  for (const name of bounds) expect(renderLimitsPage()).toContain(`\`${name}\``);
});

test('the page of definition files names every event of GitHub', () => {
  for (const event of Object.keys(githubEvents)) expect(renderFactoryFilesPage()).toContain(`\`${event}\``);
});

test('the example of the page of definition files has no faults', () => {
  const blocks = [...renderFactoryFilesPage().matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)];
  const files = blocks.map(([, file = '', content = '']) => ({ path: file, content }));
  expect(files.map((file) => file.path)).toContain('automations/failed-builds/automation.md');
  expect(readDefinition(files)).toMatchObject({ ok: true, notices: [] });
});
