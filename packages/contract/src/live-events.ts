/** Server-sent events of `GET /agent/runs/{runId}/events` and `GET /agent/runs/events`. */
import { z } from 'zod';
import { AgentEvent } from './agent-protocol.ts';
import { RunState } from './states.ts';
import { TimelineEvent } from './timeline.ts';

const state = z.object({
  type: z.literal('state'),
  state: RunState,
  status_message: z.string().optional(),
  error_code: z.string().optional(),
});
const timeline = z.object({ type: z.literal('timeline'), event: TimelineEvent });

/** One event of a run's live stream. `conversation` events are the agent's own, as stored. */
export const LiveEvent = z
  .discriminatedUnion('type', [state, timeline, z.object({ type: z.literal('conversation'), event: AgentEvent })])
  .meta({ id: 'LiveEvent' });
export type LiveEvent = z.infer<typeof LiveEvent>;

/** Comment at the end of a run's stream: every event was sent. A stream that ends without it was cut off. */
export const endOfStream = 'end';

const ofRun = { run_id: z.string() };

/** One event of a team's live stream: the same as in a run's own stream, without the conversation. */
export const TeamLiveEvent = z
  .discriminatedUnion('type', [state.extend(ofRun), timeline.extend(ofRun)])
  .meta({ id: 'TeamLiveEvent' });
export type TeamLiveEvent = z.infer<typeof TeamLiveEvent>;
