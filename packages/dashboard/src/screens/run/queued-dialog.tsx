/** The dialogs of a message that the agent has not read yet. This file is loaded when the first dialog opens. */

import type { WaitingFollowup } from '@runyard/contract/runs/runs';
import { useClient } from '../../api/session.ts';
import { Input } from '../../parts/controls.tsx';
import { ConfirmDialog } from '../../parts/dialog.tsx';
import { Field, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';

/** Shows the dialog that changes or withdraws a message. */
export function QueuedDialog({
  action,
  message: { followup_id: followupId, message, attachments },
  runId,
  refresh,
  close,
}: {
  action: 'edit' | 'withdraw';
  message: WaitingFollowup;
  runId: string;
  refresh: () => Promise<void>;
  close: () => void;
}) {
  const client = useClient();
  const params = { runId, followupId };
  if (action === 'withdraw')
    return (
      <ConfirmDialog
        title="Withdraw this message?"
        action="Withdraw the message"
        run={async () => {
          await client.withdrawFollowup({ params });
          await refresh();
        }}
        close={close}
      >
        {attachments.length > 0
          ? 'The agent does not get it, and its files are deleted.'
          : 'The agent does not get it, and it is deleted.'}
      </ConfirmDialog>
    );
  return (
    <FormDialog
      title="Edit the message"
      action="Save"
      send={async (data) => {
        await client.editFollowup({ params, body: { message: textOf(data, 'message') ?? '' } });
        await refresh();
      }}
      close={close}
    >
      <Field label="Message" path="message">
        {(control) => <Input as="textarea" rows={8} {...control} defaultValue={message} />}
      </Field>
    </FormDialog>
  );
}
