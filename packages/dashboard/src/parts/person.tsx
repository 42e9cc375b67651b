import type { UserProfile } from '@runyard/contract/wire/profiles';
import { visibleText } from '@runyard/contract/wire/visible';
import { Avatar, Row, Text } from './blocks.tsx';

/**
 * Returns the name of a person or service account. If there is no name, returns the email address. If there is no address either, returns
 * the UID.
 */
export const nameOf = ({
  display_name: name,
  email,
  uid,
}: Pick<UserProfile, 'uid' | 'display_name' | 'email'>): string => visibleText(name ?? email ?? uid);

/** Shows the name of a person or service account, and the address of a person. */
export function Person({ profile }: { profile: UserProfile }) {
  const name = nameOf(profile);
  return (
    <Row as="span">
      <Avatar name={name} bot={profile.type !== 'user'} />
      <Text medium cut>
        {name}
      </Text>
      {profile.display_name !== undefined && profile.email !== undefined && (
        <Text tone="dim" cut>
          {visibleText(profile.email)}
        </Text>
      )}
    </Row>
  );
}
