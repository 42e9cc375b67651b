/** Returns texts about a request of a run, and about the ways to answer it. */
import type { AllowFor, BlockedOn, Decision } from '@runyard/contract/runs/approvals';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visible } from '@runyard/contract/wire/visible';
import type { Colours } from '../../../terminal/colours.ts';
import { harmlessJson, harmlessLine } from '../../../terminal/harmless.ts';

/**
 * Returns lines with the whole request, so that a person sees everything that an approval allows. `isCommandShown`: true if earlier
 * lines already show the whole command, so that the command is omitted here.
 */
export function questionLines(
  asked: Pick<BlockedOn, 'kind' | 'title' | 'options' | 'action' | 'rest_of_run'>,
  { isCommandShown = false } = {},
): string[] {
  const what =
    asked.kind === 'question'
      ? 'asks'
      : `asks for permission to use ${harmlessLine(asked.action?.name ?? 'something', 60)}`;
  const below = [
    ...(isCommandShown || isCut(asked) ? [] : linesOf(asked.title)),
    ...unshownInput(asked, isCommandShown),
  ];
  return [
    below.length > 0 ? `${what}:` : what,
    ...below.map((line) => `  ${line}`),
    ...(asked.options ?? []).map((option) => `  - ${harmlessLine(option, 200)}`),
    ...(asked.rest_of_run === undefined ? [] : [`  for the rest of the run: ${harmlessLine(asked.rest_of_run, 300)}`]),
  ];
}

type Asked = Pick<BlockedOn, 'title' | 'action'>;

/** Returns whether the title contains only the beginning of the command. */
function isCut({ title, action }: Asked): boolean {
  const command = commandOf(action?.input);
  return command !== undefined && title.endsWith('…') && command.trimStart().startsWith(title.slice(0, -1).trimStart());
}

const commandOf = (input: unknown): string | undefined =>
  typeof input === 'object' && input !== null && 'command' in input && typeof input.command === 'string'
    ? input.command
    : undefined;

/**
 * Returns the parts of the action that are not shown yet. The command is among them if neither earlier lines nor the title show it.
 */
function unshownInput({ title, action }: Asked, isCommandShown: boolean): string[] {
  const input = action?.input;
  if (input === undefined || input === null) return [];
  if (typeof input !== 'object' || Array.isArray(input)) return jsonOf(input);
  const command = commandOf(input);
  const isShown = isCommandShown || command === undefined || isTitleOf(command, title);
  const members = Object.entries(input);
  const diff = members.flatMap(([name, text]) => (name === 'diff' && typeof text === 'string' ? linesOf(text) : []));
  const rest = members.filter(
    ([name]) => !(name === 'command' && command !== undefined) && !(name === 'diff' && diff.length > 0),
  );
  return [...(isShown ? [] : linesOf(command)), ...(rest.length > 0 ? jsonOf(Object.fromEntries(rest)) : []), ...diff];
}

/** Returns whether the title consists only of the command. "Run" before the command and quotation marks around it are ignored. */
const isTitleOf = (command: string, title: string): boolean =>
  [title, title.replace(/^run /i, '')].some((text) => text.trim().replace(/^([`'"])(.*)\1$/s, '$2') === command.trim());

const linesOf = (text: string): string[] => visible(text).trimEnd().split('\n');

/** JSON with at most this number of characters is shown on one line. */
const longestLine = 200;

function jsonOf(value: unknown): string[] {
  const line = harmlessJson(value);
  return linesOf(line.length > longestLine ? harmlessJson(value, 2) : line);
}

/** Returns lines with the decision and the request. The lines of the request are the same as in `questionLines`. */
export function decisionLines(decision: Decision, title: string): string[] {
  const word = decision === 'approve' ? 'approved' : 'denied';
  const lines = linesOf(title.trim());
  return lines.length === 1 ? [`${word}: ${lines[0]}`] : [`${word}:`, ...lines.map((line) => `  ${line}`)];
}

/**
 * Returns the request on one line. The caller must make the line harmless. The status message is used only if the run is BLOCKED, because
 * in other states it is about the failed setup of the run.
 */
export function questionLine({ state, status_message }: RunItem, { kind, title, action }: BlockedOn): string {
  if (state === 'BLOCKED' && status_message) return status_message.message;
  return kind === 'question' ? `asks: ${title}` : `asks for permission to use ${action?.name ?? 'something'}: ${title}`;
}

/** Returns one line for each command with which a person can answer. */
export function answerLines(runId: string, kind: BlockedOn['kind'], colours: Colours): string[] {
  const command = (words: string, about: string) =>
    `${colours.cyan(`bin/runyard ${words}`)}${about ? colours.dim(`  ${about}`) : ''}`;
  if (kind === 'question') return [command(`send ${runId} 'ANSWER' --follow`, '')];
  return [command(`approve ${runId} --follow`, ''), command(`deny ${runId} ['WHY'] --follow`, '')];
}

/** Returns the prompt at which a person answers. */
export function promptOf({
  kind,
  action,
  rest_of_run: restOfRun,
}: Pick<BlockedOn, 'kind' | 'action' | 'rest_of_run'>): string {
  if (kind === 'question') return '  Your answer: ';
  return `  ${action?.category === 'command' ? 'Run' : 'Allow'} this? [y]es, ${restOfRun === undefined ? '' : '[r]est of the run, '}[n]o, or say why: `;
}

/**
 * Returns the follow-up for the text that a person has typed. For a permission request, `y` and `yes` approve once, and `r` and `rest`
 * approve for the rest of the run. Any other text denies the request, and the text is the reason.
 */
export function answerOf(
  { kind, request_id, rest_of_run: restOfRun }: Pick<BlockedOn, 'kind' | 'request_id' | 'rest_of_run'>,
  text: string,
): { request_id: string; message?: string; decision?: Decision; allow_for?: AllowFor } {
  if (kind === 'question') return { request_id, message: text };
  if (/^y(es)?$/i.test(text)) return { request_id, decision: 'approve' };
  if (restOfRun !== undefined && /^r(est)?$/i.test(text)) return { request_id, decision: 'approve', allow_for: 'run' };
  return { request_id, decision: 'deny', ...(/^no?$/i.test(text) ? {} : { message: text }) };
}
