import { type QueryKey, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { failureOf } from '../api/problem.ts';
import { showToast } from './toast.tsx';

/** A change that the page shows at once. */
export interface Change<Data, Value> {
  /** The stored answer that contains the value. */
  readonly queryKey: QueryKey;
  /** Further answers that contain the value. They are read again after the change. */
  readonly alsoReads?: readonly QueryKey[];
  readonly from: Value;
  readonly to: Value;
  /** Returns the answer with another value. */
  readonly put: (data: Data, value: Value) => Data;
  /** Sends the value to the service. */
  readonly send: (value: Value) => Promise<unknown>;
  /** Text of the message with the button Undo. */
  readonly says: string;
}

/**
 * Returns a function that shows a change before the service has confirmed it, and then offers to undo it. If the service refuses the
 * change or the undo, the page shows the earlier value again. The component must show the failure `error` of a change. The failure of an
 * undo is shown as a message, because the person may have left the screen.
 */
export function useOptimistic() {
  const queries = useQueryClient();
  const [error, setError] = useState<unknown>();
  const change = async <Data, Value>(wanted: Change<Data, Value>, isUndo = false): Promise<void> => {
    const { queryKey, alsoReads = [], from, to, put, send, says } = wanted;
    const show = (value: Value) => queries.setQueryData<Data>(queryKey, (data) => data && put(data, value));
    setError(undefined);
    // An answer that is on its way has the earlier value.
    await queries.cancelQueries({ queryKey });
    show(to);
    try {
      await send(to);
      if (!isUndo) showToast(says, () => void change({ ...wanted, from: to, to: from }, true));
    } catch (failure) {
      show(from);
      if (isUndo) showToast(`Not undone: ${failureOf(failure).detail}`);
      else setError(failure);
    }
    for (const key of [queryKey, ...alsoReads]) {
      // Without this, a first answer that is on its way would count as the new one.
      await queries.cancelQueries({ queryKey: key });
      await queries.invalidateQueries({ queryKey: key });
    }
  };
  return { error, change };
}
