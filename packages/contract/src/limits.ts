/** Limits of the API as constants. This file imports nothing, because the agent and the worker load it at every start. */

/** Maximum number of bytes of a prompt or a follow-up's message. */
export const maxPromptBytes = 1024 * 1024;
/** Maximum number of bytes of the body of a request that starts or continues a run. */
export const maxRequestBodyBytes = 64 * 1024 * 1024;
/** Maximum number of bytes of an output schema as JSON. */
export const maxOutputSchemaBytes = 64 * 1024;
/** Maximum number of levels of an output schema. */
export const maxOutputSchemaDepth = 32;
/** Maximum number of bytes of a result that is part of answers about its run. A larger result is an artifact. */
export const maxResultBytes = 256 * 1024;
/** Maximum number of bytes of a result that is an artifact. */
export const maxResultArtifactBytes = 8 * 1024 * 1024;
/** Number of times that a result that does not fit goes back to the agent in one turn. */
export const maxResultAttempts = 3;
/** Maximum number of checks of a run. */
export const maxChecks = 20;
/** Maximum number of characters of the command of a check. */
export const maxCheckCommandLength = 10_000;
/** Seconds that the command of a check may take: at most, and if the check sets no limit. */
export const maxCheckSeconds = 3_600;
export const usualCheckSeconds = 600;
/** Number of times that a failed check goes back to the agent in one turn: at most, and if the configuration sets none. */
export const maxCheckAttempts = 5;
export const usualCheckAttempts = 2;
/** Maximum number of runs that repeat a failed run, and the longest wait before each, in seconds. */
export const maxRetries = 5;
export const maxRetryBackoffSeconds = 24 * 3600;
/** Maximum number of failed runs of a tree that one request repeats. */
export const maxFailedReruns = 100;
/** Maximum number of trusted paths of a check. */
export const maxTrustedPaths = 100;
/** Maximum number of repositories whose base commits an agent reports. */
export const maxBaseCommits = 20;
/** Maximum number of bytes of a check's output in the timeline and in messages. */
export const maxCheckOutputBytes = 8 * 1024;
/** Maximum number of attachments of one prompt or follow-up. */
export const maxAttachments = 5;
/** Maximum number of attachments that one follow-up may name, and of files that one request may upload as attachments. */
export const maxPreparedOfFollowup = 25;
/** Maximum number of attachments that a person or agent has uploaded and that no follow-up has used yet. */
export const maxPreparedOfCaller = 50;
/** Maximum number of attachments that all callers of a team have uploaded and that no follow-up has used yet. */
export const maxPreparedOfTeam = 200;
/** Maximum number of bytes of one attachment. */
export const maxAttachmentBytes = 10 * 1024 * 1024;
/** Maximum number of follow-ups of a run that wait until the agent takes them. */
export const maxWaitingFollowups = 100;

/** Number of characters of a waiting follow-up that the answer about its run has. */
export const waitingMessageLength = 2000;
/** Maximum number of keys of a run's metadata. */
export const maxMetadataKeys = 20;
/** Maximum number of metadata pairs in the filter of a list or a subscription. */
export const maxMetadataFilters = 5;
/** Maximum number of factories in the filter of a list. */
export const maxFactoryFilters = 50;
/** Maximum number of runs in the filter `run_id` of a list. */
export const maxRunIdFilters = 100;
/** Maximum number of saved views of a person in a team. */
export const maxSavedViews = 50;
/** Maximum number of notifications in one request that marks them. */
export const maxMarkedNotifications = 100;
/** Maximum number of notifications of a person that a count counts. A person with this many gets no further ones of failed runs. */
export const maxCountedNotifications = 1_000;
/** Maximum number of rules for notifications of a schedule, an automation or a budget. */
export const maxNotifyRules = 10;
/** Maximum number of people and subscriptions that such a rule names. */
export const maxNotifyTargets = 20;
/** Maximum number of failed runs in a row that such a rule names. */
export const maxNotifyTimes = 50;
/** Number of days after which a notification is deleted. */
export const notificationDays = 90;
/** Maximum number of creators in the filter `creator` of a list. */
export const maxCreatorFilters = 20;

/** Maximum number of ancestors of a run: the run that started it, the run that started that run, and so on. */
export const maxRunDepth = 5;
/** Maximum number of live runs in one tree of runs (a run and all runs below it). */
export const maxLiveInTree = 100;
/** Number of live children of a run whose configuration does not set `child_runs.max_live`. */
export const usualLiveChildren = 8;
/** Maximum number of runs that agents may start in one tree of runs. Deleted runs do not count. */
export const maxRunsInTree = 10_000;
/** Maximum number of bytes of a message from one run to another. */
export const maxMessageBytes = 64 * 1024;
/** Maximum number of messages that a run may send in a minute. */
export const maxMessagesPerMinute = 60;
/** Maximum number of messages that a run may send in total. */
export const maxMessagesOfRun = 10_000;
/** Maximum number of runs that one call may wait for. */
export const maxAwaited = 100;

