/** Limits of the API as constants. This file imports nothing: the agent and the worker load it at every start. */

/** Bytes of a prompt or a follow-up's message. */
export const maxPromptBytes = 1024 * 1024;
/** Bytes of the body of a request that starts or continues a run. */
export const maxRequestBodyBytes = 64 * 1024 * 1024;
/** Attachments of one prompt or follow-up. */
export const maxAttachments = 5;
/** Maximum number of attachments that a follow-up names, and of files in one request that uploads attachments. */
export const maxPreparedOfFollowup = 25;
/** Prepared attachments of a person or agent that no follow-up has used. */
export const maxPreparedOfCaller = 50;
/** The same of a team. */
export const maxPreparedOfTeam = 200;
/** Bytes of one attachment. */
export const maxAttachmentBytes = 10 * 1024 * 1024;
/** Follow-ups of a run that its agent has not taken yet. */
export const maxWaitingFollowups = 100;
/** Keys of a run's metadata. */
export const maxMetadataKeys = 20;
/** Metadata pairs by which a list or a subscription may filter. */
export const maxMetadataFilters = 5;
/** Factories that the filter of a list may name. */
export const maxFactoryFilters = 50;
/** Runs that `run_id` of a list names. */
export const maxRunIdFilters = 100;
/** Saved views of a person in a team. */
export const maxSavedViews = 50;
/** Creators that `creator` of a list names. */
export const maxCreatorFilters = 20;

/** Ancestors of a run. */
export const maxRunDepth = 5;
/** Runs of one tree that may be live at once. */
export const maxLiveInTree = 100;
/** Runs that agents may start in one tree. Deleted runs do not count. */
export const maxRunsInTree = 10_000;
/** Bytes of a message from one run to another. */
export const maxMessageBytes = 64 * 1024;
/** Messages that a run may send in a minute. */
export const maxMessagesPerMinute = 60;
/** Messages that a run may send in total. */
export const maxMessagesOfRun = 10_000;
/** Maximum number of runs that one call may wait for. */
export const maxAwaited = 100;

/** Maximum number of times that a run resumes one turn after its machine was lost (`on_worker_loss: resume`). */
export const maxResumesOfTurn = 3;

/** Bytes of one file-like artifact. */
export const maxArtifactBytes = 100 * 1024 * 1024;
/** Artifacts of one run. */
export const maxArtifactsPerRun = 100;
/** Characters of a locator, as requested and in its canonical form. */
export const maxLocatorLength = 2048;
/** Bytes of a preview: of a text, of an image, and of HTML or SVG in a frame. A page shows only the beginning of a longer text. */
export const maxTextPreviewBytes = 1024 * 1024;
export const maxImagePreviewBytes = 25 * 1024 * 1024;
export const maxFramePreviewBytes = 5 * 1024 * 1024;
/** Files of one snapshot. */
export const maxSnapshotFiles = 100;
/** Bytes of one file of a snapshot. */
export const maxSnapshotFileBytes = 25 * 1024 * 1024;
/** Repositories, and changed files in all of them, that a run reports. */
export const maxChangedRepositories = 20;
export const maxChangedFiles = 1000;
/** Maximum bytes of the patch of one changed file, and of all patches together. */
export const maxFilePatchBytes = 128 * 1024;
export const maxPatchesOfRunBytes = 2 * 1024 * 1024;
/** Bytes of an action's output that a conversation holds. A longer output keeps its head, its tail and its size. */
export const maxOutputBytes = 64 * 1024;

/** API keys of a team, expired ones included. */
export const maxKeys = 1_000;
/** Teams that one person is in. */
export const maxTeamsOfPerson = 1_000;
/** People in a team. */
export const maxMembers = 1_000;
/** Unused invitations of a team. */
export const maxInvitations = 200;
/** Agent identities of a team. */
export const maxIdentities = 200;
/** Changes of a team in a day (UTC), as the audit log counts them. Cancels, deletes and lower roles are possible above it. */
export const maxChangesPerDay = 10_000;
/** The same limit for one person or service account. */
export const maxChangesOfAuthorPerDay = 2_000;
/** Environments of a team. */
export const maxEnvironments = 1_000;
/** Hosts that an environment allows, without those of presets. */
export const maxAllowedHosts = 100;
/** Connections of one sandbox through its proxy at once. */
export const maxEgressConnections = 64;
/** Bytes that one sandbox sends and receives through its proxy. */
export const maxEgressBytes = 20 * 1024 * 1024 * 1024;
/** Denied connections of an execution that its timeline shows one by one. */
export const maxDeniedShown = 20;
/** Connections of one worker in the list of connected workers. */
export const maxConnectionsListed = 50;
/** Fires of each schedule in a list of schedules. */
export const maxLastFires = 30;
/** Schedules of a team. */
export const maxSchedules = 500;
/** Bytes of a request that creates or replaces a schedule. */
export const maxScheduleBytes = 128 * 1024;
/** Bytes of a request that creates or replaces an automation. */
export const maxAutomationBytes = 128 * 1024;
/** Fires of a schedule that wait for the end of a run. */
export const maxWaitingFires = 10;
/** Stored MCP servers of a team. */
export const maxMcpServers = 100;
/** MCP servers of a run. */
export const maxMcpServersOfRun = 20;
/** Credentials of code hosts for a team, and for each person in it. */
export const maxCodeHostCredentials = 50;
/** Patterns of protected branches of an environment. */
export const maxProtectedBranches = 50;
/** Branches that one push may update. */
export const maxBranchesOfPush = 20;
/** Branches that the pushes of a run may update; each push of a branch counts, even a refused push. */
export const maxPushedBranches = 500;
/** Refused pushes of a run that its timeline shows. */
export const maxRefusedPushesShown = 20;
/** Bytes of one push. */
export const maxPushBytes = 2 * 1024 * 1024 * 1024;
/** Concurrent clones, fetches and pushes of an execution in one process of the service. */
export const maxGitRequestsAtOnce = 32;
/** Pull requests that a run may open. */
export const maxPullRequestsOfRun = 20;
/** Guests of an environment. */
export const maxEnvironmentGuests = 100;
/** Secrets of a team, and personal secrets of one person in it. */
export const maxSecrets = 200;
/** Contents in a list of contents that wait for a person's acceptance. */
export const maxWaitingContents = 100;
/** Characters of all differences in such a list. */
export const maxDifferenceLength = 1024 * 1024;
/** Bytes of a secret's value. */
export const maxSecretBytes = 16 * 1024;
/**
 * Minimum number of characters, and of different characters, in a secret's value, because a shorter value occurs in ordinary text by
 * chance.
 */
