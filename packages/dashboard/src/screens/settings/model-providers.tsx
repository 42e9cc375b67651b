import type {
  ModelProviderAccess,
  ModelProviderName,
  TestModelProviderResponse,
} from '@runyard/contract/team/model-providers';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useRead } from '../../api/read.ts';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Note, Row, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { dateText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useQuestion } from '../../parts/question.tsx';
import { ProviderDialog, providerLabels } from './provider-dialog.tsx';
import { Section } from './section.tsx';

/** Shows where the installation has the access to providers from. Owners of the installation enter, test and delete keys. */
export function ModelProviders() {
  const client = useClient();
  const queries = useQueryClient();
  const providers = useRead(['model-providers'], async (client) => (await client.listModelProviders()).providers);
  const [entering, setEntering] = useState<ModelProviderName | undefined>();
  const { ask, dialog } = useQuestion();
  const [outcome, setOutcome] = useState<TestModelProviderResponse | undefined>();
  const { error, isBusy, attempt } = useAttempts();
  const test = (provider: ModelProviderName) =>
    attempt(async () => {
      setOutcome(undefined);
      setOutcome(await client.testModelProvider({ params: { provider } }));
    });
  const leave = (provider: ModelProviderName) =>
    ask({
      title: `Delete the key of ${providerLabels[provider]}?`,
      text: 'The next requests of runs to its models are refused, in all teams of the installation.',
      action: 'Delete the key',
      run: async () => {
        await client.deleteModelProvider({ params: { provider } });
        setOutcome(undefined);
        await Promise.all([
          queries.invalidateQueries({ queryKey: ['model-providers'] }),
          queries.invalidateQueries({ queryKey: ['models'] }),
        ]);
      },
    });
  return (
    <>
      <Section
        title="Providers"
        about="Keys for the whole installation, which only its owners see here. A change takes effect at once."
      />
      <Problem error={error} />
      <Loaded query={providers} rows={4}>
        {(list) => (
          <DataTable
            aria-label="Providers of models"
            items={list}
            keyOf={({ provider }) => provider}
            columns={(column) => [
              column('Provider', { width: 120, medium: true }, ({ provider }) => providerLabels[provider]),
              column('Access', {}, (access) => <Access access={access} />),
              column(
                'Key',
                { width: 70, tone: 'muted' },
                ({ last_four }) => last_four !== undefined && `…${last_four}`,
              ),
              column(
                'Set',
                { width: 190, tone: 'muted' },
                ({ set_at, set_by }) =>
                  set_at !== undefined &&
                  `${dateText(Date.parse(set_at))}${set_by === undefined ? '' : ` by ${nameOf(set_by)}`}`,
              ),
              column('Actions', { width: 240, spoken: true }, ({ provider, endpoint, source, set_at }) => (
                <Row>
                  {endpoint !== undefined && (
                    <Button
                      small
                      disabled={isBusy}
                      aria-label={`Test ${providerLabels[provider]}`}
                      onClick={() => void test(provider)}
                    >
                      Test
                    </Button>
                  )}
                  {source !== 'settings' && (
                    <Button
                      small
                      aria-label={`${source === 'none' ? 'Enter key' : 'Replace key'} of ${providerLabels[provider]}`}
                      onClick={() => setEntering(provider)}
                    >
                      {source === 'none' ? 'Enter key' : 'Replace'}
                    </Button>
                  )}
                  {set_at !== undefined && (
                    <Button
                      small
                      kind="danger"
                      aria-label={`Delete the key of ${providerLabels[provider]}`}
                      onClick={() => leave(provider)}
                    >
                      Delete…
                    </Button>
                  )}
                </Row>
              )),
            ]}
          />
        )}
      </Loaded>
      {outcome && (
        <Note as="p" tone={outcome.works ? undefined : 'bad'} role="status">
          {outcome.message}
        </Note>
      )}
      {entering && <ProviderDialog provider={entering} done={setOutcome} close={() => setEntering(undefined)} />}
      {dialog}
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
