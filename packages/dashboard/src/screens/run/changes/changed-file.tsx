import type { ChangedFile } from '@runyard/contract/runs/changes';
import { visibleText } from '@runyard/contract/wire/visible';
import { useId, useMemo, useState } from 'react';
import { CardBody, Hint, Text } from '../../../parts/blocks.tsx';
import { Diff, type DiffLine, readPatch } from '../../../parts/diff.tsx';
import { Icon } from '../../../parts/icon.tsx';
import styles from './changes.module.css';
import { LineComment } from './line-comment.tsx';
import { useLineContents } from './line-contents.tsx';

/** Shows a changed file: its name, a mark that the person has viewed it, and its changed lines. */
export function FileChanges({
  file,
  isOpen,
  setOpen,
  isViewed,
  setViewed,
  comment,
}: {
  file: ChangedFile;
  isOpen: boolean;
  setOpen: (isOpen: boolean) => void;
  isViewed: boolean;
  setViewed: (isViewed: boolean) => void;
  comment: (text: string) => void;
}) {
  const name = visibleText(file.old_path ? `${file.old_path} → ${file.path}` : file.path);
  const body = useId();
  return (
    <section className={styles.file} data-part="action" aria-label={name}>
      <div className={styles.head}>
        <button
          type="button"
          className={styles.toggle}
          aria-expanded={isOpen}
          aria-controls={body}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? 'down' : 'right'} small />
          <Text mono cut grow>
            {name}
          </Text>
          {file.status !== 'modified' && <Hint>{file.status.replaceAll('_', ' ')}</Hint>}
          <Text small>
            {file.additions !== undefined && <Text tone="good">+{file.additions}</Text>}{' '}
            {file.deletions !== undefined && <Text tone="bad">−{file.deletions}</Text>}
          </Text>
        </button>
        <label className={styles.viewed}>
          <input
            type="checkbox"
            aria-label={`Viewed ${name}`}
            checked={isViewed}
            onChange={({ target }) => setViewed(target.checked)}
          />
          <span>Viewed</span>
        </label>
      </div>
      <div id={body}>{isOpen && <Body file={file} comment={comment} />}</div>
    </section>
  );
}

function Body({ file, comment }: { file: ChangedFile; comment: (text: string) => void }) {
  if (file.patch === undefined)
    return (
      <CardBody as="p" tone="muted">
        {file.binary ? 'A binary file.' : file.too_large ? 'The change is too large to show.' : 'No line differs.'}
      </CardBody>
    );
  return <Patch path={file.path} patch={file.patch} comment={comment} />;
}

function Patch({ path, patch, comment }: { path: string; patch: string; comment: (text: string) => void }) {
  const lines = useMemo(() => readPatch(patch), [patch]);
  const content = useLineContents(path, lines);
  const [commented, setCommented] = useState<DiffLine | undefined>();
  // The agent may have changed the file since the person opened the field, so find the line by its place and its text.
  const isCommented = ({ kind, number, text }: DiffLine) =>
    commented !== undefined && kind === commented.kind && number === commented.number && text === commented.text;
  return (
    <Diff
      lines={lines}
      content={content}
      onLine={setCommented}
      below={(line) =>
        isCommented(line) && <LineComment path={path} line={line} add={comment} close={() => setCommented(undefined)} />
      }
    />
  );
}
