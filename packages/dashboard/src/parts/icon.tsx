import type { RunState } from '@runyard/contract/runs/run-states';

/** Names of the drawings in `index.html`, without their prefix `i-`. */
export type IconName =
  | 'again'
  | 'agent'
  | 'ask'
  | 'ban'
  | 'bell'
  | 'bolt'
  | 'book'
  | 'check'
  | 'child'
  | 'clip'
  | 'clock'
  | 'copy'
  | 'diff'
  | 'down'
  | 'env'
  | 'factory'
  | 'file'
  | 'filter'
  | 'gear'
  | 'git'
  | 'hook'
  | 'key'
  | 'link'
  | 'lock'
  | 'menu'
  | 'moon'
  | 'more'
  | 'pause'
  | 'people'
  | 'plan'
  | 'play'
  | 'plus'
  | 'pr'
  | 'right'
  | 'runs'
  | 'search'
  | 'send'
  | 'sortd'
  | 'stop'
  | 'term'
  | 'usage'
  | 'warn'
  | 'worker'
  | 'x';

/** Draws an icon without a text for screen readers, because the element beside the icon or its button has the words. */
export function Icon({ name, small = false, className = '' }: { name: IconName; small?: boolean; className?: string }) {
  return (
    <svg className={`i ${small ? 's' : ''} ${className}`} aria-hidden="true">
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
    <span className={`st ${state} ${large ? 'lg' : ''}`} title={state}>
      <svg className="i" aria-hidden="true">
        <use href={`#s-${state}`} />
      </svg>
      {stateWord(state)}
    </span>
  );
}
