import { readdir, stat } from 'node:fs/promises';
import { z } from 'zod';
import { cutText } from '../../../commands/output-window.ts';
import { readTextFile } from './regular-file.ts';
import { defineTool, errorsToModel, maxResultBytes, succeeded, toolPath } from './tool.ts';

const Input = z.object({
  path: z.string().min(1).describe('File or folder, relative to the workspace or absolute.'),
  first_line: z.int().min(1).optional().describe('Default 1.'),
  lines: z.int().min(1).max(5000).optional().describe('Default 1000.'),
});

/** Reads a text file with line numbers, or lists a folder. */
export const readTool = defineTool({
  name: 'read',
  description: 'Reads a text file or lists a folder. Lines are numbered; the numbers are not part of the file.',
  kind: 'read',
  schema: Input,
  title: ({ path }) => `Read ${path}`,
  run: ({ path, first_line = 1, lines = 1000 }, context) =>
    errorsToModel(async () => {
      const target = toolPath(context, path);
      if ((await stat(target)).isDirectory()) return succeeded(await listing(target));
      const fileLines = (await readTextFile(target)).split('\n');
      if (fileLines.at(-1) === '') fileLines.pop();
      if (fileLines.length === 0) return succeeded('[the file is empty]');
      if (first_line > fileLines.length) return succeeded(`[the file has only ${fileLines.length} lines]`);
      const last = Math.min(fileLines.length, first_line - 1 + lines);
      const numbered = fileLines.slice(first_line - 1, last).map((line, index) => `${first_line + index}\t${line}`);
      const rest = last < fileLines.length ? `\n[${fileLines.length - last} more lines]` : '';
      return succeeded(cutText(numbered.join('\n'), maxResultBytes).text + rest);
    }),
});

async function listing(folder: string): Promise<string> {
  const entries = await readdir(folder, { withFileTypes: true });
  const names = entries.map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name)).sort();
  return names.length === 0 ? '[the folder is empty]' : cutText(names.join('\n'), maxResultBytes).text;
}
