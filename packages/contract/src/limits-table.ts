/** The table of all limits, from the constants and settings that define them. `docs/limits.md` is generated from it. */

import { sourcePolling } from './factory-sources.ts';
import {
  maxAllowedHosts,
  maxArtifactBytes,
  maxArtifactsPerRun,
  maxAttachmentBytes,
  maxAttachments,
  maxAutomationBytes,
  maxBranchesOfPush,
  maxChangesPerDay,
  maxCodeHostCredentials,
  maxDefinitionBytes,
  maxDefinitionFileBytes,
  maxDefinitionFiles,
  maxDefinitionYamlBytes,
  maxDefinitionYamlTotalBytes,
  maxDeniedShown,
  maxDisabledModels,
  maxEgressBytes,
  maxEgressConnections,
  maxEnvironmentGuests,
  maxEnvironments,
  maxEnvironmentVisitors,
  maxFactories,
  maxFactoryAgents,
  maxFactoryAutomations,
  maxFactoryRepositories,
  maxFactoryRunners,
  maxFactoryWebhooks,
  maxGitRequestsAtOnce,
  maxIdentities,
  maxInvitations,
  maxKeys,
  maxListedRepositories,
  maxLiveInTree,
  maxMcpServers,
  maxMcpServersOfRun,
  maxMembers,
  maxMessageBytes,
  maxMessagesOfRun,
  maxMessagesPerMinute,
  maxMetadataKeys,
  maxModelFallbacks,
  maxOutputBytes,
  maxPromptBytes,
  maxProtectedBranches,
  maxPullRequestsOfRun,
  maxPushBytes,
  maxPushedBranches,
  maxRefusedPushesShown,
  maxRepositoryPackBytes,
  maxRequestBodyBytes,
  maxResumesOfTurn,
  maxRunDepth,
  maxRunsInTree,
  maxScheduleBytes,
  maxSchedules,
  maxSecretBytes,
  maxSecrets,
  maxSecretsOfRun,
  maxSkillBytes,
  maxSkillFiles,
  maxSkillsOfRepository,
  maxSkillsOfRun,
  maxSkillTextBytes,
  maxSnapshotFileBytes,
  maxSnapshotFiles,
  maxSubscriptions,
  maxTeamsOfPerson,
  maxTriggers,
  maxWaitingFires,
  maxWaitingFollowups,
  maxWebhookBytes,
  maxWebhookDeliveriesPerMinute,
  maxWorkerConnections,
} from './limits.ts';
import { maxComparisons } from './payload-filter/evaluate.ts';
import { maxFilterKeys, maxFilterLevels, maxFilterTextLength, maxFilterValues } from './payload-filter/plan.ts';
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
const definitionFault = 'a fault of the definition';

