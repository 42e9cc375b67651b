import type { ApiKey } from '@runyard/contract/team/keys';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useIdentities, useMembers } from '../../api/lists.ts';
import { useTeamRead } from '../../api/read.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { Note, Text } from '../../parts/blocks.tsx';
import { relativeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { NewKey } from '../../parts/new-key.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Ago } from '../../parts/time.tsx';
import { CrudTab } from './crud-tab.tsx';
import { Passkeys } from './passkeys.tsx';
import styles from './settings.module.css';

/** A key that never expires counts as stale if nobody has used it for this number of milliseconds. */
const staleMs = 90 * 24 * 3_600_000;

const isStale = ({ expires_at, last_used_at, created_at }: ApiKey): boolean =>
  expires_at === undefined && Date.now() - Date.parse(last_used_at ?? created_at) > staleMs;

/** Shows with what the person signs in, and with what programs use the API. */
export const KeysTab = () => (
  <>
    <Passkeys />
    <Keys />
  </>
);

/** Lists the person's API keys and browser sessions; administrators see all keys and sessions of the team. */
function Keys() {
  const client = useClient();
  const { team } = useSession();
  const keys = useTeamRead(['keys'], async (client) => (await client.listKeys()).keys);
  const seesAll = useMay('admin');
  const actorOf = useActors();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const remove = async ({ uid, is_current: isCurrent }: ApiKey) => {
    await client.deleteKey({ params: { uid } });
    if (!isCurrent) return;
    queries.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <CrudTab
      title="API keys"
      about={`A key acts for a person or for an agent. Only its last four characters are stored for display. ${seesAll ? 'You see all keys of the team.' : 'You see your own.'}`}
      query={keys}
      queryKey={['keys', team.uid]}
      empty={{ title: 'No key yet', text: 'Programs and agents use the API with a key.' }}
      keyOf={({ uid }) => uid}
      nameOf={({ name, last_four }) => `${name}, ${last_four}`}
      columns={(column) => [
        column('Name', {}, ({ name, is_current }) => (
          <>
            <Text medium>{visibleText(name)}</Text>
            {is_current && <Text tone="dim"> this browser</Text>}
          </>
        )),
        column('Kind', { width: 80, tone: 'muted' }, ({ is_session, kind }) => (is_session ? 'session' : kind)),
        column(
          'Key',
          { width: 120, tone: 'dim', mono: true },
          ({ prefix, last_four }) => `${prefix.slice(0, 4)}…${last_four}`,
        ),
        column('Acts as', { width: 140 }, actorOf),
        column(
          'Last used',
          { width: 108, look: (key) => ({ tone: isStale(key) ? 'wait' : key.last_used_at ? 'muted' : 'dim' }) },
          ({ last_used_at }) => timeOrNever(last_used_at),
        ),
        column(
          'Ends',
          { width: 108, look: ({ expires_at }) => ({ tone: expires_at === undefined ? 'dim' : 'muted' }) },
          ({ expires_at }) => timeOrNever(expires_at),
        ),
      ]}
      actionsWidth={108}
      newLabel="New key"
      needs={() => 'viewer'}
      editor={(_, close) => <NewKey close={close} />}
      removeWord={({ is_session }) => (is_session ? 'Sign out' : 'Delete')}
      removal={(key) => ({ ...questionOf(key, actorOf(key)), run: () => remove(key) })}
      below={(leave) =>
        (keys.data ?? []).filter(isStale).map((key) => (
          <Note key={key.uid} tone="wait">
            <Icon name="warn" />
            <span>
              {`${visibleText(key.name)} was ${key.last_used_at === undefined ? 'never used' : `last used ${relativeText(Date.parse(key.last_used_at), Date.now())}`} and never ends. `}
              <button type="button" className={styles.link} onClick={() => leave(key)}>
                Delete it
              </button>
            </span>
          </Note>
        ))
      }
    />
  );
}

const timeOrNever = (time: string | undefined): ReactNode => (time === undefined ? 'never' : <Ago time={time} />);

/** Returns the question before a key is deleted or a session ends. `actor`: the name of the person or agent of the key. */
function questionOf({ name, is_session: isSession, is_current: isCurrent }: ApiKey, actor: string) {
  if (isSession)
    return {
      title: 'Sign out this browser session?',
      action: 'Sign out',
      text: `The session of ${actor} ends at once${isCurrent ? ', and you are signed out here' : ''}.`,
    };
  return {
    title: `Delete the key “${visibleText(name)}”?`,
    action: 'Delete the key',
    text: `It acts as ${actor} and stops working at once: every program that uses it is refused. Browser sessions that were created with it also end.`,
  };
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
