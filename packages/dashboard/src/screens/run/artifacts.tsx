import type { ArtifactItem } from '@runyard/contract/runs/artifacts';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunItem } from '@runyard/contract/runs/runs';
import { visibleText } from '@runyard/contract/wire/visible';
import { lazy, Suspense, useState } from 'react';
import { useClient } from '../../api/session.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Count, Fold, Hint, P, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { sizeText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import type { IconName } from '../../parts/icons.ts';
import { Problem } from '../../parts/problem.tsx';
import styles from './facts.module.css';

const Preview = lazy(async () => ({ default: (await import('./preview.tsx')).Preview }));

/** A row of the list of artifacts. */
interface Row {
  readonly icon: IconName;
  readonly name: string;
  readonly note: string;
  /** Absent if the artifact has no bytes to read. */
  readonly uid?: string | undefined;
  readonly url?: string | undefined;
}

function rowOf(artifact: ArtifactItem): Row {
  switch (artifact.artifact_type) {
    case 'PLAN':
      return { icon: 'plan', name: artifact.data.title ?? 'Plan', note: 'plan', uid: artifact.data.artifact_uid };
    case 'PULL_REQUEST': {
      const { url, branch, status } = artifact.data;
      const [, repository, number] =
        /([^/]+\/[^/]+)\/(?:pull|pulls|merge_requests|-\/merge_requests)\/(\d+)/.exec(url) ?? [];
      return {
        icon: 'pr',
        name: repository ? `${repository} #${number}` : branch,
        note: status === 'unknown' ? 'pull request' : `pull request, ${status}`,
        url,
      };
    }
    case 'SCREENSHOT':
      return {
        icon: 'env',
        name: artifact.data.description ?? 'Screenshot',
        note: 'screenshot',
        uid: artifact.data.artifact_uid,
      };
    case 'FILE': {
      const { title, filename, size_bytes: size } = artifact.data;
      return {
        icon: 'file',
        name: title ?? filename,
        note: size === undefined ? 'file' : sizeText(size),
        uid: artifact.data.artifact_uid,
      };
    }
    case 'EXTERNAL_REFERENCE': {
      const { title, url, reference_type: type } = artifact.data;
      return { icon: 'link', name: title ?? url, note: type, url };
    }
  }
}

/** Lists the artifacts of a run. A file opens in a preview. A link shows its target. */
export function Artifacts({ run }: { run: RunItem }) {
  const artifacts = run.artifacts ?? [];
  const [opened, setOpened] = useState<string | undefined>();
  return (
    <div className={styles.section}>
      <h2>
        Artifacts <Count>{artifacts.length > 0 ? artifacts.length : ''}</Count>
      </h2>
      {artifacts.length === 0 ? (
        <P tone="dim">
          {!isTerminal(run.state) ? 'None yet.' : run.started_at === null ? 'None. The agent did not begin.' : 'None.'}
        </P>
      ) : (
        <ul className={styles.files}>
          {artifacts.map((artifact, index) => (
            <Item key={index} row={rowOf(artifact)} open={setOpened} />
          ))}
        </ul>
      )}
      <Suspense>{opened !== undefined && <Preview uid={opened} close={() => setOpened(undefined)} />}</Suspense>
    </div>
  );
}

function Item({ row, open }: { row: Row; open: (uid: string) => void }) {
  const name = visibleText(row.name);
  const { uid, url } = row;
  const isWeb = url !== undefined && /^https?:\/\//i.test(url);
  return (
    <li>
      <Icon name={row.icon} small />
      {uid !== undefined ? (
        <Fold type="button" cut onClick={() => open(uid)}>
          {name}
        </Fold>
      ) : isWeb ? (
        <Text as="a" cut href={url} target="_blank" rel="noreferrer noopener" title={visibleText(url)}>
          {name}
        </Text>
      ) : (
        <Text cut>{name}</Text>
      )}
      <Hint right>{visibleText(row.note)}</Hint>
    </li>
  );
}

/** Shows a button that downloads an artifact from a signed address, so that the address needs no key. */
export function DownloadButton({ uid }: { uid: string }) {
  const client = useClient();
  const { error, attempt } = useAttempts();
  const download = async () => {
    await attempt(async () => {
      const { data } = await client.getArtifact({ params: { artifactUid: uid } });
      if ('download_url' in data && typeof data.download_url === 'string') location.assign(data.download_url);
    });
  };
  return (
    <>
      <Button onClick={() => void download()}>Download</Button>
      <Problem error={error} />
    </>
  );
}
