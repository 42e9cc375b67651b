import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { writeTextFile } from './regular-file.ts';
import { defineTool, errorsToModel, succeeded, toolPath } from './tool.ts';

const Input = z.object({
  path: z.string().min(1).describe('Relative to the workspace or absolute.'),
  content: z.string(),
});

/** Writes a whole file. */
export const writeTool = defineTool({
  name: 'write',
  description:
    'Writes a file, replacing an existing one; missing folders are created. To change a part of a file use edit.',
  kind: 'edit',
  acts: { category: 'files' },
  schema: Input,
  title: ({ path }) => `Write ${path}`,
  run: ({ path, content }, context) =>
    errorsToModel(async () => {
      const target = toolPath(context, path);
      await mkdir(dirname(target), { recursive: true });
      await writeTextFile(target, content);
      return succeeded(`wrote ${Buffer.byteLength(content)} bytes to ${path}`);
    }),
});
