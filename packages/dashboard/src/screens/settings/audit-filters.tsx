import type { ListAuditEntriesQuery } from '@runyard/contract/team/audit';
import { useId } from 'react';
import { useMembers } from '../../api/lists.ts';
import { Field, Select } from '../../parts/form.tsx';
import { nameOf } from '../../parts/person.tsx';
import type { Go } from './audit-detail.tsx';
import styles from './settings.module.css';

/** Kinds of objects whose changes a person can select in the log. The address can name further kinds. */
const subjects = [
  'agent_identity',
  'automation',
  'budget',
  'code_host_credential',
  'environment',
  'event_subscription',
  'factory',
  'invitation',
  'key',
  'mcp_server',
  'member',
  'model_settings',
  'run',
  'schedule',
  'secret',
  'team',
  'webhook',
  'worker_pool',
] as const;

/** The filters of the audit log. Their values are in the address. */
export function AuditFilters({ query, go }: { query: Partial<ListAuditEntriesQuery>; go: Go }) {
  const members = useMembers();
  const list = useId();
  const { actor, subject_type: subject } = query;
  const people = (members.data ?? []).map(({ user }) => [user.uid, nameOf(user)] as const);
  return (
    <form className={styles.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Field label="Who" path="actor">
        {(control) => (
          <Select
            {...control}
            value={actor ?? ''}
            options={[
              ['', 'anyone'],
              ...people,
              ...(actor === undefined || people.some(([uid]) => uid === actor) ? [] : [[actor, actor] as const]),
            ]}
            onChange={({ target }) => go({ actor: target.value })}
          />
        )}
      </Field>
      <Field label="Kind of thing" path="subject_type">
        {(control) => (
          <Select
            {...control}
            value={subject ?? ''}
            options={[
              ['', 'any'],
              ...subjects.map((each) => [each, each] as const),
              ...(subject === undefined || (subjects as readonly string[]).includes(subject)
                ? []
                : [[subject, subject] as const]),
            ]}
            onChange={({ target }) => go({ subject_type: target.value })}
          />
        )}
      </Field>
      <Field label="Action" path="action">
        {(control) => (
          <>
            <input
              {...control}
              key={query.action}
              className="in mono"
              list={list}
              placeholder="key.create"
              defaultValue={query.action}
              onBlur={({ target }) =>
                target.value.trim() !== (query.action ?? '') && go({ action: target.value.trim() })
              }
              onKeyDown={({ key, currentTarget }) => key === 'Enter' && go({ action: currentTarget.value.trim() })}
            />
            <datalist id={list}>
              {subjects.flatMap((each) =>
                ['create', 'update', 'delete'].map((verb) => (
                  <option key={`${each}.${verb}`}>{`${each}.${verb}`}</option>
                )),
              )}
            </datalist>
          </>
        )}
      </Field>
      <Field label="From" path="since">
        {(control) => (
          <input
            {...control}
            type="date"
            className="in"
            value={query.since?.slice(0, 10) ?? ''}
            onChange={({ target }) => go({ since: target.value === '' ? undefined : `${target.value}T00:00:00Z` })}
          />
        )}
      </Field>
      <Field label="Before" path="until">
        {(control) => (
          <input
            {...control}
            type="date"
            className="in"
            value={query.until?.slice(0, 10) ?? ''}
            onChange={({ target }) => go({ until: target.value === '' ? undefined : `${target.value}T00:00:00Z` })}
          />
        )}
      </Field>
    </form>
  );
}
