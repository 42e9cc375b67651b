import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useEnvironments } from '../../api/lists.ts';
import { useClient, useMay, useSession } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Hint, Row, Stack } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { Field } from '../../parts/form.tsx';
import { Problem } from '../../parts/problem.tsx';
import { environmentsWith, nameOf, parseRepositoryText, type RepositoryAtRef } from './repository.ts';

/**
 * Lets a person name a repository, and chooses the environment that has only this repository. If there is none, a button creates it. The
 * form cannot be sent before the environment is chosen.
 */
export function RepositoryField({
  text,
  setText,
  environment,
  setEnvironment,
}: {
  text: string;
  setText: (text: string) => void;
  environment: string;
  setEnvironment: (uid: string) => void;
}) {
  const { team, codeHost } = useSession();
  const { data } = useEnvironments();
  const input = useRef<HTMLInputElement>(null);
  const named = text.trim() === '' ? undefined : parseRepositoryText(text, codeHost);
  const found =
    data === undefined || named === undefined || typeof named === 'string'
      ? undefined
      : environmentsWith(named, data, team.uid);
  const only = found?.length === 1 ? found[0]?.uid : undefined;
  const isChosen = named === undefined || found?.some(({ uid }) => uid === environment) === true;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `setEnvironment` is another function in each rendering
  useEffect(() => {
    if (only !== undefined && only !== environment) setEnvironment(only);
  }, [only, environment]);
  useEffect(() => {
    const missing =
      typeof named === 'string' ? `Repository ${named}` : 'Choose an environment for this repository first';
    input.current?.setCustomValidity(isChosen ? '' : missing);
  }, [named, isChosen]);
  return (
    <Stack gap={2}>
      <Field label="Repository" path="repository" fault={typeof named === 'string' ? { message: named } : undefined}>
        {(control) => (
          <Input
            {...control}
            ref={input}
            type="text"
            autoComplete="off"
            spellCheck={false}
            maxLength={500}
            placeholder="owner/name@branch, or an address"
            value={text}
            onChange={({ target }) => setText(target.value)}
          />
        )}
      </Field>
      <Row wrap aria-live="polite">
        {found?.length === 0 && typeof named === 'object' && (
          <CreateEnvironment key={nameOf(named)} repository={named} created={setEnvironment} />
        )}
        {found?.map(({ uid, config }) =>
          uid === environment ? (
            <Hint key={uid}>{`The run uses the environment ${visibleText(config.name ?? uid)}.`}</Hint>
          ) : (
            <Button key={uid} small onClick={() => setEnvironment(uid)}>
              {`Use ${visibleText(config.name ?? uid)}`}
            </Button>
          ),
        )}
      </Row>
    </Stack>
  );
}

function CreateEnvironment({ repository, created }: { repository: RepositoryAtRef; created: (uid: string) => void }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const may = useMay('member');
  const { error, isBusy, attempt } = useAttempts();
  const key = useRef(crypto.randomUUID());
  const name = nameOf(repository);
  if (!may)
    return <Hint>No environment has only this repository, and your role is viewer: a member can create one.</Hint>;
  const create = async () => {
    const { uid } = await client.createEnvironment({
      body: { config: { name, github_repos: [repository] } },
      headers: { 'idempotency-key': key.current },
    });
    await queries.invalidateQueries({ queryKey: ['environments', team.uid] });
    created(uid);
  };
  return (
    <>
      <Button small icon="plus" disabled={isBusy} onClick={() => void attempt(create)}>
        {`Create environment ${name}`}
      </Button>
      <Hint>No environment has only this repository yet. Setup and hosts can be added later.</Hint>
      <Problem error={error} />
    </>
  );
}
