/** Writes table.ts. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { renderTable } from './render.ts';

writeFileSync(path.join(import.meta.dirname, 'table.ts'), renderTable());
