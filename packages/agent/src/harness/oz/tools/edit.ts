import { z } from 'zod';
import { readTextFile, writeTextFile } from './regular-file.ts';
import { defineTool, errorsToModel, failedWith, succeeded, toolPath } from './tool.ts';

const Input = z.object({
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
  schema: Input,
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
