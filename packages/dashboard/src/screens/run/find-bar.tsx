import { lazy, Suspense, useRef, useState } from 'react';
import { Button } from '../../parts/controls.tsx';
import { EarlyWords } from '../../parts/early-words.tsx';
import { keyText, useKeys } from '../../parts/keys.ts';
import talk from './talk.module.css';

const FindPanel = lazy(async () => ({ default: (await import('./find-panel.tsx')).FindPanel }));

/** Opens the search of the conversation with the keys of the browser's search, because the browser finds only what is rendered. */
export function FindBar({
  runId,
  ...go
}: {
  runId: string;
  goTo: (seq: number) => Promise<void>;
  toTop: () => void;
  toEnd: () => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const words = useRef('');
  const open = () => {
    setOpen(true);
    document.getElementById('find')?.focus();
  };
  useKeys([
    { key: 'mod+f', does: 'Find in the conversation', run: open },
    { key: '/', does: 'Find in the conversation', run: open },
    { key: 'g t', does: 'Top of the conversation', run: go.toTop },
    { key: 'g e', does: 'End of the conversation', run: go.toEnd },
  ]);
  if (!isOpen)
    return (
      <Button
        kind="ghost"
        small
        icon="search"
        className={talk.find}
        aria-label="Find in the conversation"
        title={`Find in the conversation (${keyText('mod+f')})`}
        onClick={open}
      />
    );
  return (
    <Suspense fallback={<EarlyWords words={words} />}>
      <FindPanel runId={runId} words={words} close={() => setOpen(false)} {...go} />
    </Suspense>
  );
}
