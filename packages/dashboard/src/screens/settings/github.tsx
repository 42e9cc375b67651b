import type { GithubApp, GithubInstallation } from '@runyard/contract/team/github';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useFactories } from '../../api/lists.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Badge, Card, CardBody, CardHead, Note, P, Row, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { Button, ButtonAnchor } from '../../parts/controls.tsx';
import { CopyButton } from '../../parts/copy.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { Empty } from '../../parts/empty.tsx';
import { dateText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Problem } from '../../parts/problem.tsx';
import { type Question, useQuestion } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { ClaimDialog, CreateAppDialog, StoreAppDialog } from './github-dialogs.tsx';
import { finish, openGithub, rememberTeam, takeBack } from './github-return.ts';
import { Section } from './section.tsx';

/** The GitHub Apps of the team: issues and comments that mention one start runs, and the runs answer there. */
export function Github() {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  const queryKey = ['github', team.uid];
  const apps = useRead(queryKey, async (client) => (await client.listGithubApps()).apps);
  const [back] = useState(() => takeBack(team.uid));
  const [outcome, setOutcome] = useState<string | undefined>();
  const [open, setOpen] = useState<'create' | 'store' | undefined>();
  const [claiming, setClaiming] = useState<GithubApp | undefined>();
  const { ask, dialog } = useQuestion();
  const leave = (question: Question) =>
    ask({
      ...question,
      run: async () => {
        await question.run();
        await queries.invalidateQueries({ queryKey });
      },
    });
  const { error, attempt } = useAttempts();
  useEffect(() => {
    const finishing = finish(client, back);
    if (finishing === null) return;
    void attempt(async () => {
      setOutcome(await finishing);
      await queries.invalidateQueries({ queryKey: ['github'] });
    });
  }, [client, queries, back, attempt]);
  const actions = (
    <Row wrap>
      <RoleButton needs="admin" run={() => setOpen('store')}>
        Use an App that exists
      </RoleButton>
      <RoleButton needs="admin" kind="primary" icon="plus" run={() => setOpen('create')}>
        Create App
      </RoleButton>
    </Row>
  );
  return (
    <>
      <Section
        title="GitHub"
        about="Somebody mentions an App in an issue, a pull request or a review: an automation starts a run, and the run answers there."
        action={apps.data?.length === 0 ? undefined : actions}
      />
      <Problem error={error} />
      {outcome !== undefined && (
        <Note as="p" role="status">
          {visibleText(outcome)}
        </Note>
      )}
      <Loaded query={apps}>
        {(list) =>
          list.length === 0 ? (
            <Empty title="No GitHub App yet" action={actions}>
              An App belongs to the team. GitHub creates it in a minute, with the permissions that it needs.
            </Empty>
          ) : (
            list.map((app) => (
              <AppCard
                key={app.uid}
                app={app}
                installationId={back.installationId}
                claim={() => setClaiming(app)}
                leave={leave}
              />
            ))
          )
        }
      </Loaded>
      {open === 'create' && <CreateAppDialog close={() => setOpen(undefined)} />}
      {open === 'store' && <StoreAppDialog close={() => setOpen(undefined)} />}
      {claiming && (
        <ClaimDialog app={claiming} installationId={back.installationId} close={() => setClaiming(undefined)} />
      )}
      {dialog}
    </>
  );
}

