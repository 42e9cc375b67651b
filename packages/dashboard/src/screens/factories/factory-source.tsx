/** The definition of a factory as files, and the repository that it follows. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient, useMay } from '../../api/session.ts';
import { Empty } from '../../parts/empty.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

/** Shows the definition of the factory. */
export function Definition({ factoryUid }: { factoryUid: string }) {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ['factory', factoryUid, 'definition'],
    queryFn: async () => await client.getFactoryDefinition({ params: { factoryUid } }),
  });
  return (
    <div className="wide">
      <p className="mut">
        The factory as files. Keep them in a repository, and apply them with <code>bin/runyard factories apply</code>,
        or let the factory follow the repository.
      </p>
      <Problem error={error} />
      {data && <JsonView value={data} />}
    </div>
  );
}

/** Shows the repository that the factory follows, and plans or applies its newest commit. */
export function Source({ factoryUid }: { factoryUid: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const may = useMay('member');
  const params = { factoryUid };
  const [error, setError] = useState<unknown>();
  const [plan, setPlan] = useState<unknown>();
  const source = useQuery({
    queryKey: ['factory', factoryUid, 'source'],
    queryFn: async () => await client.getFactorySource({ params }),
    retry: false,
  });
  const sync = async (isDry: boolean) => {
    setError(undefined);
    try {
      setPlan(await client.syncFactorySource({ params, body: { dry_run: isDry } }));
      if (!isDry) await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    } catch (failure) {
      setError(failure);
    }
  };
  if (statusOf(source.error) === 404)
    return (
      <Empty
        title="The factory follows no repository"
        command="bin/runyard factories source set FACTORY --repository owner/repo"
      >
        A factory that follows a branch applies each commit that changes its files, and says where it differs.
      </Empty>
    );
  return (
    <div className="wide">
      <Problem error={source.error} />
      {source.data && (
        <>
          <div className="row">
            <button type="button" className="btn" disabled={!may} onClick={() => void sync(true)}>
              Plan
            </button>
            <button type="button" className="btn pri" disabled={!may} onClick={() => void sync(false)}>
              Apply the newest commit
            </button>
          </div>
          <JsonView value={source.data} />
        </>
      )}
      <Problem error={error} />
      {plan !== undefined && <JsonView value={plan} />}
      {source.data && (
        <p className="hint">
          Read <Ago time={new Date(source.dataUpdatedAt).toISOString()} /> ago.
        </p>
      )}
    </div>
  );
}
