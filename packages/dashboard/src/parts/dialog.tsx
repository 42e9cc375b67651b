/**
 * Dialogs of React Aria. The focus stays inside a dialog, Escape closes the dialog, and the focus returns to the opener. This file is
 * loaded with the first dialog.
 */

import { visibleText } from '@runyard/contract/wire/visible';
import { type ReactNode, useState } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';
import { useAttempts } from './attempt.ts';
import { Hint, P, Text } from './blocks.tsx';
import { Button } from './controls.tsx';
import { CommandBlock } from './copy.tsx';
import styles from './dialog.module.css';
import { Problem } from './problem.tsx';

/**
 * Shows a dialog. `footer` has the buttons of the dialog. Escape and a click outside of the dialog call `close`, but do nothing if
 * `mustDecide` is set.
 */
export function Dialog({
  title,
  children,
  footer,
  close,
  mustDecide = false,
  isAlert = false,
}: {
  title: string;
  children: ReactNode;
  footer: ReactNode;
  close: () => void;
  mustDecide?: boolean;
  isAlert?: boolean;
}) {
  return (
    <ModalOverlay
      className={styles.overlay ?? ''}
      isOpen
      isDismissable={!mustDecide}
      isKeyboardDismissDisabled={mustDecide}
      onOpenChange={(open) => open || close()}
    >
      <Modal className={styles.dialog ?? ''}>
        <AriaDialog role={isAlert ? 'alertdialog' : 'dialog'}>
          <div className={styles.body}>
            <Heading slot="title" level={2}>
              {visibleText(title)}
            </Heading>
            {children}
          </div>
          <div className={styles.foot}>{footer}</div>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/**
 * Asks for confirmation before an action that cannot be undone. `children` describe what the action changes. The focus is on the button
 * that does not run the action.
 */
export function ConfirmDialog({
  title,
  children,
  action,
  safe = 'Keep',
  run,
  close,
}: {
  title: string;
  children: ReactNode;
  /** Label of the button that runs the action. */
  action: string;
  safe?: string;
  run: () => Promise<unknown>;
  close: () => void;
}) {
  const { error, isBusy, attempt } = useAttempts();
  const act = async () => {
    if (await attempt(run)) close();
  };
  return (
    <Dialog
      title={title}
      close={close}
      isAlert
      footer={
        <>
          <Button autoFocus onClick={close}>
            {safe}
          </Button>
          <Button kind="danger" disabled={isBusy} onClick={() => void act()}>
            {action}
          </Button>
        </>
      }
    >
      <Text as="div" tone="muted">
        {children}
      </Text>
      <Problem error={error} />
    </Dialog>
  );
}

/**
 * Shows a secret that the service shows only once. Closes only after the person has copied the secret, or has confirmed that the secret is
 * stored.
 */
export function SecretOnceDialog({
  title,
  value,
  hint,
  children,
  close,
}: {
  title: string;
  value: string;
  hint?: string;
  children?: ReactNode;
  close: () => void;
}) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Dialog
      title={title}
      close={close}
      mustDecide
      footer={
        <>
          <Hint grow>{hint}</Hint>
          {!isCopied && (
            <Button kind="ghost" onClick={close}>
              I stored it
            </Button>
          )}
          <Button kind="primary" disabled={!isCopied} onClick={close}>
            {isCopied ? 'Done' : 'Copy it first'}
          </Button>
        </>
      }
    >
      <P tone="muted">It is shown only once. Copy it now, because nobody can show it again.</P>
      <CommandBlock command={value} what="Copy value" onCopied={() => setCopied(true)} />
      {children}
    </Dialog>
  );
}
