/** Converts the triggers of an automation to drafts, which the form edits, and back. */

import type { Automation } from '@runyard/contract/automations/automations';
import { areRowsWhole, type FilterRow, filterOf, rowsOf } from './filter-rows.ts';

type Trigger = Automation['triggers'][number];

/** The members of a schedule trigger that the form edits. */
export interface Times {
  readonly name?: string | undefined;
  readonly cron: string;
  readonly timezone?: string | undefined;
}

/** A trigger in the form. `before` is the stored trigger, whose other members stay as they are. `kept`: the form cannot edit the trigger. */
export type Draft =
  | {
      readonly kind: 'webhook';
      readonly before: Trigger;
      readonly webhookIds: readonly string[];
      /** Undefined: rows cannot show the filter of the payload, so it stays as it is. */
      readonly rows: readonly FilterRow[] | undefined;
    }
  | { readonly kind: 'schedule'; readonly before: Trigger; readonly times: Times }
  | { readonly kind: 'kept'; readonly before: Trigger };

export type WebhookDraft = Extract<Draft, { kind: 'webhook' }>;

/** Returns a draft without values for a new trigger. */
export const newDraft = (kind: 'webhook' | 'schedule'): Draft =>
  kind === 'webhook'
    ? { kind, before: { provider: 'webhook', event: 'received' }, webhookIds: [], rows: [] }
    : { kind, before: { provider: 'schedule', event: 'cron_fired' }, times: { cron: '0 9 * * MON-FRI' } };

/** Returns the draft of a stored trigger. */
export function draftOf(trigger: Trigger): Draft {
  const { provider, filter, schedule } = trigger;
  if (provider === 'webhook') {
    const named = filter?.webhook_ids;
    return {
      kind: 'webhook',
      before: trigger,
      webhookIds: Array.isArray(named) ? named.map(String) : [],
      rows: areRowsWhole(filter?.payload) ? rowsOf(filter?.payload) : undefined,
    };
  }
  return schedule === undefined
    ? { kind: 'kept', before: trigger }
    : { kind: 'schedule', before: trigger, times: schedule };
}

/** Returns the trigger that a draft describes. */
export function triggerOf(draft: Draft): Trigger {
  const { kind, before } = draft;
  switch (kind) {
    case 'kept':
      return before;
    case 'schedule': {
      const { name = '', cron, timezone = '' } = draft.times;
      const { name: _name, timezone: _timezone, ...others } = before.schedule ?? {};
      return {
        ...before,
        schedule: {
          ...others,
          cron: cron.trim(),
          ...(name.trim() === '' ? {} : { name: name.trim() }),
          ...(timezone.trim() === '' ? {} : { timezone: timezone.trim() }),
        },
      };
    }
    case 'webhook': {
      const { payload: earlier, ...others } = before.filter ?? {};
      const payload = draft.rows === undefined ? earlier : filterOf(draft.rows);
      const isFiltered = typeof payload === 'object' && payload !== null && Object.keys(payload).length > 0;
      return {
        ...before,
        filter: { ...others, webhook_ids: draft.webhookIds, ...(isFiltered ? { payload } : {}) },
      };
    }
  }
}

/** Returns what the person must still enter, as a sentence; undefined if the draft is complete. */
export function missingIn(draft: Draft): string | undefined {
  if (draft.kind === 'webhook' && draft.webhookIds.length === 0) return 'Choose a webhook for each trigger first.';
  if (draft.kind === 'schedule' && draft.times.cron.trim() === '') return 'Enter when the schedule fires.';
  return undefined;
}
