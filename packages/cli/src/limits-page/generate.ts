/** Writes docs/limits.md. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../installation.ts';
import { renderLimitsPage } from './render.ts';

writeFileSync(path.join(root, 'docs/limits.md'), renderLimitsPage());
