import { shorten } from '@runyard/contract/wire/shorten';
import { z } from 'zod';
import type { AnswerOnGithub } from '../../../github-answers/answer.ts';
import { describeGithubTools } from '../../../github-answers/describe.ts';
import { type BuiltinTool, defineTool, failedWith, succeeded } from './tool.ts';

/** Returns the tools with which a model writes on GitHub. The service checks their input. */
export const githubAnswerTools = (names: readonly string[], answer: AnswerOnGithub): BuiltinTool[] =>
  describeGithubTools(names).map(({ name, title, description, inputSchema }) => ({
    ...defineTool({
      name,
      description,
      kind: 'other',
      acts: { category: 'integration' },
      schema: z.unknown(),
      title: (input) => shorten(`GitHub, ${title}: ${JSON.stringify(input) ?? ''}`, 2_000),
      run: async (input, { signal }) => {
        const { ok, message } = await answer(name, input, signal);
        return ok ? succeeded(message) : failedWith(message);
      },
    }),
    inputSchema,
  }));
