import { readFileSync } from 'node:fs';
import path from 'node:path';
import { githubEvents } from '@runyard/contract/webhooks/github-events';
import { readDefinition } from '@runyard/definitions/read-definition';
import { expect, test } from 'vitest';
import { root } from '../installation.ts';
import { renderFactoryFilesPage } from './render.ts';

const page = readFileSync(path.join(root, 'docs/factory-files.md'), 'utf8');

test('docs/factory-files.md is in step with the schemas (else: node packages/cli/src/factory-files-page/generate.ts)', () => {
  expect(page).toBe(renderFactoryFilesPage());
});

test('the page names every event of GitHub', () => {
  for (const event of Object.keys(githubEvents)) expect(page).toContain(`\`${event}\``);
});

test('the example of the page is a definition without faults', () => {
  const blocks = [...page.matchAll(/^`([\w./-]+)`:\n\n```\w+\n([\s\S]*?)^```$/gm)];
  const files = blocks.map(([, file = '', content = '']) => ({ path: file, content }));
  expect(files.map((file) => file.path)).toContain('automations/failed-builds/automation.md');
  expect(readDefinition(files)).toMatchObject({ ok: true, notices: [] });
});