function AppCard({
  app,
  installationId,
  claim,
  leave,
}: {
  app: GithubApp;
  installationId: string | undefined;
  claim: () => void;
  leave: (question: Question) => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const { error, isBusy, attempt } = useAttempts();
  const params = { appUid: app.uid };
  const { linked_account: account } = app;
  const isNew =
    installationId !== undefined && !app.installations.some((each) => each.installation_id === installationId);
  const link = () =>
    attempt(async () => {
      const { url } = await client.authorizeGithub({ params, body: { purpose: 'link' } });
      openGithub(team.uid, url);
    });
  return (
    <Card>
      <CardHead wrap>
        <Text grow medium>
          {visibleText(app.handle)} <Text tone="muted">{`on ${visibleText(app.host)}`}</Text>
        </Text>
        {account === undefined ? (
          <Button small kind="primary" disabled={isBusy} onClick={() => void link()}>
            Link your account
          </Button>
        ) : (
          <>
            <Badge tone="good">{visibleText(`you are ${account.login}`)}</Badge>
            <Button
              small
              onClick={() =>
                leave({
                  title: 'Unlink your account?',
                  action: 'Unlink',
                  text: `Comments of ${visibleText(account.login)} count as those of somebody outside the team from then on.`,
                  run: () => client.unlinkGithub({ params }),
                })
              }
            >
              Unlink…
            </Button>
          </>
        )}
        <RoleButton
          small
          needs="admin"
          kind="danger"
          label={`Delete ${app.handle}`}
          run={() =>
            leave({
              title: `Delete ${visibleText(app.handle)}?`,
              action: 'Delete the App',
              text: 'Its events start nothing any more, and the links of people are deleted. The App stays on GitHub, and its private key stays in Code hosts.',
              run: () => client.deleteGithubApp({ params }),
            })
          }
        >
          Delete…
        </RoleButton>
      </CardHead>
      <CardBody>
        <Stack>
          <Problem error={error} />
          {app.poll_problem !== undefined && (
            <Note tone="bad">
              <Text grow>{`Events that did not arrive are lost: ${visibleText(app.poll_problem)}`}</Text>
            </Note>
          )}
          {isNew && (
            <Note tone="wait">
              <Text grow>{`The installation ${installationId} belongs to no team yet.`}</Text>
              <RoleButton small needs="admin" kind="primary" run={claim}>
                Claim it
              </RoleButton>
            </Note>
          )}
          <Row>
            <Text cut tone="muted">
              <code>{app.webhook_url}</code>
            </Text>
            <CopyButton small text={app.webhook_url} what="Copy the webhook URL" />
          </Row>
          <Row wrap>
            <ButtonAnchor small href={app.install_url} onClick={() => rememberTeam(team.uid)}>
              Install on GitHub
            </ButtonAnchor>
            <RoleButton small needs="admin" run={claim}>
              Claim an installation…
            </RoleButton>
          </Row>
          {app.installations.length === 0 ? (
            <P tone="muted">No installation yet. Install the App for an account, then claim the installation.</P>
          ) : (
            <Installations app={app} leave={leave} />
          )}
        </Stack>
      </CardBody>
    </Card>
  );
}

function Installations({ app, leave }: { app: GithubApp; leave: (question: Question) => void }) {
  const client = useClient();
  const { data: factories = [] } = useFactories();
  const nameOf = (uid: string) => factories.find((each) => each.uid === uid)?.name ?? 'its factory';
  const release = ({ uid, account: { login } }: GithubInstallation) =>
    leave({
      title: `Release the installation of ${visibleText(login)}?`,
      action: 'Release',
      text: 'Its events start nothing any more, and runs do not answer there. The log of its events is deleted.',
      run: () => client.releaseGithubInstallation({ params: { installationUid: uid } }),
    });
  return (
    <DataTable
      aria-label={`Installations of ${visibleText(app.handle)}`}
      items={app.installations}
      keyOf={({ uid }) => uid}
      columns={(column) => [
        column('Account', { medium: true }, ({ account: { login }, is_suspended: isSuspended }) => (
          <>
            {visibleText(login)} {isSuspended && <Badge tone="wait">suspended</Badge>}
          </>
        )),
        column('Factory', { width: 190, tone: 'muted' }, ({ factory_uid: factoryUid }) => (
          <TextLink to="/factories/$factoryUid" params={{ factoryUid }}>
            {visibleText(nameOf(factoryUid))}
          </TextLink>
        )),
        column('Claimed', { width: 108, tone: 'muted' }, ({ created_at }) => dateText(Date.parse(created_at))),
        column('Actions', { width: 112, spoken: true }, (each) => (
          <RoleButton
            small
            needs="admin"
            kind="danger"
            label={`Release ${each.account.login}`}
            run={() => release(each)}
          >
            Release…
          </RoleButton>
        )),
      ]}
    />
  );
}
