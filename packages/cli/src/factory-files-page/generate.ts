/** Writes docs/factory-files.md. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { root } from '../installation.ts';
import { renderFactoryFilesPage } from './render.ts';

writeFileSync(path.join(root, 'docs/factory-files.md'), renderFactoryFilesPage());
