/** Describes a message to a run: its author, and how the agent works on it. */
import { z } from 'zod';
import { runModes } from '../wire/choices.ts';

/** How an agent works on a prompt. With `plan`, the agent changes nothing and answers with a plan. */
export const RunMode = z.enum(runModes).meta({
  id: 'RunMode',
  description:
    'How an agent works on a prompt. `normal`: it does what is asked. `plan`: it answers with a plan; a turn that changes the workspace is stopped, and FAILED. `orchestrate`: it may start child runs',
});
export type RunMode = z.infer<typeof RunMode>;

const AnswererType = z.enum(['user', 'service_account', 'run']).meta({
  id: 'AnswererType',
  description: '`user`: a person. `service_account`: what an agent key acts as. `run`: the agent of a run above',
});

/** The author of an answer or of a message. */
export const AnsweredBy = z
  .object({
    type: AnswererType,
    uid: z.string().max(200).describe('UID of the person or service account, or id of the run'),
    display_name: z.string().max(200).optional().describe('Name of the person, agent identity or agent key'),
  })
  .meta({
    id: 'AnsweredBy',
    description:
      'Who answered a request or sent a message. The service adds it and ignores the value that an agent reports',
  });
export type AnsweredBy = z.infer<typeof AnsweredBy>;
