import { useQueryClient } from '@tanstack/react-query';
import { useClient, useSession } from '../../api/session.ts';
import { type Search, writeSearch } from '../../frame/search.ts';
import { TextField } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { showToast } from '../../parts/toast.tsx';

/** Saves the filters and the order of the list under a name. Only this person sees the saved view. */
export function SaveViewDialog({ search, close }: { search: Search; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  return (
    <FormDialog
      title="Save this view"
      action="Save"
      close={close}
      send={async (data) => {
        const name = String(data.get('name')).trim();
        const { team: _, ...query } = search;
        await client.createSavedView({ body: { name, path: `/runs${writeSearch(query)}` } });
        await queries.invalidateQueries({ queryKey: ['views', team.uid] });
        showToast(`Saved the view ${name}`);
      }}
    >
      <TextField
        label="Name"
        path="name"
        required
        maxLength={100}
        hint="It has the filters and the order of the list, and only you see it as a tab."
      />
    </FormDialog>
  );
}
