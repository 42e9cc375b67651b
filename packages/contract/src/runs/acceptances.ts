/**
 * Revisions of contents that runs execute, such as prompts and skills. Before runs of a person execute a content that somebody else has
 * changed, this person must accept the revision.
 */
import { z } from 'zod';
import { maxWaitingContents, maxWaitingPeople, maxWaitingStarts } from '../limits.ts';
import { NonBlank, Timestamp } from '../wire/primitives.ts';
import { UserProfile } from '../wire/profiles.ts';

/** Kinds of stored content that have revisions. */
export const ContentKind = z
  .enum(['environment', 'agent_identity', 'schedule', 'automation', 'definition', 'mcp_server', 'worker_pool'])
  .meta({
    id: 'ContentKind',
    description:
      "`definition`: defaults, agents and skills of a factory; its uid is the factory's uid. `mcp_server`: a stored MCP server with a command; `env` in it has a number for each variable, which changes with its value. `worker_pool`: a pool of self-hosted workers with its owner and its connectors; its uid consists of its name, `@` and an id of the team",
  });
export type ContentKind = z.infer<typeof ContentKind>;

/** Kinds of what a person can accept. */
export const AcceptableKind = z.enum([...ContentKind.options, 'conversation']).meta({
  id: 'AcceptableKind',
  description:
    'Kinds of stored content, and `conversation`: the texts that ran in the sandboxes of the runs of a conversation; its uid is the conversation_id, and its revision the number of its last turn',
});
export type AcceptableKind = z.infer<typeof AcceptableKind>;

const uid = z
  .string()
  .describe(
    'UID of the environment, agent identity, schedule, automation, factory, MCP server or worker pool, or id of the conversation',
  );
const revision = z.int().min(1).describe('Number of the revision: 1, 2, … of the content');

/** Kinds of content that a run executes. */
export const RunContentKind = z.enum([...ContentKind.options, 'prompt', 'run', 'conversation']).meta({
  id: 'RunContentKind',
  description:
    '`prompt`: prompt and configuration of the request. `run`: contents of a run that is repeated, or that is above the run. `conversation`: what others wrote in the conversation that is continued',
});
export type RunContentKind = z.infer<typeof RunContentKind>;

/** A revision that a run executes. */
export const RunContentItem = z
  .object({
    kind: RunContentKind,
    uid: uid.optional().describe('UID of the content; absent: it is the prompt of the request'),
    revision: revision
      .optional()
      .describe('Number of the revision that the run executes; absent: the content has no revisions'),
    author: UserProfile.optional().describe(
      'Author of texts that the executor has not accepted, or of the revision if `is_accepted`; absent: not known. A revision with several such authors is several times in the list',
    ),
    is_accepted: z.boolean().describe('True: the executor of the run wrote or accepted all its texts'),
    accepted_by: z
      .array(UserProfile)
      .optional()
      .describe(
        'Other people who have accepted these texts of the author: the run may use what one of them may use. Absent: nobody',
      ),
  })
  .meta({ id: 'RunContent', description: 'A revision that a run executes' });

/** Kinds of rights that a run can lack. */
export const RunRightKind = z.enum(['secret', 'code_host_credentials', 'team_credentials', 'environment']).meta({
  id: 'RunRightKind',
  description:
    '`secret`: a stored secret. `code_host_credentials`: the personal credentials of the executor for code hosts. `team_credentials`: what belongs to the whole team: its credentials for code hosts and the headers of its stored MCP servers; without this right, the run also has the default protection of branches, hosts and limits. `environment`: an environment of another team of which the executor is a guest; without this right, a run is refused',
});

/** A right that a run does not get, because the executor of the run or the author of a content lacks this right. */
export const WithheldRight = z
  .object({
    right: RunRightKind,
    name: z.string().optional().describe('Name of the secret, UID of the environment'),
    content: RunContentItem.optional().describe(
      'Content whose author lacks the right; absent: the executor itself lacks it',
    ),
    reason: z.string().describe('Why it is withheld, and how to accept the content, for people'),
  })
  .meta({ id: 'WithheldRight', description: 'A right that a run lacks because of the contents that it executes' });
export type WithheldRight = z.infer<typeof WithheldRight>;

/** A member of a content that differs between two revisions. */
export const ContentDifference = z
  .object({
    path: z.string().describe('Names of the member and of its parents, joined with dots'),
    before: z
      .unknown()
      .optional()
      .describe('Value in the revision that was accepted before; absent: there was no value'),
    after: z.unknown().optional().describe('Value in the present revision; absent: there is no value'),
  })
  .meta({ id: 'ContentDifference', description: 'A member of a content that differs between two revisions' });
export type ContentDifference = z.infer<typeof ContentDifference>;

/** The current revision of a content with texts that the caller has neither written nor accepted. */
export const WaitingContent = z
  .object({
    kind: AcceptableKind,
    uid,
    name: z.string().optional().describe('Name of the content'),
    revision,
    author: UserProfile.optional().describe('Who wrote the revision; absent: not known'),
    authors: z
      .array(UserProfile)
      .describe('Authors of its texts that the caller has neither written nor accepted; unknown authors are left out'),
    written_at: Timestamp.describe('When the revision was written, RFC 3339 in UTC'),
    accepted_revision: revision
      .optional()
      .describe(
        'The earlier revision with which it is compared: the one that the caller accepted, or the last one without the texts that wait; absent: none',
      ),
    difference: z
      .array(ContentDifference)
      .optional()
      .describe(
        'Differences to that revision in the texts that wait, or all these texts if there is no such revision. Of a conversation: the texts that were not accepted, in `after`. Absent in a list if all differences together would be too long: in this case, request only this content, with kind and uid',
      ),
  })
  .meta({
    id: 'WaitingContent',
    description: 'A revision with texts that the caller has neither written nor accepted',
  });
