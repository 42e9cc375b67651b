import { z } from 'zod';
import { cutText } from '../../../commands/output-window.ts';
import { runCommand } from '../../../commands/run-command.ts';
import { defineTool, errorsToModel, failedWith, maxResultBytes, succeeded, toolPath } from './tool.ts';

const Input = z.object({
  pattern: z.string().min(1).describe('Extended regular expression (grep -E).'),
  path: z.string().min(1).optional().describe('File or folder; default: the workspace.'),
  glob: z.string().min(1).optional().describe('Search only files whose name matches, for example *.ts'),
  names_only: z.boolean().optional().describe('Only the names of files with a match.'),
});

const maxMatchesPerFile = 50;
const timeoutMs = 60_000;

/** Searches file contents. */
export const searchTool = defineTool({
  name: 'search',
  description:
    'Searches the contents of files and returns matching lines as path:line:text. Leaves out .git, node_modules and binary files.',
  kind: 'search',
  schema: Input,
  title: ({ pattern, path }) => `Search ${pattern}${path === undefined ? '' : ` in ${path}`}`,
  run: ({ pattern, path = '.', glob, names_only = false }, context) =>
    errorsToModel(async () => {
      const result = await runCommand({
        argv: [
          'grep',
          '-rIE',
          names_only ? '-l' : '-n',
          '-m',
          String(maxMatchesPerFile),
          '--exclude-dir=.git',
          '--exclude-dir=node_modules',
          ...(glob === undefined ? [] : [`--include=${glob}`]),
          '-e',
          pattern,
          '--',
          path === '.' ? '.' : toolPath(context, path),
        ],
        cwd: context.workspace,
        env: { ...context.env, LC_ALL: 'C.UTF-8' },
        signal: context.signal,
        backpressure: context.backpressure,
        timeoutMs,
      });
      if (result.outcome === 'timed_out')
        return failedWith(`the search took longer than ${timeoutMs / 1000} s; search a smaller folder`);
      if (result.exitCode === 1 && result.outputBytes === 0) return succeeded('[no match]');
      const { text } = cutText(result.output, maxResultBytes, result.leftOut);
      return result.exitCode > 1 && result.outputBytes < 2000 ? failedWith(text) : succeeded(text);
    }),
});
