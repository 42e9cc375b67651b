import { z } from 'zod';
import { defineTool, failedWith, succeeded } from './tool.ts';

const Input = z.object({
  question: z.string().min(1).max(2000).describe('One question, with the facts that a person needs to answer it.'),
  options: z
    .array(z.string().min(1).max(500))
    .max(10)
    .optional()
    .describe('Answers to choose from. The user may also give another answer.'),
});

/** Asks the person who watches the run, and waits for the answer. */
export const askUserTool = defineTool({
  name: 'ask_user',
  description:
    'Asks the user one question and waits for the answer, which may take hours. Use it only for a question that you cannot answer or decide yourself, and only if a wrong choice would do harm.',
  kind: 'other',
  schema: Input,
  title: ({ question }) => question,
  run: async ({ question, options }, context) => {
    const asked = { kind: 'question' as const, title: question, ...(options ? { options } : {}) };
    const { by, decision, message } = await context.waiting((beforeAsked) =>
      context.approvals.ask({ ...asked, beforeAsked }, context.signal),
    );
    if (by === 'policy') return failedWith('nobody can answer questions in this run: decide yourself and continue');
    if (message !== undefined) return succeeded(decision === 'answer' ? message : `${yesOrNo(decision)}: ${message}`);
    return succeeded(yesOrNo(decision));
  },
});

const yesOrNo = (decision: string) => (decision === 'deny' ? 'no' : 'yes');
