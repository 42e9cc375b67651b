/**
 * The conversation of a run as a growing list of entries. The entries come from two sources: pages of earlier messages, which the API
 * returns, and events of the live stream.
 */

import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { RunMessagePage } from '@runyard/contract/runs/conversation-pages';
import {
  type AskedState,
  type Entry,
  joined,
  originOf,
  outcomeOf,
  type RequestEntry,
  textOf,
  withRequest,
} from './entry.ts';
import { addSteps } from './story-page.ts';

/** Number of entries in one block. The page renders only blocks that have changed. */
const blockSize = 25;

/** Maximum number of stored events about actions whose page is not read yet. The events are used when this page is read. */
const mostPending = 1000;

/** Maximum pause between two updates of the page, in milliseconds. The pauses let the page handle key presses while many events arrive. */
const longestRestMs = 100;

/** A group of neighbouring entries. The number of a block does not change when blocks are added before or after the block. */
export interface StoryBlock {
  readonly number: number;
  readonly entries: readonly Entry[];
}

/** An immutable snapshot of the conversation, which React renders. */
export interface StoryView {
  readonly blocks: readonly StoryBlock[];
  /** Number of entries in all blocks. */
  readonly count: number;
  /** Number of entries that came after the first page. */
  readonly added: number;
  /** The position before the oldest entry; undefined if the conversation begins with the oldest entry. */
  readonly older: string | undefined;
}

/**
 * Holds the entries of one run. Live events are collected and shown with the next frame of the browser. After a frame with n new
 * events, the page shows the next events n milliseconds later at the earliest, but waits at most `longestRestMs`.
 */
export class Story {
  /** The entries by their place, which is a number. Entries of pages that are older than the first loaded page have places below 0. */
  #entries = new Map<number, Entry>();
  #first = 0;
  #end = 0;
  /** Place of each entry by its id. */
  #places = new Map<string, number>();
  #dirty = new Set<number>();
  #view: StoryView = { blocks: [], count: 0, added: 0, older: undefined };
  #older: string | undefined;
  #listeners = new Set<() => void>();
  #isWaiting = false;
  /** Number of live events that are not shown yet. */
  #collected = 0;
  #restUntil = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  readonly view = (): StoryView => this.#view;

  /**
   * Returns the entry to which a number of an event leads, with the number of its block. The service can merge events of ended runs; then
   * it is the next entry. Returns undefined if the entry is not loaded.
   */
  find(seq: number): { readonly entry: Entry; readonly block: number } | undefined {
    let found: { readonly entry: Entry; readonly block: number } | undefined;
    let isAfterFirst = this.#older === undefined;
    for (const { number, entries } of this.#view.blocks)
      for (const entry of entries) {
        if (entry.seq <= seq) isAfterFirst = true;
        if (entry.seq >= seq && (found === undefined || entry.seq < found.entry.seq)) found = { entry, block: number };
      }
    return isAfterFirst ? found : undefined;
  }

  /** Adds an older page before the current entries. The current entries keep their places, so only the blocks of the page are new. */
  prepend(page: Pick<RunMessagePage, 'steps' | 'continued' | 'older'>): void {
    const part = new Story();
    addSteps(page.steps, {
      get: (id) => part.#get(id),
      put: (entry) => part.#put(entry),
      ask: (actionId, state) => part.#ask(actionId, state),
    });
    // If `part.#asked` and `this.#asked` both have a state of the same action, use the state in `this.#asked`, because it is newer.
    this.#asked = new Map([...part.#asked, ...this.#asked]);
    const offset = this.#first - part.#end;
    for (const [place, entry] of part.#entries) this.#putBefore(place + offset, entry);
    this.#first = offset;
    // Keep output and results of actions that are on even older pages until these pages are read.
    this.#pending = [...page.continued, ...this.#pending].filter(
      (event) => !this.#places.has(event.action_id) || this.#apply(event),
    );
    this.#older = page.older;
    this.#show();
  }

  /** Adds an event of the live stream. */
  add(event: AgentEvent): void {
    this.#apply(event);
    this.#collected += 1;
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    const show = () => {
      this.#isWaiting = false;
      this.#restUntil = performance.now() + Math.min(this.#collected, longestRestMs);
      this.#collected = 0;
      this.#show();
    };
    const restMs = this.#restUntil - performance.now();
    if (restMs > 0) setTimeout(() => requestFrame(show), restMs);
    else requestFrame(show);
  }

  /** Events with output and results of actions whose page is not read yet. */
  #pending: RunMessagePage['continued'] = [];

  /**
   * The state of each action after the last request to a person about it. Each key is the id of an action. The request may arrive before
   * the page that has the action.
   */
  #asked = new Map<string, AskedState>();

  #ask(actionId: string | undefined, state: AskedState): void {
    if (actionId === undefined) return;
    this.#asked.set(actionId, state);
    this.#change('action', actionId, (entry) => entry);
  }

