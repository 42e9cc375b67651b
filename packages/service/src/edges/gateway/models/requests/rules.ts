import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';

/**
 * The treatment of a part of a request by the gateway: A rule passes the member, removes it because it is `unknown`, lets it pass only with a
 * provider tool of the environment, or refuses it for the reason in `never`.
 */
export type Verdict = 'passes' | 'unknown' | { readonly needs: ProviderTool } | { readonly never: string };

/** A member that a request needs a provider tool for: its place in the request, for messages. */
export interface ProviderUse {
  readonly tool: ProviderTool;
  readonly place: string;
}

/** The rules of a protocol: which parts of a request reach the provider. */
export interface RequestRules {
  /** Members of the body that pass. All other names are removed, unless `reference` knows them. */
  readonly members: ReadonlySet<string>;
  /** Judges a member of the body that is not one of `members`. */
  reference(name: string, value: unknown): Verdict;
  /** Members of the body that hold messages; their values are walked. */
  readonly content: ReadonlySet<string>;
  /** Judges a tool, in the list of tools or in a message. */
  tool(tool: unknown): Verdict;
  /** Returns the tool that a member of a message or of its parts needs. `name`: in lower case without `_`; `within`: the object. */
  inContent(name: string, value: unknown, within: Readonly<Record<string, unknown>>): ProviderTool | undefined;
  /** Names, in lower case without `_`, of members whose values are texts or arguments of a program's own tools: the check skips these values. */
  readonly free: ReadonlySet<string>;
}

export const needs = (tool: ProviderTool): Verdict => ({ needs: tool });

/** True if the value asks for nothing. */
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
