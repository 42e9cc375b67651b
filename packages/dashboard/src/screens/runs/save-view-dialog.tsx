import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useId, useState } from 'react';
import { Button } from 'react-aria-components';
import { failureOf } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { type Search, writeSearch } from '../../frame/search.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { showToast } from '../../parts/toast.tsx';

/** Saves filters and order of the list under a name, for this person. */
export function SaveViewDialog({ search, close }: { search: Search; close: () => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const form = useId();
  const [name, setName] = useState('');
  const [error, setError] = useState<unknown>();
  const save = async (event: FormEvent) => {
    event.preventDefault();
    setError(undefined);
    try {
      const { team: _, ...query } = search;
      await client.createSavedView({ body: { name: name.trim(), path: `/runs${writeSearch(query)}` } });
      await queries.invalidateQueries({ queryKey: ['views', team.uid] });
      showToast(`Saved the view ${name.trim()}`);
      close();
    } catch (failure) {
      setError(failure);
    }
  };
  return (
    <Dialog
      title="Save this view"
      close={close}
      footer={
        <>
          <Button className="btn" onPress={close}>
            Back
          </Button>
          <button type="submit" form={form} className="btn pri" disabled={name.trim() === ''}>
            Save
          </button>
        </>
      }
    >
      <form id={form} className="field" onSubmit={(event) => void save(event)}>
        <label htmlFor={`${form}-name`}>Name</label>
        <input
          id={`${form}-name`}
          className="in"
          maxLength={100}
          value={name}
          onChange={({ target }) => setName(target.value)}
        />
        {error !== undefined && (
          <p className="small badc" role="alert">
            {failureOf(error).detail}
          </p>
        )}
        <span className="hint">It has the filters and the order of the list, and is shown as a tab to you only.</span>
      </form>
    </Dialog>
  );
}
