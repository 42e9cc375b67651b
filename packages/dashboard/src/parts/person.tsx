import type { UserProfile } from '@runyard/contract/wire/profiles';
import { visibleText } from '@runyard/contract/wire/visible';
import { initials } from './format.ts';

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
    <span className="row">
      <span className={`av ${profile.type === 'user' ? '' : 'bot'}`} aria-hidden="true">
        {initials(name)}
      </span>
      <span className="md cut">{name}</span>
      {profile.display_name !== undefined && profile.email !== undefined && (
        <span className="dim cut">{visibleText(profile.email)}</span>
      )}
    </span>
  );
}
