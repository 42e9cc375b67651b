import type { ApiKey } from '@runyard/contract/team/keys';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useIdentities, useMembers } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { relativeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Loaded } from '../../parts/loaded.tsx';
import { NewKey } from '../../parts/new-key.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Ago } from '../../parts/time.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

/** A key that never expires counts as stale if nobody has used it for this number of milliseconds. */
const staleMs = 90 * 24 * 3_600_000;

const isStale = ({ expires_at, last_used_at, created_at }: ApiKey): boolean =>
  expires_at === undefined && Date.now() - Date.parse(last_used_at ?? created_at) > staleMs;

/** Lists the person's API keys and browser sessions; administrators see all keys and sessions of the team. */
export function Keys() {
  const client = useClient();
  const { team } = useSession();
  const keys = useQuery({ queryKey: ['keys', team.uid], queryFn: async () => (await client.listKeys()).keys });
  const seesAll = useMay('admin');
  const actorOf = useActors();
  const [isCreating, setCreating] = useState(false);
  const [leaving, setLeaving] = useState<ApiKey | undefined>();
  const stale = (keys.data ?? []).filter(isStale);
  return (
    <>
      <Section
        title="API keys"
        about={`A key acts for a person or for an agent. Only its last four characters are stored for display. ${seesAll ? 'You see all keys of the team.' : 'You see your own.'}`}
        action={
          <button type="button" className="btn pri" onClick={() => setCreating(true)}>
            <Icon name="plus" small />
            New key
          </button>
        }
      />
      <Loaded query={keys}>
        {(list) => (
          <div className="card">
            <table className="tbl in-card" aria-label="API keys">
              <thead>
                <tr>
                  <th>Name</th>
                  <th className="w80">Kind</th>
                  <th className="w120">Key</th>
                  <th className="w140">Acts as</th>
                  <th className="w108">Last used</th>
                  <th className="w108">Ends</th>
                  <th className="w108">
                    <span className="sr">Actions</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {list.map((key) => (
                  <tr key={key.uid}>
                    <td>
                      <span className="md">{visibleText(key.name)}</span>
                      {key.is_current && <span className="dim"> this browser</span>}
                    </td>
                    <td className="mut">{key.is_session ? 'session' : key.kind}</td>
                    <td className="mono dim">{`${key.prefix.slice(0, 4)}…${key.last_four}`}</td>
                    <td>{actorOf(key)}</td>
                    <td className={isStale(key) ? 'waitc' : key.last_used_at ? 'mut' : 'dim'}>
                      {key.last_used_at === undefined ? 'never' : <Ago time={key.last_used_at} />}
                    </td>
                    <td className={key.expires_at === undefined ? 'dim' : 'mut'}>
                      {key.expires_at === undefined ? 'never' : <Ago time={key.expires_at} />}
                    </td>
                    <td>
                      <button
                        type="button"
                        className="btn sm dan"
                        aria-label={`${key.is_session ? 'Sign out' : 'Delete'} ${visibleText(key.name)}, ${key.last_four}`}
                        onClick={() => setLeaving(key)}
                      >
                        {key.is_session ? 'Sign out…' : 'Delete…'}
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Loaded>
      {stale.map((key) => (
        <div key={key.uid} className="note wait">
          <Icon name="warn" />
          <span>
            {`${visibleText(key.name)} was ${key.last_used_at === undefined ? 'never used' : `last used ${relativeText(Date.parse(key.last_used_at), Date.now())}`} and never ends. `}
            <button type="button" className={styles.link} onClick={() => setLeaving(key)}>
              Delete it
            </button>
          </span>
        </div>
      ))}
      {isCreating && <NewKey close={() => setCreating(false)} />}
      {leaving && <DeleteKeyDialog apiKey={leaving} actor={actorOf(leaving)} close={() => setLeaving(undefined)} />}
    </>
  );
}

/** Returns a function that returns the name of the person or agent with whose rights a key acts. */
function useActors(): (key: ApiKey) => string {
  const { person } = useSession();
  const members = useMembers();
  const identities = useIdentities();
  return ({ kind, user_uid: userUid, agent_uid: agentUid, name }) => {
    if (kind === 'personal') {
      if (userUid === person.uid) return nameOf(person);
      const member = members.data?.find(({ user }) => user.uid === userUid);
      return member === undefined ? 'a person' : nameOf(member.user);
    }
    const identity = identities.data?.find(({ uid }) => uid === agentUid);
    return visibleText(identity?.name ?? name);
  };
}

function DeleteKeyDialog({ apiKey, actor, close }: { apiKey: ApiKey; actor: string; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { team } = useSession();
  const { name, uid, is_session: isSession, is_current: isCurrent } = apiKey;
  return (
    <ConfirmDialog
      title={isSession ? 'Sign out this browser session?' : `Delete the key “${visibleText(name)}”?`}
      action={isSession ? 'Sign out' : 'Delete the key'}
      run={async () => {
        await client.deleteKey({ params: { uid } });
        if (!isCurrent) return await queries.invalidateQueries({ queryKey: ['keys', team.uid] });
        queries.clear();
        await navigate({ to: '/sign-in' });
      }}
      close={close}
    >
      {isSession
        ? `The session of ${actor} ends at once${isCurrent ? ', and you are signed out here' : ''}.`
        : `It acts as ${actor} and stops working at once: every program that uses it is refused. Browser sessions that were created with it also end.`}
    </ConfirmDialog>
  );
}
