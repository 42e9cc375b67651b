/** Texts about the request of a run and the ways to answer it. */
import type { BlockedOn, Decision } from '@runyard/contract/approvals';
import type { RunItem } from '@runyard/contract/runs';
import type { Colours } from './colours.ts';
import { harmless, harmlessJson, harmlessLine } from './harmless.ts';
import { linesAround } from './long-text.ts';

const longest = 30;
/** Characters of the members of an action besides its command. */
const longestInput = 2_000;
const showsAll = '(bin/runyard runs get RUN shows all)';

/**
 * Returns the request in full, or says how much of it is cut, so that a person knows what they approve. `isCommandShown`: the lines above
 * the request show its command, which is not repeated.
 */
export function questionLines(
  asked: Pick<BlockedOn, 'kind' | 'title' | 'options' | 'action'>,
  { isCommandShown = false } = {},
): string[] {
  const what =
    asked.kind === 'question'
      ? 'asks'
      : `asks for permission to use ${harmlessLine(asked.action?.name ?? 'something', 60)}`;
  const below = [...(isCommandShown ? [] : excerptOf(asked.title)), ...unshownInput(asked, isCommandShown)];
  return [
    below.length > 0 ? `${what}:` : what,
    ...below.map((line) => `  ${line}`),
    ...(asked.options ?? []).map((option) => `  - ${harmlessLine(option, 200)}`),
  ];
}

/**
 * Returns the parts of the action that nothing shows yet: a command that is not above and is not the title, and all other members.
 */
function unshownInput({ title, action }: Pick<BlockedOn, 'title' | 'action'>, isCommandShown: boolean): string[] {
  const input = action?.input;
  if (input === undefined || input === null) return [];
  if (typeof input !== 'object' || Array.isArray(input)) return jsonOf(input);
  const { command, ...others } = input as Readonly<Record<string, unknown>>;
  const isCommand = typeof command === 'string';
  const isShown = isCommandShown || !isCommand || isTitleOf(command, title);
  const rest = isCommand ? others : input;
  return [...(isShown ? [] : excerptOf(command)), ...(Object.keys(rest).length > 0 ? jsonOf(rest) : [])];
}

/** Returns whether the title is the command and nothing else, perhaps behind "Run" and in quotation marks. */
const isTitleOf = (command: string, title: string): boolean =>
  [title, title.replace(/^run /i, '')].some((text) => text.trim().replace(/^([`'"])(.*)\1$/s, '$2') === command.trim());

/** Returns the first and the last lines of a text, and how to see all of it if some are left out. */
function excerptOf(text: string): string[] {
  const lines = harmless(text).trimEnd();
  return [...linesAround(lines, longest), ...(lines.split('\n').length > longest ? [showsAll] : [])];
}

/** Returns the JSON on one line, and how to see all of it if it is cut. */
function jsonOf(value: unknown): string[] {
  const json = harmlessJson(value);
  return [harmlessLine(json, longestInput), ...(json.length > longestInput ? [showsAll] : [])];
}

/** Returns the request on one line, not yet made harmless. The status message of a run that is not BLOCKED is about its failed setup. */
export function questionLine({ state, status_message }: RunItem, { kind, title, action }: BlockedOn): string {
  if (state === 'BLOCKED' && status_message) return status_message.message;
  return kind === 'question' ? `asks: ${title}` : `asks for permission to use ${action?.name ?? 'something'}: ${title}`;
}

/** Returns one line for each way to answer. */
export function answerLines(runId: string, kind: BlockedOn['kind'], colours: Colours): string[] {
  const command = (words: string, about: string) =>
    `${colours.cyan(`bin/runyard ${words}`)}${about ? colours.dim(`  ${about}`) : ''}`;
  if (kind === 'question') return [command(`send ${runId} 'ANSWER' --follow`, '')];
  return [command(`approve ${runId} --follow`, ''), command(`deny ${runId} ['WHY'] --follow`, '')];
}

/** Returns the lines of a request of which `questionLines`, or the command above the request, showed only a part. */
export function wholeRequest({ title, action }: Pick<BlockedOn, 'title' | 'action'>): string[] {
  const input = action?.input;
  const command =
    typeof input === 'object' && input !== null && 'command' in input && typeof input.command === 'string'
      ? input.command
      : title;
  const lines = harmless(command).trimEnd().split('\n');
  return lines.length > longest ? ['the whole request:', ...lines.map((line) => `  ${line}`)] : [];
}

/** Returns the prompt at which a person answers. */
export function promptOf({ kind, action }: Pick<BlockedOn, 'kind' | 'action'>): string {
  if (kind === 'question') return '  Your answer: ';
  return `  ${action?.category === 'command' ? 'Run' : 'Allow'} this? [y]es, [n]o, or say why: `;
}

/**
 * Returns the follow-up for the text that a person typed. Only `y` and `yes` approve; any other text denies and is the
 * reason.
 */
export function answerOf(
  { kind, request_id }: Pick<BlockedOn, 'kind' | 'request_id'>,
  text: string,
): { request_id: string; message?: string; decision?: Decision } {
  if (kind === 'question') return { request_id, message: text };
  if (/^y(es)?$/i.test(text)) return { request_id, decision: 'approve' };
  return { request_id, decision: 'deny', ...(/^no?$/i.test(text) ? {} : { message: text }) };
}
