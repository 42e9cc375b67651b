import { visibleText } from '@runyard/contract/wire/visible';
import { Text } from './blocks.tsx';
import { box } from './box.tsx';
import styles from './checks.module.css';
import { Icon } from './icon.tsx';

/** Whether a thing starts something: a head, and the conditions below. */
export const Verdict = box('div', styles.verdict);

/** The head of a verdict: an icon, a text and a link. */
export const VerdictHead = box('div', styles.head);

/** Conditions, each with an icon. */
export const CheckList = box('ul', styles.checks);

interface Check {
  readonly path?: string | undefined;
  readonly passed: boolean;
  readonly reason: string;
}

/** Lists conditions of a trigger, each with the value that the delivery has. */
export function Checks({ checks }: { checks: readonly Check[] }) {
  return (
    <CheckList>
      {checks.map((check, index) => (
        <li key={index}>
          <Icon name={check.passed ? 'check' : 'x'} small tone={check.passed ? 'good' : 'bad'} />
          <span>
            <code>{visibleText(check.path ?? 'body')}</code> <Text tone="muted">{visibleText(check.reason)}</Text>
          </span>
        </li>
      ))}
    </CheckList>
  );
}
