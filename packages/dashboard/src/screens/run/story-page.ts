/** Reads a page of earlier messages as entries of the conversation. */

import type { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import type { ContentBlock } from '@runyard/contract/runs/conversations';
import { type ActionEntry, type AskedState, askedIn, type Entry, joined, originOf, outcomeOf } from './entry.ts';

type Step = RunMessagePage['steps'][number];
type PagedMessage = Step['messages'][number];

/** Where the entries of a page go. */
interface Entries {
  /** Returns the entry with this id. */
  readonly get: (id: string) => Entry | undefined;
  /** Adds an entry, or replaces the entry with the same id. */
  readonly put: (entry: Entry) => void;
  /** Sets the state that an action has because of a request to a person. */
  readonly ask: (actionId: string | undefined, state: AskedState) => void;
}

/** Adds the messages of a page. */
export function addSteps(steps: readonly Step[], entries: Entries): void {
  for (const { id, messages } of steps)
    for (const message of messages) for (const block of message.content) addBlock(entries, id, message, block);
}

function addBlock(entries: Entries, stepId: string, message: PagedMessage, block: ContentBlock): void {
  const { timestamp: at, seq } = message;
  const shortened = message.whole_bytes === undefined ? {} : { shortened: seq };
  if (block.type === 'text') {
    const isPrompt = message.role === 'user' && block.message_id === undefined;
    const id = isPrompt ? `${stepId}/prompt` : `text/${block.message_id ?? seq}`;
    const entry: Entry = {
      ...{ kind: 'text', id, seq, at, role: message.role, text: block.text },
      ...originOf(message),
      ...shortened,
    };
    const before = entries.get(id);
    entries.put(before === undefined ? entry : joined(before, entry));
  } else if (block.type === 'action') {
    const { id, category, name, input } = block;
    entries.put({ kind: 'action', id, seq, at, category, name, input, output: '', state: 'running', ...shortened });
  } else if (block.type === 'action_result') addResult(entries, message, block, shortened);
  else addEvent(entries, stepId, message, block);
}

function addResult(
  entries: Entries,
  { timestamp: at, seq }: PagedMessage,
  block: Extract<ContentBlock, { type: 'action_result' }>,
  shortened: { readonly shortened?: number },
): void {
  const { text, exit_code: exitCode, duration_ms: durationMs, output_artifact_uid: outputUid } = block.output;
  const before = entries.get(block.action_id);
  const { action_id: id, category, name, state } = block;
  const begun: ActionEntry =
    before?.kind === 'action'
      ? before
      : { kind: 'action', id, seq, at, category, name, input: {}, output: '', state: 'running' };
  entries.put({
    ...begun,
    state,
    output: text,
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(durationMs === undefined ? {} : { durationMs }),
    ...(outputUid === undefined ? {} : { outputUid }),
    ...shortened,
  });
}

function addEvent(
  entries: Entries,
  stepId: string,
  { timestamp: at, seq }: PagedMessage,
  block: Extract<ContentBlock, { type: 'event' }>,
): void {
  const asked = askedIn(block);
  if (asked === undefined) {
    entries.put({ kind: 'notice', id: `${stepId}/${seq}`, seq, at, name: block.name, data: block.data });
    return;
  }
  const { request_id: requestId, title, action_id: actionId } = asked.request;
  entries.ask(actionId, asked.decision === undefined ? 'waiting' : asked.decision === 'deny' ? 'denied' : 'running');
  if (asked.by === 'policy' && asked.decision === 'approve') return;
  entries.put({
    kind: 'request',
    id: `request/${requestId}`,
    seq,
    at,
    isQuestion: block.name === 'question',
    title,
    input: undefined,
    ...(asked.decision === undefined || asked.by === undefined
      ? {}
      : { outcome: outcomeOf({ ...asked, decision: asked.decision, by: asked.by }) }),
  });
}
