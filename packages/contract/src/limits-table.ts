/** The table of all limits, from the constants and settings that hold them. `docs/limits.md` is written from it. */
import {
  maxArtifactBytes,
  maxArtifactsPerRun,
  maxAttachmentBytes,
  maxAttachments,
  maxCodeHostCredentials,
  maxDisabledModels,
  maxEnvironmentGuests,
  maxEnvironments,
  maxKeys,
  maxLiveInTree,
  maxMcpServers,
  maxMcpServersOfRun,
  maxMessageBytes,
  maxMessagesOfRun,
  maxMessagesPerMinute,
  maxMetadataKeys,
  maxModelFallbacks,
  maxOutputBytes,
  maxPromptBytes,
  maxRequestBodyBytes,
  maxRunDepth,
  maxRunsInTree,
  maxScheduleBytes,
  maxSchedules,
  maxSnapshotFileBytes,
  maxSnapshotFiles,
  maxSubscriptions,
  maxWaitingFires,
  maxWaitingFollowups,
} from './limits.ts';
import { serviceSettings } from './settings/service.ts';

/** A row of the table. */
interface Limit {
  readonly of: string;
  readonly most: string;
  /** The effect above the limit. */
  readonly above: string;
}

type Megabytes = {
  [N in keyof typeof serviceSettings]: N extends `${string}_MB` ? N : never;
}[keyof typeof serviceSettings];

const setting = (name: Megabytes): string => `\`${name}\` (${serviceSettings[name].default} MB)`;

function size(bytes: number): string {
  const mb = bytes / 1024 / 1024;
  return mb >= 1 ? `${mb} MB` : `${bytes / 1024} KB`;
}

const invalid = '400';
const tooLarge = '413';

/** In the order in which they are shown. */
export const limits: readonly Limit[] = [
  {
    of: 'conversation and setup events of a run',
    most: setting('RUNYARD_RUN_EVENTS_MB'),
    above: 'the run continues; further text and output are dropped and counted, and the run says so',
  },
  {
    of: 'raw transcript of a run',
    most: setting('RUNYARD_RUN_TRANSCRIPT_MB'),
    above: 'the run continues; further lines are dropped and counted, and the run says so',
  },
  { of: 'output of one action in a conversation', most: size(maxOutputBytes), above: 'head, tail and size are kept' },
  { of: 'artifacts of a run', most: `${maxArtifactsPerRun}`, above: invalid },
  { of: 'bytes of one artifact', most: size(maxArtifactBytes), above: tooLarge },
  { of: "bytes of a run's artifacts together", most: setting('RUNYARD_RUN_ARTIFACTS_MB'), above: tooLarge },
  {
    of: 'kept workspace of an execution',
    most: setting('RUNYARD_WORKSPACE_MB'),
    above: 'it is not kept; the conversation says so',
  },
  {
    of: 'files that are handed over from an execution',
    most: `${maxSnapshotFiles}, ${size(maxSnapshotFileBytes)} each`,
    above: 'further files are left out; the conversation says so',
  },
  { of: 'prompt, message of a follow-up', most: size(maxPromptBytes), above: invalid },
  {
    of: 'attachments of a prompt or follow-up',
    most: `${maxAttachments}, ${size(maxAttachmentBytes)} each`,
    above: invalid,
  },
  { of: 'follow-ups of a run that wait for its agent', most: `${maxWaitingFollowups}`, above: invalid },
  { of: 'metadata of a run', most: `${maxMetadataKeys} keys`, above: invalid },
  { of: 'runs below one another', most: `${maxRunDepth}`, above: invalid },
  { of: 'live runs of one tree', most: `${maxLiveInTree}`, above: '409' },
  { of: 'runs that agents start in one tree', most: `${maxRunsInTree}`, above: '409' },
  { of: 'message from one run to another', most: size(maxMessageBytes), above: invalid },
  { of: 'messages that a run sends in a minute', most: `${maxMessagesPerMinute}`, above: '429' },
  { of: 'messages that a run sends in total', most: `${maxMessagesOfRun}`, above: '409' },
  { of: 'body of a request that starts or continues a run', most: size(maxRequestBodyBytes), above: tooLarge },
  { of: 'API keys of a team', most: `${maxKeys}`, above: '409' },
  { of: 'environments of a team', most: `${maxEnvironments}`, above: '409' },
  { of: 'schedules of a team', most: `${maxSchedules}`, above: '409' },
  { of: 'request that creates or replaces a schedule', most: size(maxScheduleBytes), above: tooLarge },
  {
    of: 'fires of a schedule that wait for the end of a run',
    most: `${maxWaitingFires}`,
    above: 'skipped, and the history says so',
  },
  { of: 'MCP servers of a team', most: `${maxMcpServers}`, above: '409' },
  { of: 'MCP servers of a run', most: `${maxMcpServersOfRun}`, above: invalid },
  { of: 'credentials of code hosts of a team, and of a person in it', most: `${maxCodeHostCredentials}`, above: '409' },
  { of: 'guests of an environment', most: `${maxEnvironmentGuests}`, above: '409' },
  { of: 'disabled models of a team', most: `${maxDisabledModels}`, above: invalid },
  { of: 'fallback models of a run, and of a team', most: `${maxModelFallbacks}`, above: invalid },
  { of: 'event subscriptions of a team', most: `${maxSubscriptions}`, above: '409' },
];