export type WaitingContent = z.infer<typeof WaitingContent>;

export const ListAcceptancesQuery = z.object({
  kind: AcceptableKind.optional().describe('Only content of this kind'),
  uid: NonBlank.max(100).optional().describe('Only the content with this UID'),
});

export const ListAcceptancesResponse = z
  .object({ waiting: z.array(WaitingContent).describe('Contents that wait for the caller, latest change first') })
  .meta({ id: 'ListAcceptancesResponse', description: 'Contents that wait for the acceptance of the caller' });
export type ListAcceptancesResponse = z.infer<typeof ListAcceptancesResponse>;

export const CountAcceptancesResponse = z
  .object({
    waiting: z
      .int()
      .describe(`Number of contents that wait for the caller, at most ${maxWaitingContents}: then there may be more`),
  })
  .meta({ id: 'CountAcceptancesResponse', description: 'How many contents wait for the acceptance of the caller' });

export const AcceptRequest = z
  .object({
    kind: AcceptableKind,
    uid: NonBlank.max(100).describe(
      'UID of the environment, agent identity, schedule, automation, factory, MCP server or worker pool, or id of the conversation',
    ),
    revision: revision.describe('Number of the revision that the caller has read; it must be the present one'),
  })
  .meta({ id: 'AcceptRequest', description: 'A revision that the caller has read and accepts' });
export type AcceptRequest = z.infer<typeof AcceptRequest>;

export const Acceptance = z
  .object({
    kind: AcceptableKind,
    uid,
    revision,
    accepted_at: Timestamp.describe('When it was accepted, RFC 3339 in UTC'),
  })
  .meta({ id: 'Acceptance', description: 'A revision that the caller has accepted' });
export type Acceptance = z.infer<typeof Acceptance>;

const StartKind = z.enum(['schedule', 'automation']).meta({ id: 'StartKind', description: 'What starts the runs' });

/** A schedule or an automation whose runs lack rights until its executor accepts texts. */
export const WaitingStart = z
  .object({
    kind: StartKind,
    uid: z.string().describe('Id of the schedule, or UID of the automation'),
    name: z.string().describe('Its name'),
    executor: UserProfile.describe('As whom its runs act'),
    contents: z
      .array(RunContentItem)
      .describe(
        `Contents with texts that the executor has neither written nor accepted, at most ${maxWaitingContents}`,
      ),
    withheld: z
      .array(
        z
          .object({
            right: RunRightKind,
            name: z.string().optional().describe('Name of the secret'),
          })
          .meta({ id: 'LostRight', description: 'A right that runs would lack' }),
      )
      .describe('Rights that its runs lack until then'),
  })
  .meta({
    id: 'WaitingStart',
    description: 'A schedule or an automation whose runs lack rights until its executor accepts texts',
  });
export type WaitingStart = z.infer<typeof WaitingStart>;

const PreviewedContent = WaitingContent.omit({ difference: true }).meta({
  id: 'PreviewedContent',
  description: 'A revision with texts that an executor has neither written nor accepted',
});

export const ExecutorPreview = z
  .object({
    executor: UserProfile.describe('Person, agent identity or agent key as which runs act'),
    waiting: z
      .array(PreviewedContent)
      .describe(
        'Of a person: contents whose texts cut the rights of the runs of this person, as GET /acceptances lists them for this person',
      ),
    starts: z.array(WaitingStart).describe('Schedules and automations of this executor whose runs lack rights'),
  })
  .meta({ id: 'ExecutorPreview', description: 'What the runs of an executor lack until texts are accepted' });
export type ExecutorPreview = z.infer<typeof ExecutorPreview>;

export const PreviewAcceptancesResponse = z
  .object({ executors: z.array(ExecutorPreview).describe('Executors for whom something waits, people first') })
  .meta({
    id: 'PreviewAcceptancesResponse',
    description: 'What the runs of each executor lack until texts are accepted',
  });
export type PreviewAcceptancesResponse = z.infer<typeof PreviewAcceptancesResponse>;

/** The schedules, automations and people that wait for an acceptance after a change of a content. */
export const WaitingAfterChange = z
  .object({
    kind: ContentKind,
    uid,
    revision,
    kept_authors: z
      .array(UserProfile)
      .describe(
        'Earlier authors of texts that the caller changed without having accepted them. They stay authors beside the caller until the caller accepts the revision with POST /acceptances',
      ),
    starts: z
      .array(WaitingStart)
      .describe(
        `Schedules and automations whose runs lack rights because of this content, at most ${maxWaitingStarts}`,
      ),
    people: z
      .array(UserProfile)
      .describe(`Other people whose personal rights wait for their acceptance, at most ${maxWaitingPeople}`),
  })
  .meta({
    id: 'WaitingAfterChange',
    description: 'Who must accept the content after this change. Only in the answer to the change',
  });
export type WaitingAfterChange = z.infer<typeof WaitingAfterChange>;