/** Maximum number of times that a run resumes one turn after its machine was lost (`on_worker_loss: resume`). */
export const maxResumesOfTurn = 3;

/** Number of MB of a request body that must arrive in each five minutes, until the body ends. No JSON body is larger. */
export const leastBodyMb = 64;
/** Maximum number of artifacts of one run. */
export const maxArtifactsPerRun = 100;
/** Maximum number of characters of a locator. The limit applies to the requested text and to its canonical form. */
export const maxLocatorLength = 2048;
/**
 * Maximum sizes in bytes of the previews of artifacts: a text, an image, and HTML or SVG in a frame. If a text is longer, the page shows
 * only its beginning.
 */
export const maxTextPreviewBytes = 1024 * 1024;
export const maxImagePreviewBytes = 25 * 1024 * 1024;
export const maxFramePreviewBytes = 5 * 1024 * 1024;
/** Maximum number of files of one snapshot. */
export const maxSnapshotFiles = 100;
/** Maximum number of bytes of one file of a snapshot. */
export const maxSnapshotFileBytes = 25 * 1024 * 1024;
/** Maximum number of repositories with changes that a run reports, and of changed files in all these repositories together. */
export const maxChangedRepositories = 20;
export const maxChangedFiles = 1000;
/** Maximum number of bytes of the patch of one changed file, and of all patches of a report together. */
export const maxFilePatchBytes = 128 * 1024;
export const maxPatchesOfRunBytes = 2 * 1024 * 1024;
/**
 * Maximum number of bytes of an action's output in a conversation. Of a longer output, the conversation has the head, the tail and the
 * size.
 */
export const maxOutputBytes = 64 * 1024;

/**
 * Part of the objects of a team, such as its keys or schedules, that one caller of this role may create. Agent keys have the share of a
 * member. An owner may create all.
 */
export const shareOfRole = { owner: 1, admin: 0.5, member: 0.25, viewer: 0.05 } as const;
/** Part of the objects of a team that only owners may create, so that other callers cannot use up a limit. */
export const reserveForOwners = 0.1;
/** Maximum number of API keys of a team, expired ones included. */
export const maxKeys = 1_000;
/** Maximum number of passkeys of a person. */
export const maxPasskeys = 20;
/** Maximum number of teams that one person is in. */
export const maxTeamsOfPerson = 1_000;
/** Maximum number of people in a team. */
export const maxMembers = 1_000;
/** Maximum number of unused invitations of a team. */
export const maxInvitations = 200;
/** Maximum number of agent identities of a team. */
export const maxIdentities = 200;
/**
 * Maximum number of changes of a team in a day (UTC), as the audit log counts them. Above this number, people can still cancel, delete and
 * lower roles.
 */
