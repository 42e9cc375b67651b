import { z } from 'zod';
import { defineTool, errorsToModel, failedWith, succeeded } from './tool.ts';

const Input = z.object({
  paths: z.array(z.string().min(1)).min(1).max(100).describe('Files of the workspace, relative to it or absolute.'),
});

/** Marks files that a person or an agent needs to continue the work outside of this sandbox. */
export const handoffTool = defineTool({
  name: 'handoff',
  description:
    'Marks files of the workspace for people who continue this work elsewhere. Changes in git repositories are always kept and need no mark. The files are sent as they are when you end.',
  kind: 'other',
  schema: Input,
  title: ({ paths }) => `Hand off ${paths.join(', ')}`,
  run: ({ paths }, context) =>
    errorsToModel(async () => {
      const result = await context.handoff(paths);
      return result.ok ? succeeded(`will be handed off: ${result.files.join(', ')}`) : failedWith(result.message);
    }),
});
