import type { FactorySource, FactorySync } from '@runyard/contract/factories/factory-sources';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { statusOf } from '../../api/problem.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useMay } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Content, Fact, Facts, Note, Row } from '../../parts/blocks.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { memberOf, TextField, textOf } from '../../parts/form.tsx';
import { FormDialog } from '../../parts/form-dialog.tsx';
import { countText, exactText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { AskButton } from '../../parts/question.tsx';
import { RoleButton } from '../../parts/role-button.tsx';
import { showToast } from '../../parts/toast.tsx';
import { Plan } from './plan.tsx';

/** Reads the git repository that the factory follows, without its content. A factory without one gives the status 404. */
export function useFactorySource(factoryUid: string) {
  return useRead(['factory', factoryUid, 'source'], (client) => client.getFactorySource({ params: { factoryUid } }), {
    retry: false,
  });
}

/** Shows the repository that the factory follows, and whether the factory is as in this repository. */
export function Source({ factoryUid }: { factoryUid: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const may = useMay('member');
  const params = { factoryUid };
  const { error, attempt, isBusy } = useAttempts();
  const source = useFactorySource(factoryUid);
  // A dry run reads the newest commit and compares it with the factory. It changes nothing.
  const plan = useRead(
    ['factory', factoryUid, 'source', 'plan'],
    (client) => client.syncFactorySource({ params, body: { dry_run: true } }),
    { enabled: may && source.isSuccess, retry: false, refetchOnWindowFocus: false, refetchInterval: false },
  );
  const apply = () =>
    attempt(async () => {
      const { outcome, message, version } = await client.syncFactorySource({ params, body: { dry_run: false } });
      showToast(
        outcome === 'applied' ? `Applied version ${version ?? ''}` : visibleText(message ?? `Not applied: ${outcome}`),
      );
      await queries.invalidateQueries({ queryKey: ['factory', factoryUid] });
    });
  const detach = async () => {
    await client.deleteFactorySource({ params });
    await queries.resetQueries({ queryKey: ['factory', factoryUid] });
  };
  if (statusOf(source.error) === 404) return <NoSource factoryUid={factoryUid} />;
  if (source.data === undefined)
    return <Content>{source.error ? <Problem error={source.error} /> : <SkeletonRows count={3} />}</Content>;
  const sync = plan.data;
  return (
    <Content>
      <SyncVerdict source={source.data} sync={sync} isReading={plan.isFetching} />
      <Problem error={error ?? plan.error} />
      <Row wrap>
        <RoleButton needs="member" disabled={plan.isFetching} run={() => void plan.refetch({ cancelRefetch: false })}>
          Compare again
        </RoleButton>
        <RoleButton
          needs="member"
          kind={sync && sync.changes.length + sync.drift.length > 0 ? 'primary' : undefined}
          disabled={isBusy}
          run={() => void apply()}
        >
          Apply the newest commit
        </RoleButton>
        <AskButton
          needs="member"
          question={{
            title: 'Detach the factory from its repository?',
            text: 'The last applied definition stays. Commits change the factory no more.',
            action: 'Detach',
            safe: 'Keep following',
            run: detach,
          }}
        >
          Detach…
        </AskButton>
      </Row>
      {sync?.outcome === 'applied' && <Plan plan={sync} />}
      <SourceFacts source={source.data} />
    </Content>
  );
}

/** Lets a person choose the repository that the factory follows. */
function NoSource({ factoryUid }: { factoryUid: string }) {
  const client = useClient();
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const send = async (data: FormData) => {
    const { sync } = await client.setFactorySource({
      params: { factoryUid },
      body: {
        repository: textOf(data, 'repository') ?? '',
        ...memberOf(data, 'branch'),
        ...memberOf(data, 'folder'),
      },
    });
    if (sync.outcome !== 'applied') showToast(visibleText(sync.message ?? `Not applied: ${sync.outcome}`));
    await queries.resetQueries({ queryKey: ['factory', factoryUid] });
  };
  return (
    <>
      <Empty
        title="The factory follows no repository"
        command="bin/runyard factory source set FACTORY owner/repo"
        action={
          <RoleButton needs="member" kind="primary" icon="git" run={() => setOpen(true)}>
            Follow a repository
          </RoleButton>
        }
      >
        A factory that follows a branch applies each commit that changes its files, and says where it differs.
      </Empty>
      {isOpen && (
        <FormDialog title="Follow a repository" action="Follow" send={send} close={() => setOpen(false)}>
          <TextField
            label="Repository"
            path="repository"
            required
            placeholder="owner/repo"
            hint="Or its address. Its newest commit is applied at once, as you"
          />
          <TextField label="Branch" path="branch" placeholder="the default branch" />
          <TextField label="Folder" path="folder" placeholder="the root" hint="The folder with factory.yaml" />
        </FormDialog>
      )}
    </>
  );
}

/** Says in one line whether the factory is as in git. */
function SyncVerdict({
  source,
  sync,
  isReading,
}: {
  source: FactorySource;
  sync: FactorySync | undefined;
  isReading: boolean;
}) {
  const [isRight, text] = verdictOf(source, sync, isReading);
  return (
    <Note as="p" tone={isRight === false ? 'wait' : undefined} role="status">
      <Icon name={isRight === undefined ? 'clock' : isRight ? 'check' : 'warn'} />
      <span>{visibleText(text)}</span>
    </Note>
  );
}

const shortCommit = (commit: string | undefined): string =>
  commit === undefined ? 'the newest commit' : `commit ${commit.slice(0, 8)}`;

/** Returns whether the factory is as in git, or undefined if this is not known yet, and a text that says so. */
function verdictOf(
  { last_sync: last, applied_commit: applied }: FactorySource,
  sync: FactorySync | undefined,
  isReading: boolean,
): readonly [isRight: boolean | undefined, text: string] {
  if (sync === undefined) {
    if (last !== undefined && last.outcome !== 'applied')
      return [false, `Not as in git: ${shortCommit(last.commit)} could not be applied. ${last.message ?? ''}`];
    const known =
      applied === undefined ? 'No commit was applied yet' : `The last applied commit is ${applied.slice(0, 8)}`;
    const text = `${known}. The factory was not compared with the newest commit.`;
    return [undefined, isReading ? 'Comparing with the repository…' : text];
  }
  if (sync.outcome !== 'applied')
    return [false, `Not as in git: ${shortCommit(sync.commit)} cannot be applied. ${sync.message ?? ''}`];
  const faults = [
    ...(sync.changes.length > 0 ? [`${countText(sync.changes.length, 'change')} of git not applied yet`] : []),
    ...(sync.drift.length > 0 ? [`${countText(sync.drift.length, 'change')} made without files`] : []),
  ];
  if (faults.length > 0) return [false, `Not as in git (${shortCommit(sync.commit)}): ${faults.join(', ')}.`];
  return [true, `As in git: the factory is as ${shortCommit(sync.commit)} defines it.`];
}

function SourceFacts({ source }: { source: FactorySource }) {
  const time = (at: string | undefined): string => (at === undefined ? 'never' : exactText(Date.parse(at)));
  const { last_sync: last } = source;
  return (
    <>
      <Facts far>
        <Fact name="Repository">{visibleText(source.repository)}</Fact>
        <Fact name="Branch">{source.branch === undefined ? 'the default branch' : visibleText(source.branch)}</Fact>
        <Fact name="Folder">
          {source.folder === undefined ? 'the root of the repository' : visibleText(source.folder)}
        </Fact>
        <Fact name="Applied commit">
          {source.applied_commit === undefined ? 'none' : <code>{source.applied_commit}</code>}
        </Fact>
        <Fact name="Looked at">{`${time(source.checked_at)}, next ${time(source.next_check_at)}`}</Fact>
        <Fact name="Applied as">{nameOf(source.set_by)}</Fact>
        <Fact name="Last sync">{last && `${last.outcome.replaceAll('_', ' ')}, ${time(last.at)}`}</Fact>
      </Facts>
      {last?.errors?.map(({ path, line, message }) => (
        <Note key={`${path} ${line} ${message}`} as="p" tone="bad">
          {visibleText(`${path}:${line}: ${message}`)}
        </Note>
      ))}
    </>
  );
}
