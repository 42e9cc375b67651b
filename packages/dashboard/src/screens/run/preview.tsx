import type { Client } from '@runyard/client';
import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery } from '@tanstack/react-query';
import { useClient } from '../../api/session.ts';
import { Hint, P } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { DownloadButton } from './artifacts.tsx';
import styles from './preview.module.css';

interface Content {
  readonly name: string;
  readonly kind: 'plan' | 'text' | 'image' | 'frame' | 'none';
  readonly text?: string;
  readonly url?: string | undefined;
  /** A note that there is no preview, with the reason, or that the preview shows only a part of the artifact. */
  readonly note?: string | undefined;
}

/**
 * Reads the part of an artifact that the page can show. The service decides from the first bytes what kind of content it is, and does not
 * trust the type that the agent reported.
 */
async function readContent(client: Client, uid: string): Promise<Content> {
  const artifact = await client.getArtifact({ params: { artifactUid: uid } });
  const data = artifact.data as Readonly<Record<string, unknown>>;
  const name = String(data.title ?? data.filename ?? data.description ?? 'Artifact');
  if (typeof data.content === 'string') return { name, kind: 'plan', text: data.content };
  const preview = await client.getArtifactPreview({ params: { artifactUid: uid } });
  if (preview.kind !== 'text' || preview.url === undefined)
    return { name, kind: preview.kind, url: preview.url, note: preview.reason };
  const response = await fetch(preview.url);
  if (!response.ok) throw new Error(`the file cannot be read (HTTP ${response.status})`);
  const isPart = (preview.shown_bytes ?? preview.size_bytes) < preview.size_bytes;
  return {
    name,
    kind: 'text',
    text: await response.text(),
    note: isPart ? 'This is the beginning of the file.' : undefined,
  };
}

/** Shows a plan, a text or an image. HTML and SVG are shown in a frame that has another origin and runs no scripts. */
export function Preview({ uid, close }: { uid: string; close: () => void }) {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ['artifact', uid],
    queryFn: async () => await readContent(client, uid),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Dialog
      title={visibleText(data?.name ?? 'Artifact')}
      close={close}
      footer={
        <>
          <DownloadButton uid={uid} />
          <Button kind="primary" onClick={close}>
            Close
          </Button>
        </>
      }
    >
      <Problem error={error} />
      {data?.kind === 'plan' && <Markdown text={data.text ?? ''} />}
      {data?.kind === 'text' && <Terminal text={data.text ?? ''} />}
      {data?.kind === 'image' && <img className={styles.preview} src={data.url} alt={visibleText(data.name)} />}
      {data?.kind === 'frame' && (
        <iframe className={styles.frame} sandbox="" src={data.url} title={visibleText(data.name)} />
      )}
      {data?.kind === 'none' && <P tone="muted">This kind of file has no preview. Download it.</P>}
      {data?.note && <Hint as="p">{data.note}</Hint>}
    </Dialog>
  );
}
