import type { ChangedFile, RepositoryChanges, RunChanges } from '@runyard/contract/runs/changes';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useRef, useState } from 'react';
import { useRead } from '../../../api/read.ts';
import { useSession } from '../../../api/session.ts';
import { Hint, Note, P, Pad, Row, Stack, Text } from '../../../parts/blocks.tsx';
import { SkeletonRows } from '../../../parts/empty.tsx';
import { countText } from '../../../parts/format.ts';
import { Icon } from '../../../parts/icon.tsx';
import { Problem } from '../../../parts/problem.tsx';
import { RoleButton } from '../../../parts/role-button.tsx';
import { Ago } from '../../../parts/time.tsx';
import { FileChanges } from './changed-file.tsx';
import styles from './changes.module.css';
import { FileTree } from './file-tree.tsx';
import { endOf, filesReadMs } from './files-read.ts';
import { useViewed } from './viewed.ts';

/** Number of files whose changes are shown at first. The changes of other files are folded. */
const openFiles = 20;

/** Shows the files that the run has changed. A comment on a line becomes a part of the next message. */
export function Changes({
  run,
  files,
  comment,
}: {
  run: RunItem;
  /** The list of files for download, which is shown if the workspace has no git repository. */
  files: ReactNode;
  comment: (text: string) => void;
}) {
  const { data, error, refetch } = useRead(
    ['changes', run.run_id, run.state],
    (client) => client.getRunChanges({ params: { runId: run.run_id } }),
    {
      refetchInterval: ({ state }) =>
        filesReadMs(run, { isViewed: true, isCurrent: Date.parse(state.data?.as_of ?? '') >= Date.parse(endOf(run)) }),
      placeholderData: (before) => before,
    },
  );
  if (data === undefined)
    return error ? (
      <Pad>
        <Problem error={error} onRetry={() => void refetch()} />
      </Pad>
    ) : (
      <SkeletonRows />
    );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the changes
    <div className={styles.scroll} data-part="scroll" tabIndex={0}>
      <Stack>
        <Source changes={data} />
        {run.agent_config?.environment_id && data.repositories.some(({ files: changed }) => changed.length > 0) && (
          <Row>
            <RoleButton needs="member" small icon="pr" run={() => comment('Open a pull request with these changes.')}>
              Ask for a pull request
            </RoleButton>
          </Row>
        )}
        <Repositories run={run} changes={data} comment={comment} />
        {data.repositories.length === 0 && files}
      </Stack>
    </div>
  );
}

function Source({ changes }: { changes: RunChanges }) {
  const { as_of: asOf, is_live: isLive, repositories } = changes;
  const isEqual = repositories.every(({ files, problem }) => files.length === 0 && problem === undefined);
  return (
    <>
      <Hint as="p">
        {asOf === undefined ? (
          'No changes are known: the sandbox has reported none. It compares only files in git repositories.'
        ) : (
          <>
            As of <Ago time={asOf} isPast />
            {isLive ? ', read again every few seconds' : ''}. Compared with the commits that were cloned.
          </>
        )}
      </Hint>
      {asOf !== undefined && isEqual && (
        <P tone="muted">
          {repositories.length === 0
            ? 'The workspace has no git repository, so its files are not compared.'
            : 'No file differs from the commits that were cloned.'}
        </P>
      )}
    </>
  );
}

type Opened = ReadonlyMap<string, boolean>;
const keyOf = (repository: RepositoryChanges, file: ChangedFile): string =>
  JSON.stringify([repository.path, file.path]);

function Repositories({
  run,
  changes,
  comment,
}: {
  run: RunItem;
  changes: RunChanges;
  comment: (text: string) => void;
}) {
  const { person } = useSession();
  const viewed = useViewed();
  /** The files that the person has opened or closed. */
  const [opened, setOpened] = useState<Opened>(new Map());
  const shown = changes.repositories.filter(({ files, problem }) => files.length > 0 || problem !== undefined);
  const set = (key: string, isOpen: boolean) => setOpened((before) => new Map(before).set(key, isOpen));
  return shown.map((repository) => {
    const { files } = repository;
    const place = { person: person.uid, run: run.run_id, repository: repository.path };
    const isViewed = (file: ChangedFile) => viewed.has(place, file);
    return (
      <Repository
        key={repository.path}
        repository={repository}
        viewedFiles={files.filter(isViewed).length}
        tree={(show) => (
          <FileTree
            files={files}
            isViewed={isViewed}
            open={(file) => {
              set(keyOf(repository, file), true);
              show(files.indexOf(file));
            }}
          />
        )}
      >
        {files.map((file, index) => (
          <FileChanges
            key={file.path}
            file={file}
            isOpen={opened.get(keyOf(repository, file)) ?? (index < openFiles && !isViewed(file))}
            setOpen={(isOpen) => set(keyOf(repository, file), isOpen)}
            isViewed={isViewed(file)}
            setViewed={(isNow) => {
              viewed.set(place, file, isNow);
              set(keyOf(repository, file), !isNow);
            }}
            comment={comment}
          />
        ))}
      </Repository>
    );
  });
}

/** `tree` gets a function that scrolls to the file with an index. */
function Repository({
  repository,
  viewedFiles,
  tree,
  children,
}: {
  repository: RepositoryChanges;
  viewedFiles: number;
  tree: (show: (index: number) => void) => ReactNode;
  children: readonly ReactNode[];
}) {
  const list = useRef<HTMLDivElement>(null);
  const { files, problem, files_left_out: leftOut = 0 } = repository;
  const added = files.reduce((sum, { additions }) => sum + (additions ?? 0), 0);
  const deleted = files.reduce((sum, { deletions }) => sum + (deletions ?? 0), 0);
  const show = (index: number) => {
    const file = list.current?.children[index];
    file?.scrollIntoView({ block: 'start' });
    file?.querySelector('button')?.focus({ preventScroll: true });
  };
  const hasTree = files.length > 1;
  return (
    <Stack as="section" gap={2}>
      <Row as="h2" wrap>
        <Icon name="git" small />
        <Text mono cut>
          {visibleText(repository.path === '' ? 'workspace' : repository.path)}
        </Text>
        {repository.branch && <Text tone="dim">{visibleText(repository.branch)}</Text>}
        <Text right small>
          {viewedFiles > 0 && <Text tone="dim">{`${viewedFiles} of ${files.length} viewed, `}</Text>}
          {countText(files.length + leftOut, 'file')} <Text tone="good">+{added}</Text>{' '}
          <Text tone="bad">−{deleted}</Text>
        </Text>
      </Row>
      {problem && (
        <Note as="p" tone="wait">
          {visibleText(problem)}
        </Note>
      )}
      <div className={`${styles.flow} ${hasTree ? styles.withTree : ''}`}>
        {hasTree && (
          <details className={styles.side} open={matchMedia('(min-width: 861px)').matches}>
            <Text as="summary" tone="muted" small>
              Files
            </Text>
            {tree(show)}
          </details>
        )}
        <Stack ref={list} gap={2}>
          {children}
        </Stack>
      </div>
      {leftOut > 0 && <Hint as="p">{`${countText(leftOut, 'further file')} differ and are not listed.`}</Hint>}
    </Stack>
  );
}
