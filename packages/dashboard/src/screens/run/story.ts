/**
 * The conversation of a run as the page shows it: a list of entries that grows. Pages of the past come from the API, present events from the live
 * stream; both become the same entries.
 */

import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import type { ActionState, ContentBlock } from '@runyard/contract/runs/conversations';

/** A request to a person, with its answer once there is one. */
export interface RequestEntry {
  readonly kind: 'request';
  readonly id: string;
  readonly at: string | undefined;
  readonly isQuestion: boolean;
  readonly title: string;
  readonly input: unknown;
  readonly outcome?: { readonly decision: string; readonly by: string; readonly message?: string };
}

export interface ActionEntry {
  readonly kind: 'action';
  readonly id: string;
  readonly at: string | undefined;
  readonly category: string;
  readonly name: string;
  readonly input: unknown;
  readonly output: string;
  readonly state: ActionState | 'waiting';
  readonly exitCode?: number;
  readonly durationMs?: number;
  /** Number of the message whose input or output this page has only in part. */
  readonly shortened?: number;
}

export interface TextEntry {
  readonly kind: 'text';
  readonly id: string;
  readonly at: string | undefined;
  readonly role: string;
  readonly text: string;
  readonly shortened?: number;
}

export interface NoticeEntry {
  readonly kind: 'notice';
  readonly id: string;
  readonly at: string | undefined;
  readonly name: string;
  readonly data: unknown;
}

export type Entry = TextEntry | ActionEntry | RequestEntry | NoticeEntry;

/** Entries of one block. The page renders only blocks that have changed. */
const blockSize = 50;

/** Events of actions on older pages that are kept until those are read. */
const mostPending = 1000;

/** An immutable picture of the story, for React. */
export interface StoryView {
  readonly blocks: readonly (readonly Entry[])[];
  /** Entries in all blocks. */
  readonly count: number;
  /** The position before the oldest entry; undefined: the oldest entry begins the story. */
  readonly older: string | undefined;
}

/** Holds the entries of one run. Changes are collected and shown once for each frame of the browser. */
export class Story {
  #entries: Entry[] = [];
  /** Place of each entry by its id. */
  #places = new Map<string, number>();
  #dirty = new Set<number>();
  #view: StoryView = { blocks: [], count: 0, older: undefined };
  #older: string | undefined;
  #listeners = new Set<() => void>();
  #frame: number | undefined;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly view = (): StoryView => this.#view;

