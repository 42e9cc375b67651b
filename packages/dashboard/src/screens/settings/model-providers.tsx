import type {
  ModelProviderAccess,
  ModelProviderName,
  TestModelProviderResponse,
} from '@runyard/contract/team/model-providers';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Note, P, Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { dateText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { ProviderDialog, providerLabels } from './provider-dialog.tsx';

/** Shows where the installation has the access to providers from. Owners of the installation enter, test and delete keys. */
export function ModelProviders() {
  const client = useClient();
  const queries = useQueryClient();
  const providers = useQuery({
    queryKey: ['model-providers'],
    queryFn: async () => (await client.listModelProviders()).providers,
  });
  const [entering, setEntering] = useState<ModelProviderName | undefined>();
  const [leaving, setLeaving] = useState<ModelProviderName | undefined>();
  const [outcome, setOutcome] = useState<TestModelProviderResponse | undefined>();
  const { error, isBusy, attempt } = useAttempts();
  const test = (provider: ModelProviderName) =>
    attempt(async () => {
      setOutcome(undefined);
      setOutcome(await client.testModelProvider({ params: { provider } }));
    });
  return (
    <>
      <Row>
        <Text as="div" grow>
          <h2>Providers</h2>
          <P tone="muted">
            Keys for the whole installation, which only its owners see here. A change takes effect at once.
          </P>
        </Text>
      </Row>
      <Problem error={error} />
      <Loaded query={providers} rows={4}>
        {(list) => (
          <Table
            aria-label="Providers of models"
            columns={[
              { name: 'Provider', width: 120 },
              { name: 'Access' },
              { name: 'Key', width: 70 },
              { name: 'Set', width: 190 },
              { name: 'Actions', width: 240, spoken: true },
            ]}
          >
            {list.map((each) => (
              <tr key={each.provider}>
                <Cell medium>{providerLabels[each.provider]}</Cell>
                <td>
                  <Access access={each} />
                </td>
                <Cell tone="muted">{each.last_four !== undefined && `…${each.last_four}`}</Cell>
                <Cell tone="muted">
                  {each.set_at !== undefined &&
                    `${dateText(Date.parse(each.set_at))}${each.set_by === undefined ? '' : ` by ${nameOf(each.set_by)}`}`}
                </Cell>
                <td>
                  <Row>
                    {each.endpoint !== undefined && (
                      <Button
                        small
                        disabled={isBusy}
                        aria-label={`Test ${providerLabels[each.provider]}`}
                        onClick={() => void test(each.provider)}
                      >
                        Test
                      </Button>
                    )}
                    {each.source !== 'settings' && (
                      <Button
                        small
                        aria-label={`${each.source === 'none' ? 'Enter key' : 'Replace key'} of ${providerLabels[each.provider]}`}
                        onClick={() => setEntering(each.provider)}
                      >
                        {each.source === 'none' ? 'Enter key' : 'Replace'}
                      </Button>
                    )}
                    {each.set_at !== undefined && (
                      <Button
                        small
                        kind="danger"
                        aria-label={`Delete the key of ${providerLabels[each.provider]}`}
                        onClick={() => setLeaving(each.provider)}
                      >
                        Delete…
                      </Button>
                    )}
                  </Row>
                </td>
              </tr>
            ))}
          </Table>
        )}
      </Loaded>
      {outcome && (
        <Note as="p" tone={outcome.works ? undefined : 'bad'} role="status">
          {outcome.message}
        </Note>
      )}
      {entering && <ProviderDialog provider={entering} done={setOutcome} close={() => setEntering(undefined)} />}
      {leaving && (
        <ConfirmDialog
          title={`Delete the key of ${providerLabels[leaving]}?`}
          action="Delete the key"
          run={async () => {
            await client.deleteModelProvider({ params: { provider: leaving } });
            setOutcome(undefined);
            await Promise.all([
              queries.invalidateQueries({ queryKey: ['model-providers'] }),
              queries.invalidateQueries({ queryKey: ['models'] }),
            ]);
          }}
          close={() => setLeaving(undefined)}
        >
          The next requests of runs to its models are refused, in all teams of the installation.
        </ConfirmDialog>
      )}
    </>
  );
}

function Access({ access: { source, setting, endpoint, problem } }: { access: ModelProviderAccess }) {
  if (problem !== undefined) return <Text tone="bad">{visibleText(problem)}</Text>;
  if (source === 'none') return <Text tone="dim">none</Text>;
  if (source === 'stored') return <Text tone="muted">{visibleText(endpoint ?? 'stored')}</Text>;
  return (
    <Text tone="muted">
      <code>{setting}</code> of the service
    </Text>
  );
}
