import type { Environment } from '@runyard/contract/environments/environments';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Crumb } from '../../frame/crumb.tsx';
import { DetailPage } from '../../frame/detail-page.tsx';
import { Page } from '../../frame/page.tsx';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Content, Note, P, Row, Stack, TextLink } from '../../parts/blocks.tsx';
import { Icon, StateBadge } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { MoreMenu } from '../../parts/more-menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { EnvironmentFacts } from './environment-facts.tsx';
import { EnvironmentForm } from './environment-form.tsx';
import { EnvironmentGuests } from './environment-guests.tsx';

const route = getRouteApi('/shell/environments/$uid');

const crumbs = <Crumb to="/environments">Environments</Crumb>;

/** The prompt of a run that only tests the setup. The run ends soon after the setup. */
const testPrompt = 'The setup of this environment worked.\n\n```sh\npwd; ls\n```\n';

/** Shows one environment: its content, the result of its setup, its network, and its users. */
export function EnvironmentScreen() {
  const { uid } = route.useParams();
  const environment = useRead(['environment', uid], (client) => client.getEnvironment({ params: { uid } }));
  return (
    <DetailPage what="environment" crumbs={crumbs} query={environment}>
      {(data) => <EnvironmentPage key={uid} environment={data} />}
    </DetailPage>
  );
}

function EnvironmentPage({ environment }: { environment: Environment }) {
  const { uid, config } = environment;
  const isEditing = oneOf(route.useSearch({ select: (search) => search.edit })) !== undefined;
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const may = useMay('member');
  const mayManage = useMay('admin');
  const navigate = useNavigate();
  const { error, test } = useTest(environment);
  const edit = (isOpen: boolean) =>
    void navigate({ to: '/environments/$uid', params: { uid }, search: isOpen ? { edit: 'true' } : {} });
  useKeys([
    { key: 'e', does: 'Edit the environment', run: () => may && edit(true) },
    { key: 't', does: 'Test the setup', run: () => may && void test() },
  ]);
  return (
    <Page
      title={config.name ?? uid}
      crumbs={crumbs}
      actions={
        <>
          <RoleButton needs="member" run={() => void test()}>
            <Icon name="play" small />
            Test the setup <kbd>T</kbd>
          </RoleButton>
          <RoleButton needs="member" run={() => edit(!isEditing)}>
            Edit <kbd>E</kbd>
          </RoleButton>
          <AskButton
            needs="member"
            kind="danger"
            question={{
              title: `Delete ${config.name ?? uid}?`,
              text: 'Schedules and automations that name it start no more runs. Runs that exist stay.',
              action: 'Delete the environment',
              run: async () => {
                await client.deleteEnvironment({ params: { uid } });
                await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
                await navigate({ to: '/environments' });
              },
            }}
          >
            Delete…
          </AskButton>
          <MoreMenu path={`/agent/environments/${uid}`} />
        </>
      }
    >
      <Content>
        <Problem error={error} />
        {isEditing && <EnvironmentForm environment={environment} close={() => edit(false)} />}
        {environment.setup_failed && (
          <Note tone="bad">
            <Icon name="warn" />
            <span>
              The latest run failed before its agent could begin. Open it below: it shows the step that failed.
            </span>
          </Note>
        )}
        <EnvironmentFacts environment={environment} />
        <LatestRuns uid={uid} />
        {mayManage && environment.scope?.uid === team.uid && <EnvironmentGuests environment={environment} />}
      </Content>
    </Page>
  );
}

/** Returns a function that starts a run which only tests the setup, and opens it. */
function useTest({ uid, config }: Environment) {
  const client = useClient();
  const navigate = useNavigate();
  const { error, attempt } = useAttempts();
  const test = async () => {
    await attempt(async () => {
      const run = await client.createRun({
        body: {
          prompt: testPrompt,
          title: `Test of the setup of ${config.name ?? uid}`,
          config: { environment_id: uid, model_id: 'runbook', refresh_environment: true, idle_timeout_minutes: 0 },
        },
        headers: { 'x-oz-api-source': 'WEB_APP' },
      });
      await navigate({ to: '/runs/$runId', params: { runId: run.run_id } });
    });
  };
  return { error, test };
}

function LatestRuns({ uid }: { uid: string }) {
  const { data: runs = [], isSuccess } = useRead(
    ['environment', uid, 'runs'],
    async (client) => (await client.listRuns({ query: { environment_id: uid, view: 'summary', limit: 10 } })).runs,
    { refetchInterval: 10_000 },
  );
  return (
    <Stack as="section" gap={2}>
      <Row as="h2">
        Latest runs
        <TextLink small right to="/runs" search={{ environment_id: uid }}>
          All its runs
        </TextLink>
      </Row>
      {isSuccess && runs.length === 0 && <P tone="dim">None yet. Test the setup to see whether it works.</P>}
      {runs.length > 0 && (
        <Table>
          {runs.map((run) => (
            <tr key={run.run_id}>
              <Cell style={{ width: 120 }}>
                <StateBadge state={run.state} />
              </Cell>
              <td>
                <Link to="/runs/$runId" params={{ runId: run.run_id }}>
                  {visibleText(run.title)}
                </Link>
              </td>
              <Cell number style={{ width: 120 }}>
                <Ago time={run.updated_at} />
              </Cell>
            </tr>
          ))}
        </Table>
      )}
    </Stack>
  );
}
