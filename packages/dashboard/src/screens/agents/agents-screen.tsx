import type { AgentIdentity } from '@runyard/contract/team/identities';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { lazy, Suspense, useState } from 'react';
import { useIdentities } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Page } from '../../frame/page.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../../parts/find.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Menu } from '../../parts/menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';
import { showToast } from '../../parts/toast.tsx';

const IdentityDialog = lazy(async () => ({ default: (await import('./identity-dialog.tsx')).IdentityDialog }));
const NewKey = lazy(async () => ({ default: (await import('../../parts/new-key.tsx')).NewKey }));
const ConfirmDialog = lazy(async () => ({ default: (await import('../../parts/dialog.tsx')).ConfirmDialog }));

/** The dialog that is open, and the agent that it is about. */
type Doing =
  | { readonly action: 'create' }
  | { readonly action: 'edit' | 'key' | 'delete'; readonly identity: AgentIdentity };

/** Lists the agent identities, as which runs and keys can act, and the skills in the team's repositories. */
export function AgentsScreen() {
  const client = useClient();
  const { team } = useSession();
  const identities = useIdentities();
  const [doing, setDoing] = useState<Doing | undefined>();
  const close = () => setDoing(undefined);
  const [words, setWords] = useState('');
  const shown = (identities.data ?? []).filter(({ name }) => hasWords(words, name));
  const may = useMay('admin');
  const editFocused = () => {
    const all = identities.data ?? [];
    const uid = document.activeElement?.closest('tr')?.dataset.uid;
    const identity = all.find((each) => each.uid === uid) ?? (all.length === 1 ? all[0] : undefined);
    if (identity === undefined) showToast('Choose an agent with J or K first.');
    else if (may && identity.factory_uid === undefined) setDoing({ action: 'edit', identity });
  };
  useKeys([{ key: 'e', does: 'Change the agent', run: editFocused }]);
  const skills = useQuery({
    queryKey: ['skills', team.uid],
    queryFn: async () => (await client.listAgents({ query: { include_malformed_skills: true } })).agents,
  });
  const variants = (skills.data ?? []).flatMap(({ name, variants: each }) =>
    each.filter(({ id }) => hasWords(words, name, id)).map((variant) => ({ name, variant })),
  );
  return (
    <Page title="Agents and skills" actions={<Find words={words} change={setWords} />}>
      <div className="wide">
        <section className="stack s2">
          <div className="row">
            <h2 className="grow">Agents</h2>
            <RoleButton needs="admin" className="btn pri" run={() => setDoing({ action: 'create' })}>
              <Icon name="plus" small />
              New agent
            </RoleButton>
          </div>
          <p className="mut">
            A run or an agent key that acts as one gets its model, environment, skills and secrets. The same in a
            terminal: <code>bin/runyard identities create FILE</code>.
          </p>
          <Problem error={identities.error} onRetry={() => void identities.refetch()} />
          {identities.isPending && <SkeletonRows count={3} />}
          {identities.data?.length === 0 && (
            <p className="dim">The team has none: runs act as the people who start them.</p>
          )}
          {identities.data !== undefined && identities.data.length > 0 && (
            <div className="card">
              <table className="tbl in-card">
                <thead>
                  <tr>
                    <th className="w200">Agent</th>
                    <th>What it is for</th>
                    <th className="w140">State</th>
                    <th className="w180">Model</th>
                    <th className="w120">Changed</th>
                    <th className="w72">Its runs</th>
                    <th className="w72">
                      <span className="sr">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {shown.map((identity) => (
                    <tr key={identity.uid} data-uid={identity.uid}>
                      <td>
                        <span className="row">
                          <span className="av bot" aria-hidden="true">
                            {identity.name.slice(0, 1).toUpperCase()}
                          </span>
                          <span className="md cut">{visibleText(identity.name)}</span>
                        </span>
                      </td>
                      <td className="mut">{visibleText(identity.description ?? '')}</td>
                      <td>
                        {identity.available ? (
                          <span className="mut">can run</span>
                        ) : (
                          <span className="badc" title="Its environment, model, a skill or a secret no longer exists">
                            cannot run
                          </span>
                        )}
                      </td>
                      <td className="mono">{identity.base_model ?? <span className="dim">the default</span>}</td>
                      <td>
                        <Ago time={identity.updated_at} />
                      </td>
                      <td>
                        <Link className="link" to="/runs" search={{ executor: identity.uid }}>
                          Runs
                        </Link>
                      </td>
                      <td>
                        <IdentityMenu identity={identity} choose={setDoing} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
              <NothingFound words={words} found={shown.length} />
            </div>
          )}
        </section>
        <section className="stack s2">
          <h2>Skills</h2>
          <p className="mut">
            A SKILL.md in a repository of an environment. A run follows one by its name, for example{' '}
            <code>bin/runyard run --skill owner/repo:name</code>.
          </p>
          <Problem error={skills.error} onRetry={() => void skills.refetch()} />
          {skills.isPending && <SkeletonRows count={3} />}
          {skills.data?.length === 0 && <p className="dim">The repositories of the environments have none.</p>}
          {(skills.data?.length ?? 0) > 0 && <NothingFound words={words} found={variants.length} />}
          {variants.length > 0 && (
            <div className="card">
              <table className="tbl in-card">
                <thead>
                  <tr>
                    <th className="w200">Skill</th>
                    <th>What it is for</th>
                    <th className="w160">Environments</th>
                    <th className="w280">Name in a run</th>
                    <th className="w120">Last run</th>
                  </tr>
                </thead>
                <tbody>
                  {variants.map(({ name, variant }) => (
                    <tr key={variant.id}>
                      <td className="md">{visibleText(name)}</td>
                      <td
                        className={variant.error ? 'badc' : 'mut'}
                        title={visibleText(variant.error ?? variant.description)}
                      >
                        {variant.error !== undefined && <span className="md">Malformed: </span>}
                        {visibleText(variant.error ?? variant.description)}
                      </td>
                      <td className="mut">
                        {visibleText(variant.environments.map((each) => each.name || each.uid).join(', '))}
                      </td>
                      <td className="mono">{visibleText(variant.id)}</td>
                      <td>
                        {variant.last_run_timestamp ? (
                          <Ago time={variant.last_run_timestamp} />
                        ) : (
                          <span className="dim">never</span>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </section>
      </div>
      <Suspense>
        {doing?.action === 'create' && <IdentityDialog close={close} />}
        {doing?.action === 'edit' && <IdentityDialog identity={doing.identity} close={close} />}
        {doing?.action === 'key' && <NewKey agent={doing.identity} close={close} />}
        {doing?.action === 'delete' && <DeleteIdentity identity={doing.identity} close={close} />}
      </Suspense>
    </Page>
  );
}

/** Shows the menu of actions on an agent identity. An agent of a factory can be changed only in the definition of the factory. */
function IdentityMenu({ identity, choose }: { identity: AgentIdentity; choose: (doing: Doing) => void }) {
  const may = useMay('admin');
  const isOwner = useMay('owner');
  const why = !may
    ? 'needs the role admin'
    : identity.factory_uid !== undefined
      ? 'can be changed only in the definition of its factory'
      : undefined;
  const ownersOnly = identity.on_behalf_of_enabled && !isOwner ? 'needs the role owner' : undefined;
  return (
    <Menu
      label={`Actions for ${identity.name}`}
      className="btn ghost icon"
      entries={[
        { label: 'Change…', run: () => choose({ action: 'edit', identity }), disabled: why },
        { label: 'New key…', run: () => choose({ action: 'key', identity }), disabled: why ?? ownersOnly },
        {
          label: 'Delete…',
          run: () => choose({ action: 'delete', identity }),
          isDangerous: true,
          disabled: why,
        },
      ]}
    >
      <Icon name="more" />
    </Menu>
  );
}

function DeleteIdentity({ identity, close }: { identity: AgentIdentity; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  return (
    <ConfirmDialog
      title={`Delete ${visibleText(identity.name)}?`}
      action="Delete the agent"
      run={async () => {
        await client.deleteAgentIdentity({ params: { identityUid: identity.uid } });
        await queries.invalidateQueries({ queryKey: ['identities', team.uid] });
      }}
      close={close}
    >
      Its keys stop working at once. Its runs stay, and live runs continue.
    </ConfirmDialog>
  );
}
