/** The definition of a factory as files, and the git repository from which the factory reads its definition. */

import { useQuery, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Empty } from '../../parts/empty.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { Ago } from '../../parts/time.tsx';

const DefinitionEditor = lazy(async () => ({
  default: (await import('./definition-editor.tsx')).DefinitionEditor,
}));

/** Shows the definition of the factory, and lets a person plan and apply another definition. */
export function Definition({ factoryUid, name }: { factoryUid: string; name: string }) {
  const client = useClient();
  const [isEditing, setEditing] = useState(false);
  const { data, error, isPending } = useQuery({
    queryKey: ['factory', factoryUid, 'definition'],
    queryFn: async () => await client.getFactoryDefinition({ params: { factoryUid } }),
    retry: false,
  });
  const isNone = statusOf(error) === 404;
  return (
    <div className="wide">
      <p className="mut">
        The factory as files. Keep them in a repository, and apply them with <code>bin/runyard factories apply</code>,
        let the factory follow the repository, or paste them here.
      </p>
      {!isNone && <Problem error={error} />}
      {!isPending && (
        <div className="row">
          <button type="button" className="btn" aria-expanded={isEditing} onClick={() => setEditing(!isEditing)}>
            {isEditing ? 'Back to the definition' : isNone ? 'Paste a definition' : 'Change the definition'}
          </button>
        </div>
      )}
      <Suspense>
        {isEditing && (
          <DefinitionEditor key={data?.version ?? 0} factoryUid={factoryUid} name={name} stored={data?.files ?? []} />
        )}
      </Suspense>
      {isNone && !isEditing && <p className="dim">No definition was applied to this factory.</p>}
      {data && !isEditing && <JsonView value={data} />}
    </div>
  );
}

/** Shows the git repository from which the factory reads its definition, and plans or applies the newest commit of this repository. */
export function Source({ factoryUid }: { factoryUid: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const params = { factoryUid };
  const { error, attempt } = useAttempts();
  const [plan, setPlan] = useState<unknown>();
  const source = useQuery({
    queryKey: ['factory', factoryUid, 'source'],
    queryFn: async () => await client.getFactorySource({ params }),
    retry: false,
  });
  const sync = async (isDry: boolean) => {
    await attempt(async () => {
      setPlan(await client.syncFactorySource({ params, body: { dry_run: isDry } }));
      if (!isDry) await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    });
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
            <RoleButton needs="member" run={() => void sync(true)}>
              Plan
            </RoleButton>
            <RoleButton needs="member" className="btn pri" run={() => void sync(false)}>
              Apply the newest commit
            </RoleButton>
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
