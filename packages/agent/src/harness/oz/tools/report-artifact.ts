import { z } from 'zod';
import { defineTool, errorsToModel, failedWith, succeeded } from './tool.ts';

const Input = z.object({
  type: z.enum(['FILE', 'SCREENSHOT', 'PLAN', 'PULL_REQUEST', 'EXTERNAL_REFERENCE']),
  path: z.string().optional().describe('FILE, SCREENSHOT: the file, relative to the workspace or absolute.'),
  title: z.string().optional(),
  description: z.string().optional(),
  content: z.string().optional().describe('PLAN: its text, in Markdown.'),
  url: z.string().optional().describe('PULL_REQUEST, EXTERNAL_REFERENCE.'),
  branch: z.string().optional().describe('PULL_REQUEST.'),
  reference_type: z.string().optional().describe('EXTERNAL_REFERENCE: the kind of the target, for example issue.'),
});

/** Reports a result of the work, such as a file or a pull request, as an artifact of the run. */
export const reportArtifactTool = defineTool({
  name: 'report_artifact',
  description:
    'Stores a result with the run, so that people find it after the sandbox has ended: a file, a screenshot, a plan, a pull request, a link.',
  kind: 'other',
  schema: Input,
  title: ({ type, path, url, title }) => `Report ${type} ${path ?? title ?? url ?? ''}`.trim(),
  run: (input, context) =>
    errorsToModel(async () => {
      const result = await context.reportArtifact(input);
      return result.ok ? succeeded(`kept as artifact ${result.artifact_uid}`) : failedWith(result.message);
    }),
});
