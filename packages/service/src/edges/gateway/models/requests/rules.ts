import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';

/**
 * How the gateway treats a part of a request: `passes` forwards the part, and `unknown` removes it. `needs` refuses the request unless the
 * environment allows this provider tool. `never` is the reason why the request is refused in every environment.
 */
export type Verdict = 'passes' | 'unknown' | { readonly needs: ProviderTool } | { readonly never: string };

/** A member for which a request needs a provider tool. `place`: the member's place in the request, for error messages. */
export interface ProviderUse {
  readonly tool: ProviderTool;
  readonly place: string;
}

/** The rules of a protocol: which parts of a request reach the provider. */
export interface RequestRules {
  /** Members of the body that pass. All other names are removed, except names that `reference` knows. */
  readonly members: ReadonlySet<string>;
  /** Judges a member of the body that is not one of `members`. */
  reference(name: string, value: unknown): Verdict;
  /** Members of the body that hold messages; the check also visits their values. */
  readonly content: ReadonlySet<string>;
  /** Judges a tool, in the list of tools or in a message. */
  tool(tool: unknown): Verdict;
  /** Returns the provider tool that a member in the content of messages needs. `name`: the member's name in lower case without `_`;
   * `within`: the object that has the member. */
  inContent(name: string, value: unknown, within: Readonly<Record<string, unknown>>): ProviderTool | undefined;
  /**
   * Names, in lower case without `_`, of members that the check skips, because their values are texts, or arguments of the harness's own
   * tools.
   */
  readonly free: ReadonlySet<string>;
}

export const needs = (tool: ProviderTool): Verdict => ({ needs: tool });

/** True if the value requests nothing. */
export const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === false || (Array.isArray(value) && value.length === 0);

/** Name of a member without the differences that some servers ignore: Go reads `File_ID` as `file_id`, Google's `fileUri` is also `file_uri`. */
export const plainName = (name: string): string => name.toLowerCase().replaceAll('_', '');

/** True if the text is an address that the provider would fetch, and not the data itself. */
export const isAddress = (value: unknown): boolean => typeof value === 'string' && !/^\s*data:/i.test(value);

export const objectOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;