export const maxChangesPerDay = 10_000;
/** Maximum number of such changes in a day (UTC) by one person or service account. */
export const maxChangesOfAuthorPerDay = 2_000;
/** Maximum number of environments of a team. */
export const maxEnvironments = 1_000;
/** Maximum number of hosts that an environment allows. The hosts of presets do not count. */
export const maxAllowedHosts = 100;
/** Maximum number of connections of one sandbox through its proxy at once. */
export const maxEgressConnections = 64;
/** Maximum number of bytes that one sandbox may send and receive through its proxy. */
export const maxEgressBytes = 20 * 1024 * 1024 * 1024;
/** Maximum number of denied connections of an execution that the timeline shows one by one. */
export const maxDeniedShown = 20;
/** Maximum number of connections of one worker that the list of connected workers shows. */
export const maxConnectionsListed = 50;
/** Maximum number of fires of each schedule that a list of schedules shows. A fire is a time at which the schedule was due. */
export const maxLastFires = 30;
/** Maximum number of schedules of a team. */
export const maxSchedules = 500;
/** Maximum number of bytes of a request that creates or replaces a schedule. */
export const maxScheduleBytes = 128 * 1024;
/** Maximum number of bytes of a request that creates or replaces an automation. */
export const maxAutomationBytes = 128 * 1024;
/** Maximum number of fires of a schedule that wait for the end of an earlier run of the schedule. */
export const maxWaitingFires = 10;
/** Maximum number of stored MCP servers of a team. */
export const maxMcpServers = 100;
/** Maximum number of MCP servers of a run. */
export const maxMcpServersOfRun = 20;
/** Maximum number of credentials of code hosts of a team, and of each person in the team. */
export const maxCodeHostCredentials = 50;
/** Maximum number of GitHub Apps of a team. */
export const maxGithubApps = 10;
/** Maximum number of installations of GitHub Apps that a team has claimed. */
export const maxGithubInstallations = 100;
/** Maximum number of bytes of an event of a GitHub App. GitHub sends no larger ones. */
export const maxGithubEventBytes = 25 * 1024 * 1024;
/** Maximum number of patterns of protected branches of an environment. */
export const maxProtectedBranches = 50;
/** Maximum number of branches that one push may update. */
export const maxBranchesOfPush = 20;
/** Maximum number of branch updates in all pushes of a run. Each push of a branch counts, even a refused push. */
export const maxPushedBranches = 500;
/** Maximum number of refused pushes that the timeline of a run shows. */
export const maxRefusedPushesShown = 20;
/** Maximum number of bytes of one push. */
export const maxPushBytes = 2 * 1024 * 1024 * 1024;
/** Maximum number of concurrent clones, fetches and pushes of an execution in one service process. */
export const maxGitRequestsAtOnce = 32;
/** Maximum number of pull requests that a run may open. */
export const maxPullRequestsOfRun = 20;
/** Maximum number of guests of an environment. */
export const maxEnvironmentGuests = 100;
/** Maximum number of secrets of a team, and of personal secrets of one person in the team. */
export const maxSecrets = 200;
/** Maximum number of entries in the list of contents, such as prompts, that a person must accept before runs may execute them. */
export const maxWaitingContents = 100;
/** Maximum number of schedules and automations, and of people, that the answer to a change names because they wait for an acceptance. */
export const maxWaitingStarts = 50;
export const maxWaitingPeople = 50;
/** Maximum number of characters that all differences between revisions have together in the list of contents to accept. */
export const maxDifferenceLength = 1024 * 1024;
/** Maximum number of bytes of a secret's value. */
export const maxSecretBytes = 16 * 1024;
/**
 * Minimum number of characters in a secret's value, and of different characters among them, because a shorter value occurs in ordinary
 * text by chance.
 */
export const minSecretLength = 8;
export const minSecretCharacters = 4;
/** Maximum number of artifacts of a run that are whole outputs of commands. */
export const maxOutputFilesPerRun = 20;
/** Maximum number of services of an environment. */
export const maxServices = 10;
/** Maximum number of secrets that a run or an environment names. */
export const maxSecretsOfRun = 50;
/** Maximum number of service accounts whose runs may use a secret. */
export const maxSecretAgents = 100;
/** Maximum number of people of other teams who can open an environment by its link. */
export const maxEnvironmentVisitors = 1_000;
/** Maximum number of skills of a run. */
export const maxSkillsOfRun = 10;
/** Maximum number of bytes of a SKILL.md file. */
export const maxSkillTextBytes = 64 * 1024;
/** Maximum number of files of a skill, its SKILL.md included. */
export const maxSkillFiles = 100;
/** Maximum number of bytes of all files of a skill. */
export const maxSkillBytes = 1024 * 1024;
/** Maximum number of skills of one repository that a list shows. */
export const maxSkillsOfRepository = 100;
/** Maximum number of repositories that the service reads for one list of skills. */
export const maxListedRepositories = 50;
/**
 * Maximum number of bytes that the code host sends when the service reads the folders of a repository. Some hosts cannot omit the contents
 * of files, which then count too.
 */
export const maxRepositoryPackBytes = 32 * 1024 * 1024;
/** Maximum number of models that an administrator may disable for a team. */
export const maxDisabledModels = 500;
/** Maximum number of fallback models of a run, or of a team. */
export const maxModelFallbacks = 5;
/** Maximum number of event subscriptions of a team. */
export const maxSubscriptions = 20;
/** Maximum number of factories of a team. */
export const maxFactories = 50;
/** Maximum number of artifacts in the answer about one task of a factory. */
export const maxTaskOutputs = 200;
/** Maximum number of artifacts that a list of tasks shows for each task. */
export const maxListedTaskOutputs = 20;
/** Maximum number of bytes of the body of a delivery to a webhook. */
export const maxWebhookBytes = 256 * 1024;
/**
 * Maximum number of deliveries that a webhook accepts in a minute. Requests with failed authentication have a separate limit with the same
 * number.
 */
export const maxWebhookDeliveriesPerMinute = 60;

/**
 * Maximum number of connections from workers with keys of one team to one service process. One person or identity may have half of them.
 * The workers of the hosted pool do not count.
 */
export const maxWorkerConnections = 250;
/** Maximum number of service accounts that a run allows to answer its requests. */
export const maxApprovers = 20;
export const maxApprovalRules = 50;
/** Maximum number of actions that the gateway and the proxy hold for an approval in one run. */
export const maxHeldActions = 500;
/** Maximum number of different names under which the self-hosted workers of a team have connected. */
export const maxWorkerPools = 500;
/** Maximum number of people and service accounts, in addition to the owner, whose keys may connect workers to one pool. */
export const maxPoolConnectors = 100;

