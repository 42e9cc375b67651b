import type { ChangedFile, RepositoryChanges } from '@runyard/contract/runs/changes';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { useClient } from '../../api/session.ts';
import { slowMs } from '../../api/slow-reads.ts';
import { Diff, readPatch } from '../../parts/diff.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';

/** Milliseconds between two reads of the changes while the agent works. */
const liveMs = 5_000;
/** Number of files whose changes are shown at first. The changes of other files are folded. */
const openFiles = 20;

/** Shows the files that the run has changed. A comment on a line becomes a part of the next message. */
export function Changes({ run, comment }: { run: RunItem; comment: (text: string) => void }) {
  const client = useClient();
  const { data, error, isPending, refetch } = useQuery({
    queryKey: ['changes', run.run_id, run.state],
    queryFn: async () => await client.getRunChanges({ params: { runId: run.run_id } }),
    refetchInterval: ({ state }) => (state.data?.is_live ? liveMs : slowMs),
    placeholderData: (before) => before,
  });
  if (error)
    return (
      <div className="pad">
        <Problem error={error} onRetry={() => void refetch()} />
      </div>
    );
  if (isPending) return <SkeletonRows />;
  const repositories = data.repositories.filter(({ files, problem }) => files.length > 0 || problem !== undefined);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls the changes
    <div className="scroll" tabIndex={0}>
      <div className="flow">
        <p className="small dim">
          {data.as_of === undefined ? (
            'No changes are known: the sandbox has reported none. It compares only files in git repositories.'
          ) : (
            <>
              As of <Ago time={data.as_of} />
              {data.is_live ? ', read again every few seconds' : ''}. Compared with the commits that were cloned.
            </>
          )}
        </p>
        {data.as_of !== undefined && repositories.length === 0 && (
          <p className="mut">
            {data.repositories.length === 0
              ? 'The workspace has no git repository, so its files are not compared.'
              : 'No file differs from the commits that were cloned.'}
          </p>
        )}
        {repositories.map((repository) => (
          <Repository key={repository.path} repository={repository} comment={comment} />
        ))}
      </div>
    </div>
  );
}

function Repository({ repository, comment }: { repository: RepositoryChanges; comment: (text: string) => void }) {
  const { files, problem } = repository;
  const added = files.reduce((sum, { additions }) => sum + (additions ?? 0), 0);
  const deleted = files.reduce((sum, { deletions }) => sum + (deletions ?? 0), 0);
  return (
    <section className="stack s2">
      <h2 className="row">
        <Icon name="git" small />
        <span className="mono cut">{visibleText(repository.path === '' ? 'workspace' : repository.path)}</span>
        {repository.branch && <span className="dim">{visibleText(repository.branch)}</span>}
        <span className="right small">
          {countText(files.length + (repository.files_left_out ?? 0), 'file')} <span className="okc">+{added}</span>{' '}
          <span className="badc">−{deleted}</span>
        </span>
      </h2>
      {problem && <p className="note wait">{visibleText(problem)}</p>}
      {files.map((file, index) => (
        <File key={file.path} file={file} isOpenFirst={index < openFiles} comment={comment} />
      ))}
      {repository.files_left_out && (
        <p className="hint">{`${countText(repository.files_left_out, 'further file')} differ and are not listed.`}</p>
      )}
    </section>
  );
}

function File({
  file,
  isOpenFirst,
  comment,
}: {
  file: ChangedFile;
  isOpenFirst: boolean;
  comment: (text: string) => void;
}) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const name = file.old_path ? `${file.old_path} → ${file.path}` : file.path;
  return (
    <details className="act" open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <Icon name="diff" small />
        <span className="mono cut grow">{visibleText(name)}</span>
        {file.status !== 'modified' && <span className="dim small">{file.status.replaceAll('_', ' ')}</span>}
        <span className="small">
          {file.additions !== undefined && <span className="okc">+{file.additions}</span>}{' '}
          {file.deletions !== undefined && <span className="badc">−{file.deletions}</span>}
        </span>
      </summary>
      {isOpen &&
        (file.patch === undefined ? (
          <p className="card-b mut">
            {file.binary ? 'A binary file.' : file.too_large ? 'The change is too large to show.' : 'No line differs.'}
          </p>
        ) : (
          <Diff
            lines={readPatch(file.patch)}
            onLine={({ number, text }) => comment(`${file.path}:${number}: \`${text.trim().slice(0, 200)}\`\n`)}
          />
        ))}
    </details>
  );
}
