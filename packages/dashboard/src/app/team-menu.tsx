import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { dropDrafts } from '../api/drafts.ts';
import { clientOf, useSession } from '../api/session.ts';
import { Avatar, Mark, Text } from '../parts/blocks.tsx';
import { Icon } from '../parts/icon.tsx';
import { Menu } from '../parts/menu.tsx';
import styles from './app.module.css';

/** Shows a menu with the teams of the person. Choosing a team opens the runs of this team. */
export function TeamMenu() {
  const { teams, team } = useSession();
  const navigate = useNavigate();
  const teamName = visibleText(team.name);
  return (
    <Menu
      label={`Team ${teamName}`}
      hasWords
      kind="ghost"
      className={styles.team}
      entries={teams.map(({ uid, name, role }) => ({
        label: `${name}, ${role}`,
        run: () => void navigate({ to: '/runs', search: { team: uid } }),
      }))}
    >
      <Mark>{teamName.slice(0, 1).toUpperCase()}</Mark>
      <Text grow cut>
        {teamName}
      </Text>
      <Icon name="down" small />
    </Menu>
  );
}

/** Shows the menu of the person, with the actions on the person's own session. */
export function PersonMenu() {
  const { person, csrfToken } = useSession();
  const name = visibleText(person.display_name ?? person.uid);
  const navigate = useNavigate();
  const queries = useQueryClient();
  const leave = async (everywhere: boolean) => {
    const client = clientOf(csrfToken);
    await (everywhere ? client.endBrowserSessions() : client.endBrowserSession());
    dropDrafts();
    queries.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <Menu
      label={`${name}: session`}
      hasWords
      kind="ghost"
      small
      grow
      className={styles.person}
      entries={[
        { label: 'My keys', run: () => void navigate({ to: '/settings/$tab', params: { tab: 'keys' } }) },
        { label: 'Sign out', run: () => void leave(false) },
        { label: 'Sign out everywhere', run: () => void leave(true) },
      ]}
    >
      <Avatar name={name} />
      <Text grow cut>
        {name}
      </Text>
    </Menu>
  );
}
