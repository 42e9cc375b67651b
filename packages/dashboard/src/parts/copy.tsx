import { visibleText } from '@runyard/contract/wire/visible';
import { useState } from 'react';
import { CodeBlock, Text } from './blocks.tsx';
import { Button, type ButtonLook } from './controls.tsx';
import { showToast } from './toast.tsx';

/**
 * Copies a text, and says so in the message `done`. Browsers give pages without TLS no clipboard, except on localhost: then the message
 * contains the text itself.
 */
export async function copyText(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    showToast(`The browser refuses to copy. Copy it from here: ${text}`);
  }
}

/** Shows a button that copies a text. `what` is the name of the button for screen readers, such as "Copy command". */
export function CopyButton({
  text,
  what,
  label,
  onCopied,
  ...looks
}: ButtonLook & {
  text: string | (() => string | Promise<string>);
  what: string;
  /** The visible label. Absent: the button shows only the icon. */
  label?: string;
  onCopied?: () => void;
}) {
  const [outcome, setOutcome] = useState<'copied' | 'refused' | undefined>();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(typeof text === 'string' ? text : await text());
      setOutcome('copied');
      onCopied?.();
    } catch {
      // Copying fails on pages without TLS, except on localhost, because browsers give such pages no clipboard.
      setOutcome('refused');
    }
    setTimeout(() => setOutcome(undefined), 2000);
  };
  const words =
    outcome === 'copied'
      ? 'Copied'
      : outcome === 'refused'
        ? 'The browser refuses: select the text and copy it'
        : visibleText(what);
  return (
    <Button
      {...(label === undefined ? ({ kind: 'ghost', small: true } as const) : {})}
      {...looks}
      icon={outcome === 'copied' ? 'check' : outcome === 'refused' ? 'warn' : 'copy'}
      square={label === undefined}
      aria-label={label === undefined ? words : undefined}
      title={words}
      onClick={() => void copy()}
    >
      {label}
      <Text spoken role="status">
        {outcome === undefined ? '' : words}
      </Text>
    </Button>
  );
}

/** Shows a command or another text of one or a few lines, with a button that copies it. */
export function CommandBlock({
  command,
  what = 'Copy command',
  onCopied,
}: {
  command: string;
  what?: string;
  onCopied?: () => void;
}) {
  return (
    <CodeBlock>
      <pre>{visibleText(command)}</pre>
      <CopyButton text={command} what={what} {...(onCopied ? { onCopied } : {})} />
    </CodeBlock>
  );
}
