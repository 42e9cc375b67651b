import { isAbsolute, relative, resolve } from 'node:path';
import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import { describeRule } from '@runyard/contract/runs/compare-approvals';
import { matchesPattern } from '@runyard/contract/wire/matches-pattern';
import type { ApprovalRequest } from './approval-request.ts';

type Action = NonNullable<ApprovalRequest['action']>;

/** Members of a tool's input that can name a file. */
const pathMembers = ['path', 'file_path', 'filePath', 'notebook_path', 'abs_path', 'filename'];

/**
 * Returns the actions that the first matching rule matches, in words; undefined if no rule matches. A rule about a command is advice.
 * In doubt, it matches, but an alias or a script hides the words of a command.
 */
export function matchingRule(
  rules: readonly ApprovalRule[],
  { title, action }: Pick<ApprovalRequest, 'title' | 'action'>,
  workspace: string,
): string | undefined {
  const texts = [title, ...textsOf(action?.input)];
  const matches = ({ tool, command, write_outside: folder }: ApprovalRule): boolean => {
    // An action that the harness does not describe may be any action.
    if (action === undefined) return true;
    if (tool !== undefined) return namesOf(action.name).some((name) => matchesPattern(tool, name));
    if (command !== undefined) return texts.some((text) => hasWords(text, command));
    if (folder !== undefined) return writesOutside(action, resolve(workspace, folder), workspace);
    return false;
  };
  const rule = rules.find(matches);
  return rule && describeRule(rule);
}

/** Returns the name of a tool, and the name of an MCP tool also in the form `server.tool`, which is the same for all harnesses. */
const namesOf = (name: string): string[] => [name, name.replace(/^mcp__(.+?)__/, '$1.')];

function textsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value))
    return [value.map((each) => (typeof each === 'string' ? each : '')).join(' '), ...value.flatMap(textsOf)];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsOf) : [];
}

/**
 * Returns whether the words of the rule occur in this order in one command of the text. Quotation marks, backslashes and line
 * continuations are removed first, because a shell removes them too; other words may be between them.
 */
function hasWords(text: string, rule: string): boolean {
  const wanted = rule.trim().split(/\s+/);
  const commands = text
    .replace(/\\\r?\n/g, '')
    .replace(/['"\\]|\$(?=['"])/g, '')
    .split(/[\n\r;&|()`{}<>]+/);
  return commands.some((command) => {
    const words = command.split(/\s+/).map((word) => word.replace(/^.*\/(?=[^/])/, ''));
    let at = 0;
    for (const word of words) if (at < wanted.length && matchesPattern(wanted[at] ?? '', word)) at += 1;
    return at === wanted.length;
  });
}

/** Returns whether the tool changes a file outside of the folder. A change whose file is unknown counts as outside. */
function writesOutside({ category, input }: Action, folder: string, workspace: string): boolean {
  if (category !== 'files') return false;
  const paths = pathsOf(input);
  return (
    paths.length === 0 ||
    paths.some((path) => {
      const way = relative(folder, resolve(workspace, path));
      return way === '..' || way.startsWith('../') || isAbsolute(way);
    })
  );
}

/** Returns the paths in the arguments of a tool, and those of the list `changes`. */
function pathsOf(input: unknown): string[] {
  if (typeof input !== 'object' || input === null) return [];
  if ('changes' in input && Array.isArray(input.changes)) return input.changes.flatMap(pathsOf);
  const named = pathMembers.flatMap((name) => (name in input ? [(input as Record<string, unknown>)[name]] : []));
  return named.filter((path) => typeof path === 'string');
}
