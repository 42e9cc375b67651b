import { constants, mkdir, open, readdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { z } from 'zod';
import { cutText } from '../../../commands/output-window.ts';
import { openRegularFile } from '../../../open-regular-file.ts';
import { defineTool, errorsToModel, failedWith, maxResultBytes, succeeded, toolPath } from './tool.ts';

/** Maximum size of a file that this tool reads. The model must read larger files with shell commands. */
const maxFileBytes = 4 * 1024 * 1024;

/** Returns the text of a file of at most 4 MB. If the file is larger, the error says how the model can read a part of the file. */
async function readTextFile(path: string): Promise<string> {
  const { file, size } = await openRegularFile(path, { follows: true });
  try {
    if (size > maxFileBytes)
      throw new Error(`${path} is ${size} bytes; read a part of it with the shell (head, tail, sed -n)`);
    const bytes = await file.readFile();
    if (bytes.subarray(0, 8192).includes(0)) throw new Error(`${path} is a binary file of ${size} bytes`);
    return bytes.toString('utf8');
  } finally {
    await file.close();
  }
}

/** Writes a whole file. */
async function writeTextFile(path: string, text: string): Promise<void> {
  const file = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NONBLOCK,
    0o644,
  );
  try {
    await file.writeFile(text);
  } finally {
    await file.close();
  }
}

const ReadInput = z.object({
  path: z.string().min(1).describe('File or folder, relative to the workspace or absolute.'),
  first_line: z.int().min(1).optional().describe('Default 1.'),
  lines: z.int().min(1).max(5000).optional().describe('Default 1000.'),
});

/** Reads a text file with line numbers, or lists a folder. */
export const readTool = defineTool({
  name: 'read',
  description: 'Reads a text file or lists a folder. Lines are numbered; the numbers are not part of the file.',
  kind: 'read',
  schema: ReadInput,
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

const WriteInput = z.object({
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
  schema: WriteInput,
  title: ({ path }) => `Write ${path}`,
  run: ({ path, content }, context) =>
    errorsToModel(async () => {
      const target = toolPath(context, path);
      await mkdir(dirname(target), { recursive: true });
      await writeTextFile(target, content);
      return succeeded(`wrote ${Buffer.byteLength(content)} bytes to ${path}`);
    }),
});

const EditInput = z.object({
  path: z.string().min(1).describe('Relative to the workspace or absolute.'),
  old_text: z.string().min(1).describe('Exactly as in the file, without line numbers.'),
  new_text: z.string(),
  replace_all: z.boolean().optional().describe('Replace every occurrence; default false: it must occur exactly once.'),
});

/** Replaces text in a file. */
export const editTool = defineTool({
  name: 'edit',
  description: 'Replaces a piece of text in a file. old_text must occur exactly once, or set replace_all.',
  kind: 'edit',
  acts: { category: 'files' },
  schema: EditInput,
  title: ({ path }) => `Edit ${path}`,
  run: ({ path, old_text, new_text, replace_all = false }, context) =>
    errorsToModel(async () => {
      const target = toolPath(context, path);
      const text = await readTextFile(target);
      const pieces = text.split(old_text);
      const count = pieces.length - 1;
      if (count === 0) return failedWith(`old_text does not occur in ${path}; read the file again and copy it exactly`);
      if (count > 1 && !replace_all) {
        return failedWith(
          `old_text occurs ${count} times in ${path}; give more of its surroundings, or set replace_all`,
        );
      }
      await writeTextFile(target, pieces.join(new_text));
      return succeeded(`replaced ${count} ${count === 1 ? 'occurrence' : 'occurrences'} in ${path}`);
    }),
});
