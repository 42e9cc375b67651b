/** Server-sent events of `GET /agent/runs/{runId}/events` and `GET /agent/runs/events`. */
import { z } from 'zod';
import { AgentEvent } from './agent-events.ts';
import { RunState } from './states.ts';
import { TimelineEvent } from './timeline.ts';

const kind = <T extends string>(type: T) => z.literal(type).describe('Kind of the event');

const state = {
  type: kind('state'),
  state: RunState,
  status_message: z.string().optional().describe('Explains the state'),
  error_code: z.string().optional().describe('Code of the error that ended the run'),
};
const timeline = {
  type: kind('timeline'),
  event: TimelineEvent,
};

const RunStateEvent = z.object(state).meta({ id: 'RunStateEvent', description: 'A run has reached a state' });
const RunTimelineEvent = z
  .object(timeline)
  .meta({ id: 'RunTimelineEvent', description: 'Something is new in the timeline of a run' });
const RunConversationEvent = z
  .object({
    type: kind('conversation'),
    event: AgentEvent,
  })
  .meta({
    id: 'RunConversationEvent',
    description: "Something is new in a run's conversation, as its agent reported it",
  });

/** One event of a run's live stream. A `conversation` event is an event of the agent in its stored form. */
export const LiveEvent = z
  .discriminatedUnion('type', [RunStateEvent, RunTimelineEvent, RunConversationEvent])
  .meta({ id: 'LiveEvent', description: "One event of a run's live stream, as the JSON of its `data`" });
export type LiveEvent = z.infer<typeof LiveEvent>;

const ofRun = { run_id: z.string().describe('Id of the run') };
const TeamStateEvent = z
  .object({ ...state, ...ofRun })
  .meta({ id: 'TeamStateEvent', description: 'A run of the team has reached a state' });
const TeamTimelineEvent = z
  .object({ ...timeline, ...ofRun })
  .meta({ id: 'TeamTimelineEvent', description: 'Something is new in the timeline of a run of the team' });

/** One event of a team's live stream. The stream has the same events as the streams of the runs, but no `conversation` events. */
export const TeamLiveEvent = z
  .discriminatedUnion('type', [TeamStateEvent, TeamTimelineEvent])
  .meta({ id: 'TeamLiveEvent', description: "One event of a team's live stream, as the JSON of its `data`" });
export type TeamLiveEvent = z.infer<typeof TeamLiveEvent>;