export const minSecretLength = 8;
export const minSecretCharacters = 4;
/** Secrets that a run, or an environment, names. */
export const maxSecretsOfRun = 50;
/** Service accounts that may name a secret. */
export const maxSecretAgents = 100;
/** People of other teams who can open an environment by its link. */
export const maxEnvironmentVisitors = 1_000;
/** Skills of a run. */
export const maxSkillsOfRun = 10;
/** Bytes of a SKILL.md file. */
export const maxSkillTextBytes = 64 * 1024;
/** Files of a skill, its SKILL.md included. */
export const maxSkillFiles = 100;
/** Bytes of all files of a skill. */
export const maxSkillBytes = 1024 * 1024;
/** Skills that are listed of one repository. */
export const maxSkillsOfRepository = 100;
/** Repositories that are read for one list of skills. */
export const maxListedRepositories = 50;
/** Bytes that the code host sends when a repository is read: its folders, and its files if the host cannot omit them. */
export const maxRepositoryPackBytes = 32 * 1024 * 1024;
/** Models that an administrator may disable for a team. */
export const maxDisabledModels = 500;
/** Fallback models of a run, or of a team. */
export const maxModelFallbacks = 5;
/** Event subscriptions of a team. */
export const maxSubscriptions = 20;
/** Factories of a team. */
export const maxFactories = 50;
/** Artifacts that the answer about a task of a factory has. */
export const maxTaskOutputs = 200;
/** Artifacts of each task in a list of tasks. */
export const maxListedTaskOutputs = 20;
/** Bytes of the body of a delivery to a webhook. */
export const maxWebhookBytes = 256 * 1024;
/** Deliveries to a webhook in a minute, and separately the requests that fail its authentication. */
export const maxWebhookDeliveriesPerMinute = 60;

/** Connections of the workers of a team's keys to one service process. */
export const maxWorkerConnections = 250;
/** Service accounts that may answer the requests of a run. */
export const maxApprovers = 20;
/** Names under which the self-hosted workers of a team have connected. */
export const maxWorkerPools = 500;
/** People and service accounts besides the owner whose keys connect to one pool of workers. */
export const maxPoolConnectors = 100;

/** Earlier worker processes that one hello may replace. */
export const maxReplacedTokens = 16;

/** Characters of an id that an agent gives a step, a message or an action. */
export const maxEventIdLength = 1000;

/** Bytes of the output that the end of a setup step may carry. */
export const maxSetupOutputBytes = 8 * 1024;

/** Bytes of JSON of an action that a person is asked about. */
export const maxAskedInputBytes = 64 * 1024;
/** Nesting levels of objects and lists in such an action. */
export const maxAskedInputDepth = 20;

/** Characters of `resume` in a request to a person. */
export const maxResumeLength = 64 * 1024;

/** Characters of a conversation as text, about 50,000 tokens. A model can read this much before a prompt. */
export const maxConversationTextLength = 200_000;

/** Bytes of a harness's memory. */
export const maxMemoryBytes = 32 * 1024 * 1024;

/** Files of a factory definition. */
export const maxDefinitionFiles = 1_000;
/** Bytes of all files of a factory definition. */
export const maxDefinitionBytes = 8 * 1024 * 1024;
/** Bytes of a request without a key that checks the files of a definition. */
export const maxKeylessDefinitionBytes = 256 * 1024;
/** Checks of definition files without a key in a minute: from one address, and from all addresses. */
export const keylessChecksPerMinute = { address: 20, total: 120 };
/** Requests from one address in a minute that begin or complete a sign-in with an identity provider. */
export const signOnsPerMinute = { address: 60 };
/** Attempts to complete one sign-in with an identity provider. */
export const maxExchangesPerSignOn = 5;
/** Bytes of one file of a factory definition. */
export const maxDefinitionFileBytes = 1024 * 1024;
/** Bytes of the YAML of one file of a factory definition. */
export const maxDefinitionYamlBytes = 32 * 1024;
/** Bytes of the YAML of all files of a factory definition. */
export const maxDefinitionYamlTotalBytes = 512 * 1024;
/** Values in the YAML of all files of a factory definition, including maps and lists. */
export const maxDefinitionYamlValues = 20_000;
/** Agents of a factory. */
export const maxFactoryAgents = 50;
/** Automations of a factory. */
export const maxFactoryAutomations = 100;
/** Webhooks of a factory. */
export const maxFactoryWebhooks = 20;
/** Runners of a factory. */
export const maxFactoryRunners = 50;
/** Repositories of a factory. */
export const maxFactoryRepositories = 20;
/** Triggers of an automation. */
export const maxTriggers = 20;

/**
 * Comparisons that one evaluation may make. A body of 256 KB has at most 131,072 elements, so three conditions on each element are always
 * possible.
 */
export const maxComparisons = 400_000;
