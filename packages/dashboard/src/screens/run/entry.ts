/** The entries of a conversation, in the form in which the page shows them. */

import type { ActionState, ContentBlock } from '@runyard/contract/runs/conversations';
import type { TimelineEvent } from '@runyard/contract/runs/timeline';

/** A request of the agent to a person, with the answer if a person has answered. */
export interface RequestEntry {
  readonly kind: 'request';
  readonly id: string;
  /** Number of the event that began the entry, in the stream of the run. Links to the entry name it. */
  readonly seq: number;
  readonly at: string | undefined;
  readonly isQuestion: boolean;
  readonly title: string;
  readonly input: unknown;
  readonly outcome?: { readonly decision: string; readonly by: string; readonly message?: string };
}

export interface ActionEntry {
  readonly kind: 'action';
  readonly id: string;
  readonly seq: number;
  readonly at: string | undefined;
  readonly category: string;
  readonly name: string;
  readonly input: unknown;
  readonly output: string;
  readonly state: ActionState | 'waiting' | 'interrupted';
  /** True: the turn or the sandbox ended before the action. */
  readonly isInterrupted?: true;
  readonly exitCode?: number;
  readonly durationMs?: number;
  /** UID of the artifact with the whole output, if `output` is only a part. */
  readonly outputUid?: string;
  /** Number of the message, if the page has only a part of the message's input or output. */
  readonly shortened?: number;
}

export interface TextEntry {
  readonly kind: 'text';
  readonly id: string;
  readonly seq: number;
  readonly at: string | undefined;
  readonly role: string;
  readonly text: string;
  /** Of the message of a user: its sender; undefined: the creator of the run. */
  readonly by?: string;
  readonly mode?: string;
  readonly shortened?: number;
}

export interface NoticeEntry {
  readonly kind: 'notice';
  readonly id: string;
  readonly seq: number;
  readonly at: string | undefined;
  readonly name: string;
  readonly data: unknown;
}

export type Entry = TextEntry | ActionEntry | RequestEntry | NoticeEntry;

/** The state of an action after the last request to a person about it. */
export type AskedState = 'waiting' | 'running' | 'denied';

/** Returns true if the action is a question to a person, which waits from its beginning. */
const asksPerson = ({ name }: ActionEntry): boolean => /(^|_)ask_user$/.test(name);

/**
 * Returns an action with the state that people see. The agent reports an action as failed if its turn or its sandbox ends first. Such an
 * action waits while its request is open, although its sandbox rests. Returns other entries unchanged.
 */
export function withRequest(entry: Entry, asked: AskedState | undefined): Entry {
  if (entry.kind !== 'action') return entry;
  const isInterrupted =
    entry.isInterrupted ??
    (entry.state === 'failed' && entry.exitCode === undefined && entry.output.trimEnd().endsWith('[interrupted]'));
  if (!isInterrupted)
    return entry.state === 'running' || entry.state === 'waiting'
      ? { ...entry, state: asked ?? (asksPerson(entry) ? 'waiting' : 'running') }
      : entry;
  const { durationMs: _, ...rest } = entry;
  return { ...rest, isInterrupted, state: asked === undefined || asked === 'running' ? 'interrupted' : asked };
}

/** Returns a text unchanged, and any other value as JSON. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : (JSON.stringify(value, null, 2) ?? '');

/** A caller, as the service records it. */
export interface Caller {
  readonly type: string;
  readonly uid: string;
  readonly display_name?: string | undefined;
}

/** Returns the name of a caller, with its kind if it is no person. */
export const nameOf = ({ type, uid, display_name: name }: Caller): string =>
  `${name ?? uid}${type === 'run' ? ' (run)' : type === 'service_account' ? ' (agent)' : ''}`;

/** Returns the name of the caller that caused an event of the timeline; undefined if the event names none. */
export function callerOf(event: Pick<TimelineEvent, 'payload'> | undefined): string | undefined {
  const by = event?.payload?.by as Partial<Caller> | undefined;
  return typeof by?.uid === 'string' && typeof by.type === 'string' ? nameOf(by as Caller) : undefined;
}

/** Returns the sender and the mode of a message, as members of its entry. */
export const originOf = ({
  sent_by: by,
  mode,
}: {
  readonly sent_by?: Caller | undefined;
  readonly mode?: string | undefined;
}): Pick<TextEntry, 'by' | 'mode'> => ({ ...(by ? { by: nameOf(by) } : {}), ...(mode ? { mode } : {}) });

/** Returns the decision about a request, and the person or policy that decided, from the service's record of the decision. */
export function outcomeOf(decided: {
  readonly decision: string;
  readonly by: string;
  readonly message?: string | undefined;
  readonly answered_by?: Caller | undefined;
}): NonNullable<RequestEntry['outcome']> {
  const author = decided.answered_by;
  return {
    decision: decided.decision,
    by: author === undefined ? `the ${decided.by}` : nameOf(author),
    ...(decided.message ? { message: decided.message } : {}),
  };
}

/** A request of the agent to a person, in the form that a page of the conversation has. */
type Asked = {
  readonly request: { readonly request_id: string; readonly title: string; readonly action_id?: string };
  readonly decision?: string;
  readonly by?: string;
} & Partial<Parameters<typeof outcomeOf>[0]>;

/**
 * Returns the request in a block of the conversation. Returns undefined for the notice of a harness, even if the notice has the same
 * name as a request, because harnesses choose these names.
 */
export function askedIn(block: Extract<ContentBlock, { type: 'event' }>): Asked | undefined {
  if (block.name !== 'permission' && block.name !== 'question') return undefined;
  const asked = block.data as Partial<Asked>;
  return typeof asked.request?.title === 'string' ? (asked as Asked) : undefined;
}

/** Joins two parts of an entry that is split over two pages of the conversation. The page with the later part is read first. */
export function joined(before: Entry, after: Entry): Entry {
  if (before.kind === 'text' && after.kind === 'text') return { ...before, text: before.text + after.text };
  if (before.kind !== 'action' || after.kind !== 'action') return after;
  const { seq, at, category, name, input } = before;
  return { ...after, seq, at, category, name, input };
}
