/** Limits of the API as constants. This file imports nothing: the agent and the worker load it at every start. */

/** Bytes of a prompt or a follow-up's message. */
export const maxPromptBytes = 1024 * 1024;
/** Bytes of the body of a request that starts or continues a run. */
export const maxRequestBodyBytes = 64 * 1024 * 1024;
/** Attachments of one prompt or follow-up. */
export const maxAttachments = 5;
/** Bytes of one attachment. */
export const maxAttachmentBytes = 10 * 1024 * 1024;
/** Follow-ups of a run that its agent has not taken yet. */
export const maxWaitingFollowups = 100;
/** Keys of a run's metadata. */
export const maxMetadataKeys = 20;
/** Metadata pairs by which a list or a subscription may filter. */
export const maxMetadataFilters = 5;

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
/** Runs that one call may wait for. */
export const maxAwaited = 100;

/** Bytes of one file-like artifact. */
export const maxArtifactBytes = 100 * 1024 * 1024;
/** Artifacts of one run. */
export const maxArtifactsPerRun = 100;
/** Characters of a locator, as requested and in its canonical form. */
export const maxLocatorLength = 2048;
/** Files of one snapshot. */
export const maxSnapshotFiles = 100;
/** Bytes of one file of a snapshot. */
export const maxSnapshotFileBytes = 25 * 1024 * 1024;
/** Bytes of an action's output that a conversation holds. Of a longer output, head, tail and size are kept. */
export const maxOutputBytes = 64 * 1024;

/** API keys of a team, expired ones included. */
export const maxKeys = 1_000;
/** Environments of a team. */
export const maxEnvironments = 1_000;
/** Schedules of a team. */
export const maxSchedules = 500;
/** Bytes of a request that creates or replaces a schedule. */
export const maxScheduleBytes = 128 * 1024;
/** Fires of a schedule that wait for the end of a run. */
export const maxWaitingFires = 10;
/** Stored MCP servers of a team. */
export const maxMcpServers = 100;
/** MCP servers of a run. */
export const maxMcpServersOfRun = 20;
/** Credentials of code hosts of a team, and of each person in it. */
export const maxCodeHostCredentials = 50;
/** Guests of an environment. */
export const maxEnvironmentGuests = 100;
/** Models that an administrator may disable for a team. */
export const maxDisabledModels = 500;
/** Fallback models of a run, or of a team. */
export const maxModelFallbacks = 5;
/** Event subscriptions of a team. */
export const maxSubscriptions = 20;

/** Earlier worker processes that one hello may replace. */
export const maxReplacedTokens = 16;

/** Characters of an id that an agent gives a step, a message or an action. */
export const maxEventIdLength = 1000;

/** Bytes of the output that the end of a setup step may carry. */
export const maxSetupOutputBytes = 8 * 1024;

/** Characters of `resume` in a request to a person. */
export const maxResumeLength = 64 * 1024;

/** Characters of a conversation as text, about 50,000 tokens: what a model can take in front of a prompt. */
export const maxConversationTextLength = 200_000;

/** Bytes of a harness's memory. */
export const maxMemoryBytes = 32 * 1024 * 1024;
