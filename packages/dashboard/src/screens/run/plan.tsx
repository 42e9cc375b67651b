import { visibleText } from '@runyard/contract/wire/visible';
import { CardBody, Text } from '../../parts/blocks.tsx';
import { Icon } from '../../parts/icon.tsx';
import type { PlanItem } from './step-words.ts';
import styles from './talk.module.css';

/** Returns how many steps of a plan are done. */
export const doneText = (items: readonly PlanItem[]): string =>
  `${items.filter(({ status }) => status === 'completed').length} of ${items.length} done`;

/** Shows the steps of a plan, each with an icon for its state. */
export const Plan = ({ items }: { items: readonly PlanItem[] }) => (
  <CardBody>
    <ul className={styles.plan}>
      {items.map(({ content, status }, index) => (
        <li key={index}>
          <Icon name={status === 'completed' ? 'check' : status === 'in_progress' ? 'right' : 'more'} small />
          <Text tone={status === 'completed' ? 'dim' : undefined} medium={status === 'in_progress'}>
            {visibleText(content)}
          </Text>
        </li>
      ))}
    </ul>
  </CardBody>
);
