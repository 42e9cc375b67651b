import type { RunRightKind } from '@runyard/contract/runs/acceptances';
import type { RunActor } from '../actor.ts';
import { isSameActor, type RunContent } from './content.ts';
import { decideRight } from './decide.ts';

/**
 * The way in which an MCP server of the configuration gets a secret that it names: in its own environment inside the sandbox, or in headers
 * that only the gateway adds.
 */
export type ServerSecretForm = 'mcp_variable' | 'mcp_header';

/** A secret that a run may have. Its value is read when a sandbox begins. */
export interface RightToSecret {
  /** Id of the stored secret: another one of the same name is not granted. */
  readonly id: string;
  readonly name: string;
  readonly variable: string;
  readonly as: 'variable' | 'file' | ServerSecretForm;
  /** It belongs to the executor; absent: to the team. */
  readonly personal?: true;
}

/** A right that a run does not have. `content`: the one whose author lacks it; absent: the executor lacks it. */
export interface Withheld {
  readonly right: (typeof RunRightKind)['options'][number];
  /** Name of the secret, UID of the environment. */
  readonly name?: string;
  readonly content?: RunContent;
}

/** The rights of a run, as `runs.rights` has them. They only shrink while the run lives. */
export interface RunRights {
  readonly secrets: readonly RightToSecret[];
  /** False: the gateway uses no personal credential of the executor. */
  readonly personal_credentials: boolean;
  readonly withheld: readonly ExplainedWithheld[];
}

/** Returns whether the sandbox of the run holds the value. */
export const isInSandbox = ({ as }: Pick<RightToSecret, 'as'>): boolean => as !== 'mcp_header';

/** With the reason for people. */
export type ExplainedWithheld = Withheld & { readonly reason: string };

/** Decides about the personal credentials of a run's executor. Only their person has them. */
export const decidePersonalCredentials = (executor: RunActor, contents: readonly RunContent[]) =>
  decideRight(executor, contents, (principal) => principal.kind === 'user' && isSameActor(principal, executor));