/**
 * Maximum number of executions that a worker's hello message may list. A worker has at most 1,000 slots, and twice as many executions; some
 * of them may be ending.
 */
export const maxListedExecutions = 2_500;
/** Maximum number of earlier worker processes that a worker's hello message may list as replaced by the present process. */
export const maxReplacedTokens = 16;

/** Maximum number of characters of an id that an agent gives a step, a message or an action. */
export const maxEventIdLength = 1000;

/** Maximum number of bytes of output in the event about the end of a setup step. */
export const maxSetupOutputBytes = 8 * 1024;

/** Maximum size in bytes of the input of an action, as JSON, about which an agent asks a person. */
export const maxAskedInputBytes = 64 * 1024;
/** Maximum number of nesting levels of objects and lists in the input of an action about which an agent asks a person. */
export const maxAskedInputDepth = 20;

/** Maximum number of characters of `resume`, the state that a harness stores with a request to a person. */
export const maxResumeLength = 64 * 1024;

/**
 * Maximum number of characters of a conversation that is given to a model as text. This number of characters is about 50,000 tokens,
 * which a model can read before its prompt.
 */
export const maxConversationTextLength = 200_000;

/** Maximum number of bytes of a harness's memory, which is the conversation in the harness's own format. */
export const maxMemoryBytes = 32 * 1024 * 1024;

/** Maximum number of files of a factory definition. */
export const maxDefinitionFiles = 1_000;
/** Maximum number of bytes of all files of a factory definition. */
export const maxDefinitionBytes = 8 * 1024 * 1024;
/** Maximum size in bytes of a request that checks definition files and has no API key. */
export const maxKeylessDefinitionBytes = 256 * 1024;
/**
 * Maximum number of requests in a minute that check definition files and have no API key: from one address, and from all addresses
 * together.
 */
export const keylessChecksPerMinute = { address: 20, total: 120 };
/** Maximum number of requests from one address in a minute that begin or complete a sign-in with an identity provider. */
export const signOnsPerMinute = { address: 60 };
/** Maximum number of attempts to complete one sign-in with an identity provider. */
export const maxExchangesPerSignOn = 5;
/** Maximum number of bytes of one file of a factory definition. */
export const maxDefinitionFileBytes = 1024 * 1024;
/** Maximum number of bytes of the YAML of one file of a factory definition. */
export const maxDefinitionYamlBytes = 32 * 1024;
/** Maximum number of bytes of the YAML of all files of a factory definition. */
export const maxDefinitionYamlTotalBytes = 512 * 1024;
/** Maximum number of values in the YAML of all files of a factory definition, including maps and lists. */
export const maxDefinitionYamlValues = 20_000;
/** Maximum number of agents of a factory. */
export const maxFactoryAgents = 50;
/** Maximum number of automations that name one schedule of the team in `schedule_ids`. */
export const maxListeners = 100;
/** Maximum number of automations of a factory. */
export const maxFactoryAutomations = 100;
/** Maximum number of webhooks of a factory. */
export const maxFactoryWebhooks = 20;
/** Maximum number of environments that a factory definition has. */
export const maxFactoryEnvironments = 20;
/** Maximum number of variables of a factory definition. */
export const maxDefinitionVariables = 100;
/** Maximum number of characters of the value of a variable of a factory definition. */
export const maxDefinitionVariableLength = 1_000;
/** Maximum number of versions of a definition that are kept for each factory. */
export const maxDefinitionVersions = 100;
/** Maximum number of bytes of all files of a version of a definition that is kept. */
export const maxDefinitionVersionBytes = 4 * 1024 * 1024;
/** Maximum number of starts of an automation by the moves of one task in an hour. */
export const maxStartsOfTask = 20;

/** Largest value of `own_pull_request.max_starts`. */
export const maxStartsOfPullRequest = 20;
/** Maximum number of runs that an automation starts for a pull request before a person does something there. */
export const maxStartsWithoutPerson = 10;
/** Maximum number of runners of a factory. */
export const maxFactoryRunners = 50;
/** Maximum number of repositories of a factory. */
export const maxFactoryRepositories = 20;
/** Maximum number of triggers of an automation. */
export const maxTriggers = 20;

/**
 * Maximum number of comparisons in one evaluation of a payload filter. A body of 256 KB has at most 131,072 elements, so three conditions
 * on each element are always possible.
 */
export const maxComparisons = 400_000;

/** Largest number of seconds of a statement that finds the runs of a list or count. */
export const maxListSeconds = 5;

/** Largest number of lists of a team that read the whole table of runs at once, in each process. */
export const maxScansOfTeam = 2;
