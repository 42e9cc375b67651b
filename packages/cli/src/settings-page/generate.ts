/** Writes docs/settings.md. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../installation.ts';
import { renderSettingsPage } from './render.ts';

writeFileSync(path.join(root, 'docs/settings.md'), renderSettingsPage());
