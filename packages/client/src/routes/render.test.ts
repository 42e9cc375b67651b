import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { renderTable } from './render.ts';

it('is in step with the routes of the contract (else: node packages/client/src/routes/generate.ts)', () => {
  expect(readFileSync(path.join(import.meta.dirname, 'table.ts'), 'utf8')).toBe(renderTable());
});
