import type { Notification, NotificationKind } from '@runyard/contract/inbox/notifications';
import type { IconName } from '../../parts/icons.ts';
import type { Tone } from '../../parts/look.ts';

/** How the inbox shows each kind. `does`: the label of the link to the thing. */
export const kindLooks = {
  question: { label: 'Question', icon: 'ask', tone: 'wait', does: 'Answer' },
  answer_question: { label: 'Question', icon: 'ask', tone: 'wait', does: 'Answer' },
  blocked: { label: 'Approval', icon: 'lock', tone: 'wait', does: 'Decide' },
  spec_review: { label: 'Plan', icon: 'plan', tone: 'accent', does: 'Review' },
  pr_review: { label: 'Pull request', icon: 'pr', tone: 'accent', does: 'Review' },
  failed: { label: 'Failed', icon: 'warn', tone: 'bad', does: 'Open' },
  failed_times: { label: 'Failing', icon: 'warn', tone: 'bad', does: 'Open' },
  missed: { label: 'Missed', icon: 'clock', tone: 'bad', does: 'Open' },
  budget: { label: 'Budget', icon: 'usage', tone: 'bad', does: 'Open' },
  acceptance: { label: 'Revision', icon: 'file', tone: 'muted', does: 'Review' },
} as const satisfies Record<NotificationKind, { label: string; icon: IconName; tone: Tone; does: string }>;

/** The filters by kind, each with the kinds that it selects. */
export const kindFilters = {
  answers: { label: 'To answer', kinds: ['question', 'answer_question', 'blocked'] },
  reviews: { label: 'To review', kinds: ['spec_review', 'pr_review'] },
  failed: { label: 'Failed', kinds: ['failed', 'failed_times', 'missed', 'budget'] },
} as const satisfies Record<string, { label: string; kinds: readonly NotificationKind[] }>;
export type KindFilter = keyof typeof kindFilters;

/** Returns what the notification is about, in one line. */
export const lineOf = ({ description = '' }: Notification): string => description.replace(/\s+/g, ' ').trim();
