import { useQuery } from '@tanstack/react-query';
import { Button } from 'react-aria-components';
import { useClient } from '../../api/session.ts';
import { Dialog } from '../../parts/dialog.tsx';
import { Markdown } from '../../parts/markdown/markdown.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Terminal } from '../../parts/terminal.tsx';
import { visibleText } from '../../parts/untrusted.ts';
import { DownloadButton } from './artifacts.tsx';
import styles from './run.module.css';

/** Bytes of a text that the page shows. */
const mostBytes = 512 * 1024;

interface Content {
  readonly name: string;
  readonly kind: 'plan' | 'text' | 'image' | 'none';
  readonly text?: string;
  readonly url?: string;
  readonly isCut?: boolean;
}

/** Shows a plan, a text or an image. Everything else, HTML and SVG too, is a download only. */
export function Preview({ uid, close }: { uid: string; close: () => void }) {
  const client = useClient();
  const { data, error } = useQuery({
    queryKey: ['artifact', uid],
    queryFn: async (): Promise<Content> => {
      const artifact = await client.getArtifact({ params: { artifactUid: uid } });
      const data = artifact.data as Readonly<Record<string, unknown>>;
      const name = String(data.title ?? data.filename ?? data.description ?? 'Artifact');
      if (typeof data.content === 'string') return { name, kind: 'plan', text: data.content };
      const url = typeof data.download_url === 'string' ? data.download_url : undefined;
      const type =
        String(data.content_type ?? '')
          .split(';')[0]
          ?.trim() ?? '';
      if (url === undefined || new URL(url, location.origin).origin !== location.origin) return { name, kind: 'none' };
      if (/^image\/(?:png|jpeg|gif|webp|avif)$/.test(type)) return { name, kind: 'image', url };
      const isText = /^(?:text\/(?!html|xml)|application\/(?:json|x-ndjson|yaml|toml))/.test(type);
      if (!isText) return { name, kind: 'none' };
      const response = await fetch(url, { headers: { range: `bytes=0-${mostBytes - 1}` } });
      if (!response.ok) throw new Error(`the file cannot be read (HTTP ${response.status})`);
      return { name, kind: 'text', text: await response.text(), isCut: response.status === 206 };
    },
    staleTime: 60_000,
  });
  return (
    <Dialog
      title={visibleText(data?.name ?? 'Artifact')}
      close={close}
      footer={
        <>
          <DownloadButton uid={uid} />
          <Button className="btn pri" onPress={close}>
            Close
          </Button>
        </>
      }
    >
      <Problem error={error} />
      {data?.kind === 'plan' && <Markdown text={data.text ?? ''} />}
      {data?.kind === 'text' && <Terminal text={data.text ?? ''} />}
      {data?.isCut && <p className="hint">This is the beginning of the file.</p>}
      {data?.kind === 'image' && <img className={styles.preview} src={data.url} alt={data.name} />}
      {data?.kind === 'none' && <p className="mut">This kind of file has no preview. Download it.</p>}
    </Dialog>
  );
}
