import type { RemoveTeamMemberResponse, TeamMember } from '@runyard/contract/team/teams';
import { visibleText } from '@runyard/contract/wire/visible';
import { useRef, useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { P, Row, Stack } from '../../parts/blocks.tsx';
import { Button, Check } from '../../parts/controls.tsx';
import { ConfirmDialog, Dialog } from '../../parts/dialog.tsx';
import { nameOf } from '../../parts/person.tsx';

/**
 * Removes a person from the team. Asks whether the agent keys and worker pools that the person made are deleted too, and lists them
 * after the removal.
 */
export function RemoveMemberDialog({
  member: { user },
  refresh,
  close,
}: {
  member: TeamMember;
  refresh: () => Promise<void>;
  close: () => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const [deletesKeys, setDeletesKeys] = useState(false);
  const [deletesPools, setDeletesPools] = useState(false);
  const answer = useRef<RemoveTeamMemberResponse>(undefined);
  const [removed, setRemoved] = useState<RemoveTeamMemberResponse | undefined>();
  const name = nameOf(user);
  if (removed !== undefined)
    return (
      <Dialog
        title={`${name} is removed`}
        close={close}
        footer={
          <Button kind="primary" autoFocus onClick={close}>
            Done
          </Button>
        }
      >
        <Things what="agent keys" names={removed.agent_keys.map((key) => key.name)} areGone={deletesKeys} />
        <Things what="worker pools" names={removed.worker_pools} areGone={deletesPools} />
      </Dialog>
    );
  const remove = async () => {
    answer.current = await client.removeTeamMember({
      params: { teamUid: team.uid, userUid: user.uid },
      query: { agent_keys: deletesKeys ? 'delete' : 'keep', worker_pools: deletesPools ? 'delete' : 'keep' },
    });
    await refresh();
  };
  const end = () => {
    const { current } = answer;
    if (current && current.agent_keys.length + current.worker_pools.length > 0) setRemoved(current);
    else close();
  };
  return (
    <ConfirmDialog title={`Remove ${name} from ${team.name}?`} action="Remove" run={remove} close={end}>
      <Stack>
        <p>Keys and browser sessions of the person end at once, and the invitations that wait. Runs stay.</p>
        <Row as="label">
          <Check type="checkbox" checked={deletesKeys} onChange={({ target }) => setDeletesKeys(target.checked)} />
          Delete the agent keys that the person made
        </Row>
        <Row as="label">
          <Check type="checkbox" checked={deletesPools} onChange={({ target }) => setDeletesPools(target.checked)} />
          Delete the worker pools that the person owns
        </Row>
      </Stack>
    </ConfirmDialog>
  );
}

function Things({ what, names, areGone }: { what: string; names: readonly string[]; areGone: boolean }) {
  if (names.length === 0) return null;
  return (
    <P tone="muted">
      {areGone
        ? `These ${what} of the person are deleted: `
        : `These ${what} of the person stay, and work for everyone who has a copy: `}
      <b>{names.map(visibleText).join(', ')}</b>
    </P>
  );
}
