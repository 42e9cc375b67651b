import type { RunState } from '@runyard/contract/runs/run-states';
import styles from './icon.module.css';
import type { IconName } from './icons.ts';
import { type Look, looked } from './look.ts';

/** Draws an icon without a text for screen readers, because the element beside the icon or its button has the words. */
export function Icon({ name, small = false, ...looks }: Look & { name: IconName }) {
  return (
    <svg {...looked(looks, styles.icon, small && styles.small)} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

const stateWords: Readonly<Record<RunState, string>> = {
  QUEUED: 'Queued',
  PENDING: 'Pending',
  CLAIMED: 'Claimed',
  INPROGRESS: 'In progress',
  BLOCKED: 'Blocked',
  SUCCEEDED: 'Succeeded',
  FAILED: 'Failed',
  ERROR: 'Error',
  CANCELLED: 'Cancelled',
};

/** Returns the words for a state: the API's value in sentence case. */
export const stateWord = (state: RunState): string => stateWords[state];

/** Shows the state of a run with a colour, a shape and a word. `large`: the badge has a background, for the head of a page. */
export function StateBadge({ state, large = false }: { state: RunState; large?: boolean }) {
  return (
    <span
      className={`${styles.state} ${styles[state]} ${large ? styles.large : ''}`}
      title={state}
      data-state={state}
      data-large={large || undefined}
    >
      <svg className={styles.icon} aria-hidden="true">
        <use href={`#s-${state}`} />
      </svg>
      {stateWord(state)}
    </span>
  );
}
