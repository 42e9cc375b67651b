/** The live streams of the API. The contract's schemas check their events. */

import { TeamDeliveryEvent } from '@runyard/contract/automations/team-lists';
import { LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { type FollowOptions, follow, type Open, type ReceivedEvent } from './follow.ts';

export interface RunFollowOptions extends FollowOptions {
  /** False: the stream ends after the events that exist now. */
  readonly follow?: boolean;
}

/** Follows a run until it has ended or the service ends the stream; see `follow`. */
export const followRunEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent<LiveEvent>> =>
  follow(open, options, {
    parse: (data) => LiveEvent.safeParse(data).data,
    // The stream of a run ends with a terminal state. Later events come only from a sandbox that stays open for debugging after its setup
    // commands failed.
    endsWith: (event) => event.type === 'state' && isTerminal(event.state),
  });

/** Follows the runs of a team until the signal is aborted; see `follow`. */
export const followTeamEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent<TeamLiveEvent>> =>
  follow(open, options, { parse: (data) => TeamLiveEvent.safeParse(data).data, endsWith: () => undefined });

/** Follows the deliveries to the webhooks of a team until the signal is aborted; see `follow`. */
export const followTeamDeliveries = (
  open: Open,
  options: FollowOptions,
): AsyncGenerator<ReceivedEvent<TeamDeliveryEvent>> =>
  follow(open, options, { parse: (data) => TeamDeliveryEvent.safeParse(data).data, endsWith: () => undefined });
