/** Server-sent events of `GET /agent/runs/{id}/events`: numbered 1, 2, … in the run, without gaps. */
import { z } from 'zod';
import { AgentEvent } from './agent-protocol.ts';
import { RunState } from './states.ts';
import { TimelineEvent } from './timeline.ts';

/** One event of a run's live stream. `conversation` events are the agent's own, as stored. */
export const LiveEvent = z
  .discriminatedUnion('type', [
    z.object({
      type: z.literal('state'),
      state: RunState,
      status_message: z.string().optional(),
      error_code: z.string().optional(),
    }),
    z.object({ type: z.literal('timeline'), event: TimelineEvent }),
    z.object({ type: z.literal('conversation'), event: AgentEvent }),
  ])
  .meta({ id: 'LiveEvent' });
export type LiveEvent = z.infer<typeof LiveEvent>;
