import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { useRead } from '../../api/read.ts';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Count, Fold, Hint, P } from '../../parts/blocks.tsx';
import { CommandBlock } from '../../parts/copy.tsx';
import { sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { Problem } from '../../parts/problem.tsx';
import { useNow } from '../../parts/time.tsx';
import { endOf, filesReadMs, lateMs } from './changes/files-read.ts';
import styles from './facts.module.css';

/** Returns the command that applies a patch. The agent chooses the names of files, so an unusual name is not part of the command. */
export const applyCommand = (fileName: string): string =>
  `git apply --index ${/^\w[\w.-]*$/.test(fileName) ? fileName : 'DOWNLOADED.patch'}`;

/**
 * Lists the files that the last turn left for a person who continues the work of the run, and shows how to apply its patches. `isViewed`:
 * the person views the changes.
 */
export function Workspace({ run, isViewed = false }: { run: RunItem; isViewed?: boolean }) {
  const client = useClient();
  const params = { runId: run.run_id };
  const end = endOf(run);
  const { data, error } = useRead(
    ['handoff', run.run_id, end],
    async (client) => (await client.listHandoffAttachments({ params })).attachments,
    {
      enabled: run.started_at !== null,
      refetchInterval: ({ state }) => filesReadMs(run, { isViewed, isCurrent: (state.data ?? []).length > 0 }),
    },
  );
  const { error: failure, attempt } = useAttempts();
  const isLate = useNow() - Date.parse(end) > lateMs;
  if (data === undefined && !error) return null;
  if (data?.length === 0 && !isTerminal(run.state)) return null;
  // The addresses are valid for 15 minutes, so read a new one for each download.
  const download = (id: string) =>
    attempt(async () => {
      const { attachments } = await client.listHandoffAttachments({ params });
      const file = attachments.find(({ attachment_id: each }) => each === id);
      if (file === undefined) throw new Error('the run has newer files now: load the page again');
      location.assign(file.download_url);
    });
  const patches = (data ?? []).filter(({ filename }) => filename.endsWith('.patch'));
  return (
    <div className={styles.section}>
      <h2>
        Workspace <Count>{data && data.length > 0 ? data.length : ''}</Count>
      </h2>
      <Problem error={error ?? failure} />
      {data?.length === 0 && (
        <P tone="dim">
          {isLate
            ? 'None stored: the workspace has no files or changes, and the agent handed off no file.'
            : 'None yet: the sandbox sends its files a moment after the end.'}
        </P>
      )}
      {data && data.length > 0 && (
        <ul className={styles.files}>
          {data.map(({ attachment_id: id, filename, size_bytes: size }) => (
            <li key={id}>
              <Icon name={filename.endsWith('.patch') ? 'diff' : 'file'} small />
              <Fold
                type="button"
                cut
                aria-label={`Download ${visibleText(filename)}`}
                onClick={() => void download(id)}
              >
                {visibleText(filename)}
              </Fold>
              <Hint right>{sizeText(size)}</Hint>
            </li>
          ))}
        </ul>
      )}
      {patches.length > 0 && (
        <>
          <Hint as="p">To continue elsewhere, download a patch and apply it to a fresh clone of its repository:</Hint>
          <CommandBlock command={patches.map(({ filename }) => applyCommand(filename)).join('\n')} />
        </>
      )}
    </div>
  );
}
