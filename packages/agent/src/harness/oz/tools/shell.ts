import { z } from 'zod';
import { cutText } from '../../../commands/output-window.ts';
import { terminalScreen } from '../../../commands/terminal-screen.ts';
import { defineTool, maxResultBytes } from './tool.ts';

const Input = z.object({
  command: z.string().min(1).describe('Run by sh in the workspace.'),
  timeout_seconds: z.number().min(1).max(14_400).optional().describe('Default 600.'),
});

/** Runs a shell command. */
export const shellTool = defineTool({
  name: 'shell',
  description:
    'Runs a shell command in the workspace and returns its output (stdout and stderr) and exit code. Each call is a new shell: cd and variables do not carry over. Start servers in the background with &. Long output is cut in the middle; use head, tail or grep to see the part you need.',
  kind: 'execute',
  acts: { category: 'command' },
  schema: Input,
  title: ({ command }) => command,
  run: async ({ command, timeout_seconds = 600 }, context) => {
    const screen = terminalScreen();
    const result = await context.runKept({
      argv: ['sh', '-c', command],
      cwd: context.workspace,
      env: context.env,
      signal: context.signal,
      onOutput: context.onOutput,
      onText: screen.push,
      backpressure: context.backpressure,
      timeoutMs: timeout_seconds * 1000,
    });
    const end =
      result.outcome === 'timed_out'
        ? `\n[stopped after ${timeout_seconds} s]`
        : result.exitCode === 0
          ? ''
          : `\n[exit code ${result.exitCode}]`;
    // Give the model the output as a terminal shows it, without each redraw of a progress bar. People see the whole output in the
    // transcript.
    const visibleOutput =
      result.outcome === 'not_started' ? { text: result.output, leftOut: result.leftOut } : screen.end();
    const { text } = cutText(visibleOutput.text, maxResultBytes, visibleOutput.leftOut);
    return {
      text: text + end || '[no output]',
      failed: result.exitCode !== 0 || result.outcome !== 'exited',
      command: result,
    };
  },
});
