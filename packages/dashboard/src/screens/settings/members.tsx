import type { CreateTeamInvitationResponse, TeamMember } from '@runyard/contract/team/teams';
import { isAtLeast, type Role, roles } from '@runyard/contract/wire/access';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { useTeamPeople } from '../../api/lists.ts';
import { invitationFragment } from '../../api/own-sign-in.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { P } from '../../parts/blocks.tsx';
import { ConfirmDialog, SecretOnceDialog } from '../../parts/dialog.tsx';
import { memberOf, Select, SelectField, TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { countText, dateText } from '../../parts/format.ts';
import { Loaded } from '../../parts/loaded.tsx';
import { Menu } from '../../parts/menu.tsx';
import { nameOf, Person } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { showToast } from '../../parts/toast.tsx';
import { Invitations } from './invitations.tsx';
import { RemoveMemberDialog } from './remove-member.tsx';
import { Rules } from './rules.tsx';
import { Section } from './section.tsx';

/** Returns the roles that a person with the role `own` may give to others. */
const rolesBelow = (own: Role): readonly (readonly [Role, string])[] =>
  roles.filter((role) => isAtLeast(own, role)).map((role) => [role, role] as const);

/** Shows the people of the team, their roles, and the invitations that nobody has used yet. */
export function Members() {
  const { team } = useSession();
  const people = useTeamPeople();
  const rules = people.data?.rules;
  const mayManage = useMay('admin');
  const [open, setOpen] = useState<'invite' | 'join' | 'rename' | undefined>();
  const [made, setMade] = useState<CreateTeamInvitationResponse | undefined>();
  const close = () => setOpen(undefined);
  return (
    <>
      <Section
        title="Members"
        about={`${people.data ? `${countText(people.data.members.length, 'person', 'people')}, managed by ${people.data.managed_by}. ` : ''}Owner, admin, member, viewer: each may do all that the next one may.`}
        action={
          <>
            <Menu
              label="Team"
              kind="ghost"
              icon="more"
              entries={[
                { label: 'Join another team…', run: () => setOpen('join') },
                {
                  label: 'Rename the team…',
                  run: () => setOpen('rename'),
                  disabled: !mayManage && 'needs the role admin',
                },
              ]}
            />
            {rules === undefined && (
              <RoleButton needs="admin" kind="primary" icon="plus" run={() => setOpen('invite')}>
                Invite
              </RoleButton>
            )}
          </>
        }
      />
      <Loaded query={people}>
        {({ members, managed_by }) => <MemberTable members={members} isByRules={managed_by === 'rules'} />}
      </Loaded>
      {rules === undefined ? mayManage && <Invitations /> : <Rules rules={rules} />}
      {open === 'invite' && <InviteDialog onMade={setMade} close={close} />}
      {open === 'join' && <JoinDialog close={close} />}
      {open === 'rename' && <RenameDialog close={close} />}
      {made && (
        <SecretOnceDialog
          title="Copy the link of the invitation now"
          value={`${location.origin}/sign-in#${invitationFragment}${made.key}`}
          hint={`For one person as ${made.role} of ${team.name}, ends ${dateText(Date.parse(made.expires_at))}`}
          close={() => setMade(undefined)}
        >
          <P tone="muted">
            Send it to the person. The first person who opens it can join, so send it over a private channel.
          </P>
        </SecretOnceDialog>
      )}
    </>
  );
}

function MemberTable({ members, isByRules }: { members: readonly TeamMember[]; isByRules: boolean }) {
  const client = useClient();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { team, person } = useSession();
  const mayManage = useMay('admin');
  const [error, setError] = useState<unknown>();
  /**
   * A change of a role that waits for the service's answer or for the person's confirmation. A person who lowers their own role must
   * confirm the change, because this person cannot undo it.
   */
  const [change, setChange] = useState<{ readonly member: TeamMember; readonly role: Role; readonly asks: boolean }>();
  const [leaving, setLeaving] = useState<TeamMember | undefined>();
  const refresh = async () => await queries.invalidateQueries({ queryKey: ['members', team.uid] });

  const give = async (member: TeamMember, role: Role) => {
    const { role: earlier, user } = member;
    await client.updateTeamMember({ params: { teamUid: team.uid, userUid: user.uid }, body: { role } });
    await refresh();
    if (user.uid === person.uid) await queries.invalidateQueries({ queryKey: ['session'] });
    else showToast(`${nameOf(user)} is ${role} now.`, () => void give({ ...member, role }, earlier).catch(setError));
  };
  const choose = async (member: TeamMember, role: Role) => {
    setError(undefined);
    if (member.user.uid === person.uid) return setChange({ member, role, asks: true });
    setChange({ member, role, asks: false });
    await give(member, role).catch(setError);
    setChange(undefined);
  };
  return (
    <>
      <Problem error={error} />
      <Table
        aria-label="Members"
        columns={[
          { name: 'Person' },
          { name: 'Role', width: 140 },
          { name: 'Joined', width: 140 },
          { name: 'Key last used', width: 140 },
          { name: 'Actions', width: 56, spoken: true },
        ]}
      >
        {members.map((member) => {
          const { user, role } = member;
          const why = isByRules
            ? 'Rules decide the roles'
            : !mayManage
              ? 'Needs the role admin'
              : isAtLeast(team.role, role)
                ? undefined
                : 'The role is above yours';
          const mayChange = why === undefined;
          return (
            <tr key={user.uid}>
              <td>
                <Person profile={user} />
              </td>
              <td>
                <span title={why}>
                  <Select
                    aria-label={`Role of ${nameOf(user)}`}
                    disabled={!mayChange || change !== undefined}
                    value={change?.member.user.uid === user.uid ? change.role : role}
                    options={mayChange ? rolesBelow(team.role) : [[role, role]]}
                    onChange={({ target }) => void choose(member, target.value as Role)}
                  />
                </span>
              </td>
              <Cell tone="muted">{dateText(Date.parse(member.joined_at))}</Cell>
              <Cell tone={member.last_used_at === undefined ? 'dim' : 'muted'}>
                {member.last_used_at === undefined ? 'never' : <Ago time={member.last_used_at} />}
              </Cell>
              <td>
                <Menu
                  kind="ghost"
                  small
                  icon="more"
                  label={`Actions for ${nameOf(user)}`}
                  entries={[
                    {
                      label: 'Runs',
                      run: () => void navigate({ to: '/runs', search: { creator: user.uid } }),
                    },
                    {
                      label: 'Changes in the audit log',
                      run: () =>
                        void navigate({
                          to: '/settings/$tab',
                          params: { tab: 'audit' },
                          search: { actor: user.uid },
                        }),
                      disabled: !mayManage && 'needs the role admin',
                    },
                    {
                      label: 'Remove…',
                      isDangerous: true,
                      run: () => setLeaving(member),
                      disabled: why !== undefined && why,
                    },
                  ]}
                />
              </td>
            </tr>
          );
        })}
      </Table>
      {change?.asks && (
        <ConfirmDialog
          title={`Give yourself the role ${change.role}?`}
          action={`Become ${change.role}`}
          safe={`Stay ${change.member.role}`}
          run={async () => await give(change.member, change.role)}
          close={() => setChange(undefined)}
        >
          You may do less at once, and your invitations that wait end. Only somebody with a higher role takes it back.
        </ConfirmDialog>
      )}
      {leaving && <RemoveMemberDialog member={leaving} refresh={refresh} close={() => setLeaving(undefined)} />}
    </>
  );
}

/** Hours, and their names. */
const lifetimes = [
  ['1', 'an hour'],
  ['24', 'a day'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const;

function InviteDialog({ onMade, close }: { onMade: (made: CreateTeamInvitationResponse) => void; close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <FormDialog
      title="Invite a person"
      action="Make the invitation"
      close={close}
      send={async (data, headers) => {
        const role = data.get('role') as Role;
        const invitation = await client.createTeamInvitation({
          params: { teamUid: team.uid },
          body: { role, ...memberOf(data, 'note'), expires_in_hours: Number(data.get('expires_in_hours')) },
          headers: { ...headers },
        });
        onMade(invitation);
        await queries.invalidateQueries({ queryKey: ['invitations', team.uid] });
      }}
    >
      <P tone="muted">You get a link, shown once, that one person can use. Nothing is sent by mail.</P>
      <SelectField
        label="Role"
        path="role"
        defaultValue="member"
        options={rolesBelow(team.role)}
        hint="viewer reads; member starts runs; admin manages people, keys and budget; owner manages admins too"
      />
      <SelectField label="The link works for" path="expires_in_hours" defaultValue="168" options={lifetimes} />
      <TextField label="For whom" path="note" maxLength={200} hint="Only people of the team see it" />
    </FormDialog>
  );
}

function JoinDialog({ close }: { close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const navigate = useNavigate();
  return (
    <FormDialog
      title="Join another team"
      action="Join"
      close={close}
      send={async (data) => {
        const team = await client.joinTeam({ body: { key: String(data.get('key')).trim() } });
        await queries.invalidateQueries({ queryKey: ['session'] });
        await navigate({ to: '/runs', search: { team: team.uid } });
      }}
    >
      <P tone="muted">With the key of an invitation you get into its team as yourself, with your present keys.</P>
      <TextField label="Key of the invitation" path="key" type="password" mono required />
    </FormDialog>
  );
}

function RenameDialog({ close }: { close: () => void }) {
  const client = useClient();
  const queries = useQueryClient();
  const { team } = useSession();
  return (
    <FormDialog
      title="Rename the team"
      action="Rename"
      close={close}
      send={async (data) => {
        await client.updateTeam({ params: { teamUid: team.uid }, body: { name: String(data.get('name')).trim() } });
        await queries.invalidateQueries({ queryKey: ['session'] });
      }}
    >
      <TextField label="Name" path="name" defaultValue={team.name} maxLength={200} required />
    </FormDialog>
  );
}
