/**
 * Decides which rights a run has: those of its executor, without each right that the author of a content lacks which the executor has
 * not accepted. No other code decides that. It reads no table.
 */
import type { RunActor } from '../actor.ts';
import type { RunContent } from './content.ts';

/** Whether the run has a right. `lacking`: its executor does not have it. `withheld`: the author of a content does not have it. */
export type RightDecision =
  | { readonly kind: 'held' }
  | { readonly kind: 'lacking' }
  | { readonly kind: 'withheld'; readonly content: RunContent };

/** Returns the authors who cut down the rights of the executor: those of contents that the executor has not accepted. */
export const cuttingAuthors = (contents: readonly RunContent[]): RunActor[] => {
  const authors = contents.flatMap(({ author, accepted }) => (accepted || author === null ? [] : [author]));
  return [...new Map(authors.map((author) => [`${author.kind} ${author.uid}`, author])).values()];
};

/** Decides about one right. `isHeldBy`: whether a principal has it; nobody knows the rights of an unknown author, so it has none. */
export function decideRight(
  executor: RunActor,
  contents: readonly RunContent[],
  isHeldBy: (principal: RunActor) => boolean,
): RightDecision {
  if (!isHeldBy(executor)) return { kind: 'lacking' };
  const content = contents.find(({ author, accepted }) => !accepted && (author === null || !isHeldBy(author)));
  return content ? { kind: 'withheld', content } : { kind: 'held' };
}
