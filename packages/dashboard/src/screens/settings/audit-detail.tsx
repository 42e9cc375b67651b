import type { AuditEntry } from '@runyard/contract/team/audit';
import { visibleText } from '@runyard/contract/wire/visible';
import { Fact, Facts, Stack, Text, Two } from '../../parts/blocks.tsx';
import { exactText } from '../../parts/format.ts';
import { JsonView } from '../../parts/json-view.tsx';
import { nameOf } from '../../parts/person.tsx';
import styles from './settings.module.css';

/** Function that changes members in the query of the address. */
export type Go = (change: Record<string, string | undefined>) => void;

/** Shows one entry of the audit log: the members before and after the change, and the origin of the change. */
export function AuditDetail({ entry, go }: { entry: AuditEntry; go: Go }) {
  const { subject, origin, before, after, actor } = entry;
  return (
    <Stack>
      <Facts>
        <Fact name="When">{exactText(Date.parse(entry.occurred_at))}</Fact>
        <Fact name="Who">
          {nameOf(actor)}{' '}
          <Text as="code" tone="dim">
            {actor.uid}
          </Text>
        </Fact>
        <Fact name="Thing">
          {`${subject.type} `}
          <Text as="code" tone="dim">
            {subject.uid}
          </Text>{' '}
          <button type="button" className={styles.link} onClick={() => go({ subject_uid: subject.uid })}>
            All changes of it
          </button>
        </Fact>
        <Fact name="Program">{origin.user_agent && visibleText(origin.user_agent)}</Fact>
        <Fact name="Key">{origin.key_uid && <code>{origin.key_uid}</code>}</Fact>
        <Fact name="Request">{origin.request_id && <code>{origin.request_id}</code>}</Fact>
      </Facts>
      <Two>
        {before !== undefined && (
          <Stack gap={1}>
            <Text medium>Before</Text>
            <JsonView value={before} />
          </Stack>
        )}
        {after !== undefined && (
          <Stack gap={1}>
            <Text medium>After</Text>
            <JsonView value={after} />
          </Stack>
        )}
      </Two>
    </Stack>
  );
}
