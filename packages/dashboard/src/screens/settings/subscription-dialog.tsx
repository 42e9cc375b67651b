import type { EventSubscription, RunEventType } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useClient, useSession } from '../../api/session.ts';
import { P, Row, Text } from '../../parts/blocks.tsx';
import { Check } from '../../parts/controls.tsx';
import { TextField, textOf, useFault } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import styles from './settings.module.css';

/** A new secret, and the subscription to which the secret belongs. */
export interface MadeSecret {
  readonly secret: string;
  readonly hint: string;
}

const eventWords = {
  'run.created': 'it is queued',
  'run.started': 'its agent works, also again after an answer or a follow-up',
  'run.blocked': 'it waits for a person',
  'run.ended': 'it succeeded, failed, had an error or was cancelled',
  'run.pull_request_changed': 'something happened to its pull request on GitHub',
} as const satisfies Record<RunEventType, string>;

/** Creates a subscription, or changes the subscription `earlier`. */
export function SubscriptionDialog({
  earlier,
  onMade,
  close,
}: {
  earlier?: EventSubscription;
  onMade?: (made: MadeSecret) => void;
  close: () => void;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <FormDialog
      title={earlier === undefined ? 'New event subscription' : `Change ${visibleText(earlier.name ?? earlier.url)}`}
      action={earlier === undefined ? 'Create' : 'Change'}
      close={close}
      send={async (data, headers) => {
        const name = textOf(data, 'name');
        const url = String(data.get('url')).trim();
        const events = data.getAll('events') as RunEventType[];
        const runName = textOf(data, 'filter.name');
        if (earlier === undefined) {
          const createdSubscription = await client.createEventSubscription({
            body: {
              url,
              events,
              ...(name === undefined ? {} : { name }),
              ...(runName === undefined ? {} : { filter: { name: runName } }),
            },
            headers: { ...headers },
          });
          onMade?.({
            secret: createdSubscription.secret,
            hint: visibleText(`For ${createdSubscription.name ?? createdSubscription.url}`),
          });
        } else {
          const { name: _, ...filter } = earlier.filter ?? {};
          const next = { ...filter, ...(runName === undefined ? {} : { name: runName }) };
          await client.updateEventSubscription({
            params: { subscriptionId: earlier.id },
            body: { name: name ?? null, url, events, filter: Object.keys(next).length === 0 ? null : next },
          });
        }
        await queries.invalidateQueries({ queryKey: ['event-subscriptions', team.uid] });
      }}
    >
      <TextField label="Name" path="name" maxLength={200} defaultValue={earlier?.name} />
      <TextField
        label="URL"
        path="url"
        type="url"
        mono
        placeholder="https://hooks.example.com/runyard"
        defaultValue={earlier?.url}
        required
      />
      <Events chosen={earlier?.events ?? ['run.ended']} />
      <TextField
        label="Only runs with this name"
        path="filter.name"
        maxLength={200}
        defaultValue={earlier?.filter?.name}
        hint="config.name, exactly. Empty: all runs of the team"
      />
    </FormDialog>
  );
}

function Events({ chosen }: { chosen: readonly RunEventType[] }) {
  const fault = useFault('events.*');
  return (
    <fieldset className={styles.set}>
      <legend>Events of a run</legend>
      {Object.entries(eventWords).map(([event, words]) => (
        <Row key={event} as="label">
          <Check type="checkbox" name="events" value={event} defaultChecked={chosen.includes(event as RunEventType)} />
          <code>{event}</code>
          <Text tone="dim">{words}</Text>
        </Row>
      ))}
      {fault && (
        <P tone="bad" small role="alert">
          {fault.message}
        </P>
      )}
    </fieldset>
  );
}
