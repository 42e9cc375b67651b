/** Describes notices of the agent as sentences. A notice has a name and data, which harnesses may choose freely. */

import { countText } from '../../parts/format.ts';
import type { IconName } from '../../parts/icons.ts';
import type { NoticeEntry } from './entry.ts';
import { membersOf } from './step-words.ts';

/** A sentence about a notice. */
interface NoticeWords {
  readonly icon: IconName;
  readonly words: string;
  /** True: the agent could not do something. */
  readonly isBad: boolean;
}

type Members = Readonly<Record<string, unknown>>;

const word = (members: Members, ...names: readonly string[]): string =>
  names.map((name) => members[name]).find((value): value is string => typeof value === 'string') ?? '';

/** For each notice of Runyard's own agent its icon and sentence. */
const known: Readonly<Record<string, (members: Members) => readonly [IconName, string]>> = {
  connection_denied: (data) => ['ban', `The connection to ${word(data, 'host')} was denied.`],
  model_request_refused: () => ['ban', 'A request to the model was refused'],
  memory_limit_reached: () => ['warn', 'The sandbox reached its limit of memory, and a program was ended.'],
  output_not_kept: () => ['warn', 'A whole output was not stored'],
  workspace_not_kept: () => ['warn', 'The workspace was not stored'],
  checkpoint_not_kept: () => ['warn', 'A checkpoint was not stored'],
  handoff_left_out: (data) => ['warn', `${word(data, 'what')} was not handed off`],
  mcp_server_skipped: (data) => ['warn', `The MCP server ${word(data, 'name', 'server')} is not used`],
  session_not_loaded: () => ['warn', 'The harness began a new session'],
  image_not_sent: (data) => ['warn', `The model did not get the image ${word(data, 'name', 'file_name', 'path')}`],
  mode_not_set: (data) => ['warn', `The mode ${word(data, 'mode')} was not set`],
  harness_killed: () => ['stop', 'The harness was ended'],
  plan_changed: (data) => ['warn', `In plan mode, the agent changed ${word(data, 'path')}.`],
  ran_without_question: (data) => [
    'warn',
    `The harness did ${word(data, 'name', 'title')} without asking, although the policy requires a question.`,
  ],
  event_refused: () => ['warn', 'The service refused a part of the conversation'],
};

/** Returns the sentence about a notice. Its texts may have any content. */
export function noticeWords({ name, data }: Pick<NoticeEntry, 'name' | 'data'>): NoticeWords {
  const members = membersOf(data);
  const reason = word(members, 'reason', 'message', 'detail', 'error');
  const made = Object.hasOwn(known, name) ? known[name]?.(members) : undefined;
  if (made !== undefined) {
    const [icon, words] = made;
    return { icon, words: reason === '' || words.endsWith('.') ? words : `${words}: ${reason}`, isBad: true };
  }
  if (name === 'usage' && typeof members.used === 'number' && typeof members.size === 'number')
    return { icon: 'usage', words: usedText(members.used, members.size), isBad: false };
  const words = name.replaceAll('_', ' ');
  const value = reason || word(members, 'mode', 'currentModeId', 'title', 'name');
  return {
    icon: 'bolt',
    words: `${words.charAt(0).toUpperCase()}${words.slice(1)}${value === '' ? '' : `: ${value}`}`,
    isBad: false,
  };
}

const usedText = (used: number, size: number): string =>
  size > 0
    ? `${Math.round((used / size) * 100)} % of the context is used (${countText(used, 'token')}).`
    : `The context has ${countText(used, 'token')}.`;
