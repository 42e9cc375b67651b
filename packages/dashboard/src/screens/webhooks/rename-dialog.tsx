import { TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';

/** Asks for another name of a webhook. The page shows the new name at once. */
export function RenameDialog({
  name,
  rename,
  close,
}: {
  name: string;
  rename: (name: string) => Promise<void>;
  close: () => void;
}) {
  return (
    <FormDialog
      title="Rename the webhook"
      action="Rename"
      send={async (data) => void rename(textOf(data, 'name') ?? name)}
      close={close}
    >
      <TextField label="Name" path="name" required maxLength={100} defaultValue={name} />
    </FormDialog>
  );
}