/** In the order of the page. */
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
  {
    of: 'resumes of a turn whose machine was lost (`on_worker_loss: resume`)',
    most: `${maxResumesOfTurn}`,
    above: 'the run ends in ERROR',
  },
  { of: 'runs below one another', most: `${maxRunDepth}`, above: invalid },
  { of: 'live runs of one tree', most: `${maxLiveInTree}`, above: '409' },
  { of: 'runs that agents start in one tree', most: `${maxRunsInTree}`, above: '409' },
  { of: 'message from one run to another', most: size(maxMessageBytes), above: invalid },
  { of: 'messages that a run sends in a minute', most: `${maxMessagesPerMinute}`, above: '429' },
  { of: 'messages that a run sends in total', most: `${maxMessagesOfRun}`, above: '409' },
  { of: 'body of a request that starts or continues a run', most: size(maxRequestBodyBytes), above: tooLarge },
  {
    of: 'requests of one API key in a minute, for each service process',
    most: `\`RUNYARD_KEY_REQUESTS_PER_MINUTE\` (${serviceSettings.RUNYARD_KEY_REQUESTS_PER_MINUTE.default})`,
    above: '429',
  },
  {
    of: 'requests of all API keys of a team in a minute, for each service process',
    most: `\`RUNYARD_TEAM_REQUESTS_PER_MINUTE\` (${serviceSettings.RUNYARD_TEAM_REQUESTS_PER_MINUTE.default})`,
    above: '429',
  },
  {
    of: 'cost, model answers and time of a run',
    most: '`config.max_cost_usd`, `max_turns`, `max_duration_minutes`',
    above: 'the run ends FAILED',
  },
  {
    of: 'cost of a team in a month, and its credits',
    most: '`bin/runyard budget set`',
    above: '403; live runs end FAILED',
  },
  { of: 'API keys of a team', most: `${maxKeys}`, above: '409' },
  { of: 'teams of a person', most: `${maxTeamsOfPerson}`, above: '409' },
  { of: 'people in a team', most: `${maxMembers}`, above: '409' },
  { of: 'invitations of a team that wait', most: `${maxInvitations}`, above: '409' },
  { of: 'agent identities of a team', most: `${maxIdentities}`, above: '409' },
  {
    of: 'changes of a team in a day, as the audit log counts them',
    most: `${maxChangesPerDay}`,
    above: '429 until the next day (UTC); cancels, deletes and lower roles still work',
  },
  {
    of: 'hosts that an environment allows',
    most: `${maxAllowedHosts}`,
    above: invalid,
  },
  {
    of: 'connections of a sandbox to hosts that its environment allows, at once',
    most: `${maxEgressConnections}`,
    above: 'further connections are closed; the run says so',
  },
  {
    of: 'bytes between a sandbox and these hosts',
    most: size(maxEgressBytes),
    above: 'its connections are closed; the run says so',
  },
  {
    of: 'denied connections that the timeline shows one by one',
    most: `${maxDeniedShown} of an execution`,
    above: 'one event has the number of all',
  },
  { of: 'environments of a team', most: `${maxEnvironments}`, above: '409' },
  { of: 'schedules of a team', most: `${maxSchedules}`, above: '409' },
  { of: 'request that creates or replaces an automation', most: size(maxAutomationBytes), above: tooLarge },
  { of: 'request that creates or replaces a schedule', most: size(maxScheduleBytes), above: tooLarge },
  {
    of: 'fires of a schedule that wait for the end of a run',
    most: `${maxWaitingFires}`,
    above: 'skipped, and the history says so',
  },
  { of: 'MCP servers of a team', most: `${maxMcpServers}`, above: '409' },
  { of: 'MCP servers of a run', most: `${maxMcpServersOfRun}`, above: invalid },
  { of: 'credentials of code hosts of a team, and of a person in it', most: `${maxCodeHostCredentials}`, above: '409' },
  { of: 'protected branches of an environment', most: `${maxProtectedBranches} patterns`, above: invalid },
  {
    of: 'clones, fetches and pushes of a run at once, in each process of the service',
    most: `${maxGitRequestsAtOnce}`,
    above: '429',
  },
  { of: 'branches of one push', most: `${maxBranchesOfPush}`, above: 'the push is refused' },
  { of: 'branches of all pushes of a run', most: `${maxPushedBranches}`, above: 'the push is refused' },
  { of: 'one push', most: size(maxPushBytes), above: 'the push is refused' },
  {
    of: 'refused pushes that the timeline shows',
    most: `${maxRefusedPushesShown} of a run`,
    above: 'further ones are refused, and not shown',
  },
  { of: 'pull requests that a run opens', most: `${maxPullRequestsOfRun}`, above: '409' },
  { of: 'guests of an environment', most: `${maxEnvironmentGuests}`, above: '409' },
  { of: 'secrets of a team, personal secrets of a person', most: `${maxSecrets} each`, above: '409' },
  { of: 'value of a secret', most: size(maxSecretBytes), above: invalid },
  { of: 'secrets that a run or an environment names', most: `${maxSecretsOfRun}`, above: invalid },
  {
    of: 'people who open an environment by its link',
    most: `${maxEnvironmentVisitors}`,
    above: '404 for further people',
  },
  { of: 'skills of a run', most: `${maxSkillsOfRun}`, above: invalid },
  { of: 'a SKILL.md file', most: size(maxSkillTextBytes), above: 'the skill is malformed' },
  {
    of: 'files of a skill',
    most: `${maxSkillFiles} files, ${size(maxSkillBytes)} together`,
    above: 'the skill is malformed, and a run with it fails',
  },
  { of: 'skills listed of one repository', most: `${maxSkillsOfRepository}`, above: 'further ones are left out' },
  {
    of: 'repositories read for one list of skills',
    most: `${maxListedRepositories}`,
    above: 'further ones are left out, and the list says so',
  },
  {
    of: 'what the code host sends when a repository is searched for skills, or a definition is read from it',
    most: size(maxRepositoryPackBytes),
    above: 'the repository is not read, and the list or the source says so',
  },
  { of: 'disabled models of a team', most: `${maxDisabledModels}`, above: invalid },
  { of: 'fallback models of a run, and of a team', most: `${maxModelFallbacks}`, above: invalid },
  {
    of: 'connections of the workers of a team to one service process',
    most: `${maxWorkerConnections}`,
    above: '429; the worker tries again',
  },
  { of: 'event subscriptions of a team', most: `${maxSubscriptions}`, above: '409' },
  {
    of: 'definition files of a factory',
    most: `${maxDefinitionFiles}, ${size(maxDefinitionFileBytes)} each, ${size(maxDefinitionBytes)} together`,
    above: definitionFault,
  },
  {
    of: 'looks at the repository that a factory takes its definition from',
    most: `one in ${sourcePolling.least} seconds, and in 5 seconds where pushes are reported`,
    above: `${invalid}; further pushes wait`,
  },
  {
    of: 'YAML in the definition files of a factory',
    most: `${size(maxDefinitionYamlBytes)} in a file, ${size(maxDefinitionYamlTotalBytes)} together`,
    above: definitionFault,
  },
  {
    of: 'what a factory defines',
    most: `${maxFactoryAgents} agents, ${maxFactoryAutomations} automations, ${maxFactoryWebhooks} webhooks, ${maxFactoryRunners} runners, ${maxFactoryRepositories} repositories`,
    above: definitionFault,
  },
  { of: 'triggers of an automation', most: `${maxTriggers}`, above: definitionFault },
  {
    of: 'payload filter',
    most: `${maxFilterLevels} levels, ${maxFilterKeys} keys, ${maxFilterValues} values in a list, ${maxFilterTextLength} characters in a key or value`,
    above: definitionFault,
  },
  {
    of: 'comparisons of a payload filter with one body',
    most: `${maxComparisons}`,
    above: 'the body does not match, and the explanation says so',
  },
  { of: 'factories of a team', most: `${maxFactories}`, above: '409' },
  { of: 'automations of a factory', most: `${maxFactoryAutomations}`, above: '409' },
  { of: 'webhooks of a factory', most: `${maxFactoryWebhooks}`, above: '409' },
  { of: 'body of a delivery to a webhook', most: size(maxWebhookBytes), above: tooLarge },
  { of: 'deliveries to a webhook in a minute', most: `${maxWebhookDeliveriesPerMinute}`, above: '429' },
  { of: 'failed authentications at a webhook in a minute', most: `${maxWebhookDeliveriesPerMinute}`, above: '429' },
  {
    of: 'stored payloads of a webhook',
    most: setting('RUNYARD_WEBHOOK_PAYLOADS_MB'),
    above: 'the oldest ones are deleted, but never the latest 50; their deliveries stay in the log',
  },
];