  /** Adds an entry of an older page. If the page already shows a later part of this entry, joins both parts. */
  #putBefore(place: number, entry: Entry): void {
    const later = this.#places.get(entry.id);
    const after = later === undefined ? undefined : this.#entries.get(later);
    if (later !== undefined) {
      this.#entries.delete(later);
      this.#dirty.add(blockOf(later));
    }
    this.#places.set(entry.id, place);
    this.#set(place, after === undefined ? entry : joined(entry, after));
    this.#dirty.add(blockOf(place));
  }

  #set(place: number, entry: Entry): void {
    this.#entries.set(place, withRequest(entry, this.#asked.get(entry.id)));
  }

  #get(id: string): Entry | undefined {
    const place = this.#places.get(id);
    return place === undefined ? undefined : this.#entries.get(place);
  }

  #put(entry: Entry): void {
    const place = this.#places.get(entry.id) ?? this.#end++;
    this.#set(place, entry);
    this.#places.set(entry.id, place);
    this.#dirty.add(blockOf(place));
  }

  #change<K extends Entry['kind']>(kind: K, id: string, change: (entry: Extract<Entry, { kind: K }>) => Entry): void {
    const entry = this.#get(id);
    if (entry?.kind === kind) this.#put(change(entry as Extract<Entry, { kind: K }>));
  }

  /** Adds the content of an event to the entries. Always returns false. */
  #apply(event: AgentEvent): false {
    const { occurred_at: at, seq } = event;
    if ((event.type === 'action_output' || event.type === 'action_result') && !this.#places.has(event.action_id)) {
      if (this.#pending.length < mostPending) this.#pending.push(event);
      return false;
    }
    switch (event.type) {
      case 'turn_started':
        this.#put({
          kind: 'text',
          id: `${event.step_id}/prompt`,
          seq,
          at,
          role: 'user',
          text: event.prompt,
          ...originOf(event),
        });
        break;
      case 'text': {
        const id = `text/${event.message_id}`;
        const before = this.#get(id);
        const text = before?.kind === 'text' ? before.text + event.text : event.text;
        this.#put({ kind: 'text', id, seq: before?.seq ?? seq, at: before?.at ?? at, role: event.role, text });
        break;
      }
      case 'action':
        this.#put({
          kind: 'action',
          id: event.action_id,
          seq,
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
          ...(event.output_artifact_uid === undefined ? {} : { outputUid: event.output_artifact_uid }),
        }));
        break;
      case 'notice':
        this.#put({ kind: 'notice', id: `${event.step_id}/${seq}`, seq, at, name: event.name, data: event.data });
        break;
      case 'blocked': {
        const { request } = event;
        this.#ask(request.action?.id, 'waiting');
        this.#put({
          kind: 'request',
          id: `request/${request.request_id}`,
          seq,
          at,
          isQuestion: request.kind === 'question',
          title: request.title,
          input: request.action?.input,
        });
        break;
      }
      case 'decided': {
        this.#ask(event.action_id, event.decision === 'deny' ? 'denied' : 'running');
        // Show nothing if the policy approved the action, because no person was asked.
        if (event.by === 'policy' && event.decision === 'approve') break;
        const id = `request/${event.request_id}`;
        const before = this.#get(id);
        const asked: RequestEntry =
          before?.kind === 'request'
            ? before
            : {
                kind: 'request',
                id,
                seq,
                at,
                isQuestion: event.kind === 'question',
                title: event.title,
                input: undefined,
              };
        this.#put({ ...asked, outcome: outcomeOf(event) });
        break;
      }
      default:
    }
    return false;
  }

  #show(): void {
    const blocks = new Map(this.#view.blocks.map((block) => [block.number, block]));
    for (const number of this.#dirty) {
      const places = Array.from({ length: blockSize }, (_, index) => number * blockSize + index);
      const entries = places.flatMap((place) => this.#entries.get(place) ?? []);
      if (entries.length > 0) blocks.set(number, { number, entries });
      else blocks.delete(number);
    }
    this.#dirty.clear();
    const sorted = [...blocks.values()].sort((a, b) => a.number - b.number);
    this.#view = { blocks: sorted, count: this.#entries.size, added: this.#end, older: this.#older };
    for (const listener of this.#listeners) listener();
  }
}

const blockOf = (place: number): number => Math.floor(place / blockSize);

/** Calls the function before the next frame. If the page is hidden or has no frames, calls it after a short time. */
const requestFrame = (run: () => void): void => {
  if (typeof requestAnimationFrame === 'undefined' || document.hidden) setTimeout(run, 16);
  else requestAnimationFrame(run);
};