  /** Puts a page before the present entries. */
  prepend(page: Pick<RunMessagePage, 'steps' | 'continued' | 'older'>): void {
    const part = new Story();
    for (const step of page.steps) part.#addStep(step);
    const later = this.#entries;
    this.#entries = part.#entries;
    this.#places = part.#places;
    for (const entry of later) this.#join(entry);
    // Output and results of actions on older pages wait until those are read.
    this.#pending = [...page.continued, ...this.#pending].filter(
      (event) => !this.#places.has(event.action_id) || this.#apply(event),
    );
    this.#older = page.older;
    this.#dirty = new Set(Array.from({ length: Math.ceil(this.#entries.length / blockSize) }, (_, index) => index));
    this.#view = { blocks: [], count: 0, older: undefined };
    this.#show();
  }

  /** Adds an event of the live stream. */
  add(event: AgentEvent): void {
    this.#apply(event);
    this.#frame ??= requestFrame(() => {
      this.#frame = undefined;
      this.#show();
    });
  }

  /** Output and results of actions that no page has brought yet. */
  #pending: RunMessagePage['continued'] = [];

  /** Adds an entry after the others; joins two parts of one text. */
  #join(entry: Entry): void {
    const before = this.#get(entry.id);
    if (before?.kind === 'text' && entry.kind === 'text') this.#put({ ...before, text: before.text + entry.text });
    else this.#put(entry);
  }

  #get(id: string): Entry | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : this.#entries[place];
  }

  #put(entry: Entry): void {
    const place = this.#places.get(entry.id) ?? this.#entries.length;
    this.#entries[place] = entry;
    this.#places.set(entry.id, place);
    this.#dirty.add(Math.floor(place / blockSize));
  }

  #change<K extends Entry['kind']>(kind: K, id: string, change: (entry: Extract<Entry, { kind: K }>) => Entry): void {
    const entry = this.#get(id);
    if (entry?.kind === kind) this.#put(change(entry as Extract<Entry, { kind: K }>));
  }

  /** Applies an event; always returns false. */
  #apply(event: AgentEvent): false {
    const at = event.occurred_at;
    if ((event.type === 'action_output' || event.type === 'action_result') && !this.#places.has(event.action_id)) {
      if (this.#pending.length < mostPending) this.#pending.push(event);
      return false;
    }
    switch (event.type) {
      case 'turn_started':
        this.#put({ kind: 'text', id: `${event.step_id}/prompt`, at, role: 'user', text: event.prompt });
        break;
      case 'text': {
        const id = `text/${event.message_id}`;
        const before = this.#get(id);
        const text = before?.kind === 'text' ? before.text + event.text : event.text;
        this.#put({ kind: 'text', id, at: before?.at ?? at, role: event.role, text });
        break;
      }
      case 'action':
        this.#put({
          kind: 'action',
          id: event.action_id,
          at,
          category: event.category,
          name: event.name,
          input: event.input,
          output: '',
          state: 'running',
        });
        break;
      case 'action_output':
        this.#change('action', event.action_id, (entry) => ({ ...entry, output: entry.output + event.text }));
        break;
      case 'action_result':
        this.#change('action', event.action_id, (entry) => ({
          ...entry,
          state: event.state,
          output: event.output === undefined ? entry.output : textOf(event.output),
          ...(event.exit_code === undefined ? {} : { exitCode: event.exit_code }),
          ...(event.duration_ms === undefined ? {} : { durationMs: event.duration_ms }),
        }));
        break;
      case 'notice':
        this.#put({ kind: 'notice', id: `${event.step_id}/${event.seq}`, at, name: event.name, data: event.data });
        break;
      case 'blocked': {
        const { request } = event;
        if (request.action?.id !== undefined)
          this.#change('action', request.action.id, (entry) => ({ ...entry, state: 'waiting' }));
        this.#put({
          kind: 'request',
          id: `request/${request.request_id}`,
          at,
          isQuestion: request.kind === 'question',
          title: request.title,
          input: request.action?.input,
        });
        break;
      }
      case 'decided': {
        if (event.action_id !== undefined)
          this.#change('action', event.action_id, (entry) =>
            entry.state === 'waiting' ? { ...entry, state: event.decision === 'deny' ? 'denied' : 'running' } : entry,
          );
        // A policy that approves asks nobody.
        if (event.by === 'policy' && event.decision === 'approve') break;
        const id = `request/${event.request_id}`;
        const before = this.#get(id);
        const asked: RequestEntry =
          before?.kind === 'request'
            ? before
            : { kind: 'request', id, at, isQuestion: event.kind === 'question', title: event.title, input: undefined };
        this.#put({ ...asked, outcome: outcomeOf(event) });
        break;
      }
      default:
    }
    return false;
  }

  #addStep(step: RunMessagePage['steps'][number]): void {
    for (const message of step.messages) {
      for (const block of message.content) this.#addBlock(step.id, message, block);
    }
  }

  #addBlock(stepId: string, message: RunMessagePage['steps'][number]['messages'][number], block: ContentBlock): void {
    const at = message.timestamp;
    const shortened = message.whole_bytes === undefined ? {} : { shortened: message.seq };
    if (block.type === 'text') {
      const isPrompt = message.role === 'user' && block.message_id === undefined;
      const id = isPrompt ? `${stepId}/prompt` : `text/${block.message_id ?? message.seq}`;
      this.#join({ kind: 'text', id, at, role: message.role, text: block.text, ...shortened });
    } else if (block.type === 'action') {
      this.#put({
        kind: 'action',
        id: block.id,
        at,
        category: block.category,
        name: block.name,
        input: block.input,
        output: '',
        state: 'running',
        ...shortened,
      });
    } else if (block.type === 'action_result') {
      const { text, exit_code: exitCode, duration_ms: durationMs } = block.output;
      const change = {
        state: block.state,
        output: text,
        ...(exitCode === undefined ? {} : { exitCode }),
        ...(durationMs === undefined ? {} : { durationMs }),
        ...shortened,
      };
      if (!this.#places.has(block.action_id))
        this.#put({
          kind: 'action',
          id: block.action_id,
          at,
          category: block.category,
          name: block.name,
          input: {},
          ...change,
        });
      else this.#change('action', block.action_id, (entry) => ({ ...entry, ...change }));
    } else this.#addEvent(stepId, message, block);
  }

  #addEvent(
    stepId: string,
    message: RunMessagePage['steps'][number]['messages'][number],
    block: Extract<ContentBlock, { type: 'event' }>,
  ): void {
    const at = message.timestamp;
    const asked = block.data as {
      readonly request?: {
        readonly request_id: string;
        readonly title: string;
        readonly action?: { readonly input?: unknown };
      };
      readonly decision?: string;
      readonly by?: string;
    } & Partial<Parameters<typeof outcomeOf>[0]>;
    // Harnesses choose the names of their notices, so a notice may have this name without a request.
    const isRequest =
      (block.name === 'permission' || block.name === 'question') && typeof asked.request?.title === 'string';
    if (!isRequest || asked.request === undefined) {
      this.#put({ kind: 'notice', id: `${stepId}/${message.seq}`, at, name: block.name, data: block.data });
      return;
    }
    if (asked.by === 'policy' && asked.decision === 'approve') return;
    const { request_id: requestId, title, action } = asked.request;
    this.#put({
      kind: 'request',
      id: `request/${requestId}`,
      at,
      isQuestion: block.name === 'question',
      title,
      input: action?.input,
      ...(asked.decision === undefined || asked.by === undefined
        ? {}
        : { outcome: outcomeOf({ ...asked, decision: asked.decision, by: asked.by }) }),
    });
  }

  #show(): void {
    const blocks = [...this.#view.blocks];
    for (const index of this.#dirty) blocks[index] = this.#entries.slice(index * blockSize, (index + 1) * blockSize);
    this.#dirty.clear();
    this.#view = { blocks, count: this.#entries.length, older: this.#older };
    for (const listener of this.#listeners) listener();
  }
}

/** Calls the function before the next frame; soon, where the page is hidden or there are no frames. */
const requestFrame = (run: () => void): number =>
  typeof requestAnimationFrame === 'undefined' || document.hidden
    ? Number(setTimeout(run, 16))
    : requestAnimationFrame(run);

/** Returns a text, or the JSON of another value. */
export const textOf = (value: unknown): string =>
  typeof value === 'string' ? value : value === undefined ? '' : (JSON.stringify(value, null, 2) ?? '');

/** Returns the decision about a request and its author, from the record of the service. */
function outcomeOf(decided: {
  readonly decision: string;
  readonly by: string;
  readonly message?: string | undefined;
  readonly answered_by?:
    | { readonly type: string; readonly uid: string; readonly display_name?: string | undefined }
    | undefined;
}): NonNullable<RequestEntry['outcome']> {
  const author = decided.answered_by;
  const kind = author?.type === 'run' ? ' (run)' : author?.type === 'service_account' ? ' (agent)' : '';
  return {
    decision: decided.decision,
    by: author === undefined ? `the ${decided.by}` : `${author.display_name ?? author.uid}${kind}`,
    ...(decided.message ? { message: decided.message } : {}),
  };
}
