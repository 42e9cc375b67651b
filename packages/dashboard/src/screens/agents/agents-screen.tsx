import type { AgentIdentity } from '@runyard/contract/team/identities';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useIdentities } from '../../api/lists.ts';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { Avatar, Card, Content, P, Row, Stack, Text, TextLink } from '../../parts/blocks.tsx';
import { DataTable } from '../../parts/data-table.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Menu } from '../../parts/menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useQuestion } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { showToast } from '../../parts/toast.tsx';

const IdentityDialog = lazy(async () => ({ default: (await import('./identity-dialog.tsx')).IdentityDialog }));
const NewKey = lazy(async () => ({ default: (await import('../../parts/new-key.tsx')).NewKey }));

/** The dialog that is open, and the agent that it is about. */
type Doing = { readonly action: 'create' } | { readonly action: 'edit' | 'key'; readonly identity: AgentIdentity };

/** Lists the agent identities, as which runs and keys can act, and the skills in the team's repositories. */
export function AgentsScreen() {
  const identities = useIdentities();
  const [doing, setDoing] = useState<Doing | undefined>();
  const close = () => setDoing(undefined);
  const [words, setWords] = useState('');
  const shown = (identities.data ?? []).filter(({ name }) => hasWords(words, name));
  const may = useMay('admin');
  const editFocused = () => {
    const all = identities.data ?? [];
    const uid = document.activeElement?.closest('tr')?.dataset.key;
    const identity = all.find((each) => each.uid === uid) ?? (all.length === 1 ? all[0] : undefined);
    if (identity === undefined) showToast('Choose an agent with J or K first.');
    else if (may && identity.factory_uid === undefined) setDoing({ action: 'edit', identity });
  };
  useKeys([
    { key: 'c', does: 'New agent', run: () => may && setDoing({ action: 'create' }) },
    { key: 'e', does: 'Change the agent', run: editFocused },
  ]);
  const skills = useTeamRead(
    ['skills'],
    async (client) => (await client.listAgents({ query: { include_malformed_skills: true } })).agents,
  );
  const variants = (skills.data ?? []).flatMap(({ name, variants: each }) =>
    each.filter(({ id }) => hasWords(words, name, id)).map((variant) => ({ ...variant, name })),
  );
  return (
    <Page title="Agents and skills" actions={<Find words={words} change={setWords} />}>
      <Content>
        <Stack as="section" gap={2}>
          <Row>
            <Text as="h2" grow>
              Agents
            </Text>
            <RoleButton needs="admin" kind="primary" icon="plus" run={() => setDoing({ action: 'create' })}>
              New agent
            </RoleButton>
          </Row>
          <P tone="muted">
            A run or an agent key that acts as one gets its model, environment, skills and secrets. The same in a
            terminal: <code>bin/runyard identities create FILE</code>.
          </P>
          <Problem error={identities.error} onRetry={() => void identities.refetch()} />
          {identities.isPending && <SkeletonRows count={3} />}
          {identities.data?.length === 0 && <P tone="dim">The team has none: runs act as the people who start them.</P>}
          {identities.data !== undefined && identities.data.length > 0 && (
            <Card>
              <DataTable
                inCard
                items={shown}
                keyOf={({ uid }) => uid}
                columns={(column) => [
                  column('Agent', { width: 200 }, ({ name }) => (
                    <Row as="span">
                      <Avatar name={name} bot />
                      <Text medium cut>
                        {visibleText(name)}
                      </Text>
                    </Row>
                  )),
                  column('What it is for', { tone: 'muted' }, ({ description = '' }) => visibleText(description)),
                  column('State', { width: 140 }, ({ available }) =>
                    available ? (
                      <Text tone="muted">can run</Text>
                    ) : (
                      <Text tone="bad" title="Its environment, model, a skill or a secret no longer exists">
                        cannot run
                      </Text>
                    ),
                  ),
                  column(
                    'Model',
                    { width: 180, mono: true },
                    ({ base_model: model }) => model ?? <Text tone="dim">the default</Text>,
                  ),
                  column('Changed', { width: 120 }, ({ updated_at }) => <Ago time={updated_at} />),
                  column('Its runs', { width: 72 }, ({ uid }) => (
                    <TextLink to="/runs" search={{ executor: uid }}>
                      Runs
                    </TextLink>
                  )),
                  column('Actions', { width: 72, spoken: true }, (identity) => (
                    <IdentityMenu identity={identity} choose={setDoing} />
                  )),
                ]}
              />
              <NothingFound words={words} found={shown.length} />
            </Card>
          )}
        </Stack>
        <Stack as="section" gap={2}>
          <h2>Skills</h2>
          <P tone="muted">
            A SKILL.md in a repository of an environment. A run follows one by its name, for example{' '}
            <code>bin/runyard run --skill owner/repo:name</code>.
          </P>
          <Problem error={skills.error} onRetry={() => void skills.refetch()} />
          {skills.isPending && <SkeletonRows count={3} />}
          {skills.data?.length === 0 && <P tone="dim">The repositories of the environments have none.</P>}
          {(skills.data?.length ?? 0) > 0 && <NothingFound words={words} found={variants.length} />}
          {variants.length > 0 && (
            <DataTable
              items={variants}
              keyOf={({ id }) => id}
              columns={(column) => [
                column('Skill', { width: 200, medium: true }, ({ name }) => visibleText(name)),
                column(
                  'What it is for',
                  {
                    look: ({ error, description }) => ({
                      tone: error ? 'bad' : 'muted',
                      title: visibleText(error ?? description),
                    }),
                  },
                  ({ error, description }) => (
                    <>
                      {error !== undefined && <Text medium>Malformed: </Text>}
                      {visibleText(error ?? description)}
                    </>
                  ),
                ),
                column('Environments', { width: 160, tone: 'muted' }, ({ environments }) =>
                  visibleText(environments.map(({ name, uid }) => name || uid).join(', ')),
                ),
                column('Name in a run', { width: 280, mono: true }, ({ id }) => visibleText(id)),
                column('Last run', { width: 120 }, ({ last_run_timestamp: last }) =>
                  last ? <Ago time={last} /> : <Text tone="dim">never</Text>,
                ),
              ]}
            />
          )}
        </Stack>
      </Content>
      <Suspense>
        {doing?.action === 'create' && <IdentityDialog close={close} />}
        {doing?.action === 'edit' && <IdentityDialog identity={doing.identity} close={close} />}
        {doing?.action === 'key' && <NewKey agent={doing.identity} close={close} />}
      </Suspense>
    </Page>
  );
}

