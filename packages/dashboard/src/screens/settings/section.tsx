import type { ReactNode } from 'react';
import { P, Row, Text } from '../../parts/blocks.tsx';

/** Shows the head of a settings tab: the name of the tab, a sentence about it, and a button. */
export function Section({ title, about, action }: { title: string; about: ReactNode; action?: ReactNode }) {
  return (
    <Row>
      <Text as="div" grow>
        <h2>{title}</h2>
        <P tone="muted">{about}</P>
      </Text>
      {action}
    </Row>
  );
}
