import { visibleText } from '@runyard/contract/wire/visible';
import { Icon } from './icon.tsx';

interface Check {
  readonly path?: string | undefined;
  readonly passed: boolean;
  readonly reason: string;
}

/** Lists conditions of a trigger, each with the value that the delivery has. */
export function Checks({ checks }: { checks: readonly Check[] }) {
  return (
    <ul className="checks">
      {checks.map((check, index) => (
        <li key={index}>
          <Icon name={check.passed ? 'check' : 'x'} small className={check.passed ? 'okc' : 'badc'} />
          <span>
            <code>{visibleText(check.path ?? 'body')}</code> <span className="mut">{visibleText(check.reason)}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