/** Shows the menu of actions on an agent identity. An agent of a factory can be changed only in the definition of the factory. */
function IdentityMenu({ identity, choose }: { identity: AgentIdentity; choose: (doing: Doing) => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const { ask, dialog } = useQuestion();
  const may = useMay('admin');
  const isOwner = useMay('owner');
  const remove = () =>
    ask({
      title: `Delete ${visibleText(identity.name)}?`,
      text: 'Its keys stop working at once. Its runs stay, and live runs continue.',
      action: 'Delete the agent',
      run: async () => {
        await client.deleteAgentIdentity({ params: { identityUid: identity.uid } });
        await queries.invalidateQueries({ queryKey: ['identities', team.uid] });
      },
    });
  const why = !may
    ? 'needs the role admin'
    : identity.factory_uid !== undefined
      ? 'can be changed only in the definition of its factory'
      : undefined;
  const ownersOnly = identity.on_behalf_of_enabled && !isOwner ? 'needs the role owner' : undefined;
  return (
    <>
      <Menu
        label={`Actions for ${identity.name}`}
        kind="ghost"
        icon="more"
        entries={[
          { label: 'Change…', run: () => choose({ action: 'edit', identity }), disabled: why },
          { label: 'New key…', run: () => choose({ action: 'key', identity }), disabled: why ?? ownersOnly },
          { label: 'Delete…', run: remove, isDangerous: true, disabled: why },
        ]}
      />
      {dialog}
    </>
  );
}
