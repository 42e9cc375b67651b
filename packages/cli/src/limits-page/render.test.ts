import { readFileSync } from 'node:fs';
import path from 'node:path';
import { serviceSettings } from '@runyard/contract/settings/service';
import { expect, test } from 'vitest';
import { root } from '../installation.ts';
import { renderLimitsPage } from './render.ts';

test('docs/limits.md is in step with the limits (else: node packages/cli/src/limits-page/generate.ts)', () => {
  expect(readFileSync(path.join(root, 'docs/limits.md'), 'utf8')).toBe(renderLimitsPage());
});

test('the page names every setting that limits the stored data of a run', () => {
  const bounds = Object.keys(serviceSettings).filter((name) => name.endsWith('_MB'));
  expect(bounds.length).toBeGreaterThan(3);
  for (const name of bounds) expect(renderLimitsPage()).toContain(`\`${name}\``);
});
