import type { RunContentItem, RunRightKind, WithheldRight } from '@runyard/contract/runs/acceptances';
import type { z } from 'zod';
import type { RunActor } from '../actor.ts';
import { isSameActor, type RunContent } from './content.ts';

/**
 * The decision about a right of a run. `lacking`: the executor of the run does not have the right. `withheld`: the author of a content
 * does not have the right.
 */
export type RightDecision =
  | { readonly kind: 'held' }
  | { readonly kind: 'lacking' }
  | { readonly kind: 'withheld'; readonly content: RunContent };

const distinct = (actors: readonly RunActor[]): RunActor[] => [
  ...new Map(actors.map((actor) => [`${actor.kind} ${actor.uid}`, actor])).values(),
];

/** Returns the authors of contents that the executor has not accepted. The run has only rights that these authors have too. */
const cuttingAuthors = (contents: readonly RunContent[]): RunActor[] =>
  distinct(contents.flatMap(({ author, accepted }) => (accepted || author === null ? [] : [author])));

/** Returns the principals on whose rights `decideRight` depends: the executor, the authors, and the people who accepted a content. */
export const principalsOf = (executor: RunActor, contents: readonly RunContent[]): RunActor[] =>
  distinct([
    executor,
    ...cuttingAuthors(contents),
    ...contents.flatMap(({ accepted, accepted_by = [] }) =>
      accepted ? [] : accepted_by.map((uid) => ({ kind: 'user' as const, uid })),
    ),
  ]);

/**
 * Decides about one right of a run. The run's executor must have the right. For each content that the executor has not accepted, its author
 * must have the right too, or a person who has accepted the content: this person could have written the text. No other code makes this
 * decision. `isHeldBy` returns whether a principal has the right. An unknown author has no rights.
 */
export function decideRight(
  executor: RunActor,
  contents: readonly RunContent[],
  isHeldBy: (principal: RunActor) => boolean,
): RightDecision {
  if (!isHeldBy(executor)) return { kind: 'lacking' };
  const content = contents.find(
    ({ author, accepted, accepted_by = [] }) =>
      !accepted &&
      (author === null || !isHeldBy(author)) &&
      !accepted_by.some((uid) => isHeldBy({ kind: 'user', uid })),
  );
  return content ? { kind: 'withheld', content } : { kind: 'held' };
}

/**
 * How an MCP server of the configuration gets a secret: in its own environment inside the sandbox, or in headers that only the gateway
 * adds.
 */
export type ServerSecretForm = 'mcp_variable' | 'mcp_header';

/** A secret that a run may get. The value of the secret is read when a sandbox begins. */
export interface RightToSecret {
  /** Id of the stored secret. With the id, the run does not get another secret that later has the same name. */
  readonly id: string;
  readonly name: string;
  readonly variable: string;
  readonly as: 'variable' | 'file' | ServerSecretForm;
  /** `setup`: only setup commands get the secret. Absent: setup commands and the agent get it. */
  readonly phase?: 'setup';
  /** True if the secret belongs to the executor; absent if it belongs to the team. */
  readonly personal?: true;
}

/** A right that a run does not get. `content`: the content whose author lacks the right; absent: the executor lacks it. */
export interface Withheld {
  readonly right: (typeof RunRightKind)['options'][number];
  /** Name of the secret, or UID of the environment. */
  readonly name?: string;
  readonly content?: RunContent;
  /** The run that started this run lacks the right. */
  readonly isLackedByParent?: true;
}

/** The rights of a run, as stored in `runs.rights`. Rights can be removed later, but never added. */
export interface RunRights {
  readonly secrets: readonly RightToSecret[];
  /** False if the gateway must not use personal credentials of the executor. */
  readonly personal_credentials: boolean;
  /**
   * False if the gateway must not use what belongs to the whole team: credentials of code hosts, and headers of stored MCP servers. Also,
   * the texts of the run do not loosen protections. Absent: true.
   */
  readonly team_credentials?: boolean;
  readonly withheld: readonly ExplainedWithheld[];
}

/** Kinds of contents from which members of a run's configuration can come. */
export const configuringKinds: readonly RunContent['kind'][] = [
  'prompt',
  'run',
  'agent_identity',
  'schedule',
  'automation',
  'definition',
];

/** Returns whether the sandbox of the run gets the value of the secret. */
export const isInSandbox = ({ as }: Pick<RightToSecret, 'as'>): boolean => as !== 'mcp_header';

/** Returns whether the run may pass the secret to a child run that chooses the programs of its sandbox. */
export const isForAgent = (right: Pick<RightToSecret, 'as' | 'phase'>): boolean =>
  isInSandbox(right) && right.phase === undefined;

/** A withheld right, with a reason for people. */
export type ExplainedWithheld = Withheld & { readonly reason: string };

/** Decides whether a run may use the personal credentials of its executor. Only the owner of the credentials has this right. */
export const decidePersonalCredentials = (executor: RunActor, contents: readonly RunContent[]) =>
  decideRight(executor, contents, (principal) => principal.kind === 'user' && isSameActor(principal, executor));

/** Converts a content of a run to the form in the API. */
export const toContentItem = ({
  author,
  accepted,
  accepted_by,
  excerpt: _,
  ...content
}: RunContent): z.infer<typeof RunContentItem> => ({
  ...content,
  ...(author ? { author: { type: author.kind, uid: author.uid } } : {}),
  is_accepted: accepted,
  ...(accepted_by?.length ? { accepted_by: accepted_by.map((uid) => ({ type: 'user' as const, uid })) } : {}),
});

/** Converts a right that a run does not get to the form in the API. */
export const toWithheldRight = ({ content, isLackedByParent: _, ...withheld }: ExplainedWithheld): WithheldRight => ({
  ...withheld,
  ...(content ? { content: toContentItem(content) } : {}),
});
